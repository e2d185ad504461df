"""What a kernel computes and where each value lives: from the graph to buffers and phases.

Forward and backward are schedules of the same kind. What the backward pass reads of the
forward one is saved exactly where it would need a product or a reduction to recompute; the
elementwise rest is computed again. A saved value takes the place of a product of x that
has been read, where there is one; an adjoint takes the place of a saved value, likewise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from ensue.equations import Equations, MatrixRef, Node, VectorRef, below
from ensue.equations.declare import Mask, Parameter
from ensue.equations.node import ONE, Graph
from ensue.equations.schedule import OUTSIDE, REDUCTIONS, Schedule, as_operand, is_hoisted, lower


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
    """Neighbouring gates of a matrix whose products are neighbours in XP, one product before the
    loop; or whose adjoints are neighbours in D, one product after it. source: where the operand
    is — "x", a state part, or a saved place."""

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
        self.output_part = next((p for p, n in self.state.items() if n is self.output), None)
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

    def width(self, sizes: Iterable[str]) -> int:
        """How many features values of these sizes have side by side."""
        return sum(self.equations.graph.width(s) for s in sizes)

    def rows(self, name: str, gate: int, gates: int = 1) -> tuple[int, int]:
        """The first row of neighbouring gates in a stacked parameter, and one after the last."""
        declared = self.equations.declarations[name]
        assert isinstance(declared, Parameter)
        height = self.equations.graph.width(declared.size)
        return gate * height, (gate + gates) * height


class StepProgram(Forward):
    """One step by itself, for streams: products of x stand beside those of the state."""

    def __init__(self, equations: Equations) -> None:
        super().__init__(equations, lower(equations.roots, given=()))
        self.saved, self.doubled = [], set()
        self.forward = Schedule([self.output, *self.state.values()], lambda _: False)


class Program(Forward):
    """Both directions of one traced step, for whole sequences.

    once: for sequences of one step, whose old state is as much given as x."""

    def __init__(self, equations: Equations, once: bool = False) -> None:
        graph = equations.graph
        self.once, self.given = once, ("x", "state") if once else OUTSIDE
        self.is_hoisted = partial(is_hoisted, given=self.given)
        derivative = equations.derive(graph.copy)
        self.seeds = derivative.seeds
        outers = derivative.outers()
        outside = [o for o in outers if o[2].op in self.given]
        rest_of_x = _rest(derivative.x, equations.x, outside)
        d_state = {p: _rest(d, equations.old[p], outside) for p, d in derivative.state.items()}
        wanted = [*d_state.values(), *derivative.vectors.values(), rest_of_x]
        wanted += [node for _, adjoint, operand in outers for node in (adjoint, operand)]
        low = lower([*equations.roots, *(n for n in wanted if n is not None)], self.given)
        super().__init__(equations, low)
        self.d_state = {
            p: _nothing(graph, equations.old[p].size) if n is None else low[n]
            for p, n in d_state.items()
        }
        vectors = sorted(derivative.vectors.items(), key=lambda item: self.order(item[0]))
        self.d_vectors = {ref: low[node] for ref, node in vectors}
        self.d_x = None if rest_of_x is None else low[rest_of_x]
        self.outers = [(ref, low[a], v if is_x(v) else as_operand(low[v])) for ref, a, v in outers]
        self._place_hoisted()
        self._place_adjoints()
        self._save()
        self._schedule()
        self._place_saved()
        self._place_for_backward()
        self.runs_before, self.runs_after = self._runs_before(), self._runs_after()

    # ---------------------------------------------------------------- places
    def _place_hoisted(self) -> None:
        found = filter(self.is_hoisted, below([self.output, *self.state.values()]))
        self.hoisted = sorted(found, key=lambda n: (self.order(n.attr), n.number))
        self.places.update({n: self._slot("XP", "step", n.size) for n in self.hoisted})

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

    def _schedule(self) -> None:
        roots = [self.output, *self.state.values()]
        self.forward = Schedule([*roots, *self.saved], self.is_hoisted)
        held = {*self.saved, *self.state.values()}
        self.backward = Schedule(self.back_roots, lambda n: n in held)
        self.doubled = {part for part in self.state if self._carry_is_read_late(part)}

    def _place_saved(self) -> None:
        """In the slot of a product of x that nobody reads any more, or in a new one; where it is
        read too late for the adjoint that would come over it, in one beyond the adjoints."""
        self._when_over()
        read, written = {}, {}
        for stage in self.forward.stages:
            for phase in stage.phases.values():
                read.update({n: phase.level for n in phase.loads if self.is_hoisted(n)})
                written.update(dict.fromkeys(phase.stores, phase.level))
        free = [n for n in self.hoisted if n not in self.saved]
        for node in self.saved:
            if self.is_hoisted(node):
                continue
            if node.size == ONE:
                self.places[node] = self._slot("US", "step", ONE)
                continue
            fits = [
                n
                for n in free
                if n.size == node.size
                and read[n] <= written[node]
                and self._may_stand(node, len(self.places[n].offset))
            ]
            if fits:
                free.remove(fits[0])
                self.places[node] = self.places[fits[0]]
                continue
            slots = self.buffers.setdefault("XP", Slots())
            while not self._may_stand(node, len(slots.sizes)):
                slots.add(self.buffers["D"].sizes[len(slots.sizes)])
            self.places[node] = self._slot("XP", "step", node.size)
        if self.over:  # as wide as the wider of the two
            slots = self.buffers.setdefault("XP", Slots())
            slots.sizes += self.buffers["D"].sizes[len(slots.sizes) :]

    def _when_over(self) -> None:
        """In which phase of the backward pass a value is read for the last time, and each slot of D
        written; and whether D may lie over XP, slot for slot of the same size. A phase goes along
        the features and reads what it needs of them before it writes, but for the operands of
        products, which it reads whole each time."""
        self._last_read: dict[Node, float] = {}
        self._written: dict[int, int] = {}
        phases = [ph for stage in self.backward.stages for ph in stage.phases.values()]
        for k, phase in enumerate(phases):
            self._last_read.update(dict.fromkeys(phase.loads, k))
            self._last_read.update({a: k + 0.5 for dot in phase.dots for a in dot.args})
            for node in phase.stores:
                if node in self.d_slots:
                    self._written.setdefault(len(self.d_slots[node].offset), k)
        self._last_read.update(dict.fromkeys(self.operands, math.inf))  # after the loop
        sizes = [n.size for n in (*self.hoisted, *self.d_slots)]
        self.over = "D" in self.buffers and ONE not in sizes  # single numbers have no phase
        slots = [(n, len(self.places[n].offset)) for n in self.hoisted]
        same = all(k >= len(self.d_slots) or n.size == self._d_size(k) for n, k in slots)
        kept = [(n, k) for n, k in slots if n in self.saved]
        self.over = self.over and same and all(self._may_stand(n, k) for n, k in kept)

    def _may_stand(self, node: Node, slot: int) -> bool:
        """Whether a saved value may stand in a slot of XP."""
        if not self.over or slot >= len(self.d_slots):
            return True
        return node.size == self._d_size(slot) and (
            self._last_read.get(node, -1) <= self._written[slot]
        )

    def _d_size(self, slot: int) -> str:
        return self.buffers["D"].sizes[slot]

    def _place_for_backward(self) -> None:
        self.back_places = dict(self.places)
        for part, node in self.state.items():
            self.back_places.setdefault(node, Place(part, "new"))
        self.back_places.update(self.d_slots)

    def _carry_is_read_late(self, part: str) -> bool:
        """Whether the old adjoint of a state is still read once the new one is being written."""
        seed = self.seeds[1 + list(self.state).index(part)]
        new = self.d_state[part]
        phases = [ph for stage in self.backward.stages for ph in stage.phases.values()]
        writes = [k for k, ph in enumerate(phases) if new in ph.stores]
        reads = [k for k, ph in enumerate(phases) if seed in ph.loads]
        return not writes or max(reads, default=-1) > writes[0] or len(phases) == 0

    # ---------------------------------------------------------------- products outside the loop
    def source(self, operand: Node) -> str | Place:
        """Where an operand is found outside of the loop: "x", a state part, or a saved place."""
        parts = {leaf: part for part, leaf in self.equations.old.items()}
        return "x" if is_x(operand) else parts.get(operand) or self.places[operand]

    def _run(self, ref: MatrixRef, offset: tuple[str, ...], operand: Node) -> Run:
        return Run(ref.name, self.order(ref)[1], 1, offset, self.source(operand))

    def _runs_before(self) -> list[Run]:
        return _joined(
            (self._run(n.attr, self.places[n].offset, n.args[0]), n.size) for n in self.hoisted
        )

    def _runs_after(self) -> list[Run]:
        return _joined(
            (self._run(ref, self.d_slots[adjoint].offset, operand), adjoint.size)
            for ref, adjoint, operand in sorted(self.outers, key=lambda o: self.order(o[0]))
        )


def _joined(single: Iterable[tuple[Run, str]]) -> list[Run]:
    """Runs of one gate each, of a given size: neighbours become one."""
    found: list[Run] = []
    for run, size in single:
        last = found[-1] if found else None
        if last is not None and run == last._replace(
            first_gate=last.first_gate + last.gates,
            gates=1,
            offset=(*last.offset, *[size] * last.gates),
        ):
            found[-1] = last._replace(gates=last.gates + 1)
        else:
            found.append(run)
    return found


def _rest(d: Node | None, leaf: Node, outers: list[tuple[MatrixRef, Node, Node]]) -> Node | None:
    """The derivative by x or an old state less the products Wᵀδ that it was itself an operand of:
    those are one product after the loop."""
    if d is None:
        return None
    graph, terms = d.graph, list(d.args) if d.op == "add" else [d]
    for ref, adjoint, operand in outers:
        if operand is leaf:
            terms.remove(graph.product(ref.T, adjoint))
    return graph.spread_to(graph.add(*terms), d.size) if terms else None


def _own(node: Node) -> Node:
    """A single number that is returned as it came is computed all the same, to be stored."""
    return node.graph.copy(node) if node.is_leaf and node.size == ONE else node


def _nothing(graph: Graph, size: str) -> Node:
    """The adjoint of a state that no step reads: zeros, in the place of what arrived before."""
    zero = graph.constant(0.0)
    return graph.copy(zero) if size == ONE else graph.spread(zero, size)


def is_x(node: Node) -> bool:
    return node.op == "x"
