"""The memory of a kernel: buffers as values, and where in them a value of the step is stored."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ensue.equations import Equations, MatrixRef, VectorRef
from ensue.equations.declare import Parameter

# -------------------------------------------------------------------------------------------------
# Products outside of the loop: runs of neighbouring gates that share one product.
#
# before the loop   columns of PRODUCTS  =  operand · Wᵀ
# after it          Σ (columns of ADJOINTS)ᵀ · operand,  and  columns of ADJOINTS · W


class Operand(NamedTuple):
    """An operand of matrices: columns of a buffer. part: the part of the old state, if it is
    one."""

    buffer: Buffer
    column: int
    width: int
    part: str | None = None


class GateRun(NamedTuple):
    """Neighbouring gates of a matrix, its rows `first` to `last`. Their products or adjoints are
    neighbouring columns too, from `column` on."""

    matrix: str
    first_gate: int
    gates: int
    first: int
    last: int  # one after
    column: int
    operand: Operand

    @property
    def height(self) -> int:
        return self.last - self.first

    @property
    def blocks(self) -> set[tuple[str, int]]:
        """The gates in the run, each as (matrix, gate)."""
        return {(self.matrix, self.first_gate + k) for k in range(self.gates)}


def declared_order(equations: Equations, ref: MatrixRef | VectorRef) -> tuple[int, int]:
    """The index of the parameter in order of declaration, and the index of the gate in it."""
    return list(equations.declarations).index(ref.name), gate_number(equations, ref)


def gate_number(equations: Equations, ref: MatrixRef | VectorRef) -> int:
    declared = equations.declarations[ref.name]
    assert isinstance(declared, Parameter)
    return declared.gates.index(ref.gate)


def gate_rows(equations: Equations, ref: MatrixRef | VectorRef) -> tuple[int, int]:
    """The first row of a gate in its stacked parameter, and the row after its last."""
    declared = equations.declarations[ref.name]
    assert isinstance(declared, Parameter)
    gate, height = gate_number(equations, ref), equations.graph.width(declared.size)
    return gate * height, (gate + 1) * height


def width(equations: Equations, sizes: Iterable[str]) -> int:
    """The total number of features of these sizes."""
    return sum(equations.graph.width(size) for size in sizes)


def single_gate(
    equations: Equations, ref: MatrixRef, offset: tuple[str, ...], operand: Operand
) -> GateRun:
    first, last = gate_rows(equations, ref)
    gate = gate_number(equations, ref)
    return GateRun(ref.name, gate, 1, first, last, width(equations, offset), operand)


def join_neighbours(single: Iterable[GateRun]) -> list[GateRun]:
    """Merges neighbouring runs. single: runs of one gate each, in order."""
    joined: list[GateRun] = []
    for run in single:
        last = joined[-1] if joined else None
        if last is not None and run == last._replace(
            first_gate=last.first_gate + last.gates,
            gates=1,
            first=last.last,
            last=run.last,
            column=last.column + last.height,
        ):
            joined[-1] = last._replace(gates=last.gates + 1, last=run.last)
        else:
            joined.append(run)
    return joined


@dataclass(frozen=True, eq=False, slots=True)
class Buffer:
    """A block of memory that a compiled function reads or writes, row by row.

    of: the parameter, the mask or the part of the state it belongs to, if any. name and stride: its
    name in C++ (X, P_W, S_h) and the distance between its rows. The functions below return one
    object per buffer, so that lookups are fast."""

    of: str
    name: str
    stride: str


@functools.cache
def _buffer(symbol: str, of: str = "", stride_of: str = "") -> Buffer:
    """stride_of: the symbol of the buffer whose stride it shares."""
    name, like = (f"{s}_{of}" if of else s for s in (symbol, stride_of or symbol))
    return Buffer(of, name, f"{like}_stride")


# ---------------------------------------------------------------- a row for every step
X = _buffer("X")  # the input
PRODUCTS = _buffer("XP")  # products taken before the loop, then values saved for the backward pass
NUMBERS_SAVED = _buffer("US")  # saved values of size one
ADJOINTS = _buffer("D")  # adjoints of the products
D_X = _buffer("DX")  # the derivative by x, without the products after the loop
# ---------------------------------------------------------------- (time, batch) rows
Y = _buffer("Y")  # the output
D_Y = _buffer("DY")  # its adjoint
# ---------------------------------------------------------------- a row for each thread
SUMS = _buffer("ACC")  # gradients of vectors: of the current step, then summed over earlier steps
# ---------------------------------------------------------------- work space
SCRATCH = _buffer("Z")  # values that pass from one phase of a step to a later one
REDUCED = _buffer("RED")  # lanes of a sum or mean
NUMBERS = _buffer("RS")  # values of size one, of the current step


def parameter(name: str) -> Buffer:
    return _buffer("P", name)


def gradient(name: str) -> Buffer:
    """The gradient of a parameter."""
    return _buffer("G", name)


def mask(name: str) -> Buffer:
    return _buffer("M", name)


def initial(part: str) -> Buffer:
    """A part of the state before the first step."""
    return _buffer("H", part)


def states(part: str) -> Buffer:
    """A part of the state after every step."""
    return _buffer("S", part)


def final(part: str) -> Buffer:
    """The final value of a part of the state, for rows that have ended."""
    return _buffer("F", part)


def carry(part: str) -> Buffer:
    """The adjoint of a part of the state, carried back from step to step."""
    return _buffer("C", part)


def next_carry(part: str) -> Buffer:
    """The buffer for a new carry, for steps that still read the old one."""
    return _buffer("E", part, "C")


def carry_pair(part: str) -> tuple[Buffer, Buffer]:
    """The two buffers of a doubled carry: each step reads one and writes the other, in turn."""
    return _buffer("I", part, "C"), _buffer("Q", part)


def packed(direction: str, number: int) -> Buffer:
    """Matrices of one direction, packed into panels."""
    return _buffer(f"B{direction[0]}{number}")


class Location(NamedTuple):
    """Where a value is stored: from column `offset` (a list of sizes to add up) of a buffer's row.

    row: "step", the row of this step; "batch", the row of the batch; "time", the row of (time,
    batch) tensors; "old" and "new", the states before and after the step."""

    buffer: Buffer
    row: str
    offset: tuple[str, ...] = ()

    @property
    def slot(self) -> int:
        """The number of values before this one."""
        return len(self.offset)
