"""How a value is spelt in C++: where it lives, and the expression that computes it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ensue.engine.native.program import Forward, Place
from ensue.equations import MatrixRef, Node
from ensue.equations.declare import Parameter
from ensue.equations.node import ONE
from ensue.equations.schedule import Schedule

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


class Values:
    """The values of one direction of a program, in C++."""

    def __init__(self, program: Forward, direction: Direction) -> None:
        self.program, self.direction = program, direction
        self.names = program.equations.names

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
            number = repr(node.attr)
            if not math.isfinite(node.attr):
                number = {"inf": "__builtin_inf()", "-inf": "-__builtin_inf()"}.get(
                    number, '__builtin_nan("")'
                )
            return f"all((real){number})"
        if node.op == "count":
            return f"all((real)n_{node.attr})"
        if node.op == "vector" and node.size == ONE:
            return f"all(({self.parameter(node)})[0])"
        return self.variable(node)

    def parameter(self, node: Node) -> str:
        declared = self.program.equations.declarations[node.attr.name]
        assert isinstance(declared, Parameter)
        gate = declared.gates.index(node.attr.gate)
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

    def row_numbers(self, body: list[str]) -> list[str]:
        """The numbers and pointers of row q that its lines use."""
        text = "\n".join(body)
        lines = []
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
