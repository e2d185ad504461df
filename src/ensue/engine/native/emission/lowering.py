"""The step and its derivative with products lowered to dots, before anything is scheduled.

The derivative by a leaf that is given before the loop is cut in two: the products Wᵀδ, which are
one large product after the loop for all steps, and the rest, which the loop computes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ensue.engine.native.emission.gate_runs import declared_order
from ensue.equations import Equations, MatrixRef, Node, VectorRef, below
from ensue.equations.node import ONE, Graph
from ensue.equations.schedule import Given, as_operand, is_hoisted, lower, of_nothing, of_x


class Outer(NamedTuple):
    """A term of a matrix's gradient: Σ adjoint · operandᵀ over rows and steps."""

    matrix: MatrixRef
    adjoint: Node
    operand: Node


@dataclass(frozen=True)
class LoweredStep:
    """The outputs of a step. given: leaves whose products are taken before the loop."""

    equations: Equations
    given: Given
    output: Node
    state: dict[str, Node]

    @property
    def roots(self) -> list[Node]:
        return [self.output, *self.state.values()]

    def is_hoisted(self, node: Node) -> bool:
        return is_hoisted(node, self.given)

    @property
    def hoisted(self) -> list[Node]:
        """The products before the loop, in the order of the declared matrices."""
        found = filter(self.is_hoisted, below(self.roots))
        return sorted(found, key=lambda n: (declared_order(self.equations, n.attr), n.number))


@dataclass(frozen=True)
class LoweredDerivative:
    """The reverse derivative of a step.

    seeds: the adjoints of the output and of each part of the state, which are given.
    state, vectors, x: derivatives by the old state, the vectors and x; of x and of what else is
    given before the loop the rest only, None where there is none.
    adjoints: the distinct adjoints of the products, in the order of the matrices, those of x
    first."""

    seeds: tuple[Node, ...]
    state: dict[str, Node]
    vectors: dict[VectorRef, Node]
    x: Node | None
    outers: list[Outer]
    adjoints: list[Node]

    @property
    def roots(self) -> list[Node]:
        x = [] if self.x is None else [self.x]
        return [*self.state.values(), *x, *self.vectors.values(), *self.adjoints]


def lower_step(equations: Equations, given: Given = of_nothing) -> LoweredStep:
    """The step by itself, without its derivative."""
    return _step(equations, lower(equations.roots, given), given)


def lower_both(equations: Equations, given: Given = of_x) -> tuple[LoweredStep, LoweredDerivative]:
    """The step and its derivative, which share values."""
    derivative = equations.derive(equations.graph.copy)
    outers = [Outer(*outer) for outer in derivative.outers()]
    outside = [outer for outer in outers if given(outer.operand)]
    rest_of_x = _without_products(derivative.x, equations.x, outside)
    rest = {
        part: _without_products(d, equations.old[part], outside)
        for part, d in derivative.state.items()
    }
    wanted = [*rest.values(), *derivative.vectors.values(), rest_of_x]
    wanted += [node for outer in outers for node in (outer.adjoint, outer.operand)]
    low = lower([*equations.roots, *(n for n in wanted if n is not None)], given)
    step = _step(equations, low, given)
    state = {
        part: _zeros(equations.graph, equations.old[part].size) if d is None else low[d]
        for part, d in rest.items()
    }
    lowered = [
        Outer(ref, low[adjoint], operand if is_x(operand) else as_operand(low[operand]))
        for ref, adjoint, operand in outers
    ]
    return step, LoweredDerivative(
        derivative.seeds,
        state,
        {ref: low[node] for ref, node in _in_order(equations, derivative.vectors)},
        None if rest_of_x is None else low[rest_of_x],
        lowered,
        _distinct_adjoints(equations, lowered),
    )


def _in_order(equations: Equations, vectors: dict[VectorRef, Node]) -> list[tuple[VectorRef, Node]]:
    return sorted(vectors.items(), key=lambda item: declared_order(equations, item[0]))


def _step(equations: Equations, low: dict[Node, Node], given: Given) -> LoweredStep:
    state = {part: _computed(low[node]) for part, node in equations.state.items()}
    return LoweredStep(equations, given, _computed(low[equations.output]), state)


def _distinct_adjoints(equations: Equations, outers: list[Outer]) -> list[Node]:
    """Those of products of x first: their columns are neighbours."""
    ordered = sorted(
        outers, key=lambda o: (not is_x(o.operand), declared_order(equations, o.matrix))
    )
    return list(dict.fromkeys(outer.adjoint for outer in ordered))


def _without_products(d: Node | None, leaf: Node, outers: list[Outer]) -> Node | None:
    """The derivative by a leaf less the products Wᵀδ of which the leaf was the operand."""
    if d is None:
        return None
    graph, terms = d.graph, list(d.args) if d.op == "add" else [d]
    for ref, adjoint, operand in outers:
        if operand is leaf:
            terms.remove(graph.product(ref.T, adjoint))
    return graph.spread_to(graph.add(*terms), d.size) if terms else None


def _computed(node: Node) -> Node:
    """A single number that is returned as it came is computed all the same, to be stored."""
    return node.graph.copy(node) if node.is_leaf and node.size == ONE else node


def _zeros(graph: Graph, size: str) -> Node:
    """The adjoint of a state that no step reads: it replaces what arrived before."""
    zero = graph.constant(0.0)
    return graph.copy(zero) if size == ONE else graph.spread(zero, size)


def is_x(node: Node) -> bool:
    return node.op == "x"
