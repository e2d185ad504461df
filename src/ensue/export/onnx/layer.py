"""A layer as an ONNX graph: standard operators for standard cells, `Scan` for others.

    x        (time, batch, input); (batch, time, input) if the layer has the batch first
    lengths  (batch,) int64; optional, by default all rows are full
    h_0, …   (batch, features), each part of each layer and direction; optional, by default the
             initial state of the layer

Outputs: y, zero beyond a row's end, and h_0_end, …, the state after each row's last real step.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from ensue.engine.native.emission.buffers import gate_number
from ensue.equations import Node, below
from ensue.equations.node import MatrixRef
from ensue.export.onnx.builder import Builder, load_onnx, model_of
from ensue.export.onnx.operators import Operator, operator_of
from ensue.export.stack import Direction, Stack
from ensue.export.weights import Stored, store

if TYPE_CHECKING:
    import onnx

# -------------------------------------------------------------------------------------------------
# Any cell as a `Scan`: products of x before it, the rest of the step inside.
#
# A row that has ended (in reverse: not begun) keeps its state, and its output is zero. So empty
# rows and the reverse direction need no special treatment.

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
    """The nodes of one step. Values are (batch, features), or can be broadcast to it."""

    def __init__(self, builder: Builder, direction: Direction, values: dict[Node, str]) -> None:
        """values: the names of nodes that already exist."""
        self.builder, self.direction, self.values = builder, direction, dict(values)
        self._products: dict[tuple[str, Node], list[MatrixRef]] = {}
        for node in below(direction.equations.roots):
            if node.op == "product":
                self._products.setdefault((node.attr.name, node.args[0]), []).append(node.attr)

    def name(self, node: Node) -> str:
        for each in below([node], self.values.__contains__):
            if each not in self.values:
                self.values[each] = self._compute(each)
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
        """A gate of a product; all gates of a matrix with the same operand are one product."""
        refs = self._products[node.attr.name, node.args[0]]
        refs = sorted(set(refs), key=lambda ref: gate_number(self.direction.equations, ref))
        joined = products(self.builder, self.direction, refs, self.values[node.args[0]])
        for ref, name in zip(refs, joined, strict=True):
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
    """The cell over x (time, batch, input); alive (time, batch, 1): the real steps. Returns y and
    the final state."""
    onnx, equations = load_onnx(), direction.equations
    outside = StepGraph(builder, direction, {equations.x: x})
    hoisted = [
        node
        for node in below(equations.roots)
        if node.op == "product" and node.args[0] is equations.x
    ]
    outside_names = {node: outside.name(node) for node in hoisted}
    if equations.uses_x_elementwise or any(root is equations.x for root in equations.roots):
        outside_names[equations.x] = x
    body = Builder(builder)
    old = {node: body.name() for node in equations.old.values()}
    inner = {node: body.name() for node in outside_names}
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
        [*state, *outside_names.values(), alive],
        outputs,
        body=graph,
        num_scan_inputs=scanned,
        scan_input_directions=[int(reverse)] * scanned,
        scan_output_directions=[int(reverse)],
    )
    return outputs[-1], outputs[:-1]


FULL = np.iinfo(np.int64).max  # a length that means: as long as x


class Sequences:
    """The lengths of x and its rows, which all layers of a graph share."""

    def __init__(self, builder: Builder, x: str, lengths: str) -> None:
        """x (time, batch, …); lengths: (batch,), or a single number for all rows."""
        self.builder = builder
        add = builder.add
        self.steps, self.batch = builder.axis_size(x, 0), builder.axis_size(x, 1)
        rows = add("Expand", lengths, self.batch)
        self.lengths = add("Min", rows, self.steps)
        first, one = builder.constant(0, np.int64), builder.constant(1, np.int64)
        end = add("Squeeze", self.steps)
        self.times = add("Unsqueeze", add("Range", first, end, one), builder.whole(1))
        self._alive: dict[int, str] = {}

    def alive(self, less: int = 0) -> str:
        """The real steps, without the last `less` of each row; shape (time, batch, 1)."""
        if less not in self._alive:
            add = self.builder.add
            lengths = self.lengths
            if less:
                lengths = add("Sub", lengths, self.builder.whole(less))
            self._alive[less] = add(
                "Unsqueeze", add("Less", self.times, lengths), self.builder.whole(2)
            )
        return self._alive[less]

    def is_last(self) -> str:
        """Each row's last real step; shape (time, batch, 1)."""
        add = self.builder.add
        last = add("Sub", self.lengths, self.builder.whole(1))
        return add("Unsqueeze", add("Equal", self.times, last), self.builder.whole(2))


def add_direction(
    builder: Builder,
    direction: Direction,
    sequences: Sequences,
    x: str,
    state: list[str],
    reverse: bool = False,
    less: int = 0,
) -> tuple[str, list[str]]:
    """One cell over x, in one direction, without the last `less` steps of each row."""
    operator = operator_of(direction)
    if operator is None or less:
        return scan(builder, direction, x, state, sequences.alive(less), reverse)
    kinds = {stored.kind for stored in direction.weights.stored.values()} - {"float32"}
    kind = next(iter(kinds), "float32")
    return standard(builder, operator, sequences, x, state, reverse, kind)


def standard(
    builder: Builder,
    operator: Operator,
    sequences: Sequences,
    x: str,
    state: list[str],
    reverse: bool,
    kind: str,
) -> tuple[str, list[str]]:
    """RNN, GRU or LSTM. An empty row keeps its initial state as the final one; the operator alone
    would return zero."""
    add, front = builder.add, builder.whole(0)

    def matrix(value: Any) -> str:
        """A matrix in the layer's storage kind, with an axis for directions."""
        return add("Unsqueeze", builder.weight(store(value[0], kind)), front)

    lengths = add("Cast", sequences.lengths, to=load_onnx().TensorProto.INT32)
    begin = [add("Unsqueeze", part, front) for part in state]
    inputs = [
        x,
        matrix(operator.W),
        matrix(operator.R),
        builder.weight(Stored("float32", operator.B)),
        lengths,
        *begin,
    ]
    if operator.P is not None:
        inputs.append(builder.weight(Stored("float32", operator.P)))
    outputs = [builder.name() for _ in range(1 + len(state))]
    direction = "reverse" if reverse else "forward"
    builder.several(operator.name, inputs, outputs, direction=direction, **operator.attributes)
    y = add("Squeeze", outputs[0], builder.whole(1))
    zero = builder.whole(0)
    empty = add("Unsqueeze", add("Equal", sequences.lengths, zero), builder.whole(1))
    final = [
        add("Where", empty, first, add("Squeeze", end, front))
        for first, end in zip(state, outputs[1:], strict=True)
    ]
    return y, final


def add_stack(
    builder: Builder, stack: Stack, sequences: Sequences, x: str, states: list[list[str]]
) -> tuple[str, list[list[str]]]:
    """All layers over x (time, batch, input)."""
    finals: list[list[str]] = []
    number = 0
    for layer in stack.layers:
        y, end = add_direction(builder, layer[0], sequences, x, states[number])
        finals.append(end)
        if len(layer) == 2:
            start = stack.backward_start
            begin = states[number + 1] if start == "zero" else end
            less = int(start == "shared_end")
            back, end = add_direction(builder, layer[1], sequences, x, begin, True, less)
            if less:
                back = builder.add("Where", sequences.is_last(), y, back)
            finals.append(end)
            y = builder.add("Concat", y, back, axis=-1)
        x, number = y, number + len(layer)
    return x, finals


def onnx_model(
    stack: Stack, batch_first: bool = False, about: dict[str, str] | None = None
) -> onnx.ModelProto:
    """The whole file."""
    onnx = load_onnx()
    builder = Builder()
    time_axes = ["batch", "time"] if batch_first else ["time", "batch"]
    x = builder.add("Transpose", "x", perm=[1, 0, 2]) if batch_first else "x"
    lengths = "lengths"
    if stack.max_length is not None:
        x, lengths = _to_length(builder, stack, x)
    sequences = Sequences(builder, x, lengths)
    rows = builder.add("Concat", sequences.batch, builder.whole(1), axis=0)
    states, names = [], iter(stack.state_names)
    for direction in stack.directions:
        states.append([builder.add("Expand", next(names)[0], rows) for _ in direction.parts])
    y, finals = add_stack(builder, stack, sequences, x, states)
    if batch_first:
        builder.add("Transpose", y, perm=[1, 0, 2], name="y")
    else:
        builder.add("Identity", y, name="y")
    ends = [part for end in finals for part in end]
    for (name, _), end in zip(stack.state_names, ends, strict=True):
        builder.add("Identity", end, name=f"{name}_end")
    real, whole = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    inputs: list[Any] = [("x", real, [*time_axes, stack.input_size]), ("lengths", whole, ["rows"])]
    inputs += [(name, real, [f"{name}_rows", width]) for name, width in stack.state_names]
    out_axes = [ax if ax == "batch" else f"{ax}_out" for ax in time_axes]
    outputs: list[Any] = [("y", real, [*out_axes, stack.output_size])]
    outputs += [(f"{name}_end", real, ["batch", width]) for name, width in stack.state_names]
    _add_defaults(builder, stack)
    return model_of(builder.graph("layer", inputs, outputs), about)


def _add_defaults(builder: Builder, stack: Stack) -> None:
    """Adds the defaults of optional inputs: one row, broadcast over the batch."""
    named: list[tuple[str, Any]] = [("lengths", np.array([FULL], np.int64))]
    starts = [part for direction in stack.directions for part in direction.start]
    for (name, _), start in zip(stack.state_names, starts, strict=True):
        named.append((name, start[None]))
    for name, value in named:
        builder.constants.append(load_onnx().numpy_helper.from_array(value, name))


def _to_length(builder: Builder, stack: Stack, x: str) -> tuple[str, str]:
    """x of exactly max_length steps, and the lengths of its rows."""
    most, add = stack.max_length, builder.add
    assert most is not None
    sequences = Sequences(builder, x, "lengths")
    limit = builder.whole(most)
    lengths = add("Min", sequences.lengths, limit)
    if stack.cut == "start":
        skipped = add("Max", add("Sub", sequences.lengths, limit), builder.whole(0))
        last = add("Sub", sequences.steps, builder.whole(1))
        index = add("Min", add("Add", sequences.times, skipped), last)  # (time, batch)
        wide = add("Concat", sequences.steps, sequences.batch, builder.axis_size(x, 2), axis=0)
        index = add("Expand", add("Unsqueeze", index, builder.whole(2)), wide)
        x = add("GatherElements", x, index, axis=0)
    shortened = add("Slice", x, builder.whole(0), limit, builder.whole(0))
    missing = add("Sub", limit, builder.axis_size(shortened, 0))
    pads = add("Concat", builder.whole(0, 0, 0), missing, builder.whole(0, 0), axis=0)
    return add("Pad", shortened, pads), lengths
