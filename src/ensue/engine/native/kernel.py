"""One compiled cell: what is stored for it, what is called, and the products before the loop."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ensue.engine.native.cache import loaded
from ensue.engine.native.call import DEFINES, PAD, Entry
from ensue.engine.native.gradients import Gradients
from ensue.engine.native.plan import Plan, make_plan
from ensue.engine.native.program import Place, Program, Run
from ensue.engine.native.source import write_source
from ensue.engine.native.threads import alone_in_a_child, thread_count
from ensue.equations import Equations

STEPS = ("XP", "US")  # buffers with a row for every step: products of x and values saved


@dataclass
class Tape:
    """What the backward pass needs of a forward one."""

    plan: Plan
    buffers: dict[str, Tensor]


class Kernel:
    """The compiled equations of a cell, for one type of numbers."""

    def __init__(self, equations: Equations, dtype: torch.dtype) -> None:
        self.program, self.dtype = Program(equations), dtype
        self.source = write_source(self.program)
        self.library = loaded(self.source.text, DEFINES[dtype])
        self.widths = dict(equations.graph.sizes)
        self._run_forward, self._run_backward = (
            Entry(getattr(self.library, name), function, self.source.sizes, self.widths, dtype)
            for name, function in self.source.functions.items()
        )
        self.gradients = Gradients(self.program)
        self._flops = equations.counts().product_flops  # of a row and step
        self.parts = list(self.program.state)
        self.output_part = self.program.output_part
        self.output_size = self.widths[self.program.output.size]
        self._steps = [name for name in STEPS if name in self.program.buffers]
        self._saved = self._saved_buffers()
        self._unread = [name for name in self._steps if name not in self._saved]
        taped = [*self._steps, *(["D"] if "D" in self.program.buffers else [])]
        taped += [f"S_{part}" for part in self.parts]
        self._tape_widths = {name: self.tape_width(name) for name in taped}
        self._hoisted = [self._product_before(run) for run in self.program.runs_before]

    @property
    def taped(self) -> list[str]:
        """The buffers of a tape that cannot be made again of the inputs and outputs."""
        return [*self._saved, *(f"S_{part}" for part in self.parts)]

    def _saved_buffers(self) -> list[str]:
        """Those of the buffers of every step that the backward pass reads."""
        back = self.source.text.partition("static void backward_pack")[2]
        read = set(re.findall(r"\w+", back))
        read |= {
            run.source.buffer for run in self.program.runs_after if isinstance(run.source, Place)
        }
        return [name for name in self._steps if name in read]

    def plan(self, steps: int, batch: int, lengths: Tensor | None, reverse: bool) -> Plan:
        threads = thread_count(batch, steps * batch * self._flops)
        return make_plan(steps, batch, lengths, reverse, threads)

    def _product_before(self, run: Run) -> tuple[str, int, int, int]:
        """(matrix, its first row, one after its last, column in XP)"""
        first, last = self.program.rows(run.matrix, run.first_gate, run.gates)
        return run.matrix, first, last, self.program.width(run.offset)

    # ---------------------------------------------------------------- forward
    def run(
        self,
        x: Tensor,
        state: Sequence[Tensor],
        parameters: Mapping[str, Tensor],
        masks: Mapping[str, Tensor],
        lengths: Tensor | None,
        reverse: bool,
        train: bool,
    ) -> tuple[Tensor, list[Tensor], Tape]:
        plan = self.plan(x.shape[0], x.shape[1], lengths, reverse)
        return self.forward(x, state, parameters, masks, plan, train)

    @alone_in_a_child
    def forward(
        self,
        x: Tensor,
        state: Sequence[Tensor],
        parameters: Mapping[str, Tensor],
        masks: Mapping[str, Tensor],
        plan: Plan,
        train: bool,
        capacity: int = 0,
    ) -> tuple[Tensor, list[Tensor], Tape]:
        """Outputs (time, batch, features), final states (batch, features), and the tape, whose
        buffers have `capacity` rows if that is more than needed."""
        b = self.inputs(x, state, parameters, masks, plan)
        rows, packed = plan.rows, plan.index is not None
        for name in self._steps:
            b[name] = x.new_empty(max(rows, capacity), self._tape_widths[name])
        for matrix, first, last, column in self._hoisted:
            columns = b["XP"][:rows, column : column + last - first]
            torch.mm(b["X"], parameters[matrix][first:last].t(), out=columns)
        for part in self.parts:
            if packed or part != self.output_part:
                kept = max(rows - plan.began if packed else rows, capacity)
                b[f"S_{part}"] = x.new_empty(kept, self._tape_widths[f"S_{part}"])
            b[f"F_{part}"] = b[f"H_{part}"].clone() if packed else b[f"H_{part}"]
        shape = (plan.steps, plan.batch, self.output_size)
        y = x.new_zeros(shape) if packed else x.new_empty(shape)
        b["Y"] = y.view(plan.steps * plan.batch, self.output_size)
        if not packed and self.output_part is not None:
            b[f"S_{self.output_part}"] = b["Y"]
        if rows:
            self._run_forward(b, plan, x, train)
        final = [self._final(b, part, plan) for part in self.parts]
        if not packed and self.output_part is not None:
            del b[f"S_{self.output_part}"]
        del b["Y"]  # autograd keeps the output, and gives it back
        for name in self._unread:
            del b[name]
        return y, final, Tape(plan, b)

    def inputs(
        self,
        x: Tensor,
        state: Sequence[Tensor],
        parameters: Mapping[str, Tensor],
        masks: Mapping[str, Tensor],
        plan: Plan,
    ) -> dict[str, Tensor]:
        """The buffers that hold what was given, rows in the order in which they are stored."""
        b = {f"P_{n}": p.contiguous() for n, p in parameters.items()}
        b["X"] = self._stored(x, plan)
        b.update({f"M_{n}": self._mask(n, m, plan) for n, m in masks.items()})
        for part, begin in zip(self.parts, state, strict=True):
            b[f"H_{part}"] = _sorted(begin, plan)
        return b

    def tape_width(self, name: str) -> int:
        """Columns of a buffer of the tape, with the padding between its rows."""
        if name.startswith("S_"):
            return self.widths[self.program.state[name[2:]].size]
        return self.program.width(self.program.buffers[name].sizes) + PAD

    def _stored(self, x: Tensor, plan: Plan) -> Tensor:
        """Rows of (time, batch, features) in the order in which they are stored."""
        flat = x.reshape(plan.steps * plan.batch, x.shape[2])
        flat = flat if plan.index is None else flat.index_select(0, plan.index)
        return flat.contiguous()

    def _mask(self, name: str, mask: Tensor, plan: Plan) -> Tensor:
        if self.program.equations.declarations[name].over == "step":
            return self._stored(mask, plan)
        return _sorted(mask, plan)

    def _final(self, b: dict[str, Tensor], part: str, plan: Plan) -> Tensor:
        if plan.order is not None:
            return torch.empty_like(b[f"F_{part}"]).index_copy_(0, plan.order, b[f"F_{part}"])
        if plan.steps == 0:
            return b[f"H_{part}"].clone()
        states = b[f"S_{part}"]
        return (states[: plan.batch] if plan.reverse else states[-plan.batch :]).clone()

    # ---------------------------------------------------------------- backward
    @alone_in_a_child
    def backward(
        self,
        tape: Tape,
        parameters: dict[str, Tensor],
        y: Tensor,
        d_y: Tensor | None,
        d_final: Sequence[Tensor | None],
        want_x: bool,
        want_state: Sequence[bool],
        want: Collection[str],
        spend: bool = True,
    ) -> tuple[Tensor | None, list[Tensor | None], dict[str, Tensor]]:
        """Derivatives by x, by the initial state and by the parameters that are wanted. Where
        nobody reads the output or a final state, None stands for its adjoint, zero. The tape is
        written over if it may be spent."""
        plan, b = tape.plan, dict(tape.buffers)
        if self.output_part is not None and plan.index is None:
            b[f"S_{self.output_part}"] = y.view(plan.rows, y.shape[2])
        like = b["X"]
        rows = plan.steps * plan.batch
        b["DY"] = (y.new_zeros(y.shape) if d_y is None else d_y.contiguous()).view(rows, y.shape[2])
        if "D" in self.program.buffers:
            over = spend and self.program.over and "XP" in b
            width = self._tape_widths["D"]
            b["D"] = b["XP"][: plan.rows] if over else like.new_empty(plan.rows, width)
        if self.program.d_x is not None:
            b["DX"] = like.new_empty(plan.rows, like.shape[1])
        b["ACC"] = like.new_zeros(plan.threads, 2 * self.gradients.sums)
        for part, d in zip(self.parts, d_final, strict=True):
            begin = b[f"H_{part}"]
            carried = begin.new_zeros(begin.shape) if d is None else _sorted(d, plan).clone()
            if part in self.program.doubled:
                b[f"I_{part}"], b[f"Q_{part}"] = carried, carried.clone()
            else:
                b[f"C_{part}"] = carried
        if plan.rows:
            self._run_backward(b, plan, like, True)
        d_state = [
            self.gradients.state(b, part, plan) if wanted else None
            for part, wanted in zip(self.parts, want_state, strict=True)
        ]
        d_x = self.gradients.x(b, parameters, plan) if want_x else None
        return d_x, d_state, self.gradients.parameters(b, parameters, plan, want)


def _sorted(v: Tensor, plan: Plan) -> Tensor:
    """Rows of a (batch, features) tensor in the order in which they are stored."""
    return v.contiguous() if plan.order is None else v.index_select(0, plan.order)
