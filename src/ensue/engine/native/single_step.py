"""One step of rows that all take it: a kernel whose way from Python is short.

Products of x and of the old state are outside of the compiled equations, forward and backward.
Small ones are done in the same call (`once.cpp`); large ones are torch's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ensue.engine.native.cache import loaded
from ensue.engine.native.call import DEFINES, PAD, WorkSpace, core
from ensue.engine.native.gradients import Gradients, gates_of
from ensue.engine.native.jobs import BACK, FORTH, OUTER, SUMS, Job, Side, Table, do_with_torch
from ensue.engine.native.program import Place, Program, Run
from ensue.engine.native.source import write_source
from ensue.engine.native.threads import alone_in_a_child, thread_count
from ensue.equations import Equations, below

ELEMENTWISE = 5  # flops of a product in the time of one elsewhere: functions take many
# More flops than these are quicker in torch: of the products of a call, by one thread and by
# several (torch takes its time to wake them), and of a row, for the gradients of matrices.
SMALL, SMALL_FOR_SEVERAL, CACHED = 8_000_000, 100_000_000, 4_000_000


class After(NamedTuple):
    """What a backward pass does for the derivatives that are wanted."""

    names: list[str]  # of its buffers
    at: list[int]  # their numbers
    room: list[str]  # those of them to make
    x_is_unread: bool  # its derivative is zero
    gradients: list[tuple[str, tuple[int, ...], bool]]  # name, shape, whether all of it is written
    jobs: list[Job]
    table: Table


class Once:
    """The compiled equations of a cell for a single step, for one type of numbers."""

    def __init__(self, equations: Equations, dtype: torch.dtype) -> None:
        self.program = Program(equations, once=True)
        self.source = write_source(self.program)
        self.library = loaded(self.source.text, DEFINES[dtype])
        self.widths = dict(equations.graph.sizes)
        self.parts = list(self.program.state)
        self.output_part = self.program.output_part
        self.gradients = Gradients(self.program)
        self._output = self.widths[self.program.output.size]
        self._input = self.widths["input"]
        self._parameters = list(equations.shapes)
        read = {n.attr for n in below(equations.roots) if n.op == "mask"}
        self._masks = [name for name in equations.masks if name in read]
        self._apart = [part for part in self.parts if part != self.output_part]
        self._part_widths = {p: self.widths[n.size] for p, n in self.program.state.items()}
        self._tape: list[str] = [name for name in ("XP", "US") if name in self.program.buffers]
        self._strides = self._all_strides(equations)
        self._count(equations)
        gradients = [f"G_{name}" for name in self._parameters]
        self._forward, self._backward = (
            Side(
                getattr(self.library, name),
                function,
                [self.widths[s] for s in self.source.sizes],
                gradients if name == "backward" else [],
                self._strides,
                WorkSpace(function, self.widths, core(dtype).lanes()),
                dtype,
            )
            for name, function in self.source.functions.items()
        )
        self._given = ["X", *(f"H_{p}" for p in self.parts)]
        self._given += [f"P_{n}" for n in self._parameters] + [f"M_{n}" for n in self._masks]
        self._made = [f"S_{p}" for p in self._apart] + self._tape
        self._y = "Y" if self.output_part is None else f"S_{self.output_part}"
        self._at = [self._forward.at[name] for name in (*self._given, *self._made, self._y)]
        names = [*self._given, *self._made]
        self._where_xp = names.index("XP") if "XP" in names else -1
        self._before = [self._product_before(run) for run in self.program.runs_before]
        self._no_jobs = self._forward.table((), ())
        self._small = self._forward.table(self._before, ())
        self._afters: dict[Any, After] = {}

    def _all_strides(self, equations: Equations) -> dict[str, int]:
        """Numbers from row to row of every buffer but the work space."""
        program, hidden = self.program, self._part_widths
        strides = {"X": self._input, "DX": self._input, "Y": self._output, "DY": self._output}
        strides |= {f"M_{n}": program.width(program.buffers[f"M_{n}"].sizes) for n in self._masks}
        strides |= {f"{kind}_{p}": n for p, n in hidden.items() for kind in "SHFCIQ"}
        for name, shape in equations.shapes.items():
            if len(shape) == 2:
                strides[f"P_{name}"] = strides[f"G_{name}"] = shape[1]
        for name in ("XP", "US", "D"):
            if name in program.buffers:
                strides[name] = program.width(program.buffers[name].sizes) + PAD
        if program.over:
            strides["D"] = strides["XP"]
        strides["ACC"] = 2 * self.gradients.sums
        return strides

    def _count(self, equations: Equations) -> None:
        """Flops of a row, roughly: of the products outside, and of what the threads share."""
        counts = equations.counts()
        self._outside = sum(2 * n.width * n.args[0].width for n in self.program.hoisted)
        inside = counts.product_flops - self._outside
        self._inside = inside + ELEMENTWISE * counts.elementwise_flops

    def _product_before(self, run: Run) -> Job:
        first, last = self.program.rows(run.matrix, run.first_gate, run.gates)
        source, _, k = self._operand(run)
        at = self.program.width(run.offset)
        return Job(FORTH, "XP", at, source, 0, f"P_{run.matrix}", first, last - first, k, True)

    def _operand(self, run: Run) -> tuple[str, int, int]:
        """(buffer, first column, columns) of what a matrix was multiplied by."""
        if run.source == "x":
            return "X", 0, self._input
        if isinstance(run.source, Place):
            width = next(n.width for n, p in self.program.places.items() if p == run.source)
            return run.source.buffer, self.program.width(run.source.offset), width
        return f"H_{run.source}", 0, self._part_widths[run.source]

    # ---------------------------------------------------------------- forward
    @alone_in_a_child
    def run(
        self,
        x: Tensor,
        state: Sequence[Tensor],
        parameters: Mapping[str, Tensor],
        masks: Mapping[str, Tensor],
        lengths: Tensor | None,
        reverse: bool,
        train: bool,
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Output (1, batch, features), new states (batch, features), and what the backward pass
        needs: what was given, and what was made. Forwards and in reverse are the same."""
        batch = x.shape[1]
        tensors = [x.contiguous(), *[s.contiguous() for s in state]]
        tensors += [parameters[name].contiguous() for name in self._parameters]
        tensors += [masks[name].contiguous() for name in self._masks]
        made = [x.new_empty(batch, self._strides[name]) for name in self._made]
        y = x.new_empty(1, batch, self._output)
        tensors += [*made, y]
        small = self._is_small(batch)
        if not small:
            do_with_torch(self._before, self._named(self._given + self._made, tensors[:-1]))
        jobs = self._small if small else self._no_jobs
        if batch:
            threads = thread_count(batch, batch * self._inside)
            workers = thread_count(self._outside, batch * self._outside)
            self._forward(self._at, tensors, batch, threads, train, jobs, workers)
        new = dict(zip(self._made, made, strict=True))
        if self.output_part is not None:
            new[self._y] = y.view(batch, self._output)
        final = [new[f"S_{part}"] for part in self.parts]
        for k, part in enumerate(self.parts):
            if train or part == self.output_part:  # the tape's, or the output's own
                final[k] = final[k].clone()
        return y, final, tensors[:-1]  # autograd keeps the output, and gives it back

    def _is_small(self, batch: int) -> bool:
        """Whether the products are done in the call."""
        several = torch.get_num_threads() > 1
        return batch * self._outside <= (SMALL_FOR_SEVERAL if several else SMALL)

    def _named(self, names: Sequence[str], tensors: Sequence[Tensor]) -> dict[str, Tensor]:
        """Buffers by name, rows and columns."""
        found = dict(zip(names, tensors, strict=True))
        found["X"] = found["X"].view(-1, self._input)
        return found

    # ---------------------------------------------------------------- backward
    @alone_in_a_child
    def backward(
        self,
        tape: list[Tensor],
        parameters: Mapping[str, Tensor],
        y: Tensor,
        d_y: Tensor | None,
        d_final: Sequence[Tensor | None],
        want_x: bool,
        want_state: Sequence[bool],
        want: Sequence[str],
    ) -> tuple[Tensor | None, list[Tensor | None], dict[str, Tensor]]:
        """As `Kernel.backward`."""
        y = y.contiguous()  # a hook on saved tensors may have given it another layout
        batch = y.shape[1]
        threads = thread_count(batch, batch * self._inside)
        after = self._after(want_x, tuple(want_state), tuple(want))
        arriving = [y.new_zeros(y.shape) if d_y is None else d_y.contiguous()]
        for part, d in zip(self.parts, d_final, strict=True):
            given = y.new_zeros(batch, self._part_widths[part]) if d is None else d.contiguous()
            if part in self.program.doubled:
                arriving += [given, torch.empty_like(given)]
            else:  # the new adjoint comes over the old one
                arriving.append(given if d is None else given.clone())
        room = [y.new_empty(batch, self._strides[name]) for name in after.room]
        if after.x_is_unread:
            room[0].zero_()
        if self.program.over:
            room.append(tape[self._where_xp])
        sums = y.new_zeros(threads, self._strides["ACC"])
        found = {
            name: parameters[name].new_empty(shape) if whole else parameters[name].new_zeros(shape)
            for name, shape, whole in after.gradients
        }
        tensors = [*tape, y, *arriving, *room, sums, *found.values()]
        small = batch > 0 and self._is_small(batch) and self._outside <= CACHED
        if batch:
            jobs = after.table if small else self._no_jobs
            workers = thread_count(self._outside, 2 * batch * self._outside)
            self._backward(after.at, tensors, batch, threads, True, jobs, workers)
        if not small:
            do_with_torch(after.jobs, self._named(after.names, tensors))
        made = dict(zip(after.names, tensors, strict=True))
        d_x = made["DX"].view(1, batch, self._input) if want_x else None
        d_state = [
            made[self._carried(part)] if wanted else None
            for part, wanted in zip(self.parts, want_state, strict=True)
        ]
        return d_x, d_state, found

    def _carried(self, part: str) -> str:
        """The buffer of the adjoint of an old state."""
        return f"Q_{part}" if part in self.program.doubled else f"C_{part}"

    def _after(self, want_x: bool, want_state: tuple[bool, ...], want: tuple[str, ...]) -> After:
        key = want_x, want_state, want
        if key not in self._afters:
            self._afters[key] = self._make_after(*key)
        return self._afters[key]

    def _make_after(
        self, want_x: bool, want_state: tuple[bool, ...], want: tuple[str, ...]
    ) -> After:
        parts = [part for part, wanted in zip(self.parts, want_state, strict=True) if wanted]
        jobs = self.jobs_after(want_x, parts, want)
        room = ["DX"] if want_x or self.program.d_x is not None else []
        if not self.program.over and "D" in self.program.buffers:
            room.append("D")
        names = [*self._given, *self._made, self._y, "DY"]
        for part in self.parts:
            doubled = part in self.program.doubled
            names += [f"I_{part}", f"Q_{part}"] if doubled else [f"C_{part}"]
        names += [*room, *(["D"] if self.program.over else []), "ACC", *(f"G_{n}" for n in want)]
        shapes, whole = self.program.equations.shapes, self.gradients.written
        return After(
            names,
            [self._backward.at[name] for name in names],
            room,
            want_x and not any(job.to == "DX" for job in jobs) and self.program.d_x is None,
            [(name, shapes[name], name in whole) for name in want],
            jobs,
            self._backward.table((), jobs),
        )

    def jobs_after(self, want_x: bool, parts: list[str], want: tuple[str, ...]) -> list[Job]:
        """The products after the step, for the derivatives that are wanted: by x, by these parts
        of the old state, by these parameters."""
        jobs: list[Job] = []
        fresh_x = self.program.d_x is None
        written: set[tuple[str, int]] = set()  # gates of matrices
        for run in self.program.runs_after:
            first, last = self.program.rows(run.matrix, run.first_gate, run.gates)
            d, n, by = self.program.width(run.offset), last - first, f"P_{run.matrix}"
            operand, column, k = self._operand(run)
            if run.matrix in want:
                gates = gates_of(run)
                to, fresh = f"G_{run.matrix}", not gates & written
                jobs.append(Job(OUTER, to, first, "D", d, operand, column, n, k, fresh))
                written |= gates
            if run.source == "x" and want_x:
                jobs.append(Job(BACK, "DX", 0, "D", d, by, first, n, k, fresh_x))
                fresh_x = False
            elif run.source in parts:
                to = self._carried(str(run.source))
                jobs.append(Job(BACK, to, 0, "D", d, by, first, n, k, False))
        for name, first, last, at in self.gradients.vectors:
            if name in want:
                begin = self.gradients.sums + at
                jobs.append(
                    Job(SUMS, f"G_{name}", first, "ACC", begin, "ACC", 0, last - first, 0, True)
                )
        return jobs
