"""Products outside of the loop: runs of neighbouring gates that one product serves.

before the loop   columns of PRODUCTS  =  operand · Wᵀ
after it          Σ (columns of ADJOINTS)ᵀ · operand,  and  columns of ADJOINTS · W
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ensue.engine.native.emission.buffers import Buffer
from ensue.equations import Equations, MatrixRef, VectorRef
from ensue.equations.declare import Parameter


class Operand(NamedTuple):
    """What matrices are multiplied by: columns of a buffer. part: that of the old state, if any."""

    buffer: Buffer
    column: int
    width: int
    part: str | None = None


class GateRun(NamedTuple):
    """Neighbouring gates of a matrix, rows `first` to `last` of it, whose products or adjoints are
    neighbours too, from `column` on."""

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
        """(matrix, gate) of each."""
        return {(self.matrix, self.first_gate + k) for k in range(self.gates)}


def declared_order(equations: Equations, ref: MatrixRef | VectorRef) -> tuple[int, int]:
    """The number of the parameter among those declared, and that of the gate in it."""
    return list(equations.declarations).index(ref.name), gate_number(equations, ref)


def gate_number(equations: Equations, ref: MatrixRef | VectorRef) -> int:
    declared = equations.declarations[ref.name]
    assert isinstance(declared, Parameter)
    return declared.gates.index(ref.gate)


def gate_rows(equations: Equations, ref: MatrixRef | VectorRef) -> tuple[int, int]:
    """The first row of a gate in its stacked parameter, and one after the last."""
    declared = equations.declarations[ref.name]
    assert isinstance(declared, Parameter)
    gate, height = gate_number(equations, ref), equations.graph.width(declared.size)
    return gate * height, (gate + 1) * height


def width(equations: Equations, sizes: Iterable[str]) -> int:
    """How many features values of these sizes have side by side."""
    return sum(equations.graph.width(size) for size in sizes)


def single_gate(
    equations: Equations, ref: MatrixRef, offset: tuple[str, ...], operand: Operand
) -> GateRun:
    first, last = gate_rows(equations, ref)
    gate = gate_number(equations, ref)
    return GateRun(ref.name, gate, 1, first, last, width(equations, offset), operand)


def join_neighbours(single: Iterable[GateRun]) -> list[GateRun]:
    """Runs of one gate each, in order: neighbours become one."""
    found: list[GateRun] = []
    for run in single:
        last = found[-1] if found else None
        if last is not None and run == last._replace(
            first_gate=last.first_gate + last.gates,
            gates=1,
            first=last.last,
            last=run.last,
            column=last.column + last.height,
        ):
            found[-1] = last._replace(gates=last.gates + 1, last=run.last)
        else:
            found.append(run)
    return found
