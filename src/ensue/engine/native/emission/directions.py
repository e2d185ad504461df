"""One pass as a C++ function: what it stores and where, its packed matrices, its work space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ensue.engine.native.emission import buffers
from ensue.engine.native.emission.buffers import (
    ADJOINTS,
    D_X,
    D_Y,
    NUMBERS,
    NUMBERS_SAVED,
    REDUCED,
    SCRATCH,
    SUMS,
    Buffer,
    Location,
    Y,
)
from ensue.engine.native.emission.layout import Locations, side_by_side
from ensue.engine.native.emission.program import Forward, Program
from ensue.equations import Equations, MatrixRef, Node
from ensue.equations.declare import Mask
from ensue.equations.node import ONE
from ensue.equations.schedule import Phase, Schedule

# Conditions in C++
TRAINING = "c_.train"  # a gradient may be needed
UNEQUAL = "c_.base"  # sequences differ in length


class Store(NamedTuple):
    """Stores a value in memory. when: a condition in C++."""

    location: Location
    when: str = ""


Group = tuple[int, str, Node]  # level and size of a phase, and the first of its dots side by side


def group_of(phase: Phase, dots: list[Node]) -> Group:
    """The key of a group of dots. The phase is part of it: phases of two sizes may compute the same
    dot."""
    return phase.level, phase.size, dots[0]


@dataclass(frozen=True)
class Panels:
    """The packed matrices of one group of dots: their buffer and their order in it."""

    buffer: Buffer
    size: str  # of the units
    gates: int
    terms: list[tuple[int, MatrixRef]]  # (gate, matrix), operand by operand
    operands: list[Node]
    together: str  # blocks of units side by side

    @property
    def columns(self) -> list[str]:
        """The size of each operand."""
        return [operand.size for operand in self.operands]


@dataclass(frozen=True)
class Direction:
    """One C++ function. sums: the adjoints of vectors, summed over rows and steps, each with the
    sizes of the sums before it; one entry for every vector with that adjoint."""

    name: str
    equations: Equations
    parts: list[str]
    doubled: list[str]
    schedule: Schedule
    locations: Locations
    stores: Mapping[Node, list[Store]]
    sums: Mapping[Node, list[tuple[str, ...]]]
    scratch: list[Node]
    numbers: dict[Node, int]
    panels: dict[Group, Panels]
    buffers: list[Buffer]  # in the order of a call

    @property
    def reductions(self) -> int:
        """The maximum number of reductions in a phase."""
        return max((len(phase.reductions) for phase in self.schedule.phases), default=0)


def forward_direction(forward: Forward) -> Direction:
    """The forward pass: stores the new state, the output, and the values that the backward pass
    reads."""
    stores: dict[Node, list[Store]] = {}
    for part, node in forward.state.items():
        stores.setdefault(node, []).append(Store(Location(buffers.states(part), "new")))
    apart = forward.output not in forward.state.values()
    output = Store(Location(Y, "time"), "" if apart else UNEQUAL)
    stores.setdefault(forward.output, []).append(output)
    phases = forward.schedule.phases
    read_again = {n for phase in phases for n in phase.loads}
    read_again |= {operand for phase in phases for dot in phase.dots for operand in dot.args}
    for node in forward.saved:
        if node.op != "product":
            location = forward.locations[node]
            is_saved = location.buffer != NUMBERS_SAVED and node in read_again
            stores.setdefault(node, []).append(Store(location, "" if is_saved else TRAINING))
    # saved single numbers are also single numbers of the step, which exist even if nothing is saved
    locations = {n: at for n, at in forward.locations.items() if at.buffer != NUMBERS_SAVED}
    return _direction("forward", forward, forward.schedule, locations, stores, {}, [])


def backward_direction(program: Program) -> Direction:
    """The backward pass: stores the adjoints of products and of the old state, and sums the
    adjoints of vectors."""
    forward, backward = program.forward, program.backward
    stores: dict[Node, list[Store]] = {
        node: [Store(location)] for node, location in backward.adjoints.items()
    }
    for part, carried in backward.state.items():
        to = buffers.next_carry if part in backward.doubled else buffers.carry
        stores.setdefault(carried, []).append(Store(Location(to(part), "batch")))
    if backward.x is not None:
        stores.setdefault(backward.x, []).append(Store(Location(D_X, "step")))
    sums: dict[Node, list[tuple[str, ...]]] = {}
    before: tuple[str, ...] = ()
    for node in backward.vectors.values():
        sums.setdefault(node, []).append(before)
        before = (*before, node.size)
    locations, doubled = dict(backward.locations), backward.doubled
    return _direction("backward", forward, backward.schedule, locations, stores, sums, doubled)


def _direction(
    name: str,
    forward: Forward,
    schedule: Schedule,
    locations: Locations,
    stores: dict[Node, list[Store]],
    sums: dict[Node, list[tuple[str, ...]]],
    doubled: list[str],
) -> Direction:
    """A direction with its work space: values that pass between phases and have no location, and
    single numbers of a row."""
    scratch = [
        node
        for phase in schedule.phases
        for node in phase.stores
        if node not in locations and _is_read(node, schedule)
    ]
    scratch = list(dict.fromkeys(scratch))
    scalars = [node for stage in schedule.stages for node in stage.scalars]
    numbers = {node: k for k, node in enumerate(dict.fromkeys(scalars))}
    every = side_by_side(NUMBERS, "batch", list(numbers)) | locations
    every |= side_by_side(SCRATCH, "batch", scratch)
    panels = _panels(name, schedule, every)
    names = _buffers(forward, name == "backward", doubled)
    names += [group.buffer for group in panels.values()]
    equations, parts = forward.equations, list(forward.state)
    return Direction(
        name, equations, parts, doubled, schedule, every,
        stores, sums, scratch, numbers, panels, names,
    )  # fmt: skip


def _is_read(node: Node, schedule: Schedule) -> bool:
    """Whether a later phase of the step reads the value; single numbers count as read."""
    return node.size == ONE or any(
        node in phase.loads or any(node in dot.args for dot in phase.dots)
        for phase in schedule.phases
    )


def _panels(name: str, schedule: Schedule, locations: Locations) -> dict[Group, Panels]:
    panels: dict[Group, Panels] = {}
    for phase in schedule.phases:
        together = f"blocks_for({max(map(len, phase.groups), default=0)})"
        for dots in phase.groups:
            order = _in_memory_order([locations[operand] for operand in dots[0].args])
            panels[group_of(phase, dots)] = Panels(
                buffers.packed(name, len(panels)),
                dots[0].size,
                len(dots),
                [(gate, dot.attr[k]) for k in order for gate, dot in enumerate(dots)],
                [dots[0].args[k] for k in order],
                together,
            )
    return panels


def _in_memory_order(locations: list[Location]) -> list[int]:
    """Operands in the order of memory, so that neighbours can be read as one."""

    def key(k: int) -> tuple[str, str, tuple[str, ...], int]:
        buffer, row, offset = locations[k]
        return buffer.of if row == "old" else buffer.name, row, offset, k

    return sorted(range(len(locations)), key=key)


def _buffers(forward: Forward, backward: bool, doubled: list[str]) -> list[Buffer]:
    """All buffers of one direction except its packed matrices, in the order of a call."""
    declared = forward.equations.declarations
    listed = [buffers.parameter(n) for n, d in declared.items() if not isinstance(d, Mask)]
    listed += [buffer for buffer in forward.columns if buffer != ADJOINTS]
    for part in forward.state:
        listed += [buffers.states(part), buffers.initial(part), buffers.final(part)]
    listed += [SCRATCH, REDUCED, NUMBERS, Y]
    if backward:
        listed += [D_Y, ADJOINTS, D_X, SUMS]
        for part in forward.state:
            listed += buffers.carry_pair(part) if part in doubled else [buffers.carry(part)]
    return listed
