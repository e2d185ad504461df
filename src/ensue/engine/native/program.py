"""What a kernel computes and where each value lives: from the graph to buffers and phases.

Forward and backward are schedules of the same kind. What the backward pass reads of the
forward one is saved exactly where it would need a product or a reduction to recompute; the
elementwise rest is computed again. A saved value takes the place of a product of x that
has been read, where there is one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ensue.equations import Equations, MatrixRef, Node, VectorRef, below
from ensue.equations.declare import Mask, Parameter
from ensue.equations.node import ONE, Graph
from ensue.equations.schedule import REDUCTIONS, Schedule, as_operand, is_hoisted, lower


class Place(NamedTuple):
    """Where a value lives: column `offset` (a list of sizes to add up) of a buffer's rows.

    row: "step" rows of every step, "batch" rows of the batch, "time" rows of (time, batch)
    tensors, "old" and "new" the states before and after the step."""

    buffer: str
    row: str
    offset: tuple[str, ...] = ()


@dataclass
class Slots:
    """The columns of a buffer, one value beside the other."""

    sizes: list[str] = field(default_factory=list)

    def add(self, size: str) -> tuple[str, ...]:
        offset = tuple(self.sizes)
        self.sizes.append(size)
        return offset


class Run(NamedTuple):
    """Neighbouring gates of a matrix whose adjoints are neighbours in D: one product after the
    loop gives their gradient. source: "x", a state part, or the place of a saved operand."""

    matrix: str
    first_gate: int
    gates: int
    offset: tuple[str, ...]
    source: str | Place


class Forward:
    """What the programs share: the outputs of a step, and the places of what is given to it."""

    saved: list[Node]
    doubled: set[str]
    forward: Schedule

    def __init__(self, equations: Equations, low: dict[Node, Node]) -> None:
        self.equations = equations
        self.output = _own(low[equations.output])
        self.state = {part: _own(low[node]) for part, node in equations.state.items()}
        self.places: dict[Node, Place] = {equations.x: Place("X", "step")}
        self.buffers: dict[str, Slots] = {"X": Slots(["input"])}
        for part, leaf in equations.old.items():
            self.places[leaf] = Place(part, "old")
        for name in equations.masks:
            mask = equations.declarations[name]
            assert isinstance(mask, Mask)
            leaf = equations.graph.leaf("mask", name, mask.size)
            row = "batch" if mask.over == "sequence" else "step"
            self.places[leaf] = self._slot(f"M_{name}", row, mask.size)

    def _slot(self, buffer: str, row: str, size: str) -> Place:
        return Place(buffer, row, self.buffers.setdefault(buffer, Slots()).add(size))

    def order(self, ref: MatrixRef | VectorRef) -> tuple[int, int]:
        """The place of a block among the declared parameters."""
        declared = self.equations.declarations
        owner = declared[ref.name]
        assert isinstance(owner, Parameter)
        return list(declared).index(ref.name), owner.gates.index(ref.gate)


class StepProgram(Forward):
    """One step by itself, for streams: products of x stand beside those of the state."""

    def __init__(self, equations: Equations) -> None:
        super().__init__(equations, lower(equations.roots, hoist=False))
        self.saved, self.doubled = [], set()
        self.forward = Schedule([self.output, *self.state.values()], lambda _: False)


class Program(Forward):
    """Both directions of one traced step, for whole sequences."""

    def __init__(self, equations: Equations) -> None:
        graph = equations.graph
        derivative = equations.derive(graph.copy)
        self.seeds = derivative.seeds
        outers = derivative.outers()
        rest_of_x = _rest_of_x(derivative.x, outers)
        wanted = [*derivative.state.values(), *derivative.vectors.values(), rest_of_x]
        wanted += [node for _, adjoint, operand in outers for node in (adjoint, operand)]
        low = lower([*equations.roots, *(n for n in wanted if n is not None)])
        super().__init__(equations, low)
        self.d_state = {
            p: _nothing(graph, equations.old[p].size) if n is None else low[n]
            for p, n in derivative.state.items()
        }
        self.d_vectors = {ref: low[node] for ref, node in derivative.vectors.items()}
        self.d_x = None if rest_of_x is None else low[rest_of_x]
        self.outers = [(ref, low[a], v if is_x(v) else as_operand(low[v])) for ref, a, v in outers]
        self._place_x_products()
        self._place_adjoints()
        self._save()
        self._schedule()
        self.runs = self._runs()

    # ---------------------------------------------------------------- places
    def _place_x_products(self) -> None:
        found = [n for n in below([self.output, *self.state.values()]) if is_hoisted(n)]
        self.hoisted = sorted(found, key=lambda n: (self.order(n.attr), n.number))
        self.x_products = {n.attr: self._slot("XP", "step", n.size) for n in self.hoisted}
        self.places.update({n: self.x_products[n.attr] for n in self.hoisted})

    def _place_adjoints(self) -> None:
        """Seeds, and one slot of D for each distinct adjoint of a product, in the order of the
        matrices."""
        self.places[self.seeds[0]] = self._slot("DY", "time", self.seeds[0].size)
        for part, seed in zip(self.state, self.seeds[1:], strict=True):
            self.places[seed] = Place(f"C_{part}", "batch")
        self.d_slots: dict[Node, Place] = {}
        for _, adjoint, _ in sorted(self.outers, key=lambda o: (not is_x(o[2]), self.order(o[0]))):
            if adjoint not in self.d_slots:
                self.d_slots[adjoint] = self._slot("D", "step", adjoint.size)

    # ---------------------------------------------------------------- what is saved
    def _save(self) -> None:
        roots = [self.output, *self.state.values()]
        operands = {v for _, _, v in self.outers if not v.is_leaf}
        forward = set(below([*roots, *operands]))
        back = [*self.d_state.values(), *([] if self.d_x is None else [self.d_x])]
        back += [*self.d_vectors.values(), *self.d_slots]
        self.back_roots = back
        needed = {n for n in below(back, forward.__contains__) if n in forward}
        at_hand = {n for n in forward if n.is_leaf} | set(self.state.values())
        saved: dict[Node, None] = {}

        def recomputable(node: Node) -> bool:
            if node in at_hand:
                return True
            costly = node.op in ("dot", "product", *REDUCTIONS)
            return not costly and not node.is_leaf and all(map(recomputable, node.args))

        for node in sorted(needed, key=lambda n: n.number):
            if not recomputable(node):
                saved[node] = None
                at_hand.add(node)
        saved.update(dict.fromkeys(sorted(operands, key=lambda n: n.number)))
        self.saved, self.operands = list(saved), operands
        self.forward = Schedule([*roots, *self.saved], is_hoisted)
        self._place_saved()

    def _place_saved(self) -> None:
        """In the slot of a product of x that nobody reads any more, or in a new one."""
        read, written = {}, {}
        for stage in self.forward.stages:
            for phase in stage.phases.values():
                read.update({n.attr: phase.level for n in phase.loads if is_hoisted(n)})
                written.update(dict.fromkeys(phase.stores, phase.level))
        kept = {n.attr for n in self.saved if is_hoisted(n)}
        free = {ref: n.size for n in self.hoisted if (ref := n.attr) not in kept}
        for node in self.saved:
            if is_hoisted(node):
                continue
            if node.size == ONE:
                self.places[node] = self._slot("US", "step", ONE)
                continue
            fits = [r for r, size in free.items() if size == node.size and read[r] <= written[node]]
            if fits:
                del free[fits[0]]
                self.places[node] = self.x_products[fits[0]]
            else:
                self.places[node] = self._slot("EX", "step", node.size)

    def _schedule(self) -> None:
        held = set(self.saved) | set(self.state.values())
        self.backward = Schedule(self.back_roots, lambda n: n in held)
        self.back_places = dict(self.places)
        for part, node in self.state.items():
            self.back_places.setdefault(node, Place(part, "new"))
        self.back_places.update(self.d_slots)
        self.doubled = {part for part in self.state if self._carry_is_read_late(part)}

    def _carry_is_read_late(self, part: str) -> bool:
        """Whether the old adjoint of a state is still read once the new one is being written."""
        seed = self.seeds[1 + list(self.state).index(part)]
        new = self.d_state[part]
        phases = [ph for stage in self.backward.stages for ph in stage.phases.values()]
        writes = [k for k, ph in enumerate(phases) if new in ph.stores]
        reads = [k for k, ph in enumerate(phases) if seed in ph.loads]
        return not writes or max(reads, default=-1) > writes[0] or len(phases) == 0

    # ---------------------------------------------------------------- products after the loop
    def _runs(self) -> list[Run]:
        parts = {leaf: part for part, leaf in self.equations.old.items()}
        found: list[Run] = []
        for ref, adjoint, operand in sorted(self.outers, key=lambda o: self.order(o[0])):
            source: str | Place
            source = "x" if is_x(operand) else parts.get(operand) or self.places[operand]
            gate, offset = self.order(ref)[1], self.d_slots[adjoint].offset
            last = found[-1] if found else None
            follows = (
                last is not None
                and (last.matrix, last.source) == (ref.name, source)
                and last.first_gate + last.gates == gate
                and (*last.offset, *[adjoint.size] * last.gates) == offset
            )
            if last is not None and follows:
                found[-1] = last._replace(gates=last.gates + 1)
            else:
                found.append(Run(ref.name, gate, 1, offset, source))
        return found


def _rest_of_x(d_x: Node | None, outers: list[tuple[MatrixRef, Node, Node]]) -> Node | None:
    """The derivative by x less the products Wᵀδ that x itself was an operand of: those are one
    product after the loop."""
    if d_x is None:
        return None
    graph, terms = d_x.graph, list(d_x.args) if d_x.op == "add" else [d_x]
    for ref, adjoint, operand in outers:
        if is_x(operand):
            terms.remove(graph.product(ref.T, adjoint))
    return graph.spread_to(graph.add(*terms), d_x.size) if terms else None


def _own(node: Node) -> Node:
    """A single number that is returned as it came is computed all the same, to be stored."""
    return node.graph.copy(node) if node.is_leaf and node.size == ONE else node


def _nothing(graph: Graph, size: str) -> Node:
    """The adjoint of a state that no step reads: zeros, in the place of what arrived before."""
    zero = graph.constant(0.0)
    return graph.copy(zero) if size == ONE else graph.spread(zero, size)


def is_x(node: Node) -> bool:
    return node.op == "x"
