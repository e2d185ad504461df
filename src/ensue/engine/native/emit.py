"""A program as C++: one function for each direction, readable beside the equations."""

from __future__ import annotations

from ensue.engine.native.program import Forward, Place
from ensue.engine.native.values import Direction, Panels, Values, total
from ensue.equations import Node
from ensue.equations.declare import Matrix
from ensue.equations.node import ONE
from ensue.equations.schedule import REDUCTIONS, Phase, Stage


def _indent(lines: list[str]) -> list[str]:
    return ["  " + line for line in lines]


class Emitter:
    """Writes one direction of a program."""

    def __init__(self, program: Forward, direction: Direction) -> None:
        self.program, self.direction = program, direction
        self.values = Values(program, direction)
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

    # ---------------------------------------------------------------- one phase
    def phase(self, phase: Phase) -> list[str]:
        """One sweep over the features of all rows."""
        titles = ", ".join(self._title(d) for g in phase.groups for d in g) or "elementwise"
        sweep = self._product_phase if phase.groups else self._elementwise_phase
        return [f"// level {phase.level}: {titles}", *sweep(phase)]

    def _product_phase(self, phase: Phase) -> list[str]:
        """Block of units by block of units: products into the tile, then the equations."""
        groups, size = phase.groups, f"n_{phase.size}"
        vectors = sum(len(g) for g in groups)
        step = f"blocks_for({max(len(g) for g in groups)})"
        tiles: dict[Node, str] = {}
        products: list[str] = []
        column = 0
        for group in groups:
            products += self._products(group, column, step)
            for gate, dot in enumerate(group):
                tiles[dot] = f"tile + i*wide + ({column}*J + b*{len(group)} + {gate})*L"
            column += len(group)
        before, body, after = self._equations(phase, tiles)
        row = ["const long q = r + i;", *self.values.row_numbers(body)]
        rows = ["for (long i = 0; i < rows; i++) {", *_indent([*row, *body]), "}"]
        block = ["const long c = (j + b) * L, left = " + size + " - c;", *before, *rows, *after]
        inner = [
            "const long rows = at.rows - r < CHUNK ? at.rows - r : CHUNK;",
            f"alignas(64) real tile[CHUNK * {vectors} * {step} * L];",
            f"const long wide = {vectors} * J * L;",
            *self._prefetch(phase),
            *products,
            "for (long b = 0; b < here; b++) {",
            *_indent(block),
            "}",
        ]
        chunks = ["for (long r = 0; r < at.rows; r += CHUNK) {", *_indent(inner), "}"]
        return [
            *self._clear_reductions(phase),
            f"for (long j = 0, J = {step}, blocks = ({size} + L - 1) / L; j < blocks; j += J) {{",
            "  const long here = blocks - j < J ? blocks - j : J;",
            *_indent(chunks),
            "}",
            *self._finish_reductions(phase),
        ]

    def _prefetch(self, phase: Phase) -> list[str]:
        """Asks for what the equations will read, before the products that they wait for."""
        far = ("step", "time", "old", "new")
        places = [self.direction.places.get(n) for n in phase.loads if n.size != ONE]
        addresses = [self.values.address(p) for p in places if p is not None and p.row in far]
        lines = [f"__builtin_prefetch({a} + c);" for a in dict.fromkeys(addresses)]
        if not lines:
            return []
        return [
            "for (long i = 0, c = j * L; i < rows; i++) {",
            *_indent(["const long q = r + i;", *self.values.row_numbers(lines), *lines]),
            "}",
        ]

    def _elementwise_phase(self, phase: Phase) -> list[str]:
        """Row by row, along the features: memory is read as it lies."""
        before, body, after = self._equations(phase, {}, in_rows=True)
        row = self.values.row_numbers([*before, *body, *after])
        sweep = [
            f"for (long c = 0, left = n_{phase.size}; left > 0; c += L, left -= L) {{",
            *_indent(body),
            "}",
        ]
        return [
            "for (long q = 0; q < at.rows; q++) {",
            *_indent([*row, *before, *sweep, *after]),
            "}",
        ]

    def _equations(
        self, phase: Phase, tiles: dict[Node, str], in_rows: bool = False
    ) -> tuple[list[str], list[str], list[str]]:
        """Lines before, inside and after the innermost loop: over rows for one block of units,
        or, `in_rows`, over the units of one row."""
        v, d = self.values, self.direction
        before: list[str] = []
        body: list[str] = []
        after: list[str] = []
        for node in sorted(phase.scalars, key=lambda n: n.number):
            line = f"const vec {v.variable(node)} = {v.number(node)};"
            (before if in_rows else body).append(line)
        for node in sorted(phase.loads, key=lambda n: n.number):
            if v.operand(node) == v.variable(node):
                line = f"const vec {v.variable(node)} = {v.load(node)};{v.named(node)}"
                (before if node.op == "vector" and not in_rows else body).append(line)
        for node in sorted(phase.body, key=lambda n: n.number):
            value = f"*(const vec*)({tiles[node]})" if node in tiles else v.expression(node)
            body.append(f"const vec {v.variable(node)} = {value};{v.named(node)}")
        for node in phase.stores:
            value = v.operand(node)
            if node in d.scratch:
                body.append(f"store({v.address(d.places[node])} + c, {value}, left);")
            body += [sink.replace("$", value) for sink in d.sinks.get(node, [])]
            if node in d.sums:
                place = f"*(vec*)({d.sums[node]} + c)"
                if in_rows:
                    body.append(f"{place} += {value};")
                else:
                    before.append(f"vec a{node.number} = {place};")
                    body.append(f"a{node.number} += {value};")
                    after.append(f"{place} = a{node.number};")
        for slot, node in enumerate(phase.reductions):
            value = f"first_lanes({v.operand(node.args[0])}, left)"
            if in_rows:
                before.append(f"vec r{node.number} = {{}};")
                body.append(f"r{node.number} += {value};")
                after.append(f"{self._reduced(node)} = {self._total(node, f'r{node.number}')};")
            else:
                body.append(f"*(vec*)(RED + R*RED_stride + {slot}*L) += {value};")
        return before, body, after

    def _reduced(self, node: Node) -> str:
        """Where the number that a reduction gives is kept."""
        return f"RS[R*RS_stride + {list(self.direction.numbers).index(node)}]"

    def _total(self, node: Node, lanes: str) -> str:
        mean = f" / n_{node.args[0].size}" if node.op == "mean" else ""
        return f"sum_of_lanes({lanes}){mean}"

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
                start = f"{self.values.first_row(place)} + r*{self.values.stride(place)}"
                segments.append([start, self.values.stride(place), f"n_{size}"])
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
        lines = [
            f"{self._reduced(n)} = {self._total(n, f'*(vec*)(RED + R*RED_stride + {k}*L)')};"
            for k, n in enumerate(phase.reductions)
        ]
        return ["for (long R = first; R < first + at.rows; R++) {", *_indent(lines), "}"]

    def scalars(self, stage: Stage) -> list[str]:
        """Numbers of each row that the sweeps of this level need."""
        v, d, numbers = self.values, self.direction, list(self.direction.numbers)
        computed = [n for n in stage.scalars if n.op not in REDUCTIONS]
        used = {a for n in computed for a in n.args} | {n for n in stage.scalars if d.sinks.get(n)}
        body: list[str] = []
        for node in sorted(used - set(computed), key=lambda n: n.number):
            if v.operand(node) == v.variable(node):
                body.append(f"const vec {v.variable(node)} = {v.number(node)};")
        for node in sorted(computed, key=lambda n: n.number):
            body.append(f"const vec {v.variable(node)} = {v.expression(node)};{v.named(node)}")
            body.append(f"RS[R*RS_stride + {numbers.index(node)}] = {v.variable(node)}[0];")
        for node in stage.scalars:
            body += [sink.replace("$", v.variable(node)) for sink in d.sinks.get(node, [])]
        if not body:
            return []
        return [
            "for (long q = 0, c = 0, left = 1; q < at.rows; q++) {",
            "  (void)c, (void)left;",
            *("  " + line for line in self.values.row_numbers(body)),
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
        if any("ACC" in line for line in body):
            body.append("add_up(ACC + who*ACC_stride, ACC_stride / 2);")
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
