"""The graph of a step: equal nodes are one node, and their numbers are a topological order.

Every value is a vector of features for one row of the batch. Node kinds:

    constant | count                                 a number; how many features a size has
    x | state | vector | mask | given                leaves (given: a seed or tangent from outside)
    product (matrix, operand)                        W·v
    dot (matrices, operands) | copy                  made by the scheduler: a sum of products; v
    outer (a, v)                                     a vᵀ, the derivative of a product's matrix
    add (n-ary) and the functions of `functions.py`  elementwise; a value of size 1 meets any size
    sum | mean                                       over features, to size 1
    spread                                           size 1 to all features

A size is a name ("input", "hidden", …; ONE for a single number), so that one graph serves every
width; `Graph.sizes` gives the widths of this trace, to check shapes with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

ONE = "one"


@dataclass(frozen=True, order=True)
class MatrixRef:
    """One gate of a stacked parameter matrix: rows × columns, names of sizes.

    >>> MatrixRef("W", "i", "hidden", "input").T.transposed
    True
    """

    name: str
    gate: str
    rows: str
    columns: str
    transposed: bool = False

    @property
    def T(self) -> MatrixRef:
        return replace(self, rows=self.columns, columns=self.rows, transposed=not self.transposed)

    @property
    def upright(self) -> MatrixRef:
        return self.T if self.transposed else self


@dataclass(frozen=True, order=True)
class VectorRef:
    """One gate of a stacked parameter vector.

    >>> VectorRef("b", "f").gate
    'f'
    """

    name: str
    gate: str


class Node:
    """A value of the graph, created only by methods of `Graph`; compared by identity.

    >>> h = Graph({"hidden": 16}).leaf("state", "h", "hidden")
    >>> h * h
    #1 multiply(#0, #0): hidden
    """

    __slots__ = ("args", "attr", "graph", "number", "op", "size")

    def __init__(
        self, graph: Graph, op: str, args: tuple[Node, ...], attr: Any, size: str, number: int
    ) -> None:
        self.graph, self.op, self.args, self.attr = graph, op, args, attr
        self.size, self.number = size, number

    @property
    def is_leaf(self) -> bool:
        return not self.args

    @property
    def width(self) -> int:
        return self.graph.width(self.size)

    def is_constant(self, value: float | None = None) -> bool:
        return self.op == "constant" and (value is None or self.attr == value)

    def __repr__(self) -> str:
        inside = ", ".join(f"#{a.number}" for a in self.args)
        attr = "" if self.attr is None else f" {self.attr}"
        return f"#{self.number} {self.op}{attr}({inside}): {self.size}"

    def __add__(self, other: Node | float) -> Node:
        return self.graph.add(self, self.graph.lift(other))

    def __sub__(self, other: Node | float) -> Node:
        return self.graph.add(self, self.graph.negative(self.graph.lift(other)))

    def __rsub__(self, other: float) -> Node:
        return self.graph.lift(other) - self

    def __mul__(self, other: Node | float) -> Node:
        return self.graph.multiply(self, self.graph.lift(other))

    def __truediv__(self, other: Node | float) -> Node:
        return self.graph.divide(self, self.graph.lift(other))

    def __rtruediv__(self, other: float) -> Node:
        return self.graph.lift(other) / self

    def __neg__(self) -> Node:
        return self.graph.negative(self)

    __radd__, __rmul__ = __add__, __mul__


class Graph:
    """A table of nodes. Its methods build simplified nodes; the same call gives the same node.

    >>> graph = Graph({"hidden": 16})
    >>> h = graph.leaf("state", "h", "hidden")
    >>> h * h is h * h, h * 1.0 is h
    (True, True)
    """

    def __init__(self, sizes: dict[str, int]) -> None:
        self.sizes = {**sizes, ONE: 1}
        self._table: dict[tuple[Any, ...], Node] = {}

    def width(self, size: str) -> int:
        return self.sizes[size]

    def __len__(self) -> int:
        return len(self._table)

    def _node(
        self, op: str, args: tuple[Node, ...], attr: Any, size: str, commutes: bool = False
    ) -> Node:
        numbers = tuple(a.number for a in args)
        key = (op, tuple(sorted(numbers)) if commutes else numbers, attr, size)
        node = self._table.get(key)
        if node is None:
            node = Node(self, op, args, attr, size, len(self._table))
            self._table[key] = node
        return node

    # ---------------------------------------------------------------- leaves
    def constant(self, value: float) -> Node:
        return self._node("constant", (), float(value), ONE)

    def count(self, size: str) -> Node:
        return self._node("count", (), size, ONE)

    def lift(self, value: Node | float) -> Node:
        return value if isinstance(value, Node) else self.constant(value)

    def leaf(self, kind: str, name: Any, size: str) -> Node:
        return self._node(kind, (), name, size)

    # ---------------------------------------------------------------- products and reductions
    def product(self, matrix: MatrixRef, operand: Node) -> Node:
        return self._node("product", (operand,), matrix, matrix.rows)

    def dot(self, terms: tuple[tuple[MatrixRef, Node], ...]) -> Node:
        """A sum of products as one node; made by the scheduler."""
        matrices = tuple(matrix for matrix, _ in terms)
        return self._node("dot", tuple(v for _, v in terms), matrices, matrices[0].rows)

    def copy(self, v: Node) -> Node:
        """v as a separate value, which the scheduler may place where it is needed."""
        return self._node("copy", (v,), None, v.size)

    def rebuild(self, node: Node, args: tuple[Node, ...]) -> Node:
        """The operation of `node` on other arguments."""
        if args == node.args:
            return node
        return self._node(node.op, args, node.attr, node.size, node.op in ("add", "multiply"))

    def outer(self, a: Node, v: Node) -> Node:
        return self._node("outer", (a, v), None, f"{a.size}×{v.size}")

    def sum(self, v: Node) -> Node:
        if v.op == "spread":
            return self.count(v.size) * v.args[0]
        return v if v.size == ONE else self._reduce("sum", v)

    def mean(self, v: Node) -> Node:
        if v.op == "spread":
            return v.args[0]
        return v if v.size == ONE else self._reduce("mean", v)

    def _reduce(self, op: str, v: Node) -> Node:
        """A reduction. A factor that is the same for all features moves in front of the
        reduction."""
        if v.op == "negative":
            return -self._reduce(op, v.args[0])
        if v.op == "multiply" and ONE in (v.args[0].size, v.args[1].size):
            one, rest = v.args if v.args[0].size == ONE else v.args[::-1]
            return one * self._reduce(op, rest)
        return self._node(op, (v,), None, ONE)

    def spread(self, v: Node, size: str) -> Node:
        return v if size == ONE else self._node("spread", (v,), None, size)

    def operation(self, op: str, args: tuple[Node, ...], size: str, attr: Any = None) -> Node:
        """Any operation by its name, without simplification."""
        return self._node(op, args, attr, size)

    # ---------------------------------------------------------------- elementwise
    def elementwise(
        self, op: str, args: Iterable[Node], size: str | None = None, commutes: bool = False
    ) -> Node:
        """An elementwise node. Its arguments lose their spreads, because size 1 combines with any
        size."""
        arguments = tuple(args)
        size = size or common_size(arguments)
        bare = tuple(a.args[0] if a.op == "spread" else a for a in arguments)
        return self.spread_to(self._node(op, bare, None, common_size(bare), commutes), size)

    def spread_to(self, v: Node, size: str) -> Node:
        return self.spread(v, size) if v.size == ONE and size != ONE else v

    def add(self, *terms: Node) -> Node:
        size = common_size(terms)
        constant = sum(t.attr for t in terms if t.is_constant())
        rest = [t for t in terms if not t.is_constant()]
        if constant or not rest:
            rest.append(self.constant(constant))
        if len(rest) == 1:
            return self.spread_to(rest[0], size)
        return self.elementwise("add", rest, size, commutes=True)

    def multiply(self, a: Node, b: Node) -> Node:
        size = common_size((a, b))
        if b.is_constant():
            a, b = b, a
        if a.op == "negative":
            return -(a.args[0] * b)
        if b.op == "negative":
            return -(a * b.args[0])
        if a.is_constant():
            if b.is_constant():
                return self.constant(a.attr * b.attr)
            if a.is_constant(1.0):
                return b
            if a.attr < 0:
                return -(self.constant(-a.attr) * b)
            if b.op == "multiply" and b.args[0].is_constant():
                return self.constant(a.attr * b.args[0].attr) * b.args[1]
        return self.elementwise("multiply", (a, b), size, commutes=True)

    def negative(self, v: Node) -> Node:
        if v.is_constant():
            return self.constant(-v.attr)
        return v.args[0] if v.op == "negative" else self.elementwise("negative", (v,))

    def divide(self, a: Node, b: Node) -> Node:
        size = common_size((a, b))
        if b.is_constant(1.0):
            return a
        if a.is_constant() and b.is_constant() and b.attr:
            return self.constant(a.attr / b.attr)
        if a.op == "negative":
            return -(a.args[0] / b)
        if a.is_constant() and a.attr < 0:
            return -(-a / b)
        if b.is_constant() and b.attr < 0:
            return -(a / -b)
        if a.op == "sum" and b.op == "count" and a.args[0].size == b.attr:
            return self.mean(a.args[0])
        return self.elementwise("divide", (a, b), size)


def common_size(nodes: Iterable[Node]) -> str:
    """The only size that is not ONE. Sizes of equal width may mix; the caller checks widths.

    If two names have the same width, "hidden" is preferred to every other name, and "input" comes
    last; the order of the nodes does not matter."""
    sizes = {n.size for n in nodes if n.size != ONE}
    return min(sizes, key=lambda s: (s == "input", s != "hidden", s), default=ONE)


def features(node: Node) -> str:
    """How many features a value has, in words."""
    if node.size == ONE:
        return "1 number"
    return f"{node.width} feature{'' if node.width == 1 else 's'}"


def below(roots: Iterable[Node], stop: Callable[[Node], bool] = lambda _: False) -> list[Node]:
    """All nodes below the roots, including them, in topological order; the walk ends at `stop`.

    >>> h = Graph({"hidden": 16}).leaf("state", "h", "hidden")
    >>> [node.op for node in below([h * h])]
    ['state', 'multiply']
    """
    nodes: dict[int, Node] = {}
    todo = list(roots)
    while todo:
        node = todo.pop()
        if node.number not in nodes:
            nodes[node.number] = node
            if not stop(node):
                todo += node.args
    return [nodes[number] for number in sorted(nodes)]
