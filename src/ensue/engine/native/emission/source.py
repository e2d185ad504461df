"""The complete source of a kernel, and the list of buffers it expects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ensue.engine.native.emission.buffers import Buffer
from ensue.engine.native.emission.directions import (
    Direction,
    Panels,
    backward_direction,
    forward_direction,
)
from ensue.engine.native.emission.emit import Emitter
from ensue.engine.native.emission.program import Forward, Program
from ensue.equations import Equations


@dataclass(frozen=True)
class KernelFunction:
    """One direction: its buffers in the order of the call, the buffers it uses, and its packed
    matrices; the sizes of its scratch columns; and its number of single numbers and reductions per
    row."""

    buffers: list[Buffer]
    used: list[Buffer]
    panels: list[Panels]
    scratch: list[str]
    numbers: int
    reductions: int


@dataclass(frozen=True)
class KernelSource:
    """C++ text, and the arguments of its functions. The numbers of a call are first the `sizes`,
    then one stride for each buffer."""

    text: str
    sizes: list[str]
    functions: dict[str, KernelFunction]


def write_source(program: Program) -> KernelSource:
    """A kernel for sequences, forward and backward."""
    return _source(
        program.equations,
        [forward_direction(program.forward), backward_direction(program)],
        _header(program.equations, backward=True),
    )


def write_step_source(forward: Forward) -> KernelSource:
    """A kernel for one step at a time."""
    header = _header(forward.equations, backward=False)
    return _source(forward.equations, [forward_direction(forward)], header)


def _source(equations: Equations, directions: list[Direction], header: list[str]) -> KernelSource:
    sizes = list(equations.graph.sizes)
    functions, lines = {}, header
    for direction in directions:
        functions[direction.name], text = _function(direction, sizes)
        lines += [*text, ""]
    return KernelSource("\n".join([*lines, *_entries(functions)]) + "\n", sizes, functions)


def _header(equations: Equations, backward: bool) -> list[str]:
    """The cell's equations, as comments above the code generated from them."""
    lines = [f"// {equations.title}, generated from its equations:"]
    lines += [f"//     {line}" for line in equations.text().splitlines()]
    if backward:
        lines += ["// and their derivative:"]
        lines += [f"//     {line}" for line in equations.derivative_text().splitlines()]
    return [*lines, '#include "kernel.hpp"', ""]


def _function(direction: Direction, sizes: list[str]) -> tuple[KernelFunction, list[str]]:
    """Two functions in C++: one packs matrices, the other walks over time."""
    rows, pack = Emitter(direction), Emitter(direction)
    text: list[str] = []
    for emitter, (head, *body) in ((pack, pack.packing()), (rows, rows.function())):
        declared = _declarations(direction.buffers, sizes, emitter.values.mentioned)
        text += [head, *declared, *body, ""]
    mentioned = rows.values.mentioned | pack.values.mentioned
    used = [b for b in direction.buffers if b.name in mentioned or b.stride in mentioned]
    function = KernelFunction(
        direction.buffers,
        used,
        list(direction.panels.values()),
        [node.size for node in direction.scratch],
        len(direction.numbers),
        direction.reductions,
    )
    return function, text[:-1]


def _declarations(buffers: list[Buffer], sizes: list[str], mentioned: set[str]) -> list[str]:
    """The sizes, buffers and strides that a function mentions, by name."""
    names = {"first": "const long first = c_.first[who];"}
    for k, size in enumerate(sizes):
        names[f"n_{size}"] = f"const long n_{size} = c_.sizes[{k}];"
    for k, buffer in enumerate(buffers):
        names[buffer.name] = f"real* const {buffer.name} = c_.buffers[{k}];"
        names[buffer.stride] = f"const long {buffer.stride} = c_.sizes[{len(sizes) + k}];"
    return [f"  {line}" for name, line in names.items() if name in mentioned]


def _entries(names: Iterable[str]) -> list[str]:
    lines, arguments = ['extern "C" {'], "const Call* c, const Threads* t"
    for name in names:
        lines += [
            f"void pack_{name}({arguments}) {{ together(*c, *t, {name}_pack); }}",
            f"void run_{name}({arguments}) {{ together(*c, *t, {name}_rows); }}",
            f"void {name}({arguments}) {{ pack_{name}(c, t), run_{name}(c, t); }}",
        ]
    return [*lines, "}"]
