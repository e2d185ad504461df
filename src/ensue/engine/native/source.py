"""The whole source of a kernel, and the list of buffers it expects."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ensue.engine.native.emit import Emitter
from ensue.engine.native.program import Forward, Program, StepProgram
from ensue.engine.native.values import Direction, Panels, Values
from ensue.equations import Equations
from ensue.equations.declare import Mask
from ensue.equations.node import ONE


@dataclass(frozen=True)
class Function:
    """One direction: its buffers in the order of the call, those of them that it uses, its panels,
    its scratch columns."""

    buffers: list[str]
    used: list[str]
    panels: list[Panels]
    scratch: list[str]
    numbers: int
    reductions: int


@dataclass(frozen=True)
class Source:
    """C++ text, and what must be given to its functions. `sizes` come first among the numbers
    of a call, then one stride for each buffer."""

    text: str
    sizes: list[str]
    functions: dict[str, Function]


def write_source(program: Program) -> Source:
    """A kernel for whole sequences, forward and backward."""
    return _source(program, [_forward(program), _backward(program)])


def write_step_source(program: StepProgram) -> Source:
    """A kernel for one step at a time."""
    return _source(program, [_forward(program)])


def _source(program: Forward, directions: list[Direction]) -> Source:
    sizes = list(program.equations.graph.sizes)
    functions, lines = {}, _header(program.equations, "backward" in [d.name for d in directions])
    for direction in directions:
        functions[direction.name], text = _function(program, direction, sizes)
        lines += [*text, ""]
    return Source("\n".join([*lines, *_entries(functions)]) + "\n", sizes, functions)


def _header(equations: Equations, backward: bool) -> list[str]:
    """The cell's equations, as comments above the code they became."""
    lines = [f"// {equations.title}, generated from its equations:"]
    lines += [f"//     {line}" for line in equations.text().splitlines()]
    if backward:
        lines += ["// and their derivative:"]
        lines += [f"//     {line}" for line in equations.derivative_text().splitlines()]
    return [*lines, '#include "kernel.hpp"', ""]


def _forward(program: Forward) -> Direction:
    sinks: dict[object, list[str]] = {}
    for part, node in program.state.items():
        sinks.setdefault(node, []).append(f"store({part}_new + c, $, left);")
    apart = program.output not in program.state.values()
    store = "store(Y + T*Y_stride + c, $, left);"
    sinks.setdefault(program.output, []).append(store if apart else f"if (c_.base) {store}")
    phases = [p for stage in program.forward.stages for p in stage.phases.values()]
    read_again = {n for p in phases for n in (*p.loads, *(a for d in p.dots for a in d.args))}
    places = {n: place for n, place in program.places.items() if place.buffer != "US"}
    direction = Direction("forward", program.forward, places, {}, {})
    values = Values(program, direction)
    for node in program.saved:
        if node.op == "product":
            continue
        place = program.places[node]
        if place.buffer == "US":
            line = f"if (c_.train) US[N*US_stride + {len(place.offset)}] = $[0];"
        else:
            line = f"store({values.address(place)} + c, $, left);"
            line = line if node in read_again else f"if (c_.train) {line}"
        sinks.setdefault(node, []).append(line)
    direction.sinks = sinks  # type: ignore[assignment]
    return direction


def _backward(program: Program) -> Direction:
    direction = Direction("backward", program.backward, dict(program.back_places), {}, {})
    values = Values(program, direction)
    sinks: dict[object, list[str]] = {}
    for node, place in program.d_slots.items():
        sinks.setdefault(node, []).append(f"store({values.address(place)} + c, $, left);")
    for part, carried in program.d_state.items():
        to = f"E_{part}" if part in program.doubled else f"C_{part}"
        sinks.setdefault(carried, []).append(f"store({to} + R*C_{part}_stride + c, $, left);")
    if program.d_x is not None:
        sinks.setdefault(program.d_x, []).append("store(DX + N*DX_stride + c, $, left);")
    sums: dict[object, str] = {}
    offset = "0"
    for node in program.d_vectors.values():
        at = f"ACC + who*ACC_stride + {offset}"
        if node.size == ONE:
            sinks.setdefault(node, []).append(f"({at})[0] += $[0];")
            offset += " + 16"
            continue
        sums.setdefault(node, at)
        offset += f" + (n_{node.size} + 15) / 16 * 16"
    direction.sinks, direction.sums = sinks, sums  # type: ignore[assignment]
    return direction


def _function(
    program: Forward, direction: Direction, sizes: list[str]
) -> tuple[Function, list[str]]:
    emitter = Emitter(program, direction)
    draft = emitter.function()  # finds the panels that the function needs
    buffers = _buffers(program, direction)
    rows = [draft[0], *_prologue(buffers, sizes, draft), *draft[1:]]
    packing = emitter.packing()
    pack = [packing[0], *_prologue(buffers, sizes, packing), *packing[1:]]
    count = max(
        (len(p.reductions) for s in direction.schedule.stages for p in s.phases.values()), default=0
    )
    words = _words([*rows, *pack])
    used = [name for name in buffers if name in words or _stride(name) in words]
    function = Function(
        buffers, used, direction.panels, emitter.scratch_sizes, len(direction.numbers), count
    )
    return function, [*pack, "", *rows]


def _buffers(program: Forward, direction: Direction) -> list[str]:
    """The names of all buffers of one direction."""
    declared = program.equations.declarations
    names = [f"P_{n}" for n, d in declared.items() if not isinstance(d, Mask)]
    names += [name for name in program.buffers if name not in ("DY", "D")]
    names += [f"{kind}_{part}" for part in program.state for kind in "SHF"]
    names += ["Z", "RED", "RS", "Y"]
    if direction.name == "backward":
        names += ["DY", "D", "DX", "ACC"]
        for part in program.state:
            names += [f"I_{part}", f"Q_{part}"] if part in program.doubled else [f"C_{part}"]
    return names + [p.buffer for p in direction.panels]


def _prologue(buffers: list[str], sizes: list[str], lines: list[str]) -> list[str]:
    """The sizes, buffers and strides that the lines use, by name."""
    used = _words(lines)
    names = {"first": "const long first = c_.first[who];"}
    for k, size in enumerate(sizes):
        names[f"n_{size}"] = f"const long n_{size} = c_.sizes[{k}];"
    for k, name in enumerate(buffers):
        stride = _stride(name)
        names[name] = f"real* const {name} = c_.buffers[{k}];"
        names[stride] = f"const long {stride} = c_.sizes[{len(sizes) + k}];"
    return [f"  {line}" for name, line in names.items() if name in used]


def _words(lines: list[str]) -> set[str]:
    return set(re.findall(r"\w+", "\n".join(lines)))


def _stride(buffer: str) -> str:
    return f"C_{buffer[2:]}_stride" if buffer.startswith("I_") else f"{buffer}_stride"


def _entries(names: Iterable[str]) -> list[str]:
    lines, given = ['extern "C" {'], "const Call* c, const Threads* t"
    for name in names:
        lines += [
            f"void pack_{name}({given}) {{ together(*c, *t, {name}_pack); }}",
            f"void run_{name}({given}) {{ together(*c, *t, {name}_rows); }}",
            f"void {name}({given}) {{ pack_{name}(c, t), run_{name}(c, t); }}",
        ]
    return [*lines, "}"]
