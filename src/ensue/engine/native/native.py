"""The engine "native": the traced cell as compiled C++, over the whole sequence."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ensue.cells import Cell
from ensue.engine.bptt import bptt
from ensue.engine.eager import State, Tensors, hidden_size
from ensue.engine.native.cache import NoCompiler, compiler
from ensue.engine.native.call import DEFINES
from ensue.engine.native.kernel import Kernel
from ensue.engine.native.once import Once
from ensue.engine.native.operator import operate, register
from ensue.engine.rows import reverse_time

COMPUTED_IN = {torch.bfloat16: torch.float32}
DTYPES = (*DEFINES, *COMPUTED_IN)
Constant = TypeVar("Constant", bound=Callable[..., Any])
Made = TypeVar("Made", Kernel, Once)


def constant_in_graphs(function: Constant) -> Constant:
    """torch.compile calls the function once and takes its result for granted.

    This is torch.compiler.assume_constant_result without its import of the compiler."""
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


@constant_in_graphs
def _missing_compiler() -> str:
    """What to say where there is no compiler; "" where there is one."""
    try:
        compiler()
    except NoCompiler as error:
        return str(error)
    return ""


def in_forward_mode() -> bool:
    """Whether tensors may carry tangents, which a kernel would lose."""
    return forward_ad._current_level >= 0


def why_not_native(device: torch.device, dtype: torch.dtype) -> str:
    """Why the native engine cannot run this; "" if it can."""
    if in_forward_mode():
        return "native engine: forward-mode derivatives are not offered; use engine='eager'"
    if device.type != "cpu":
        return f"native engine: x is on {device}, it runs on the CPU"
    if dtype not in DTYPES:
        return f"native engine: {dtype} is not among float32, float64, bfloat16"
    return _missing_compiler()


def kernel_for(
    cell: Cell, input_size: int, hidden: int, training: bool, dtype: torch.dtype
) -> Kernel:
    """The kernel of a cell, compiled at first use and kept with the cell."""
    return _kept(Kernel, cell, input_size, hidden, training, dtype)


def once_for(cell: Cell, input_size: int, hidden: int, training: bool, dtype: torch.dtype) -> Once:
    """The same for a single step."""
    return _kept(Once, cell, input_size, hidden, training, dtype)


def _kept(
    make: type[Made], cell: Cell, input_size: int, hidden: int, training: bool, dtype: torch.dtype
) -> Made:
    kernels: dict[Any, Made] = cell.__dict__.setdefault("_kernels", {})
    key = (make, cell.changes, input_size, hidden, training, dtype)
    if key not in kernels:
        kernels[key] = make(cell.equations(input_size, hidden, training), dtype)
    return kernels[key]


def ready_kernel(
    cell: Cell, x: Tensor, hidden: int, masked: bool, lengths: Tensor | None
) -> Kernel | Once | None:
    """The kernel for x if it has been made already."""
    kernels: dict[Any, Kernel | Once] | None = cell.__dict__.get("_kernels")
    if kernels is None or not x.is_cpu:
        return None
    make = Once if is_once(x, lengths) else Kernel
    return kernels.get((make, cell.changes, x.shape[2], hidden, masked, x.dtype))


def is_once(x: Tensor, lengths: Tensor | None) -> bool:
    """Whether x is one step of rows that all take it: that has a kernel of its own."""
    return x.shape[0] == 1 and lengths is None


def why_no_kernel(
    cell: Cell, input_size: int, hidden: int, training: bool, dtype: torch.dtype, once: bool
) -> str:
    """Why the cell's kernel cannot be compiled; "" if it can (and then it has been)."""
    try:
        make = once_for if once else kernel_for
        make(cell, input_size, hidden, training, COMPUTED_IN.get(dtype, dtype))
    except NoCompiler as error:
        return str(error).splitlines()[0]
    return ""


@constant_in_graphs
def _operator_number(cell: Cell) -> int:
    return register(cell, functools.partial(kernel_for, cell))


class Job:
    """What a call runs besides its tensors."""

    def __init__(
        self,
        cell: Cell,
        kernel: Kernel | Once,
        names: tuple[str, ...],
        lengths: Tensor | None,
        masks: Tensors | None,
        reverse: bool,
        train: bool,
    ) -> None:
        self.cell, self.kernel, self.names, self.lengths = cell, kernel, names, lengths
        self.masks, self.reverse, self.train = masks, reverse, train
        self.inputs = len(kernel.parts) + len(names)  # besides x

    def split(self, rest: tuple[Tensor, ...]) -> tuple[State, dict[str, Tensor]]:
        """The initial state and the parameters by name."""
        parts = len(self.kernel.parts)
        return rest[:parts], dict(zip(self.names, rest[parts:], strict=True))

    def forward(self, x: Tensor, rest: tuple[Tensor, ...]) -> tuple[Tensor, list[Tensor], Any]:
        state, parameters = self.split(rest)
        return self.kernel.run(
            x, state, parameters, self.masks or {}, self.lengths, self.reverse, self.train
        )

    def differentiably(
        self, adjoints: tuple[Tensor | None, ...], x: Tensor, rest: Any, y: Tensor
    ) -> list[Tensor]:
        """The backward pass as a differentiable function: for second derivatives."""
        state, parameters = self.split(rest)
        returned = (y, *state)  # in shape: final states are as first ones
        d_y, *d_final = (
            torch.zeros_like(v) if d is None else d for v, d in zip(returned, adjoints, strict=True)
        )
        masks = self.masks
        if self.reverse:
            steps = [n for n, m in self.cell.masks.items() if m.over == "step"] if masks else []
            turned = {n: reverse_time(masks[n], self.lengths) for n in steps} if masks else {}
            masks = {**masks, **turned} if masks is not None else None
            x, d_y = reverse_time(x, self.lengths), reverse_time(d_y, self.lengths)
        found = bptt(self.cell, parameters, x, state, d_y, tuple(d_final), self.lengths, masks)
        d_x = reverse_time(found.x, self.lengths) if self.reverse else found.x
        return [d_x, *found.state, *(found.parameters[n] for n in self.names)]


class _Native(torch.autograd.Function):
    """The forward kernel, and the backward one. Autograd saves what was given and the output, so
    that a change made to them in place is noticed; the tape is ours alone, and spent by the
    backward pass. A second one, of a graph that was retained, computes it again."""

    @staticmethod
    def forward(ctx: Any, job: Job, x: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        y, final, ctx.tape = job.forward(x, rest)
        ctx.job = job
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, *rest, y, *(job.masks or {}).values())
        return y, *final

    @staticmethod
    def backward(ctx: Any, *adjoints: Tensor | None) -> tuple[Any, ...]:
        job: Job = ctx.job
        x, *rest = ctx.saved_tensors
        rest, (y, *_) = rest[: job.inputs], rest[job.inputs :]
        if torch.is_grad_enabled():
            return None, *job.differentiably(adjoints, x, tuple(rest), y)
        _, parameters = job.split(tuple(rest))
        tape, ctx.tape = ctx.tape, None
        if tape is None:
            tape = job.forward(x, tuple(rest))[2]
        want_x, *wanted = ctx.needs_input_grad[1:]
        parts = len(job.kernel.parts)
        known = job.kernel.program.equations.shapes
        named = zip(job.names, wanted[parts:], strict=True)
        want = [n for n, needed in named if needed and n in known]
        adjoints = tuple(None if d is None else d.resolve_neg() for d in adjoints)
        d_x, d_state, d_parameters = job.kernel.backward(
            tape,
            parameters,
            y,
            adjoints[0],
            adjoints[1:],
            want_x=want_x,
            want_state=wanted[:parts],
            want=want,
        )
        return None, d_x, *d_state, *(d_parameters.get(n) for n in job.names)


def native(
    cell: Cell,
    parameters: Tensors,
    x: Tensor,
    state: State,
    lengths: Tensor | None = None,
    masks: Tensors | None = None,
    reverse: bool = False,
) -> tuple[Tensor, State]:
    """As `eager`. bfloat16 is computed in float32, and rounded where it is stored."""
    if x.dtype == torch.bfloat16:
        wide = {n: p.float() for n, p in parameters.items()}
        wide_masks = None if masks is None else {n: m.float() for n, m in masks.items()}
        begin = tuple(s.float() for s in state)
        y, end = native(cell, wide, x.float(), begin, lengths, wide_masks, reverse)
        return y.bfloat16(), tuple(s.bfloat16() for s in end)
    hidden = hidden_size(cell, parameters)
    if torch.compiler.is_compiling():
        number = _operator_number(cell)
        return operate(cell, number, hidden, parameters, x, state, lengths, masks, reverse)
    make: Any = once_for if is_once(x, lengths) else kernel_for
    kernel = make(cell, x.shape[2], hidden, masks is not None, x.dtype)
    return with_kernel(kernel, cell, parameters, x, state, lengths, masks, reverse)


def with_kernel(
    kernel: Kernel | Once,
    cell: Cell,
    parameters: Tensors,
    x: Tensor,
    state: State,
    lengths: Tensor | None,
    masks: Tensors | None,
    reverse: bool,
) -> tuple[Tensor, State]:
    """The kernel over x, recorded if a gradient may be asked for."""
    if x.is_neg() or any(part.is_neg() for part in state):  # what is in memory has another sign
        x, state = x.resolve_neg(), tuple(part.resolve_neg() for part in state)
    tensors = (x, *state, *parameters.values())
    train = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
    if not train:
        y, last, _ = kernel.run(x, state, parameters, masks or {}, lengths, reverse, False)
        return y, tuple(last)
    job = Job(cell, kernel, tuple(parameters), lengths, masks, reverse, train)
    y, *final = _Native.apply(job, *tensors)  # type: ignore[no-untyped-call]
    return y, tuple(final)
