"""The engine "native": the traced cell as compiled C++, over the whole sequence."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ensue.cells.cell import Cell
from ensue.engine.bptt import backpropagate
from ensue.engine.native.cache import NoCompiler, compiler
from ensue.engine.native.call import DEFINES, Adjoints, Needed
from ensue.engine.native.kernel import Kernel, TapeLayout
from ensue.engine.native.operator import Makers, operate, register
from ensue.engine.native.single_step import SingleStep
from ensue.engine.recurrence import Constants, Recurrence, State
from ensue.engine.rows import reverse_time

COMPUTED_IN = {torch.bfloat16: torch.float32}
DTYPES = (*DEFINES, *COMPUTED_IN)
Constant = TypeVar("Constant", bound=Callable[..., Any])
Made = TypeVar("Made", Kernel, SingleStep)


def constant_in_graphs(function: Constant) -> Constant:
    """Marks a function whose result torch.compile treats as a constant.

    This is torch.compiler.assume_constant_result without importing the compiler."""
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


@constant_in_graphs
def _missing_compiler() -> str:
    """The message about a missing compiler; "" if there is one."""
    try:
        compiler()
    except NoCompiler as error:
        return str(error)
    return ""


def in_forward_mode() -> bool:
    """Whether forward-mode differentiation is on: a kernel would lose the tangents of tensors."""
    return forward_ad._current_level >= 0


def why_not_native(device: torch.device, dtype: torch.dtype) -> str:
    """Why the native engine cannot run this; "" if it can."""
    return why_no_operator(device, dtype) or _missing_compiler()


def why_no_operator(device: torch.device, dtype: torch.dtype) -> str:
    """Why an exported graph cannot use the operator for this; "" if it can."""
    if in_forward_mode():
        return "native engine: forward-mode derivatives are not offered; use engine='eager'"
    if device.type != "cpu":
        return f"native engine: x is on {device}, it runs on the CPU"
    if dtype not in DTYPES:
        return f"native engine: {dtype} is not among float32, float64, bfloat16"
    return ""


def kernel_for(
    cell: Cell, input_size: int, hidden: int, training: bool, dtype: torch.dtype
) -> Kernel:
    """The kernel of a cell, compiled at first use and cached with the cell."""
    return _cached(Kernel, cell, input_size, hidden, training, dtype)


def single_step_for(
    cell: Cell, input_size: int, hidden: int, training: bool, dtype: torch.dtype
) -> SingleStep:
    """The kernel for a single step; see `kernel_for`."""
    return _cached(SingleStep, cell, input_size, hidden, training, dtype)


def _cached(
    make: type[Made], cell: Cell, input_size: int, hidden: int, training: bool, dtype: torch.dtype
) -> Made:
    kernels: dict[Any, Made] = cell.__dict__.setdefault("_kernels", {})
    key = (make, cell.changes, input_size, hidden, training, dtype)
    if key not in kernels:
        kernels[key] = make(cell.equations(input_size, hidden, training), dtype)
    return kernels[key]


def _layout_for(cell: Cell, input_size: int, hidden: int, training: bool) -> TapeLayout:
    """The shapes of a cell's tape, without compiling; cached with the cell."""
    from ensue.engine.native.emission.program import sequence_program  # imported only if needed

    layouts: dict[Any, TapeLayout] = cell.__dict__.setdefault("_tape_layouts", {})
    key = (cell.changes, input_size, hidden, training)
    if key not in layouts:
        layouts[key] = TapeLayout(sequence_program(cell.equations(input_size, hidden, training)))
    return layouts[key]


def ready_kernel(
    recurrence: Recurrence, sizes: tuple[int, int, bool]
) -> Kernel | SingleStep | None:
    """The kernel if it already exists. sizes: `Recurrence.sizes`."""
    cell, x = recurrence.cell, recurrence.x
    kernels: dict[Any, Kernel | SingleStep] | None = cell.__dict__.get("_kernels")
    if kernels is None or not x.is_cpu:
        return None
    make = SingleStep if is_single_step(x, recurrence.lengths) else Kernel
    return kernels.get((make, cell.changes, *sizes, x.dtype))


def is_single_step(x: Tensor, lengths: Tensor | None) -> bool:
    """Whether x is a single step of all rows, which has a special kernel."""
    return x.shape[0] == 1 and lengths is None


def why_no_kernel(recurrence: Recurrence, sizes: tuple[int, int, bool]) -> str:
    """Why the cell's kernel cannot be compiled; "" after it was compiled."""
    cell, dtype = recurrence.cell, recurrence.x.dtype
    try:
        single = is_single_step(recurrence.x, recurrence.lengths)
        make = single_step_for if single else kernel_for
        make(cell, *sizes, COMPUTED_IN.get(dtype, dtype))
    except NoCompiler as error:
        return str(error).splitlines()[0]
    return ""


@constant_in_graphs
def _operator_number(cell: Cell) -> int:
    return register(
        cell, Makers(functools.partial(kernel_for, cell), functools.partial(_layout_for, cell))
    )


class _Native(torch.autograd.Function):
    """The forward and the backward kernel as an autograd function. Autograd saves inputs and
    output, so it notices changes in place. The tape is private, and the backward pass overwrites
    it. A second backward pass over a retained graph computes it again."""

    @staticmethod
    def forward(
        ctx: Any, kernel: Kernel | SingleStep, constants: Constants, x: Tensor, *rest: Tensor
    ) -> tuple[Tensor, ...]:
        y, final, ctx.tape = kernel.run(constants.recurrence(x, rest), True)
        ctx.kernel, ctx.constants = kernel, constants
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, *rest, y, *(constants.masks or {}).values())
        return y, *final

    @staticmethod
    def backward(ctx: Any, *adjoints: Tensor | None) -> tuple[Any, ...]:
        kernel, constants = ctx.kernel, ctx.constants
        parts, names = len(kernel.parts), constants.names
        x, *saved = ctx.saved_tensors
        inputs = parts + len(names)
        recurrence = constants.recurrence(x, tuple(saved[:inputs]))
        y = saved[inputs]
        if torch.is_grad_enabled():
            return None, None, *_differentiably(recurrence, y, adjoints)
        tape, ctx.tape = ctx.tape, None
        if tape is None:
            _, _, tape = kernel.run(recurrence, True)
        want_x, *rest_needed = ctx.needs_input_grad[2:]
        known = kernel.program.equations.shapes
        named = zip(names, rest_needed[parts:], strict=True)
        of_parameters = tuple(n for n, needed in named if needed and n in known)
        d_y, *d_final = (None if d is None else d.resolve_neg() for d in adjoints)
        slopes = kernel.backward(
            tape,
            recurrence.parameters,
            y,
            Adjoints(d_y, d_final),
            Needed(want_x, tuple(rest_needed[:parts]), of_parameters),
        )
        return None, None, slopes.x, *slopes.state, *(slopes.parameters.get(n) for n in names)


def _differentiably(
    recurrence: Recurrence, y: Tensor, adjoints: tuple[Tensor | None, ...]
) -> list[Tensor]:
    """The backward pass as a differentiable function: for second derivatives."""
    returned = (y, *recurrence.state)  # for their shapes only
    d_y, *d_final = (
        torch.zeros_like(v) if d is None else d for v, d in zip(returned, adjoints, strict=True)
    )
    lengths, reverse = recurrence.lengths, recurrence.reverse
    if reverse:
        d_y = reverse_time(d_y, lengths)
    slopes = backpropagate(recurrence.forwards(), d_y, tuple(d_final))
    d_x = reverse_time(slopes.x, lengths) if reverse else slopes.x
    return [d_x, *slopes.state, *(slopes.parameters[n] for n in recurrence.parameters)]


def native(recurrence: Recurrence) -> tuple[Tensor, State]:
    """Same as `eager`. bfloat16 is computed in float32 and rounded for storage."""
    cell, x, lengths = recurrence.cell, recurrence.x, recurrence.lengths
    if x.dtype == torch.bfloat16:
        y, end = native(_in_float32(recurrence))
        return y.bfloat16(), tuple(s.bfloat16() for s in end)
    if torch.compiler.is_compiling():
        return operate(recurrence, _operator_number(cell))
    make: Any = single_step_for if is_single_step(x, lengths) else kernel_for
    return with_kernel(make(cell, *recurrence.sizes, x.dtype), recurrence)


def _in_float32(recurrence: Recurrence) -> Recurrence:
    masks = recurrence.masks
    return recurrence._replace(
        parameters={n: p.float() for n, p in recurrence.parameters.items()},
        x=recurrence.x.float(),
        state=tuple(s.float() for s in recurrence.state),
        masks=None if masks is None else {n: m.float() for n, m in masks.items()},
    )


def with_kernel(kernel: Kernel | SingleStep, recurrence: Recurrence) -> tuple[Tensor, State]:
    """Runs the kernel over x, recorded if a gradient may be needed."""
    x, state = recurrence.x, recurrence.state
    if x.is_neg() or any(part.is_neg() for part in state):  # its memory holds the opposite sign
        state = tuple(part.resolve_neg() for part in state)
        recurrence = recurrence._replace(x=x.resolve_neg(), state=state)
    tensors = recurrence.tensors
    if not (torch.is_grad_enabled() and any(t.requires_grad for t in tensors)):
        y, last, _ = kernel.run(recurrence, False)
        return y, tuple(last)
    y, *final = _Native.apply(  # type: ignore[no-untyped-call]
        kernel, recurrence.constants, *tensors
    )
    return y, tuple(final)
