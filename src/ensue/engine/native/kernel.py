"""One compiled cell: its buffers, its calls, and the products before the loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ensue.engine.native.cache import loaded
from ensue.engine.native.call import (
    DEFINES,
    PAD,
    Adjoints,
    CompiledFunction,
    Derivatives,
    Needed,
    alone_in_a_child,
    thread_count,
)
from ensue.engine.native.emission import buffers
from ensue.engine.native.emission.buffers import (
    ADJOINTS,
    D_X,
    D_Y,
    NUMBERS_SAVED,
    PRODUCTS,
    SUMS,
    Buffer,
    X,
    Y,
)
from ensue.engine.native.gradients import GradientProducts, carries_of
from ensue.engine.native.plan import Plan, make_plan, rows_before
from ensue.engine.recurrence import Recurrence, Tensors
from ensue.equations import Equations

if TYPE_CHECKING:
    from ensue.engine.native.emission.program import Program

OF_STEPS = (PRODUCTS, NUMBERS_SAVED)  # a row for every step: products of x, and saved values


@dataclass
class Tape:
    """The values of a forward pass that the backward pass needs."""

    plan: Plan
    memory: dict[Buffer, Tensor]


class TapeLayout:
    """The buffers of a tape and their widths: known before compilation.

    buffers: only those that cannot be computed again from the inputs and outputs."""

    def __init__(self, program: Program) -> None:
        forward, read = program.forward, program.backward.reads
        self.output_size = forward.output.width
        self.states = {part: buffers.states(part) for part in forward.state}
        output_part = forward.output_part
        self.output_states = None if output_part is None else self.states[output_part]
        self.of_steps = [buffer for buffer in OF_STEPS if buffer in forward.columns]
        self.saved = [buffer for buffer in self.of_steps if buffer in read]
        self.buffers = [*self.saved, *self.states.values()]
        padded = [buffer for buffer in (*OF_STEPS, ADJOINTS) if buffer in forward.columns]
        self.widths = {self.states[part]: node.width for part, node in forward.state.items()}
        self.widths |= {buffer: forward.width(buffer) + PAD for buffer in padded}

    def returned(self, lengths: Tensor | None) -> list[Buffer]:
        """The buffers that an operator returns. With equal lengths, the output is one of these
        buffers."""
        if lengths is not None:
            return self.buffers
        return [buffer for buffer in self.buffers if buffer != self.output_states]


class Kernel:
    """The compiled equations of a cell, for one dtype."""

    def __init__(self, equations: Equations, dtype: torch.dtype) -> None:
        # at first use: importing layers must not import the compiler
        from ensue.engine.native.emission.program import sequence_program
        from ensue.engine.native.emission.source import write_source

        self.program, self.dtype = sequence_program(equations), dtype
        self.source = write_source(self.program)
        self.library = loaded(self.source.text, DEFINES[dtype])
        self.widths = dict(equations.graph.sizes)
        self._run_forward, self._run_backward = (
            CompiledFunction(
                getattr(self.library, name), function, self.source.sizes, self.widths, dtype
            )
            for name, function in self.source.functions.items()
        )
        self.gradients = GradientProducts(self.program)
        self._flops = equations.counts().product_flops  # of a row and step
        forward = self.program.forward
        self.parts, self.output_part = list(forward.state), forward.output_part
        self.layout = TapeLayout(self.program)
        self._initial = {part: buffers.initial(part) for part in self.parts}
        self._final = {part: buffers.final(part) for part in self.parts}
        self._unread = [
            buffer for buffer in self.layout.of_steps if buffer not in self.layout.saved
        ]
        self._carries = {part: carries_of(self.program, part) for part in self.parts}
        self._parameters = {name: buffers.parameter(name) for name in equations.shapes}

    def plan(self, steps: int, batch: int, lengths: Tensor | None, reverse: bool) -> Plan:
        threads = thread_count(batch, steps * batch * self._flops)
        return make_plan(steps, batch, lengths, reverse, threads)

    # ---------------------------------------------------------------- forward
    def run(self, recurrence: Recurrence, train: bool) -> tuple[Tensor, list[Tensor], Tape]:
        x = recurrence.x
        plan = self.plan(x.shape[0], x.shape[1], recurrence.lengths, recurrence.reverse)
        return self.forward(recurrence, plan, train)

    @alone_in_a_child
    def forward(
        self, recurrence: Recurrence, plan: Plan, train: bool, capacity: int = 0
    ) -> tuple[Tensor, list[Tensor], Tape]:
        """Outputs (time, batch, features), final states (batch, features), and the tape. Its
        buffers have at least `capacity` rows."""
        x, memory = recurrence.x, self.inputs(recurrence, plan)
        rows, packed = plan.rows, plan.index is not None
        for buffer in self.layout.of_steps:
            memory[buffer] = x.new_empty(max(rows, capacity), self.layout.widths[buffer])
        operands: dict[str | None, Tensor] = {None: memory[X]}
        for run in self.program.forward.products:
            columns = memory[PRODUCTS][:rows, run.column : run.column + run.height]
            matrix, part = recurrence.parameters[run.matrix], run.operand.part
            if part not in operands:
                operands[part] = rows_before(x, memory[run.operand.buffer], plan)
            torch.mm(operands[part], matrix[run.first : run.last].t(), out=columns)
        for part in self.parts:
            states, begin = self.layout.states[part], memory[self._initial[part]]
            if packed or part != self.output_part:
                capacity_left = max(rows - plan.began if packed else rows, capacity)
                memory[states] = x.new_empty(capacity_left, self.layout.widths[states])
            memory[self._final[part]] = begin.clone() if packed else begin
        shape = (plan.steps, plan.batch, self.layout.output_size)
        y = x.new_zeros(shape) if packed else x.new_empty(shape)
        memory[Y] = y.view(plan.steps * plan.batch, self.layout.output_size)
        if not packed and self.layout.output_states is not None:
            memory[self.layout.output_states] = memory[Y]
        if rows:
            self._run_forward(memory, plan, x, train)
        final = [self._final_state(memory, part, plan) for part in self.parts]
        if not packed and self.layout.output_states is not None:
            del memory[self.layout.output_states]
        del memory[Y]  # autograd saves the output and returns it
        for buffer in self._unread:
            del memory[buffer]
        return y, final, Tape(plan, memory)

    def inputs(self, recurrence: Recurrence, plan: Plan) -> dict[Buffer, Tensor]:
        """The buffers of the inputs, with rows in storage order."""
        _, parameters, x, state, _, masks, _ = recurrence
        memory = {
            buffer: parameters[name].contiguous() for name, buffer in self._parameters.items()
        }
        memory[X] = self._stored(x, plan)
        for name, mask in (masks or {}).items():
            memory[buffers.mask(name)] = self._mask(name, mask, plan)
        for buffer, begin in zip(self._initial.values(), state, strict=True):
            memory[buffer] = _sorted(begin, plan)
        return memory

    def _stored(self, x: Tensor, plan: Plan) -> Tensor:
        """Rows of (time, batch, features) in storage order."""
        flat = x.reshape(plan.steps * plan.batch, x.shape[2])
        flat = flat if plan.index is None else flat.index_select(0, plan.index)
        return flat.contiguous()

    def _mask(self, name: str, mask: Tensor, plan: Plan) -> Tensor:
        if self.program.equations.declarations[name].over == "step":
            return self._stored(mask, plan)
        return _sorted(mask, plan)

    def _final_state(self, memory: dict[Buffer, Tensor], part: str, plan: Plan) -> Tensor:
        if plan.order is not None:
            ended = memory[self._final[part]]
            return torch.empty_like(ended).index_copy_(0, plan.order, ended)
        if plan.steps == 0:
            return memory[self._initial[part]].clone()
        states = memory[self.layout.states[part]]
        return (states[: plan.batch] if plan.reverse else states[-plan.batch :]).clone()

    # ---------------------------------------------------------------- backward
    @alone_in_a_child
    def backward(
        self,
        tape: Tape,
        parameters: Tensors,
        y: Tensor,
        adjoints: Adjoints,
        needed: Needed,
        spend: bool = True,
    ) -> Derivatives:
        """The derivatives in `needed`. With `spend`, the tape is overwritten."""
        plan, memory = tape.plan, dict(tape.memory)
        self._add_adjoints(memory, plan, y, adjoints, spend)
        if plan.rows:
            self._run_backward(memory, plan, memory[X], True)
        shifted = self.gradients.shifted(memory, parameters)
        state = [
            self.gradients.state(memory, part, plan, shifted) if is_needed else None
            for part, is_needed in zip(self.parts, needed.state, strict=True)
        ]
        x = self.gradients.x(memory, parameters, plan, shifted) if needed.x else None
        gradients = self.gradients.parameters(memory, parameters, plan, needed.parameters)
        return Derivatives(x, state, gradients)

    def _add_adjoints(
        self, memory: dict[Buffer, Tensor], plan: Plan, y: Tensor, adjoints: Adjoints, spend: bool
    ) -> None:
        """Adds the buffers of the backward pass to the buffers of the tape."""
        backward, like = self.program.backward, memory[X]
        if self.layout.output_states is not None and plan.index is None:
            memory[self.layout.output_states] = y.view(plan.rows, y.shape[2])
        d_y = y.new_zeros(y.shape) if adjoints.output is None else adjoints.output.contiguous()
        memory[D_Y] = d_y.view(plan.steps * plan.batch, y.shape[2])
        if backward.adjoints:
            over = spend and backward.overlay and PRODUCTS in memory
            width = self.layout.widths[ADJOINTS]
            saved = memory[PRODUCTS][: plan.rows] if over else None
            memory[ADJOINTS] = like.new_empty(plan.rows, width) if saved is None else saved
        if backward.x is not None:
            memory[D_X] = like.new_empty(plan.rows, like.shape[1])
        memory[SUMS] = like.new_zeros(plan.threads, 2 * self.gradients.sums)
        for part, d in zip(self.parts, adjoints.final, strict=True):
            begin = memory[self._initial[part]]
            carried = begin.new_zeros(begin.shape) if d is None else _sorted(d, plan).clone()
            first, *second = self._carries[part]
            memory[first] = carried
            for other in second:
                memory[other] = carried.clone()


def _sorted(v: Tensor, plan: Plan) -> Tensor:
    """Rows of a (batch, features) tensor in storage order."""
    return v.contiguous() if plan.order is None else v.index_select(0, plan.order)
