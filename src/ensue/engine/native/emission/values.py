"""How a value is written in C++: its address, and the expression that computes it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from ensue.engine.native.emission import buffers
from ensue.engine.native.emission.buffers import NUMBERS, NUMBERS_SAVED, SUMS, Buffer, Location
from ensue.engine.native.emission.directions import Direction, Store
from ensue.engine.native.emission.gate_runs import gate_number
from ensue.equations import Node
from ensue.equations.node import ONE
from ensue.equations.spelling import Spelling

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

    mentioned: the sizes, buffers and strides that the text has named so far, for the function to
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
        """The first feature of a value in the current row."""
        buffer = location.buffer
        if location.row in ("old", "new"):
            name = f"{buffer.of}_{location.row}"
            self._row_names.add(name)
            return name
        return f"{self.pointer(buffer)} + {self._row(location)}{self._offset(location)}"

    def _row(self, location: Location) -> str:
        """Where the current row of a buffer begins."""
        name = {"step": "N", "batch": "R", "time": "T"}[location.row]
        self._row_names.add(name)
        return f"{name}*{self.stride(location.buffer)}"

    def element(self, location: Location) -> str:
        """A single number in the current row, in a buffer of single numbers."""
        return f"{self.pointer(location.buffer)}[{self._row(location)} + {location.slot}]"

    def lanes(self, buffer: Buffer, slot: int) -> str:
        """A vector in the current row of the batch."""
        return f"*(vec*)({self.address(Location(buffer, 'batch'))} + {slot}*L)"

    def first_row(self, location: Location) -> str:
        """The first feature of a value in the first row of this thread."""
        buffer = location.buffer
        pointer, stride = self.pointer(buffer), self.stride(buffer)
        if location.row == "old":
            begin = self.pointer(buffers.initial(buffer.of))
            return f"(s ? {pointer} + at.old_row*{stride} : {begin} + {self.first()}*{stride})"
        row = "at.row" if location.row == "step" else self.first()
        return f"{pointer} + {row}*{stride}{self._offset(location)}"

    def sum(self, before: tuple[str, ...]) -> str:
        """The sum of a vector's adjoint in this thread, after those of other sizes; each begins on
        the border of a cache line."""
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
        """Where a single number that the step computes is kept."""
        return self.element(Location(NUMBERS, "batch", (ONE,) * self.direction.numbers[node]))

    # ---------------------------------------------------------------- stores
    def stores(self, node: Node, value: str) -> list[str]:
        """All that is done with a value: stored, and added up if it is a single number."""
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
        """From here on, names of a row are those of a new loop over rows."""
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
        """The states of a row before and after the step, as far as they are used."""
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
