"""The large products after the loop: from the adjoints of all steps to the gradients.

D has a row for every step, with the adjoints δ of all products v = W·a side by side. Of them
come Wᵀδ for x and Σ δ aᵀ for the matrices."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import torch
from torch import Tensor

from ensue.engine.native.outer import add_outer
from ensue.engine.native.plan import Plan
from ensue.engine.native.program import Place, Program, Run
from ensue.equations.declare import Parameter
from ensue.equations.node import ONE, Node

Buffers = Mapping[str, Tensor]


class Gradients:
    """What is left to do of a program's backward pass when its loop has run."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.sums = sum(_rounded(n.width) for n in program.d_vectors.values())
        self.vectors = self._places_of_sums()
        self.written = self._wholly_written()

    def _wholly_written(self) -> set[str]:
        """The parameters whose gradient needs no zeros: every gate of it is written, and none is
        added to before. A run that adds to some of its gates adds to all."""
        written = {(ref.name, self.program.order(ref)[1]) for ref in self.program.d_vectors}
        partly: set[str] = set()
        for run in self.program.runs_after:
            gates = gates_of(run)
            if gates & written and gates - written:
                partly.add(run.matrix)
            written |= gates
        declared = self.program.equations.declarations
        return {
            name
            for name, d in declared.items()
            if isinstance(d, Parameter)
            and name not in partly
            and all((name, k) in written for k in range(len(d.gates)))
        }

    def _places_of_sums(self) -> list[tuple[str, int, int, int]]:
        """(vector, its first row, one after its last, where their sums begin): neighbouring gates
        whose sums are neighbours are one. A sum that several vectors share stands at the first."""
        found: list[tuple[str, int, int, int]] = []
        seen: dict[Node, int] = {}
        at = 0
        for ref, node in self.program.d_vectors.items():
            place = at if node.size == ONE else seen.setdefault(node, at)
            at += _rounded(node.width)
            first, last = self.program.rows(ref.name, self.program.order(ref)[1])
            name, begin, end, where = found[-1] if found else ("", 0, 0, 0)
            if (name, end, where + end - begin) == (ref.name, first, place):
                found[-1] = (name, begin, last, where)
            else:
                found.append((ref.name, first, last, place))
        return found

    # ---------------------------------------------------------------- by x and the old state
    def x(self, b: Buffers, parameters: Mapping[str, Tensor], plan: Plan) -> Tensor:
        d_x = b.get("DX")
        for d, weight in self._products_of_x(b, parameters):
            if d_x is None:  # into a given tensor, here and below: autocast leaves its type alone
                d_x = torch.mm(d, weight, out=d.new_empty(d.shape[0], weight.shape[1]))
            else:
                d_x.addmm_(d, weight)
        shape = (plan.steps, plan.batch, b["X"].shape[1])
        if d_x is None:
            return b["X"].new_zeros(shape)
        if plan.index is not None:
            full = d_x.new_zeros(plan.steps * plan.batch, d_x.shape[1])
            d_x = full.index_copy_(0, plan.index, d_x)
        return d_x.view(shape)

    def state(self, b: Buffers, part: str, plan: Plan) -> Tensor:
        if part in self.program.doubled:
            d = b[f"Q_{part}"] if plan.steps % 2 else b[f"I_{part}"]
        else:
            d = b[f"C_{part}"]
        return d if plan.order is None else torch.empty_like(d).index_copy_(0, plan.order, d)

    def _products_of_x(
        self, b: Buffers, parameters: Mapping[str, Tensor]
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """(adjoints, matrix)"""
        for run in self.program.runs_after:
            if run.source == "x":
                first, last = self.program.rows(run.matrix, run.first_gate, run.gates)
                d = _columns(b["D"], self.program.width(run.offset), last - first)
                yield d, parameters[run.matrix][first:last]

    # ---------------------------------------------------------------- by the parameters
    def parameters(
        self, b: Buffers, parameters: Mapping[str, Tensor], plan: Plan, want: Collection[str]
    ) -> dict[str, Tensor]:
        found = {name: self._room(name, parameters[name]) for name in want}
        written: set[tuple[str, int]] = set()  # gates of matrices
        for run in self.program.runs_after:
            if run.matrix not in want:
                continue
            first, last = self.program.rows(run.matrix, run.first_gate, run.gates)
            d = _columns(b["D"], self.program.width(run.offset), last - first)
            gates = gates_of(run)
            fresh = not gates & written
            written |= gates
            for adjoint, operand in self._pairs(b, run.source, d, plan):
                add_outer(adjoint, operand, found[run.matrix][first:last], fresh)
                fresh = False
        self._add_up_vectors(b["ACC"], found)
        return found

    def _room(self, name: str, like: Tensor) -> Tensor:
        """For a parameter's gradient: zeros unless every gate of it is going to be written."""
        return like.new_empty(like.shape) if name in self.written else like.new_zeros(like.shape)

    def _pairs(
        self, b: Buffers, source: str | Place, d: Tensor, plan: Plan
    ) -> list[tuple[Tensor, Tensor]]:
        """(adjoints, operands), row by row, whose products are a matrix's gradient."""
        if source == "x":
            return [(d, b["X"])]
        if isinstance(source, Place):
            width = next(n.width for n, p in self.program.places.items() if p == source)
            saved, first = b[source.buffer][: plan.rows], self.program.width(source.offset)
            return [(d, _columns(saved, first, width))]
        begin, n = b[f"H_{source}"], min(plan.began, plan.rows)
        states = b[f"S_{source}"][: plan.rows - n if plan.started is not None else plan.rows]
        if plan.started is not None:
            return [(d[n:], states), (d[:n], begin.index_select(0, plan.started))]
        if plan.reverse:
            cut = plan.rows - n
            return [(d[:cut], states[n:]), (d[cut:], begin[:n])]
        return [(d[n:], states[: plan.rows - n]), (d[:n], begin[:n])]

    def _add_up_vectors(self, kept: Tensor, found: dict[str, Tensor]) -> None:
        """kept: a row for each thread, in whose second half the sums of its steps stand."""
        sums = kept[:, self.sums :]
        total = sums[0] if len(sums) == 1 else sums.sum(0)
        for name, first, last, at in self.vectors:
            if name in found:
                found[name][first:last].copy_(total[at : at + last - first])


def gates_of(run: Run) -> set[tuple[str, int]]:
    return {(run.matrix, run.first_gate + k) for k in range(run.gates)}


def _rounded(count: int) -> int:
    """Sums of vectors begin on cache-line borders."""
    return -(-count // 16) * 16


def _columns(buffer: Tensor, first: int, count: int) -> Tensor:
    return buffer[:, first : first + count]
