"""A program as C++: one function for each direction, readable beside the equations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ensue.engine.native.program import Forward, Place
from ensue.equations import MatrixRef, Node
from ensue.equations.declare import Matrix
from ensue.equations.node import ONE
from ensue.equations.schedule import REDUCTIONS, Phase, Schedule, Stage

CALLS = {
    "sigmoid": "sigmoid",
    "tanh": "hyperbolic",
    "relu": "relu",
    "exp": "exponential",
    "log": "logarithm",
    "softplus": "softplus",
    "sqrt": "root",
    "maximum": "larger",
    "greater": "greater",
}


def total(sizes: Iterable[str]) -> str:
    """A sum of sizes: 2*n_hidden + n_input."""
    terms = [f"{k}*n_{s}" if k > 1 else f"n_{s}" for s, k in Counter(sizes).items()]
    return " + ".join(terms) or "0"


@dataclass
class Panels:
    """The packed matrices of one group of dots: a buffer, and how it is filled."""

    buffer: str
    size: str  # of the units
    gates: int
    terms: list[tuple[int, MatrixRef]]  # (gate, matrix), operand by operand
    columns: list[str]  # the size of each operand
    together: str  # blocks of units side by side


@dataclass
class Direction:
    """One function: its schedule, where values live, and what happens to stored values."""

    name: str
    schedule: Schedule
    places: dict[Node, Place]
    sinks: Mapping[Node, list[str]]
    sums: Mapping[Node, str]  # vectors' adjoints and where they add up
    panels: list[Panels] = field(default_factory=list)
    scratch: dict[Node, None] = field(default_factory=dict)
    numbers: dict[Node, None] = field(default_factory=dict)


class Emitter:
    """Writes one direction of a program."""

    def __init__(self, program: Forward, direction: Direction) -> None:
        self.program, self.direction = program, direction
        self.names = program.equations.names
        self._find_scratch()

    def _find_scratch(self) -> None:
        """Values that pass from one phase to another without a place of their own."""
        d = self.direction
        for stage in d.schedule.stages:
            d.numbers.update(dict.fromkeys(stage.scalars))
            for phase in stage.phases.values():
                for node in phase.stores:
                    if node not in d.places and not self._only_sinks(node):
                        d.scratch[node] = None
        sizes: list[str] = []
        for node in d.scratch:
            d.places[node] = Place("Z", "batch", tuple(sizes))
            sizes.append(node.size)
        self.scratch_sizes = sizes
        for slot, node in enumerate(d.numbers):
            d.places.setdefault(node, Place("RS", "batch", (ONE,) * slot))

    def _only_sinks(self, node: Node) -> bool:
        """Whether nothing later in the step reads it."""
        phases = [p for s in self.direction.schedule.stages for p in s.phases.values()]
        read = any(node in p.loads or any(node in dot.args for dot in p.dots) for p in phases)
        return not read and node.size != ONE

    # ---------------------------------------------------------------- addresses
    def address(self, place: Place) -> str:
        """The first feature of a value in the current row."""
        offset = f" + {total(place.offset)}" if place.offset else ""
        if place.row in ("old", "new"):
            return f"{place.buffer}_{place.row}"
        row = {"step": "N", "batch": "R", "time": "T"}[place.row]
        return f"{place.buffer} + {row}*{place.buffer}_stride{offset}"

    def first_row(self, place: Place) -> str:
        """The first feature of a value in the first row of this thread."""
        offset = f" + {total(place.offset)}" if place.offset else ""
        if place.row == "old":
            p = place.buffer
            return f"(s ? S_{p} + at.old_row*S_{p}_stride : H_{p} + first*S_{p}_stride)"
        row = {"step": "at.row", "batch": "first"}[place.row]
        return f"{place.buffer} + {row}*{place.buffer}_stride{offset}"

    def stride(self, place: Place) -> str:
        return f"S_{place.buffer}_stride" if place.row == "old" else f"{place.buffer}_stride"

    # ---------------------------------------------------------------- values
    def variable(self, node: Node) -> str:
        return f"v{node.number}"

    def operand(self, node: Node) -> str:
        if node.op == "constant":
            return f"all((real){node.attr!r})"
        if node.op == "count":
            return f"all((real)n_{node.attr})"
        if node.op == "vector" and node.size == ONE:
            return f"all(({self.parameter(node)})[0])"
        return self.variable(node)

    def parameter(self, node: Node) -> str:
        declared = self.program.equations.declarations[node.attr.name]
        gate = declared.gates.index(node.attr.gate)  # type: ignore[union-attr]
        return f"P_{node.attr.name}" + (f" + {gate}*n_{node.size}" if gate else "")

    def expression(self, node: Node) -> str:
        a = [self.operand(n) for n in node.args]
        match node.op:
            case "add":
                return " + ".join(a)
            case "multiply":
                return f"{a[0]} * {a[1]}"
            case "divide":
                return f"{a[0]} / {a[1]}"
            case "negative":
                return f"-{a[0]}"
            case "copy" | "spread":
                return a[0]
        return f"{CALLS[node.op]}({', '.join(a)})"

    def named(self, node: Node) -> str:
        return f"  // {self.names[node]}" if node in self.names else ""

    def load(self, node: Node) -> str:
        if node.size == ONE:
            return self.number(node)
        if node.op == "vector":
            return f"load({self.parameter(node)} + c, left)"
        return f"load({self.address(self.direction.places[node])} + c, left)"

    def number(self, node: Node) -> str:
        """A single number of the row, spread over a vector."""
        numbers = list(self.direction.numbers)
        if node in numbers:
            return f"all(RS[R*RS_stride + {numbers.index(node)}])"
        return f"all(({self.address(self.direction.places[node])})[0])"

    # ---------------------------------------------------------------- one phase
    def phase(self, phase: Phase) -> list[str]:
        """One sweep: for each block of units, products into the tile, then the equations."""
        groups, size = phase.groups, f"n_{phase.size}"
        vectors = sum(len(g) for g in groups)
        titles = ", ".join(self._title(d) for g in groups for d in g) or "elementwise"
        lines = [f"// level {phase.level}: {titles}"]
        lines += self._clear_reductions(phase)
        widest = max((len(g) for g in groups), default=1)
        step = f"blocks_for({widest})" if groups else "1"
        lines += [
            f"for (long j = 0, J = {step}, blocks = ({size} + L - 1) / L; j < blocks; j += J) {{",
            "  const long here = blocks - j < J ? blocks - j : J;",
            "  for (long r = 0; r < at.rows; r += CHUNK) {",
            "    const long rows = at.rows - r < CHUNK ? at.rows - r : CHUNK;",
        ]
        tiles: dict[Node, str] = {}
        if groups:
            lines.append(f"    alignas(64) real tile[CHUNK * {vectors} * {step} * L];")
            lines.append(f"    const long wide = {vectors} * J * L;")
        column = 0
        for group in groups:
            lines += ["    " + line for line in self._products(group, column, step)]
            for gate, dot in enumerate(group):
                tiles[dot] = f"tile + i*wide + ({column}*J + b*{len(group)} + {gate})*L"
            column += len(group)
        lines += ["    for (long b = 0; b < here; b++) {"]
        lines += [f"      const long c = (j + b) * L, left = {size} - c;"]
        lines += ["      " + line for line in self._rows(phase, tiles)]
        lines += ["    }", "  }", "}"]
        return lines + self._finish_reductions(phase)

    def _title(self, dot: Node) -> str:
        """The matrices of a dot: U_i or U_iᵀ + U_fᵀ."""
        return " + ".join(
            f"{m.name}{'_' + m.gate if m.gate else ''}{'ᵀ' if m.transposed else ''}"
            for m in dot.attr
        )

    def _products(self, group: list[Node], column: int, step: str) -> list[str]:
        """The call that fills the tile with one group of dots."""
        d, dot = self.direction, group[0]
        order = sorted(range(len(dot.args)), key=lambda k: (d.places[dot.args[k]], k))
        segments: list[list[str]] = []
        ends: list[Place] = []
        for k in order:
            place, size = d.places[dot.args[k]], dot.args[k].size
            if ends and ends[-1] == place and segments:
                segments[-1][2] += f" + n_{size}"
            else:
                start = f"{self.first_row(place)} + r*{self.stride(place)}"
                segments.append([start, self.stride(place), f"n_{size}"])
                ends.append(place)
            ends[-1] = place._replace(offset=(*place.offset, size))
        panels = Panels(
            f"B{d.name[0]}{len(d.panels)}",
            dot.size,
            len(group),
            [(g, dot_g.attr[k]) for k in order for g, dot_g in enumerate(group)],
            [dot.args[k].size for k in order],
            step,
        )
        d.panels.append(panels)
        K, listed = total(panels.columns), ", ".join("{" + ", ".join(s) + "}" for s in segments)
        return [
            f"{{ const Segment operands[] = {{{listed}}};",
            f"  c_.products(rows, operands, {len(segments)}, {len(group)} * here, "
            f"{panels.buffer} + j*{len(group)}*L*({K}), {K}, tile + {column}*J*L, wide); }}",
        ]

    def _rows(self, phase: Phase, tiles: dict[Node, str]) -> list[str]:
        """The equations on one block of units, row by row."""
        d = self.direction
        before: list[str] = []
        body: list[str] = []
        after: list[str] = []
        for node in sorted(phase.scalars, key=lambda n: n.number):
            body.append(f"const vec {self.variable(node)} = {self.number(node)};")
        for node in sorted(phase.loads, key=lambda n: n.number):
            if self.operand(node) == self.variable(node):
                line = f"const vec {self.variable(node)} = {self.load(node)};{self.named(node)}"
                (before if node.op == "vector" else body).append(line)
        for node in sorted(phase.body, key=lambda n: n.number):
            value = f"*(const vec*)({tiles[node]})" if node in tiles else self.expression(node)
            body.append(f"const vec {self.variable(node)} = {value};{self.named(node)}")
        for node in phase.stores:
            value = self.operand(node)
            if node in d.scratch:
                body.append(f"store({self.address(d.places[node])} + c, {value}, left);")
            body += [sink.replace("$", value) for sink in d.sinks.get(node, [])]
            if node in d.sums:
                place = f"*(vec*)({d.sums[node]} + c)"
                before.append(f"vec a{node.number} = {place};")
                body.append(f"a{node.number} += {value};")
                after.append(f"{place} = a{node.number};")
        reduced = list(phase.reductions)
        for slot, node in enumerate(reduced):
            place = f"*(vec*)(RED + R*RED_stride + {slot}*L)"
            body.append(f"{place} += first_lanes({self.operand(node.args[0])}, left);")
        return [
            *before,
            "for (long i = 0; i < rows; i++) {",
            *("  " + line for line in self._row_numbers(body)),
            *("  " + line for line in body),
            "}",
            *after,
        ]

    def _row_numbers(self, body: list[str]) -> list[str]:
        """The numbers and pointers of a row that its lines use."""
        text = "\n".join(body)
        lines = ["const long q = r + i;"]
        for name, value in {
            "N": "at.row + q",
            "R": "first + q",
            "T": "c_.time_row ? c_.time_row[at.row + q] : at.row + q",
        }.items():
            if re.search(rf"\b{name}\b", text):
                lines.append(f"const long {name} = {value};")
        for part in self.program.state:
            ended = f"(first + q)*S_{part}_stride"
            old = f"s ? S_{part} + (at.old_row + q)*S_{part}_stride : H_{part} + {ended}"
            new = (
                f"q < at.staying ? S_{part} + (at.new_row + q)*S_{part}_stride : F_{part} + {ended}"
            )
            if f"{part}_old" in text:
                lines.append(f"const real* const {part}_old = {old};")
            if f"{part}_new" in text:
                lines.append(f"real* const {part}_new = {new};")
        return lines

    # ---------------------------------------------------------------- reductions and numbers
    def _clear_reductions(self, phase: Phase) -> list[str]:
        if not phase.reductions:
            return []
        count = len(phase.reductions)
        return [
            "for (long R = first; R < first + at.rows; R++)",
            f"  for (long k = 0; k < {count}; k++) *(vec*)(RED + R*RED_stride + k*L) = vec{{}};",
        ]

    def _finish_reductions(self, phase: Phase) -> list[str]:
        if not phase.reductions:
            return []
        numbers = list(self.direction.numbers)
        lines = ["for (long R = first; R < first + at.rows; R++) {"]
        for slot, node in enumerate(phase.reductions):
            mean = f" / n_{node.args[0].size}" if node.op == "mean" else ""
            lines.append(
                f"  RS[R*RS_stride + {numbers.index(node)}] = "
                f"sum_of_lanes(*(vec*)(RED + R*RED_stride + {slot}*L)){mean};"
            )
        return [*lines, "}"]

    def scalars(self, stage: Stage) -> list[str]:
        """Numbers of each row that the sweeps of this level need."""
        d, numbers = self.direction, list(self.direction.numbers)
        computed = [n for n in stage.scalars if n.op not in REDUCTIONS]
        used = {a for n in computed for a in n.args} | {n for n in stage.scalars if d.sinks.get(n)}
        body: list[str] = []
        for node in sorted(used - set(computed), key=lambda n: n.number):
            if self.operand(node) == self.variable(node):
                body.append(f"const vec {self.variable(node)} = {self.number(node)};")
        for node in sorted(computed, key=lambda n: n.number):
            body.append(
                f"const vec {self.variable(node)} = {self.expression(node)};{self.named(node)}"
            )
            body.append(f"RS[R*RS_stride + {numbers.index(node)}] = {self.variable(node)}[0];")
        for node in stage.scalars:
            body += [sink.replace("$", self.variable(node)) for sink in d.sinks.get(node, [])]
        if not body:
            return []
        return [
            "for (long r = 0, i = 0, c = 0, left = 1; r < at.rows; r++) {",
            "  (void)c, (void)left;",
            *("  " + line for line in self._row_numbers(body)),
            *("  " + line for line in body),
            "}",
        ]

    # ---------------------------------------------------------------- the whole function
    def function(self) -> list[str]:
        d = self.direction
        steps = (
            "long s = c_.steps - 1; s >= 0; s--"
            if d.name == "backward"
            else "long s = 0; s < c_.steps; s++"
        )
        body: list[str] = []
        for stage in d.schedule.stages:
            body += self.scalars(stage)
            for phase in stage.phases.values():
                body += self.phase(phase)
        return [
            f"static void {d.name}_rows(const Call& c_, long who) {{",
            f"  for ({steps}) {{",
            "    const Step at = step_of(c_, s, who);",
            *("    " + line for line in self._carries()),
            *("    " + line for line in body),
            "  }",
            "}",
        ]

    def _carries(self) -> list[str]:
        """Adjoints of states that need two buffers: read from one, written to the other."""
        if self.direction.name != "backward":
            return []
        return [
            f"real* const C_{p} = (c_.steps - 1 - s) & 1 ? Q_{p} : I_{p}; "
            f"real* const E_{p} = (c_.steps - 1 - s) & 1 ? I_{p} : Q_{p};"
            for p in self.program.doubled
        ]

    def packing(self) -> list[str]:
        """The function that packs the matrices of this direction; called by all threads."""
        declared = self.program.equations.declarations
        lines = []
        for panels in self.direction.panels:
            K = total(panels.columns)
            for index, (gate, ref) in enumerate(panels.terms):
                at = total(panels.columns[: index // panels.gates])
                owner = declared[ref.name]
                assert isinstance(owner, Matrix)
                up = ref.upright
                block = f"P_{ref.name} + {owner.gates.index(ref.gate)}*n_{up.rows}*n_{up.columns}"
                steps = f"1, n_{up.columns}" if ref.transposed else f"n_{up.columns}, 1"
                lines.append(
                    f"c_.pack({panels.buffer}, {block}, {steps}, n_{ref.rows}, n_{ref.columns}, "
                    f"{at}, {K}, {gate}, {panels.gates}, {panels.together}, who, c_.threads);"
                )
        return [
            f"static void {self.direction.name}_pack(const Call& c_, long who) {{",
            *("  " + line for line in lines),
            "}",
        ]
