"""The large products after the loop: from the adjoints of all steps to the gradients.

ADJOINTS has a row for every step, with the adjoints δ of all products v = W·a side by side. They
give Wᵀδ for x and Σ δ aᵀ for the matrices."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from ensue.engine.native.emission import buffers
from ensue.engine.native.emission.buffers import (
    ADJOINTS,
    D_X,
    SUMS,
    Buffer,
    GateRun,
    X,
    gate_number,
    gate_rows,
)
from ensue.engine.native.plan import Plan, add_to_begin, add_to_rows_before
from ensue.equations.declare import Parameter
from ensue.equations.node import ONE, Node

if TYPE_CHECKING:
    from ensue.engine.native.emission.program import Program

PIECE, SMALL = 128, 512  # rows of a piece, and maximum size of a small matrix


def add_outer(adjoint: Tensor, operand: Tensor, out: Tensor, fresh: bool) -> None:
    """out = adjointᵀ·operand, or added to it. For small matrices the sum over many rows is taken in
    pieces: BLAS would compute one long sum, which loses digits and is not faster."""
    count = len(adjoint) // PIECE
    if count > 1 and out.numel() <= SMALL:
        first = adjoint[: count * PIECE].view(count, PIECE, adjoint.shape[1])
        second = operand[: count * PIECE].view(count, PIECE, operand.shape[1])
        whole = torch.bmm(first.transpose(1, 2), second, out=out.new_empty(count, *out.shape))
        torch.sum(whole, 0, out=out) if fresh else out.add_(whole.sum(0))
        adjoint, operand, fresh = adjoint[count * PIECE :], operand[count * PIECE :], False
    if fresh:
        torch.mm(adjoint.t(), operand, out=out)
    else:
        out.addmm_(adjoint.t(), operand)


Memory = Mapping[Buffer, Tensor]


class VectorSum(NamedTuple):
    """Rows `first` to `last` of a vector parameter; their gradient is in SUMS from `column` on."""

    vector: str
    first: int
    last: int  # one after
    column: int


class GradientProducts:
    """The part of a program's backward pass that follows its loop."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.runs = first_writes(program.backward.products)
        operands = (run.operand for run in program.forward.products)
        self._shifted = {operand.part for operand in operands if operand.part is not None}
        self._carries = {part: carries_of(program, part) for part in program.forward.state}
        self.sums = sum(_rounded(n.width) for n in program.backward.vectors.values())
        self.vectors = self._vector_sums()
        self.written = self._wholly_written()

    def _wholly_written(self) -> set[str]:
        """The parameters whose gradient need not start as zeros: every gate is written before
        anything is added to it. A run that adds to some of its gates adds to all of them."""
        equations, vectors = self.program.equations, self.program.backward.vectors
        written = {(ref.name, gate_number(equations, ref)) for ref in vectors}
        partly: set[str] = set()
        for run, _ in self.runs:
            if run.blocks & written and run.blocks - written:
                partly.add(run.matrix)
            written |= run.blocks
        return {
            name
            for name, declared in equations.declarations.items()
            if isinstance(declared, Parameter)
            and name not in partly
            and all((name, k) in written for k in range(len(declared.gates)))
        }

    def _vector_sums(self) -> list[VectorSum]:
        """Merges neighbouring gates with neighbouring sums. A sum that several vectors share is
        listed with the first."""
        sums: list[VectorSum] = []
        numbers: dict[Node, int] = {}
        at = 0
        for ref, node in self.program.backward.vectors.items():
            column = at if node.size == ONE else numbers.setdefault(node, at)
            at += _rounded(node.width)
            rows = gate_rows(self.program.equations, ref)
            last = sums[-1] if sums else VectorSum("", 0, 0, 0)
            end = last.column + last.last - last.first
            if (last.vector, last.last, end) == (ref.name, rows[0], column):
                sums[-1] = last._replace(last=rows[1])
            else:
                sums.append(VectorSum(ref.name, *rows, column))
        return sums

    # ---------------------------------------------------------------- by x and the old state
    def shifted(self, memory: Memory, parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Vᵀδ for each part that holds the previous x, a row for every step."""
        moved: dict[str, Tensor] = {}
        for part in self._shifted:
            for d, weight in self._products_of(part, memory, parameters):
                if part in moved:
                    moved[part].addmm_(d, weight)
                else:
                    moved[part] = torch.mm(d, weight, out=d.new_empty(len(d), weight.shape[1]))
        return moved

    def x(
        self,
        memory: Memory,
        parameters: Mapping[str, Tensor],
        plan: Plan,
        shifted: Mapping[str, Tensor],
    ) -> Tensor:
        d_x = memory.get(D_X)
        for d, weight in self._products_of(None, memory, parameters):
            if d_x is None:  # with out=, here and below: autocast does not change the type
                d_x = torch.mm(d, weight, out=d.new_empty(d.shape[0], weight.shape[1]))
            else:
                d_x.addmm_(d, weight)
        width = memory[X].shape[1]
        if d_x is None:
            d_x = memory[X].new_zeros(plan.steps * plan.batch, width)
        elif plan.index is not None:
            full = d_x.new_zeros(plan.steps * plan.batch, width)
            d_x = full.index_copy_(0, plan.index, d_x)
        for d in shifted.values():
            add_to_rows_before(d_x, d, plan)
        return d_x.view(plan.steps, plan.batch, width)

    def state(self, memory: Memory, part: str, plan: Plan, shifted: Mapping[str, Tensor]) -> Tensor:
        carries = self._carries[part]
        d = memory[carries[plan.steps % len(carries)]]
        if part in shifted:
            add_to_begin(d, shifted[part], plan)
        return d if plan.order is None else torch.empty_like(d).index_copy_(0, plan.order, d)

    def _products_of(
        self, part: str | None, memory: Memory, parameters: Mapping[str, Tensor]
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """(adjoints, matrix) of products of x, part None, or of a part of the state."""
        for run, _ in self.runs:
            if run.operand.part == part and (part is not None or run.operand.buffer == X):
                yield _adjoints(memory, run), parameters[run.matrix][run.first : run.last]

    # ---------------------------------------------------------------- by the parameters
    def parameters(
        self,
        memory: Memory,
        parameters: Mapping[str, Tensor],
        plan: Plan,
        collection: Collection[str],
    ) -> dict[str, Tensor]:
        tensors = {name: self._empty(name, parameters[name]) for name in collection}
        for run, first in self.runs:
            if run.matrix not in tensors:
                continue
            rows = tensors[run.matrix][run.first : run.last]
            for k, (adjoint, operand) in enumerate(self._pairs(memory, run, plan)):
                add_outer(adjoint, operand, rows, fresh=first and k == 0)
        self._copy_vectors(memory[SUMS], tensors)
        return tensors

    def _empty(self, name: str, like: Tensor) -> Tensor:
        """Memory for a parameter's gradient: zeros, unless every gate will be written."""
        return like.new_empty(like.shape) if name in self.written else like.new_zeros(like.shape)

    def _pairs(self, memory: Memory, run: GateRun, plan: Plan) -> list[tuple[Tensor, Tensor]]:
        """(adjoints, operands), row by row, whose products are a matrix's gradient."""
        d, (buffer, column, width, part) = _adjoints(memory, run), run.operand
        if buffer == X:
            return [(d, memory[X])]
        if part is None:
            return [(d, _columns(memory[buffer][: plan.rows], column, width))]
        begin, n = memory[buffer], min(plan.began, plan.rows)
        rows = plan.rows - n if plan.started is not None else plan.rows
        states = memory[buffers.states(part)][:rows]
        if plan.started is not None:
            return [(d[n:], states), (d[:n], begin.index_select(0, plan.started))]
        if plan.reverse:
            cut = plan.rows - n
            return [(d[:cut], states[n:]), (d[cut:], begin[:n])]
        return [(d[n:], states[: plan.rows - n]), (d[:n], begin[:n])]

    def _copy_vectors(self, sums: Tensor, gradients: dict[str, Tensor]) -> None:
        """Copies the gradients of vectors. sums: a row for each thread; the second half of each row
        has the thread's sums over all its steps, which are added up over the threads."""
        of_threads = sums[:, self.sums :]
        total = of_threads[0] if len(of_threads) == 1 else of_threads.sum(0)
        for vector, first, last, column in self.vectors:
            if vector in gradients:
                gradients[vector][first:last].copy_(total[column : column + last - first])


def first_writes(runs: list[GateRun]) -> list[tuple[GateRun, bool]]:
    """Each run, and whether it is the first to write its gates; later runs add to them."""
    written: set[tuple[str, int]] = set()
    first = []
    for run in runs:
        first.append((run, not run.blocks & written))
        written |= run.blocks
    return first


def carries_of(program: Program, part: str) -> tuple[Buffer, ...]:
    """The buffers for the adjoint of a part of the state. The first holds it before the backward
    pass; if there are two, steps alternate between them."""
    doubled = part in program.backward.doubled
    return buffers.carry_pair(part) if doubled else (buffers.carry(part),)


def _rounded(count: int) -> int:
    """Rounds a count up, so that sums of vectors begin on cache-line borders."""
    return -(-count // 16) * 16


def _adjoints(memory: Memory, run: GateRun) -> Tensor:
    return _columns(memory[ADJOINTS], run.column, run.height)


def _columns(rows: Tensor, first: int, count: int) -> Tensor:
    return rows[:, first : first + count]
