"""The memory of a kernel: buffers as values, and where in them a value of the step is stored."""

from __future__ import annotations

from typing import NamedTuple


class Buffer(NamedTuple):
    """A block of memory that a compiled function reads or writes, row by row.

    symbol: its name in C++; of: the parameter, the mask or the part of the state it belongs to."""

    symbol: str
    of: str = ""

    @property
    def name(self) -> str:
        """As it is called in C++: X, P_W, S_h."""
        return f"{self.symbol}_{self.of}" if self.of else self.symbol

    @property
    def stride(self) -> str:
        """What C++ calls the distance between its rows: the two halves of a doubled carry, and
        the names under which a step reads one and writes the other, share one."""
        symbol = "C" if self.symbol in ("I", "E") else self.symbol
        return f"{Buffer(symbol, self.of).name}_stride"


# ---------------------------------------------------------------- a row for every step
X = Buffer("X")  # the input
PRODUCTS = Buffer("XP")  # products taken before the loop, then values saved for the backward pass
NUMBERS_SAVED = Buffer("US")  # saved values of size one
ADJOINTS = Buffer("D")  # adjoints of the products
D_X = Buffer("DX")  # the derivative by x, less the products after the loop
# ---------------------------------------------------------------- (time, batch) rows
Y = Buffer("Y")  # the output
D_Y = Buffer("DY")  # its adjoint
# ---------------------------------------------------------------- a row for each thread
SUMS = Buffer("ACC")  # gradients of vectors: of the current step, then of all steps before
# ---------------------------------------------------------------- work space
SCRATCH = Buffer("Z")  # values that pass from one phase of a step to a later one
REDUCED = Buffer("RED")  # lanes of a sum or mean
NUMBERS = Buffer("RS")  # values of size one, of the current step


def parameter(name: str) -> Buffer:
    return Buffer("P", name)


def gradient(name: str) -> Buffer:
    """The gradient of a parameter."""
    return Buffer("G", name)


def mask(name: str) -> Buffer:
    return Buffer("M", name)


def initial(part: str) -> Buffer:
    """A part of the state before the first step."""
    return Buffer("H", part)


def states(part: str) -> Buffer:
    """A part of the state after every step."""
    return Buffer("S", part)


def final(part: str) -> Buffer:
    """A part of the state of rows that have ended."""
    return Buffer("F", part)


def carry(part: str) -> Buffer:
    """The adjoint of a part of the state, carried back from step to step."""
    return Buffer("C", part)


def next_carry(part: str) -> Buffer:
    """Where a step writes the carry, if it still reads the one that arrived."""
    return Buffer("E", part)


def carry_pair(part: str) -> tuple[Buffer, Buffer]:
    """The two buffers of a doubled carry: steps read them in turn and write the other one."""
    return Buffer("I", part), Buffer("Q", part)


def packed(direction: str, number: int) -> Buffer:
    """Matrices of one direction, packed into panels."""
    return Buffer(f"B{direction[0]}{number}")


class Location(NamedTuple):
    """Where a value is stored: from column `offset` (a list of sizes to add up) of a buffer's row.

    row: "step", the row of this step; "batch", the row of the batch; "time", the row of (time,
    batch) tensors; "old" and "new", the states before and after the step."""

    buffer: Buffer
    row: str
    offset: tuple[str, ...] = ()

    @property
    def slot(self) -> int:
        """How many values stand in front of it."""
        return len(self.offset)
