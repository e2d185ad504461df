"""Any cell as a `Scan`: products of x before it, the rest of the step inside.

Rows of other lengths ride along: a row that has ended (in reverse: not begun) keeps its state, and
its output is zero. So rows of no length need no care, and neither does the reverse direction.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from ensue.engine.native.emission.gate_runs import gate_number
from ensue.equations import Node, below
from ensue.equations.node import MatrixRef
from ensue.export.onnx.builder import Builder, load_onnx
from ensue.export.stack import Direction

OPERATORS = {
    "negative": "Neg",
    "multiply": "Mul",
    "divide": "Div",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "relu": "Relu",
    "exp": "Exp",
    "log": "Log",
    "softplus": "Softplus",
    "sqrt": "Sqrt",
    "maximum": "Max",
}


class StepGraph:
    """The nodes of one step. Values are (batch, features), or broadcast to it."""

    def __init__(self, builder: Builder, direction: Direction, values: dict[Node, str]) -> None:
        """values: the names of those nodes that are there already."""
        self.builder, self.direction, self.values = builder, direction, dict(values)
        self._products: dict[tuple[str, Node], list[MatrixRef]] = {}
        for node in below(direction.equations.roots):
            if node.op == "product":
                self._products.setdefault((node.attr.name, node.args[0]), []).append(node.attr)

    def name(self, node: Node) -> str:
        for own in below([node], self.values.__contains__):
            if own not in self.values:
                self.values[own] = self._compute(own)
        return self.values[node]

    def _compute(self, node: Node) -> str:
        add, values = self.builder.add, [self.values[a] for a in node.args]
        match node.op:
            case "constant":
                return self.builder.constant([node.attr])
            case "count":
                return self.builder.constant([float(node.graph.width(node.attr))])
            case "vector":
                return self.builder.constant(_rows(self.direction, node.attr, node.width))
            case "product":
                return self._product(node)
            case "add":
                return reduce(lambda a, b: add("Add", a, b), values)
            case "sum":
                return add("ReduceSum", *values, self.builder.whole(-1), keepdims=1)
            case "mean":
                return add("ReduceMean", *values, self.builder.whole(-1), keepdims=1)
            case "spread":
                return add("Mul", *values, self.builder.constant(np.ones(node.width)))
            case "greater":
                above = add("Greater", *values)
                return add("Cast", above, to=load_onnx().TensorProto.FLOAT)
        return add(OPERATORS[node.op], *values)

    def _product(self, node: Node) -> str:
        """A gate of one product with all gates of a matrix that meet the same operand."""
        refs = self._products[node.attr.name, node.args[0]]
        refs = sorted(set(refs), key=lambda ref: gate_number(self.direction.equations, ref))
        found = products(self.builder, self.direction, refs, self.values[node.args[0]])
        for ref, name in zip(refs, found, strict=True):
            self.values[node.graph.product(ref, node.args[0])] = name
        return self.values[node]


def _rows(
    direction: Direction, ref: object, width: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    first = gate_number(direction.equations, ref) * width  # type: ignore[arg-type]
    value = direction.weights[ref.name].value  # type: ignore[attr-defined]
    return np.asarray(value[first : first + width])


def products(
    builder: Builder, direction: Direction, refs: list[MatrixRef], operand: str
) -> list[str]:
    """Gates of one matrix times an operand (…, features), in one product."""
    stored = direction.weights[refs[0].name]
    height = direction.equations.graph.width(refs[0].rows)
    declared = stored.data.shape[0] // height
    whole = builder.add("MatMul", operand, builder.turned(stored))
    if declared == 1:
        return [whole]
    split = builder.whole(*[height] * declared)
    gates = [builder.name() for _ in range(declared)]
    builder.several("Split", [whole, split], gates, axis=-1)
    return [gates[gate_number(direction.equations, ref)] for ref in refs]


def scan(
    builder: Builder, direction: Direction, x: str, state: list[str], alive: str, reverse: bool
) -> tuple[str, list[str]]:
    """The cell over x (time, batch, input); alive (time, batch, 1): the real steps. Gives y and
    the final state."""
    onnx, equations = load_onnx(), direction.equations
    outside = StepGraph(builder, direction, {equations.x: x})
    hoisted = [
        node
        for node in below(equations.roots)
        if node.op == "product" and node.args[0] is equations.x
    ]
    given = {node: outside.name(node) for node in hoisted}
    if equations.uses_x_elementwise or any(root is equations.x for root in equations.roots):
        given[equations.x] = x
    body = Builder(builder)
    old = {node: body.name() for node in equations.old.values()}
    inner = {node: body.name() for node in given}
    now = body.name()
    step = StepGraph(body, direction, {**old, **inner})
    new = [
        body.add("Where", now, step.name(node), old[leaf])
        for node, leaf in zip(equations.state.values(), equations.old.values(), strict=True)
    ]
    zeros = body.constant(np.zeros(direction.output_size))
    y = body.add("Where", now, step.name(equations.output), zeros)
    real, truth = onnx.TensorProto.FLOAT, onnx.TensorProto.BOOL
    inputs = [(name, real, None) for name in (*old.values(), *inner.values())]
    graph = body.graph(
        "step", [*inputs, (now, truth, None)], [(name, real, None) for name in (*new, y)]
    )
    scanned = len(inner) + 1
    outputs = [builder.name() for _ in (*new, y)]
    builder.several(
        "Scan",
        [*state, *given.values(), alive],
        outputs,
        body=graph,
        num_scan_inputs=scanned,
        scan_input_directions=[int(reverse)] * scanned,
        scan_output_directions=[int(reverse)],
    )
    return outputs[-1], outputs[:-1]
