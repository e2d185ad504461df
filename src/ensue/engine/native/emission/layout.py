"""Where every value of a step is stored, forward and backward.

A saved value overwrites a hoisted product of the same size that is not read again, if there is one.
The adjoints may in turn overwrite the saved values: the backward pass then writes them into the
same memory, slot for slot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ensue.engine.native.emission import buffers
from ensue.engine.native.emission.buffers import (
    ADJOINTS,
    D_Y,
    NUMBERS_SAVED,
    PRODUCTS,
    Buffer,
    Location,
    X,
    declared_order,
)
from ensue.equations import Equations, MatrixRef, Node, VectorRef, below
from ensue.equations.declare import Mask
from ensue.equations.node import ONE, Graph
from ensue.equations.schedule import (
    IsConstant,
    Schedule,
    as_operand,
    is_hoisted,
    lower,
    of_nothing,
    of_x,
)

# -------------------------------------------------------------------------------------------------
# The step and its derivative with products lowered to dots, before anything is scheduled.
#
# The derivative by a leaf that is known before the loop has two parts: the products Wᵀδ, which are
# one large product after the loop for all steps, and the rest, which the loop computes.


class Outer(NamedTuple):
    """One term of a matrix's gradient: Σ adjoint · operandᵀ over rows and steps."""

    matrix: MatrixRef
    adjoint: Node
    operand: Node


@dataclass(frozen=True)
class LoweredStep:
    """The outputs of a step. is_given: tells the leaves whose products are computed before the
    loop."""

    equations: Equations
    is_given: IsConstant
    output: Node
    state: dict[str, Node]

    @property
    def roots(self) -> list[Node]:
        return [self.output, *self.state.values()]

    def is_hoisted(self, node: Node) -> bool:
        return is_hoisted(node, self.is_given)

    @property
    def hoisted(self) -> list[Node]:
        """The products before the loop, in the order of the declared matrices."""
        nodes = filter(self.is_hoisted, below(self.roots))
        return sorted(nodes, key=lambda n: (declared_order(self.equations, n.attr), n.number))


@dataclass(frozen=True)
class LoweredDerivative:
    """The reverse derivative of a step.

    seeds: the adjoints of the output and of each part of the state, which are inputs. state,
    vectors, x: derivatives by the old state, the vectors and x. For x and other inputs known before
    the loop, products are excluded; None if nothing remains. adjoints: the distinct adjoints of the
    products, in the order of the matrices, those of x first."""

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


def lower_step(equations: Equations, is_given: IsConstant = of_nothing) -> LoweredStep:
    """The step without its derivative."""
    return _step(equations, lower(equations.roots, is_given), is_given)


def lower_both(
    equations: Equations, is_given: IsConstant = of_x
) -> tuple[LoweredStep, LoweredDerivative]:
    """The step and its derivative, which share values."""
    derivative = equations.derive(equations.graph.copy)
    outers = [Outer(*outer) for outer in derivative.outers()]
    outside = [outer for outer in outers if is_given(outer.operand)]
    rest_of_x = _without_products(derivative.x, equations.x, outside)
    rest = {
        part: _without_products(d, equations.old[part], outside)
        for part, d in derivative.state.items()
    }
    roots = [*rest.values(), *derivative.vectors.values(), rest_of_x]
    roots += [node for outer in outers for node in (outer.adjoint, outer.operand)]
    low = lower([*equations.roots, *(n for n in roots if n is not None)], is_given)
    step = _step(equations, low, is_given)
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


def _step(equations: Equations, low: dict[Node, Node], is_given: IsConstant) -> LoweredStep:
    state = {part: _computed(low[node]) for part, node in equations.state.items()}
    return LoweredStep(equations, is_given, _computed(low[equations.output]), state)


def _distinct_adjoints(equations: Equations, outers: list[Outer]) -> list[Node]:
    """The distinct adjoints. Adjoints of products of x come first, in neighbouring columns."""
    ordered = sorted(
        outers, key=lambda o: (not is_x(o.operand), declared_order(equations, o.matrix))
    )
    return list(dict.fromkeys(outer.adjoint for outer in ordered))


def _without_products(d: Node | None, leaf: Node, outers: list[Outer]) -> Node | None:
    """The derivative by a leaf, without the products Wᵀδ whose operand was the leaf."""
    if d is None:
        return None
    graph, terms = d.graph, list(d.args) if d.op == "add" else [d]
    for ref, adjoint, operand in outers:
        if operand is leaf:
            terms.remove(graph.product(ref.T, adjoint))
    return graph.spread_to(graph.add(*terms), d.size) if terms else None


def _computed(node: Node) -> Node:
    """A computed node. A single number that the step returns unchanged is copied, so that it is
    stored."""
    return node.graph.copy(node) if node.is_leaf and node.size == ONE else node


def _zeros(graph: Graph, size: str) -> Node:
    """The adjoint of a state that no step reads: zeros, which replace the adjoint that arrived."""
    zero = graph.constant(0.0)
    return graph.copy(zero) if size == ONE else graph.spread(zero, size)


def is_x(node: Node) -> bool:
    return node.op == "x"


Locations = dict[Node, Location]
ColumnSizes = dict[Buffer, list[str]]  # the sizes of adjacent values


@dataclass(frozen=True)
class Layout:
    """forward, backward: the locations of values in each pass. adjoints: the locations of the
    products' adjoints. overlay: whether ADJOINTS may share the memory of PRODUCTS."""

    columns: ColumnSizes
    forward: Locations
    backward: Locations
    adjoints: Locations
    overlay: bool


def side_by_side(buffer: Buffer, row: str, nodes: Sequence[Node]) -> Locations:
    """Locations of values in adjacent columns of a buffer."""
    sizes = [node.size for node in nodes]
    return {node: Location(buffer, row, tuple(sizes[:k])) for k, node in enumerate(nodes)}


def layout_of_inputs(equations: Equations) -> tuple[ColumnSizes, Locations]:
    """Locations of the inputs of a step: x, the old state, the masks."""
    columns: ColumnSizes = {X: ["input"]}
    locations: Locations = {equations.x: Location(X, "step")}
    for part, leaf in equations.old.items():
        locations[leaf] = Location(buffers.states(part), "old")
    for name in equations.masks:
        mask = equations.declarations[name]
        assert isinstance(mask, Mask)
        leaf = equations.graph.leaf("mask", name, mask.size)
        row = "batch" if mask.over == "sequence" else "step"
        locations[leaf] = Location(buffers.mask(name), row)
        columns[buffers.mask(name)] = [mask.size]
    return columns, locations


@dataclass(frozen=True)
class Overlay:
    """The rule by which adjoints may be written over saved values.

    A phase walks along the features and reads each one before it writes it. The exception are
    operands of products: it reads them whole each time, half a phase later. sizes, written: the
    size of each slot of ADJOINTS, and the phase that writes it."""

    sizes: list[str]
    written: dict[int, int]
    last_read: dict[Node, float]

    def admits(self, node: Node, slot: int) -> bool:
        """Whether a saved value may use a slot of PRODUCTS."""
        if slot >= len(self.sizes):
            return True
        same_size = node.size == self.sizes[slot]
        return same_size and self.last_read.get(node, -1) <= self.written[slot]


def find_overlay(
    derivative: LoweredDerivative,
    backward: Schedule,
    hoisted: Sequence[Node],
    saved: Sequence[Node],
    operands: set[Node],
) -> Overlay | None:
    """The rule for this step; None if adjoints need separate memory."""
    slots = {adjoint: k for k, adjoint in enumerate(derivative.adjoints)}
    last_read: dict[Node, float] = {}
    written: dict[int, int] = {}
    for k, phase in enumerate(backward.phases):
        last_read.update(dict.fromkeys(phase.loads, k))
        last_read.update({operand: k + 0.5 for dot in phase.dots for operand in dot.args})
        for node in phase.stores:
            if node in slots:
                written.setdefault(slots[node], k)
    last_read.update(dict.fromkeys(operands, math.inf))  # after the loop
    sizes = [adjoint.size for adjoint in derivative.adjoints]
    if not sizes or ONE in [*sizes, *(n.size for n in hoisted)]:  # single numbers have no phase
        return None
    overlay = Overlay(sizes, written, last_read)
    same = all(n.size == size for n, size in zip(hoisted, sizes, strict=False))
    candidates = [(n, k) for k, n in enumerate(hoisted) if n in saved]
    return overlay if same and all(overlay.admits(n, k) for n, k in candidates) else None


def place_saved(
    step: LoweredStep, forward: Schedule, saved: Sequence[Node], overlay: Overlay | None
) -> tuple[ColumnSizes, Locations]:
    """Locations of hoisted products and of saved values. A saved value gets the slot of a product
    that is not read again, or a new one; beyond the adjoints, if an adjoint would overwrite it too
    early."""
    hoisted = step.hoisted
    read, written = _phases_of(forward, hoisted)
    locations = side_by_side(PRODUCTS, "step", hoisted)
    columns, numbers = [n.size for n in hoisted], list[str]()
    free = [n for n in hoisted if n not in saved]

    def admits(node: Node, slot: int) -> bool:
        return overlay is None or overlay.admits(node, slot)

    for node in saved:
        if step.is_hoisted(node):
            continue
        if node.size == ONE:
            locations[node] = Location(NUMBERS_SAVED, "step", tuple(numbers))
            numbers.append(ONE)
            continue
        for product in free:
            fits = product.size == node.size and read[product] <= written[node]
            if fits and admits(node, locations[product].slot):
                free.remove(product)
                locations[node] = locations[product]
                break
        else:
            while overlay is not None and not overlay.admits(node, len(columns)):
                columns.append(overlay.sizes[len(columns)])
            locations[node] = Location(PRODUCTS, "step", tuple(columns))
            columns.append(node.size)
    if overlay is not None:  # the wider of the two
        columns += overlay.sizes[len(columns) :]
    places = {PRODUCTS: columns, NUMBERS_SAVED: numbers}
    return {buffer: sizes for buffer, sizes in places.items() if sizes}, locations


def _phases_of(
    forward: Schedule, hoisted: Sequence[Node]
) -> tuple[Mapping[Node, int], Mapping[Node, int]]:
    """The level of the last read of each hoisted product, and the level at which each value is
    stored."""
    read: dict[Node, int] = {}
    written: dict[Node, int] = {}
    for phase in forward.phases:
        read.update({n: phase.level for n in phase.loads if n in hoisted})
        written.update(dict.fromkeys(phase.stores, phase.level))
    return read, written


def make_layout(
    step: LoweredStep,
    derivative: LoweredDerivative,
    forward: Schedule,
    saved: Sequence[Node],
    overlay: Overlay | None,
) -> Layout:
    """The layout of a kernel for both passes."""
    columns, input_places = layout_of_inputs(step.equations)
    more, stored = place_saved(step, forward, saved, overlay)
    adjoints = side_by_side(ADJOINTS, "step", derivative.adjoints)
    columns |= more
    if adjoints:
        columns[ADJOINTS] = [adjoint.size for adjoint in derivative.adjoints]
    seeds: Locations = {derivative.seeds[0]: Location(D_Y, "time")}
    for part, seed in zip(step.state, derivative.seeds[1:], strict=True):
        seeds[seed] = Location(buffers.carry(part), "batch")
    known = input_places | stored | seeds
    backward = dict(known)
    for part, node in step.state.items():
        backward.setdefault(node, Location(buffers.states(part), "new"))
    return Layout(columns, known, backward | adjoints, adjoints, overlay is not None)
