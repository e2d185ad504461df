"""The computational graph of a small expression: values forward, derivatives backward.

    + − * / **, functions   of numbers; of vectors and matrices elementwise, where a single number
                            combines with any shape
    MatMul (W @ x)          of matrices and vectors; of two vectors their dot product
    sum, mean, softmax      of all features of a vector
    conv(x, f, stride)      of matrices: the filter f at every place of x, not flipped
    pad(x, n), maxpool(x, n), meanpool(x, n): n zeros around a matrix; its patches of n×n

An expression is parsed by Python's grammar, with a closed set of functions; nothing in it is run as
code. Its result is one number. Each node of the graph has a value and chain rules. The derivative
of the result by a node has the node's shape, and is the sum of the contributions of its users. It
is again a graph, so that second derivatives come from the same algorithm.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, conv2d, max_pool2d, pad

from ensue.equations import Graph, Node, below
from ensue.equations.functions import FUNCTIONS, Function, call
from ensue.equations.node import ONE
from ensue.errors import EnsueError, EquationError, OptionError, ShapeError, unknown

MOST_NODES, MOST_CHARACTERS = 200, 1000
MOST_NUMBERS = 100  # of one value
MOST_AROUND = 5  # maximum of zeros, and of sizes of patches and steps
CONSTANTS = {"pi": math.pi, "e": math.e}
Value = float | list[Any]  # a number, a vector, or the rows of a matrix
RawValue = float | Sequence[Any]  # the value as passed by the caller


# --- functions of numbers, and feature by feature ------------------------------------------------

# functions that cells do not need, in addition to those of cells
FURTHER: dict[str, Function] = {
    "sin": Function(torch.sin, (lambda t, y, v: t * call("cos", v),)),
    "cos": Function(torch.cos, (lambda t, y, v: -(t * call("sin", v)),)),
    "power": Function(
        torch.pow,
        (
            lambda t, y, v, n: t * (n * call("power", v, n.graph.constant(n.attr - 1))),
            lambda t, y, v, n: None,
        ),
    ),
}
RULES: dict[str, Function] = {**FUNCTIONS, **FURTHER}
ELEMENTWISE = (
    "sin", "cos", "tanh", "sigmoid", "exp", "log", "sqrt", "relu", "softplus", "maximum"
)  # fmt: skip


# --- functions of vectors and matrices -----------------------------------------------------------


@dataclass(frozen=True)
class Operation:
    """An operation. value: computes the result from the arguments; back: computes the adjoints of
    its arguments, from its own adjoint (t), its value (y) and its arguments."""

    value: Callable[..., Tensor]
    back: Callable[..., tuple[Tensor, ...]]


def _matmul_back(t: Tensor, y: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    if a.dim() == 1 and b.dim() == 1:
        return t * b, t * a
    if b.dim() == 1:
        return torch.outer(t, b), a.t() @ t
    if a.dim() == 1:
        return b @ t, torch.outer(a, t)
    return t @ b.t(), a.t() @ t


def _volume(x: Tensor) -> Tensor:
    return x[None, None]


def _conv(x: Tensor, f: Tensor, stride: Tensor) -> Tensor:
    return conv2d(_volume(x), _volume(f), stride=int(stride))[0, 0]


def _conv_back(
    t: Tensor, y: Tensor, x: Tensor, f: Tensor, stride: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The adjoints of a convolution: for x, the filter at each place, weighted by t; for f, the
    weighted sum of patches."""
    to_x, to_f = torch.zeros_like(x), torch.zeros_like(f)
    step, (rows, columns) = int(stride), f.shape
    for i, j in product(range(t.shape[0]), range(t.shape[1])):
        patch = (slice(i * step, i * step + rows), slice(j * step, j * step + columns))
        to_x[patch] += t[i, j] * f
        to_f += t[i, j] * x[patch]
    return to_x, to_f, torch.zeros_like(stride)


def _pad_back(t: Tensor, y: Tensor, x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
    around = int(n)
    inside = (slice(around, around + x.shape[0]), slice(around, around + x.shape[1]))
    return t[inside], torch.zeros_like(n)


def _max_back(t: Tensor, y: Tensor, x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
    """The adjoint of max, which goes to the first of equal numbers."""
    _, at = max_pool2d(_volume(x), int(n), return_indices=True)
    slopes = torch.zeros_like(x).flatten().scatter_add(0, at.flatten(), t.flatten())
    return slopes.view_as(x), torch.zeros_like(n)


def _mean_back(t: Tensor, y: Tensor, x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
    size, slopes = int(n), torch.zeros_like(x)
    shared = t.repeat_interleave(size, 0).repeat_interleave(size, 1) / size**2
    slopes[: shared.shape[0], : shared.shape[1]] = shared
    return slopes, torch.zeros_like(n)


OPERATIONS: dict[str, Operation] = {
    "MatMul": Operation(torch.matmul, _matmul_back),
    "sum": Operation(torch.sum, lambda t, y, v: (t * torch.ones_like(v),)),
    "mean": Operation(torch.mean, lambda t, y, v: (t * torch.ones_like(v) / v.numel(),)),
    "softmax": Operation(lambda v: v.softmax(-1), lambda t, y, v: (y * (t - (t * y).sum(-1)),)),
    "conv": Operation(_conv, _conv_back),
    "pad": Operation(lambda x, n: pad(x, [int(n)] * 4), _pad_back),
    "maxpool": Operation(lambda x, n: max_pool2d(_volume(x), int(n))[0, 0], _max_back),
    "meanpool": Operation(lambda x, n: avg_pool2d(_volume(x), int(n))[0, 0], _mean_back),
}
OF_VECTORS = ("sum", "mean", "softmax", "conv", "pad", "maxpool", "meanpool")
OF_PATCHES = {"conv": 1, "pad": 0, "maxpool": 1, "meanpool": 1}  # minimum of their numbers
BACK = "back"  # the derivative of an operation by one of its arguments: attr has both
CALLS = (*ELEMENTWISE, *OF_VECTORS)
ARGUMENTS = {**dict.fromkeys(CALLS, 1), **dict.fromkeys(OF_PATCHES, 2), "maximum": 2, "conv": 3}
OPERATORS: dict[type[ast.operator], Callable[[Node, Node], Node]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
SIGNS = {"add": "+", "multiply": "×", "divide": "÷", "negative": "−", "power": "^", "sqrt": "√"}
SIGNS_OF_OPERATORS = {ast.Add: "+", ast.Sub: "+", ast.Mult: "×", ast.Div: "÷"}


def _label(node: Node) -> str:
    if node.op == "vector":
        return str(node.attr)
    if node.op == BACK:
        return f"the derivative of {node.attr[0]}"
    return f"{node.attr:g}" if node.op == "constant" else SIGNS.get(node.op, node.op)


# --- values --------------------------------------------------------------------------------------


class NodeValues:
    """Values of nodes at given values of the variables, in float64, each computed once.

    Raises an error that names an operation without a finite value."""

    def __init__(self, variables: Mapping[str, Tensor]) -> None:
        self.variables = variables
        self._known: dict[Node, Tensor] = {}

    def __call__(self, node: Node) -> Tensor:
        if node not in self._known:
            for each in below([node], stop=self._known.__contains__):
                if each not in self._known:
                    self._known[each] = self._finite(each, self._computed(each))
        return self._known[node]

    def _computed(self, node: Node) -> Tensor:
        if node.op == "constant":
            return torch.tensor(node.attr, dtype=torch.float64)
        if node.op == "vector":
            return self.variables[str(node.attr)]
        arguments = [self._known[argument] for argument in node.args]
        if node.op == "add":
            shaped: Any = torch.broadcast_tensors(*arguments)  # type: ignore[no-untyped-call]
            return torch.stack(shaped).sum(0)
        if node.op == BACK:
            name, which = node.attr
            sent: Tensor = OPERATIONS[name].back(*arguments)[which]
            return sent
        if node.op in OPERATIONS:
            return OPERATIONS[node.op].value(*arguments)
        return RULES[node.op].evaluate(*arguments)

    def _finite(self, node: Node, value: Tensor) -> Tensor:
        if bool(value.isfinite().all()):
            return value
        arguments = [self._known[argument] for argument in node.args]
        is_number = not any(value.dim() for value in arguments)
        written = [f"{float(value):g}" if is_number else str(value.tolist()) for value in arguments]
        result = f"{float(value):g}" if is_number and not value.dim() else "not finite"
        raise OptionError(
            f"{_label(node)} of {', '.join(written)} is {result}: choose other values with --at"
        )


def shape_text(value: Tensor) -> str:
    return "×".join(map(str, value.shape)) if value.dim() else "1"


def _check_shapes(op: str, values: Sequence[Tensor]) -> None:
    shapes = " and ".join(map(shape_text, values))
    if op == "MatMul":
        if min(value.dim() for value in values) == 0:
            raise ShapeError(f"MatMul: expected vectors or matrices, got shapes {shapes}")
        if values[0].shape[-1] != values[1].shape[0]:
            raise ShapeError(f"MatMul: expected shapes that multiply, got {shapes}")
    elif op in OF_PATCHES:
        _check_patches(op, values, shapes)
    elif op == "softmax" and values[0].dim() != 1:
        raise ShapeError(f"softmax: expected a vector, got shape {shapes}")
    elif len({value.shape for value in values if value.dim()}) > 1:
        raise ShapeError(f"{op}: expected equal shapes, or a single number, got {shapes}")


def _check_patches(op: str, values: Sequence[Tensor], shapes: str) -> None:
    *matrices, last = values
    least = OF_PATCHES[op]
    if any(matrix.dim() != 2 for matrix in matrices):
        raise ShapeError(f"{op}: expected {len(matrices)} matrices and a number, got {shapes}")
    if last.dim() or float(last) != int(last) or not least <= int(last) <= MOST_AROUND:
        raise OptionError(
            f"{op}: expected a whole number from {least} to {MOST_AROUND}, got {last.tolist()}"
        )
    x = matrices[0]
    size = matrices[1].shape if op == "conv" else (int(last), int(last))
    if op != "pad" and (size[0] > x.shape[0] or size[1] > x.shape[1]):
        raise ShapeError(f"{op}: expected a patch that fits into the matrix, got {shapes}")


def as_tensor(name: str, value: RawValue) -> Tensor:
    """A number, a vector or a matrix."""
    try:
        tensor = torch.tensor(value, dtype=torch.float64)
    except (TypeError, ValueError):
        raise OptionError(
            f"{name}: expected a number, a list of numbers, or a list of rows of equal length, "
            f"such as [[1,2],[3,4]], got {value!r}"
        ) from None
    if tensor.dim() > 2 or not 0 < tensor.numel() <= MOST_NUMBERS:
        raise OptionError(
            f"{name}: expected a number, a vector or a matrix of at most {MOST_NUMBERS} numbers, "
            f"got shape {shape_text(tensor)}"
        )
    if not bool(tensor.isfinite().all()):
        kind = "finite numbers" if tensor.dim() else "a finite number"
        raise OptionError(f"{name}: expected {kind}, got {value}")
    return tensor


# --- reading -------------------------------------------------------------------------------------


def parsed(text: str) -> ast.expr:
    """The syntax tree of a text by Python's grammar; nothing is run."""
    if len(text) > MOST_CHARACTERS:
        raise EquationError(
            f"expected an expression of at most {MOST_CHARACTERS} characters, got {len(text)}"
        )
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise _no_expression(text, error) from None


def _no_expression(text: str, error: BaseException) -> EquationError:
    why = getattr(error, "msg", str(error))
    return EquationError(f"{text!r} is not an expression ({why}); an example: 'sin(x*y) + x'")


def variables(text: str) -> list[str]:
    """The names of an expression's variables, in the order of the text."""
    nodes = list(ast.walk(parsed(text)))
    functions = {node.func for node in nodes if isinstance(node, ast.Call)}
    names = [node for node in nodes if isinstance(node, ast.Name) and node not in functions]
    names.sort(key=lambda node: (node.lineno, node.col_offset))
    return list(dict.fromkeys(name.id for name in names if name.id not in CONSTANTS))


def of_numbers(text: str) -> bool:
    """Whether the expression has no operations on vectors or matrices."""
    tree = ast.walk(parsed(text))
    return not any(
        isinstance(node, ast.MatMult) or getattr(node, "id", "") in OF_VECTORS for node in tree
    )


class Reader:
    """Parses the text of an expression into nodes, with the shapes of their values."""

    def __init__(self, text: str, graph: Graph, value: NodeValues) -> None:
        self.text, self.graph, self.value = text, graph, value

    def read(self) -> Node:
        tree = parsed(self.text)
        try:
            root = self._node(tree)
        except EnsueError:
            raise
        except (ValueError, OverflowError, RecursionError, MemoryError) as error:
            raise _no_expression(self.text, error) from None
        if len(below([root])) > MOST_NODES:
            raise EquationError(f"expected a small expression, got more than {MOST_NODES} nodes")
        return root

    def _node(self, tree: ast.expr) -> Node:
        match tree:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return self.graph.constant(value)
            case ast.Name(id=name) if name in CONSTANTS:
                return self.graph.constant(CONSTANTS[name])
            case ast.Name(id=name):
                return self.graph.leaf("vector", name, _size(self.value.variables[name]))
            case ast.UnaryOp(op=ast.USub(), operand=inside):
                return -self._node(inside)
            case ast.UnaryOp(op=ast.UAdd(), operand=inside):
                return self._node(inside)
            case ast.BinOp(left=base, op=ast.Pow(), right=exponent):
                return self._power(self._node(base), exponent)
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                return self._of_vectors("MatMul", (self._node(left), self._node(right)))
            case ast.BinOp(left=left, op=own, right=right) if type(own) in OPERATORS:
                both = self._node(left), self._node(right)
                self._check(SIGNS_OF_OPERATORS[type(own)], both)
                return OPERATORS[type(own)](*both)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self._call(name, tuple(self._node(argument) for argument in arguments))
        raise EquationError(
            f"{ast.unparse(tree)!r}: expected numbers, variables, + − * / @ ** and "
            f"{', '.join(CALLS)}"
            + "; a power is x**2"
            * isinstance(getattr(tree, "op", None), ast.BitXor)
        )

    def _power(self, base: Node, exponent: ast.expr) -> Node:
        number = self._node(exponent)
        if not number.is_constant():
            raise EquationError(
                f"{ast.unparse(exponent)!r}: expected a number as the exponent; of a variable "
                "write exp(y*log(x))"
            )
        return call("power", base, number)

    def _call(self, name: str, arguments: tuple[Node, ...]) -> Node:
        if name not in CALLS:
            raise unknown("function", name, CALLS)
        expected = ARGUMENTS[name]
        if name == "conv" and len(arguments) == expected - 1:
            arguments = (*arguments, self.graph.constant(1.0))  # the usual stride
        if len(arguments) != expected:
            raise EquationError(
                f"{name}: expected {expected} argument{'s' * (expected > 1)}, got {len(arguments)}"
            )
        if name in OPERATIONS:
            return self._of_vectors(name, arguments)
        self._check(SIGNS.get(name, name), arguments)
        return call(name, *arguments)

    def _check(self, name: str, arguments: Sequence[Node]) -> None:
        _check_shapes(name, [self.value(argument) for argument in arguments])

    def _of_vectors(self, name: str, arguments: tuple[Node, ...]) -> Node:
        self._check(name, arguments)
        shape = _size(OPERATIONS[name].value(*map(self.value, arguments)))
        return self.graph.operation(name, arguments, shape)


def _size(value: Tensor) -> str:
    """The size of a node from its shape."""
    return str(tuple(value.shape)) if value.dim() else ONE


# --- derivatives ---------------------------------------------------------------------------------


def differentiate(root: Node) -> dict[Node, Node]:
    """∂root/∂node for every node that it depends on, as nodes of the same graph. A node with
    several uses gets the sum of their derivatives."""
    back: dict[Node, list[Node]] = {root: [root.graph.constant(1.0)]}
    adjoints: dict[Node, Node] = {}
    for node in reversed(below([root])):
        if node not in back:
            continue
        adjoints[node] = root.graph.add(*back[node])
        for argument, sent in zip(node.args, _sent_back(node, adjoints[node]), strict=True):
            if sent is not None:
                back.setdefault(argument, []).append(_shaped_as(argument, sent))
    return adjoints


def _sent_back(node: Node, arrived: Node) -> list[Node | None]:
    """The contributions to each argument, from the node's adjoint."""
    if node.op == "add":
        return [arrived for _ in node.args]
    if node.op in OPERATIONS:
        inside = (arrived, node, *node.args)
        return [
            node.graph.operation(BACK, inside, argument.size, (node.op, which))
            for which, argument in enumerate(node.args)
        ]
    chain = RULES[node.op].chain if node.args else ()
    return [rule(arrived, node, *node.args) for rule in chain]


def _shaped_as(argument: Node, sent: Node) -> Node:
    """The adjoint in the shape of its argument. If a number was combined with a vector or matrix,
    its adjoint is the sum."""
    if argument.size == ONE and sent.size != ONE:
        return sent.graph.operation("sum", (sent,), ONE)
    return sent


# --- the whole -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExpressionNode:
    """A node of the graph: its number, operation, inputs, value, and the derivative of the result
    by it."""

    number: int
    label: str
    inputs: tuple[int, ...]
    value: Value
    derivative: Value

    @property
    def shape(self) -> tuple[int, ...]:
        """() for a number, (n,) for a vector, (m, n) for a matrix."""
        return tuple(torch.tensor(self.value).shape)

    @property
    def is_variable(self) -> bool:
        return not self.inputs and self.label.isidentifier()

    @property
    def is_constant(self) -> bool:
        return not self.inputs and not self.is_variable


@dataclass(frozen=True)
class Expression:
    """An expression with its values. text: its text as written; nodes: its nodes, each after its
    inputs."""

    text: str
    nodes: tuple[ExpressionNode, ...]
    second: Mapping[tuple[str, str], float]  # ∂²/∂a∂b for variables that are numbers

    @property
    def value(self) -> Value:
        return self.nodes[-1].value

    @property
    def has_shapes(self) -> bool:
        """Whether the expression has a vector or a matrix."""
        return any(node.shape for node in self.nodes)

    def derivatives(self) -> dict[str, Value]:
        """The derivatives by variable, in the order of the text."""
        return {node.label: node.derivative for node in self.nodes if node.is_variable}


def examine(text: str, values: Mapping[str, RawValue]) -> Expression:
    """The graph of an expression at given values of its variables."""
    names = variables(text)
    _check_names(names, values)
    graph = Graph({})
    value = NodeValues({name: as_tensor(name, value) for name, value in values.items()})
    root = Reader(text, graph, value).read()
    if value(root).dim():
        raise ShapeError(
            f"{text}: expected a result that is one number, got shape {shape_text(value(root))}; "
            f"write such as sum({text})"
        )
    nodes, adjoints = below([root]), differentiate(root)
    numbers = {node: number for number, node in enumerate(nodes)}
    listed = tuple(
        ExpressionNode(
            numbers[node],
            _label(node),
            tuple(numbers[argument] for argument in node.args),
            value(node).tolist(),
            _derivative(node, adjoints, value).tolist(),
        )
        for node in nodes
    )
    return Expression(text, listed, _second(nodes, adjoints, value))


def _derivative(node: Node, adjoints: Mapping[Node, Node], value: NodeValues) -> Tensor:
    """The derivative of the result by the node, in its shape; −0 becomes 0."""
    zeros = torch.zeros_like(value(node))
    return zeros + value(adjoints[node]) if node in adjoints else zeros


def _second(
    nodes: Sequence[Node], adjoints: Mapping[Node, Node], value: NodeValues
) -> dict[tuple[str, str], float]:
    """∂²result/∂a∂b for every two variables of an expression of numbers."""
    if any(node.size != ONE or node.op in OPERATIONS for node in nodes):
        return {}
    leaves = {str(node.attr): node for node in nodes if node.op == "vector"}
    derivatives = {}
    for a, leaf in leaves.items():
        if leaf in adjoints:
            again = differentiate(adjoints[leaf])
            for b, other in leaves.items():
                derivatives[a, b] = float(value(again[other])) if other in again else 0.0
    return derivatives


def _check_names(names: Sequence[str], values: Mapping[str, RawValue]) -> None:
    missing = [name for name in names if name not in values]
    if missing:
        example = ",".join(f"{name}=…" for name in missing)
        raise OptionError(f"expected a value of {', '.join(missing)}: --at {example}")
    for name in values:
        if name not in names:
            raise unknown("variable", name, names)
