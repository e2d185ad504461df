"""The C++ function of a direction, readable next to the equations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from ensue.engine.native.emission import buffers
from ensue.engine.native.emission.buffers import (
    NUMBERS,
    NUMBERS_SAVED,
    REDUCED,
    SUMS,
    Buffer,
    Location,
    gate_number,
)
from ensue.engine.native.emission.directions import Direction, Panels, Store, group_of
from ensue.equations import Node
from ensue.equations.functions import Spelling
from ensue.equations.node import ONE
from ensue.equations.schedule import REDUCTIONS, Phase, Stage

CPP = Spelling(
    {
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
)


class Values:
    """The values of one direction, in C++.

    mentioned: the sizes, buffers and strides used in the text so far, which the function must
    declare. Names of a row (N, R, T, h_old, h_new) are declared where a loop over rows begins."""

    def __init__(self, direction: Direction) -> None:
        self.direction = direction
        self.mentioned: set[str] = set()
        self._row_names: set[str] = set()
        self._names = direction.equations.names

    # ---------------------------------------------------------------- names
    def _mention(self, name: str) -> str:
        self.mentioned.add(name)
        return name

    def pointer(self, buffer: Buffer) -> str:
        return self._mention(buffer.name)

    def stride(self, buffer: Buffer) -> str:
        return self._mention(buffer.stride)

    def size(self, size: str) -> str:
        return self._mention(f"n_{size}")

    def first(self) -> str:
        """The first row of this thread."""
        return self._mention("first")

    def total(self, sizes: Iterable[str]) -> str:
        """A sum of sizes: 2*n_hidden + n_input."""
        counted = Counter(sizes).items()
        terms = [f"{k}*{self.size(s)}" if k > 1 else self.size(s) for s, k in counted]
        return " + ".join(terms) or "0"

    def _offset(self, location: Location) -> str:
        return f" + {self.total(location.offset)}" if location.offset else ""

    # ---------------------------------------------------------------- addresses
    def address(self, location: Location) -> str:
        """C++ for the address of a value's first feature in the current row."""
        buffer = location.buffer
        if location.row in ("old", "new"):
            name = f"{buffer.of}_{location.row}"
            self._row_names.add(name)
            return name
        return f"{self.pointer(buffer)} + {self._row(location)}{self._offset(location)}"

    def _row(self, location: Location) -> str:
        """C++ for the offset of the current row in a buffer."""
        name = {"step": "N", "batch": "R", "time": "T"}[location.row]
        self._row_names.add(name)
        return f"{name}*{self.stride(location.buffer)}"

    def element(self, location: Location) -> str:
        """C++ for a single number in the current row, in a buffer of single numbers."""
        return f"{self.pointer(location.buffer)}[{self._row(location)} + {location.slot}]"

    def lanes(self, buffer: Buffer, slot: int) -> str:
        """C++ for a vector register's worth of values in the current row of the batch."""
        return f"*(vec*)({self.address(Location(buffer, 'batch'))} + {slot}*L)"

    def first_row(self, location: Location) -> str:
        """C++ for the address of a value's first feature in the first row of this thread."""
        buffer = location.buffer
        pointer, stride = self.pointer(buffer), self.stride(buffer)
        if location.row == "old":
            begin = self.pointer(buffers.initial(buffer.of))
            return f"(s ? {pointer} + at.old_row*{stride} : {begin} + {self.first()}*{stride})"
        row = "at.row" if location.row == "step" else self.first()
        return f"{pointer} + {row}*{stride}{self._offset(location)}"

    def sum(self, before: tuple[str, ...]) -> str:
        """C++ for the address of the sum of a vector's adjoint in this thread. before: the sizes of
        the sums before it; each sum begins on a cache-line border."""
        offset = "".join(
            " + 16" if s == ONE else f" + ({self.size(s)} + 15) / 16 * 16" for s in before
        )
        return f"{self.sums()} + 0{offset}"

    def sums(self) -> str:
        return f"{self.pointer(SUMS)} + who*{self.stride(SUMS)}"

    # ---------------------------------------------------------------- values
    def variable(self, node: Node) -> str:
        return f"v{node.number}"

    def operand(self, node: Node) -> str:
        if node.op == "constant":
            number = repr(node.attr)
            if not math.isfinite(node.attr):
                number = {"inf": "__builtin_inf()", "-inf": "-__builtin_inf()"}.get(
                    number, '__builtin_nan("")'
                )
            return f"all((real){number})"
        if node.op == "count":
            return f"all((real){self.size(node.attr)})"
        if node.op == "vector" and node.size == ONE:
            return f"all(({self.parameter(node)})[0])"
        return self.variable(node)

    def parameter(self, node: Node) -> str:
        gate = gate_number(self.direction.equations, node.attr)
        pointer = self.pointer(buffers.parameter(node.attr.name))
        return pointer + (f" + {gate}*{self.size(node.size)}" if gate else "")

    def expression(self, node: Node) -> str:
        return CPP.expression(node.op, [self.operand(n) for n in node.args])

    def named(self, node: Node) -> str:
        return f"  // {self._names[node]}" if node in self._names else ""

    def load(self, node: Node) -> str:
        if node.size == ONE:
            return self.number(node)
        if node.op == "vector":
            return f"load({self.parameter(node)} + c, left)"
        return f"load({self.address(self.direction.locations[node])} + c, left)"

    def number(self, node: Node) -> str:
        """A single number of the row, spread over a vector."""
        if node in self.direction.numbers:
            return f"all({self.computed_number(node)})"
        return f"all(({self.address(self.direction.locations[node])})[0])"

    def computed_number(self, node: Node) -> str:
        """The variable of a single number that the step computes."""
        return self.element(Location(NUMBERS, "batch", (ONE,) * self.direction.numbers[node]))

    # ---------------------------------------------------------------- stores
    def stores(self, node: Node, value: str) -> list[str]:
        """The lines that store a value, or add it to a sum."""
        lines = [self._store(store, value) for store in self.direction.stores.get(node, [])]
        if node.size == ONE:
            sums = self.direction.sums.get(node, [])
            lines += [f"({self.sum(before)})[0] += {value}[0];" for before in sums]
        return lines

    def _store(self, store: Store, value: str) -> str:
        if store.location.buffer == NUMBERS_SAVED:
            line = f"{self.element(store.location)} = {value}[0];"
        else:
            line = f"store({self.address(store.location)} + c, {value}, left);"
        return f"if ({store.when}) {line}" if store.when else line

    # ---------------------------------------------------------------- rows
    def begin_rows(self) -> None:
        """Begins a new loop over rows, which declares its own names of a row."""
        self._row_names.clear()

    def row_numbers(self) -> list[str]:
        """The numbers and pointers of row q that the lines since `begin_rows` use."""
        rows = {
            "N": "at.row + q",
            "R": "first + q",
            "T": "c_.time_row ? c_.time_row[at.row + q] : at.row + q",
        }
        if "R" in self._row_names:
            self.first()
        lines = [f"const long {n} = {v};" for n, v in rows.items() if n in self._row_names]
        for part in self.direction.parts:
            lines += self._state_pointers(part)
        return lines

    def _state_pointers(self, part: str) -> list[str]:
        """Pointers to the used states of a row, before and after the step."""
        lines = []
        states, stride = buffers.states(part), buffers.states(part).stride
        if f"{part}_old" in self._row_names:
            begin = self.pointer(buffers.initial(part))
            old = f"s ? {self.pointer(states)} + (at.old_row + q)*{stride} : {begin}"
            lines.append(f"const real* const {part}_old = {old} + ({self.first()} + q)*{stride};")
        if f"{part}_new" in self._row_names:
            end = self.pointer(buffers.final(part))
            new = f"q < at.staying ? {self.pointer(states)} + (at.new_row + q)*{stride} : {end}"
            lines.append(f"real* const {part}_new = {new} + ({self.first()} + q)*{stride};")
        if lines:
            self.stride(states)
        return lines


def _indent(lines: Iterable[str], by: str = "  ") -> list[str]:
    return [by + line for line in lines]


class Emitter:
    """Writes one direction of a program."""

    def __init__(self, direction: Direction) -> None:
        self.direction, self.values = direction, Values(direction)

    # ---------------------------------------------------------------- one phase
    def phase(self, phase: Phase) -> list[str]:
        """Writes one sweep over the features of all rows."""
        titles = ", ".join(self._title(d) for g in phase.groups for d in g) or "elementwise"
        sweep = self._product_phase if phase.groups else self._elementwise_phase
        return [f"// level {phase.level}: {titles}", *sweep(phase)]

    def _product_phase(self, phase: Phase) -> list[str]:
        """Block of units by block of units: products into the tile, then the equations."""
        groups, size = phase.groups, self.values.size(phase.size)
        vectors = sum(len(g) for g in groups)
        step = self.direction.panels[group_of(phase, groups[0])].together
        tiles: dict[Node, str] = {}
        products: list[str] = []
        column = 0
        for group in groups:
            products += self._products(self.direction.panels[group_of(phase, group)], column)
            for gate, dot in enumerate(group):
                tiles[dot] = f"tile + i*wide + ({column}*J + b*{len(group)} + {gate})*L"
            column += len(group)
        self.values.begin_rows()
        before, body, after = self._equations(phase, tiles)
        row = ["const long q = r + i;", *self.values.row_numbers()]
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
        """Prefetches the inputs of the equations before the products run."""
        far = ("step", "time", "old", "new")
        locations = [self.direction.locations.get(n) for n in phase.loads if n.size != ONE]
        self.values.begin_rows()
        addresses = [
            self.values.address(at) for at in locations if at is not None and at.row in far
        ]
        lines = [f"__builtin_prefetch({a} + c);" for a in dict.fromkeys(addresses)]
        if not lines:
            return []
        return [
            "for (long i = 0, c = j * L; i < rows; i++) {",
            *_indent(["const long q = r + i;", *self.values.row_numbers(), *lines]),
            "}",
        ]

    def _elementwise_phase(self, phase: Phase) -> list[str]:
        """Row by row, along the features, in memory order."""
        self.values.begin_rows()
        before, body, after = self._equations(phase, {}, in_rows=True)
        row, size = self.values.row_numbers(), self.values.size(phase.size)
        sweep = [
            f"for (long c = 0, left = {size}; left > 0; c += L, left -= L) {{",
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
        """Lines before, inside and after the innermost loop. It runs over rows for one block of
        units; with `in_rows`, over the units of one row."""
        v = self.values
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
            for lines, more in zip((before, body, after), self._stored(node, in_rows), strict=True):
                lines += more
        for slot, node in enumerate(phase.reductions):
            value = f"first_lanes({v.operand(node.args[0])}, left)"
            if in_rows:
                before.append(f"vec r{node.number} = {{}};")
                body.append(f"r{node.number} += {value};")
                after.append(f"{v.computed_number(node)} = {self._total(node, f'r{node.number}')};")
            else:
                body.append(f"{v.lanes(REDUCED, slot)} += {value};")
        return before, body, after

    def _stored(self, node: Node, in_rows: bool) -> tuple[list[str], list[str], list[str]]:
        """The lines for a value that is used after this phase, in the form of `_equations`."""
        v, d = self.values, self.direction
        value = v.operand(node)
        body: list[str] = []
        if node in d.scratch:
            body.append(f"store({v.address(d.locations[node])} + c, {value}, left);")
        body += v.stores(node, value)
        if node.size == ONE or node not in d.sums:
            return [], body, []
        total = f"*(vec*)({v.sum(d.sums[node][0])} + c)"
        if in_rows:
            return [], [*body, f"{total} += {value};"], []
        name = f"a{node.number}"
        return [f"vec {name} = {total};"], [*body, f"{name} += {value};"], [f"{total} = {name};"]

    def _total(self, node: Node, lanes: str) -> str:
        mean = f" / {self.values.size(node.args[0].size)}" if node.op == "mean" else ""
        return f"sum_of_lanes({lanes}){mean}"

    def _title(self, dot: Node) -> str:
        """The matrices of a dot: U_i or U_iᵀ + U_fᵀ."""
        return " + ".join(
            f"{m.name}{'_' + m.gate if m.gate else ''}{'ᵀ' if m.transposed else ''}"
            for m in dot.attr
        )

    def _products(self, panels: Panels, column: int) -> list[str]:
        """The call that fills the tile with one group of dots. Operands adjacent in memory form one
        segment."""
        v, gates = self.values, panels.gates
        segments: list[list[str]] = []
        end: Location | None = None
        for operand in panels.operands:
            location = self.direction.locations[operand]
            if end == location:
                segments[-1][2] += f" + {v.size(operand.size)}"
            else:
                stride = v.stride(location.buffer)
                start = f"{v.first_row(location)} + r*{stride}"
                segments.append([start, stride, v.size(operand.size)])
            end = location._replace(offset=(*location.offset, operand.size))
        K, listed = v.total(panels.columns), ", ".join("{" + ", ".join(s) + "}" for s in segments)
        return [
            f"{{ const Segment operands[] = {{{listed}}};",
            f"  c_.products(rows, operands, {len(segments)}, {gates} * here, "
            f"{v.pointer(panels.buffer)} + j*{gates}*L*({K}), {K}, "
            f"tile + {column}*J*L, wide); }}",
        ]

    # ---------------------------------------------------------------- reductions and numbers
    def _clear_reductions(self, phase: Phase) -> list[str]:
        if not phase.reductions:
            return []
        v, count = self.values, len(phase.reductions)
        lanes = v.address(Location(REDUCED, "batch"))
        return [
            f"for (long R = {v.first()}; R < first + at.rows; R++)",
            f"  for (long k = 0; k < {count}; k++) *(vec*)({lanes} + k*L) = vec{{}};",
        ]

    def _finish_reductions(self, phase: Phase) -> list[str]:
        if not phase.reductions:
            return []
        v = self.values
        lines = [
            f"{v.computed_number(n)} = {self._total(n, v.lanes(REDUCED, k))};"
            for k, n in enumerate(phase.reductions)
        ]
        return [f"for (long R = {v.first()}; R < first + at.rows; R++) {{", *_indent(lines), "}"]

    def scalars(self, stage: Stage) -> list[str]:
        """The single numbers of each row that the sweeps of this level need."""
        v, stored = self.values, {n for n in stage.scalars if self._outlives_step(n)}
        computed = [n for n in stage.scalars if n.op not in REDUCTIONS]
        used = {a for n in computed for a in n.args} | stored
        v.begin_rows()
        body: list[str] = []
        for node in sorted(used - set(computed), key=lambda n: n.number):
            if v.operand(node) == v.variable(node):
                body.append(f"const vec {v.variable(node)} = {v.number(node)};")
        for node in sorted(computed, key=lambda n: n.number):
            body.append(f"const vec {v.variable(node)} = {v.expression(node)};{v.named(node)}")
            body.append(f"{v.computed_number(node)} = {v.variable(node)}[0];")
        for node in stage.scalars:
            body += v.stores(node, v.variable(node))
        if not body:
            return []
        return [
            "for (long q = 0, c = 0, left = 1; q < at.rows; q++) {",
            "  (void)c, (void)left;",
            *_indent([*v.row_numbers(), *body]),
            "}",
        ]

    def _outlives_step(self, number: Node) -> bool:
        return number in self.direction.stores or number in self.direction.sums

    # ---------------------------------------------------------------- whole functions
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
        if d.sums:
            stride = self.values.stride(SUMS)
            body.append(f"add_up({self.values.sums()}, {stride} / 2);")
        return [
            f"static void {d.name}_rows(const Call& c_, long who) {{",
            f"  for ({steps}) {{",
            "    const Step at = step_of(c_, s, who);",
            *_indent([*self._carries(), *body], "    "),
            "  }",
            "}",
        ]

    def _carries(self) -> list[str]:
        """The lines that choose the buffers of adjoints that need two: at each step one is read and
        the other written."""
        lines = []
        for part in self.direction.doubled:
            one, other = map(self.values.pointer, buffers.carry_pair(part))
            old, new = buffers.carry(part).name, buffers.next_carry(part).name
            turn = "(c_.steps - 1 - s) & 1"
            lines.append(
                f"real* const {old} = {turn} ? {other} : {one}; "
                f"real* const {new} = {turn} ? {one} : {other};"
            )
        return lines

    def packing(self) -> list[str]:
        """The function that packs the matrices of this direction; called by all threads."""
        v, equations, lines = self.values, self.direction.equations, []
        for panels in self.direction.panels.values():
            K = v.total(panels.columns)
            for index, (gate, ref) in enumerate(panels.terms):
                at = v.total(panels.columns[: index // panels.gates])
                up = ref.upright
                rows, columns = v.size(up.rows), v.size(up.columns)
                pointer = v.pointer(buffers.parameter(ref.name))
                block = f"{pointer} + {gate_number(equations, ref)}*{rows}*{columns}"
                steps = f"1, {columns}" if ref.transposed else f"{columns}, 1"
                lines.append(
                    f"c_.pack({v.pointer(panels.buffer)}, {block}, {steps}, {v.size(ref.rows)}, "
                    f"{v.size(ref.columns)}, {at}, {K}, {gate}, {panels.gates}, "
                    f"{panels.together}, who, c_.threads);"
                )
        return [
            f"static void {self.direction.name}_pack(const Call& c_, long who) {{",
            *_indent(lines),
            "}",
        ]
