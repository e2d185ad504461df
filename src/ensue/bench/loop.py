"""The fair opponent: a cell as the loop that a careful person would write by hand.

From the graph of a step comes Python source, for torch and for JAX, that is run as it
stands. All products of x are taken before the loop, with the biases that are added to them,
one product for each matrix; in the loop, products of the same operand are one product, and
where everything that it is added to was made before the loop, that sum is the same call
(`addmm`). Layer normalisation is torch's own function. For torch the steps of x come from
`unbind`, since indexing `x[t]` is far slower in training.

    def loop(x, state, parameters):
        W, U, b = (parameters[n] for n in ("W", "U", "b"))
        x_1 = linear(x, W, b)
        U_1 = U.t()
        (h, c), outputs = state, []
        for x_1, in zip(x_1.unbind(0)):
            s_1, s_2, s_3, s_4 = torch.addmm(x_1, h, U_1).split((64, 64, 64, 64), 1)
            i = torch.sigmoid(s_1)
            ...
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ensue.equations import Equations, MatrixRef, Node, below
from ensue.equations.declare import Mask, Parameter
from ensue.equations.schedule import is_hoisted
from ensue.equations.text import SUM, Notation, show_number

Loop = Callable[..., Any]


class Norm(NamedTuple):
    """(v − mean v) / √(mean (v − mean v)² + epsilon), scaled and shifted by vectors or not."""

    v: Node
    epsilon: float
    scale: Node | None = None
    shift: Node | None = None


@dataclass
class Product:
    """Products of one operand, stacked: one matrix. `base` is added to it: a name before the
    loop, of one number a gate (`steady`) or of one a step; "" for none."""

    nodes: list[Node]
    matrix: str
    base: str = ""
    steady: bool = True


@dataclass
class Draft:
    """What a loop consists of: lines before it, names of what comes step by step, products."""

    before: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    products: dict[Node, Product] = field(default_factory=dict)  # by the first of their nodes
    names: dict[Node, str] = field(default_factory=dict)
    left: dict[Node, list[Node]] = field(default_factory=dict)  # of a sum: what is still to add
    norms: dict[Node, Norm] = field(default_factory=dict)


# -------------------------------------------------------------------- spelling
class Spelling(Notation, ABC):
    """How a library writes what a loop needs."""

    FUNCTIONS: dict[str, str]
    fuses_norms: bool

    def __init__(self, draft: Draft) -> None:
        super().__init__(draft.names)
        self.draft = draft

    def define(self, node: Node) -> str:
        if node in self.draft.norms:
            return self.norm(self.draft.norms[node])
        if node.op == "add":
            terms = self.draft.left[node]
            return self.show(terms[0]) if len(terms) == 1 else self._sum(node)
        return super().define(node)

    def terms(self, node: Node) -> Sequence[Node]:
        return self.draft.left[node]

    def name(self, name: str) -> str:
        return name

    def leaf(self, node: Node) -> str:
        if node.op == "constant":
            return self.number(node.attr)
        if node.op == "count":
            return self.number(float(node.graph.width(node.attr)))
        if node.op == "vector":
            return block_name(node)
        return "x_t" if node.op == "x" else str(node.attr)

    def times(self, node: Node) -> str:
        return " * ".join(self.show(a, SUM + 1) for a in node.args)

    def divided(self, node: Node) -> str:
        a, b = node.args
        return f"({self.show(a)}) / ({self.show(b)})"

    def function(self, op: str, args: list[str]) -> str:
        return f"{self.FUNCTIONS[op]}({', '.join(args)})"

    def number(self, value: float) -> str:
        short = show_number(value)
        return short if float(short) == value else repr(value)

    def parentheses(self, inside: str) -> str:
        return f"({inside})"

    def product(self, matrix: MatrixRef, operand: str) -> str:
        raise AssertionError("every product of a loop has a name")

    def outer(self, a: str, v: str) -> str:
        raise AssertionError("a step has no outer products")

    @abstractmethod
    def norm(self, norm: Norm) -> str: ...
    @abstractmethod
    def before(self, matrix: str, bias: str) -> str:
        """The product of all x with a matrix."""

    @abstractmethod
    def turned(self, matrix: str) -> str: ...
    @abstractmethod
    def cat(self, parts: Sequence[str]) -> str: ...
    @abstractmethod
    def zeros(self, width: int) -> str: ...
    @abstractmethod
    def split(self, value: str, widths: Sequence[int]) -> str:
        """Pieces along the last axis."""

    @abstractmethod
    def multiply(self, operand: str, product: Product) -> str: ...
    @abstractmethod
    def loop(
        self, parts: Sequence[str], body: Sequence[str], new: Sequence[str], y: str
    ) -> list[str]:
        """The loop itself: `body` computes the new state and the output y from old ones."""
