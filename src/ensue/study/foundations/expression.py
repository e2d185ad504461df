"""The computational graph of a small expression: values forward, derivatives backward.

An expression is read as Python's grammar has it and made of a closed set of functions: nothing
of it is run as code. Each node of the graph knows its value and its chain rules; the derivative
of the result by a node is the sum of what its users send back, and is a graph itself, so that
second derivatives come from the same walk.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import torch
from torch import Tensor

from ensue.data.layout import aligned
from ensue.equations import Graph, Node, below
from ensue.equations.functions import FUNCTIONS, Function, call
from ensue.equations.node import ONE
from ensue.errors import EnsueError, EquationError, OptionError, unknown

MOST_NODES, MOST_CHARACTERS = 200, 1000
MOST_SECOND = 3  # variables whose second derivatives are printed
CONSTANTS = {"pi": math.pi, "e": math.e}
# what cells have no need of, beside what they have
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
CALLS = (
    "sin", "cos", "tanh", "sigmoid", "exp", "log", "sqrt", "relu", "softplus", "maximum"
)  # fmt: skip
ARGUMENTS = {name: 2 if name == "maximum" else 1 for name in CALLS}
OPERATORS: dict[type[ast.operator], Callable[[Node, Node], Node]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


Value = float | list[Any]  # a number, a vector, or the rows of a matrix


@dataclass(frozen=True)
class TextSpan:
    """A node of the graph: its number, what it does, whose values it takes, its value, and the
    derivative of the result by it."""

    number: int
    label: str
    inputs: tuple[int, ...]
    value: Value
    derivative: Value

    @property
    def shape(self) -> tuple[int, ...]:
        """() of a number, (n,) of a vector, (m, n) of a matrix."""
        return tuple(torch.tensor(self.value).shape)

    @property
    def is_variable(self) -> bool:
        return not self.inputs and self.label.isidentifier()

    @property
    def is_constant(self) -> bool:
        return not self.inputs and not self.is_variable


@dataclass(frozen=True)
class Expression:
    """text: as it was written; places in an order in which each comes after its inputs."""

    text: str
    places: tuple[TextSpan, ...]
    second: Mapping[tuple[str, str], float]  # ∂²/∂a∂b of the variables

    @property
    def value(self) -> Value:
        return self.places[-1].value

    @property
    def has_shapes(self) -> bool:
        """Whether there is a vector or a matrix in it."""
        return any(own.shape for own in self.places)

    def derivatives(self) -> dict[str, Value]:
        """By variable, in the order in which they stand in the text."""
        return {own.label: own.derivative for own in self.places if own.is_variable}


def examine(text: str, values: Mapping[str, float]) -> Expression:
    """The graph of an expression at given values of its variables."""
    graph = Graph({})
    root = Reader(text, graph).read()
    nodes = below([root])
    leaves = {str(node.attr): node for node in nodes if node.op == "vector"}
    _check_values(list(leaves), values)
    adjoints = differentiate(root)
    zero = graph.constant(0.0)
    second = {
        (a, b): differentiate(adjoints[leaf]).get(leaves[b], zero)
        for a, leaf in leaves.items()
        for b in leaves
        if leaf in adjoints
    }
    wanted = [*nodes, *adjoints.values(), *second.values()]
    known = evaluate(wanted, values)
    numbered = {node: number for number, node in enumerate(nodes)}
    places = tuple(
        TextSpan(
            numbered[node],
            _label(node),
            tuple(numbered[own] for own in node.args),
            known[node],
            known[adjoints[node]] if node in adjoints else 0.0,
        )
        for node in nodes
    )
    return Expression(text, places, {pair: known[node] for pair, node in second.items()})


def variables(text: str) -> list[str]:
    """The names of an expression's variables, in order."""
    nodes = below([Reader(text, Graph({})).read()])
    return [str(node.attr) for node in nodes if node.op == "vector"]


def differentiate(root: Node) -> dict[Node, Node]:
    """∂root/∂node for every node that it depends on, as nodes of the same graph. A node that is
    used many times gets the sum of what comes back."""
    back: dict[Node, list[Node]] = {root: [root.graph.constant(1.0)]}
    found: dict[Node, Node] = {}
    for node in reversed(below([root])):
        if node not in back:
            continue
        found[node] = root.graph.add(*back[node])
        if node.op == "add":
            for argument in node.args:
                back.setdefault(argument, []).append(found[node])
        elif not node.is_leaf:
            for argument, rule in zip(node.args, RULES[node.op].chain, strict=True):
                sent = rule(found[node], node, *node.args)
                if sent is not None:
                    back.setdefault(argument, []).append(sent)
    return found


def evaluate(nodes: list[Node], values: Mapping[str, float]) -> dict[Node, float]:
    """In float64; an operation without a finite value is an error that names it."""
    known: dict[Node, Tensor] = {}
    for node in below(nodes):
        if node.op == "constant":
            found = torch.tensor(node.attr, dtype=torch.float64)
        elif node.op == "vector":
            found = torch.tensor(float(values[str(node.attr)]), dtype=torch.float64)
        elif node.op == "add":
            found = torch.stack([known[own] for own in node.args]).sum()
        else:
            found = RULES[node.op].evaluate(*(known[own] for own in node.args))
        if not bool(found.isfinite()):
            given = ", ".join(f"{float(known[own]):g}" for own in node.args)
            raise OptionError(
                f"{_label(node)} of {given} is {float(found):g}: choose other values with --at"
            )
        known[node] = found
    return {node: float(known[node]) for node in nodes}


SIGNS = {"add": "+", "multiply": "×", "divide": "÷", "negative": "−", "power": "^", "sqrt": "√"}


def _label(node: Node) -> str:
    if node.op == "vector":
        return str(node.attr)
    return f"{node.attr:g}" if node.op == "constant" else SIGNS.get(node.op, node.op)


def _check_values(names: list[str], values: Mapping[str, float]) -> None:
    missing = [name for name in names if name not in values]
    if missing:
        wanted = ",".join(f"{name}=…" for name in missing)
        raise OptionError(f"expected a value of {', '.join(missing)}: --at {wanted}")
    for name, value in values.items():
        if name not in names:
            raise unknown("variable", name, names)
        if not math.isfinite(value):
            raise OptionError(f"{name}: expected a finite number, got {value}")


def parsed(text: str) -> ast.expr:
    """By Python's grammar; nothing of it is run."""
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
    return EquationError(f"{text!r} is no expression ({why}); write such as 'sin(x*y) + x'")


class Reader:
    """From text to nodes."""

    def __init__(self, text: str, graph: Graph) -> None:
        self.text, self.graph = text, graph

    def read(self) -> Node:
        tree = parsed(self.text)
        try:
            found = self._node(tree)
        except EnsueError:
            raise
        except (ValueError, OverflowError, RecursionError, MemoryError) as error:
            raise _no_expression(self.text, error) from None
        if len(below([found])) > MOST_NODES:
            raise EquationError(f"expected a small expression, got more than {MOST_NODES} nodes")
        return found

    def _node(self, tree: ast.expr) -> Node:
        match tree:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return self.graph.constant(value)
            case ast.Name(id=name):
                if name in CONSTANTS:
                    return self.graph.constant(CONSTANTS[name])
                return self.graph.leaf("vector", name, ONE)
            case ast.UnaryOp(op=ast.USub(), operand=inside):
                return -self._node(inside)
            case ast.UnaryOp(op=ast.UAdd(), operand=inside):
                return self._node(inside)
            case ast.BinOp(left=base, op=ast.Pow(), right=exponent):
                return self._power(self._node(base), exponent)
            case ast.BinOp(left=left, op=own, right=right) if type(own) in OPERATORS:
                return OPERATORS[type(own)](self._node(left), self._node(right))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self._call(name, [self._node(own) for own in args])
        raise EquationError(
            f"{ast.unparse(tree)!r}: expected numbers, variables, + − * / ** and {', '.join(CALLS)}"
            + "; a power is x**2" * isinstance(getattr(tree, "op", None), ast.BitXor)
        )

    def _power(self, base: Node, exponent: ast.expr) -> Node:
        number = self._node(exponent)
        if not number.is_constant():
            raise EquationError(
                f"{ast.unparse(exponent)!r}: expected a number as the exponent; of a variable "
                "write exp(y*log(x))"
            )
        return call("power", base, number)

    def _call(self, name: str, args: list[Node]) -> Node:
        if name not in CALLS:
            raise unknown("function", name, CALLS)
        if len(args) != ARGUMENTS[name]:
            raise EquationError(
                f"{name}: expected {ARGUMENTS[name]} argument{'s' * (ARGUMENTS[name] > 1)}, "
                f"got {len(args)}"
            )
        return call(name, *args)


def number(value: Value, digits: int = 6) -> str:
    """
    >>> number(-0.5), number([1.0, -2.0], 1)
    ('−0.500000', '[1.0, −2.0]')
    """
    if isinstance(value, list):
        return "[" + ", ".join(number(own, digits) for own in value) + "]"
    return f"{value:z.{digits}f}".replace("-", "−")


def as_text(found: Expression) -> str:
    """A line for each node, then the derivatives."""
    if found.has_shapes:
        return "\n".join([found.text, "", *aligned(_shaped(found))])
    lines = [found.text, "", "node  is                 value   ∂result/∂node"]
    for own in found.places:
        inside = ", ".join(f"#{number}" for number in own.inputs)
        what = f"{own.label}({inside})" if own.inputs else own.label
        slope = "" if own.is_constant else f"{number(own.derivative):>16}"
        lines.append(f"#{own.number:<4} {what:<14}{number(own.value):>10}{slope}")
    few = len(found.derivatives()) <= MOST_SECOND
    pairs = found.second.items() if few else ()
    second = [f"∂²/∂{a}∂{b} = {number(value)}" for (a, b), value in pairs if a <= b]
    return "\n".join([*lines, *(["", *second] if second else [])])


def _shaped(found: Expression) -> list[list[str]]:
    """With the shape of each value, which its derivative has too; a matrix row by row."""
    rows = [["node", "is", "shape", "value", "∂result/∂node"]]
    for own in found.places:
        inside = ", ".join(f"#{k}" for k in own.inputs)
        what = f"{own.label}({inside})" if own.inputs else own.label
        shape = "×".join(map(str, own.shape)) or "1"
        slopes = [""] * len(_rows(own.value)) if own.is_constant else _rows(own.derivative)
        heads = chain([[f"#{own.number}", what, shape]], repeat([""] * 3))
        lines = zip(heads, _rows(own.value), slopes, strict=False)
        rows += [[*head, value, slope] for head, value, slope in lines]
    return rows


def _rows(value: Value) -> list[str]:
    """A number or a vector on one line, a matrix on a line for each row."""
    if isinstance(value, list) and isinstance(value[0], list):
        return [number(row, 4) for row in value]
    return [number(value, 4)]
