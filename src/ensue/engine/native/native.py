"""The engine "native": the traced cell as compiled C++, over the whole sequence."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ensue.cells import Cell
from ensue.engine.bptt import bptt
from ensue.engine.eager import State, Tensors, hidden_size
from ensue.engine.native.kernel import Kernel
from ensue.engine.native.plan import make_plan
from ensue.engine.native.threads import thread_count


def kernel_for(cell: Cell, input_size: int, hidden: int, training: bool, dtype: torch.dtype) -> Kernel:
    """The kernel of a cell, compiled at first use and kept with the cell."""
    kernels: dict[Any, Kernel] = cell.__dict__.setdefault("_kernels", {})
    key = (input_size, hidden, training, dtype)
    if key not in kernels:
        kernels[key] = Kernel(cell.equations(input_size, hidden, training), dtype)
    return kernels[key]


class _Native(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, kernel: Kernel, cell: Cell, lengths: Any, masks: Any, names: Any, reverse: bool, train: bool, x: Tensor, *rest: Tensor
    ) -> tuple[Tensor, ...]:
        parts = len(cell.parts)
        parameters = dict(zip(names, rest[parts:], strict=True))
        plan = make_plan(x.shape[0], x.shape[1], lengths, reverse, thread_count(x.shape[1]))
        y, final, tape = kernel.forward(x, rest[:parts], parameters, masks or {}, plan, train)
        ctx.kernel, ctx.cell, ctx.lengths, ctx.masks, ctx.names = kernel, cell, lengths, masks, names
        ctx.tape = tape
        ctx.save_for_backward(x, *rest)
        return y, *final

    @staticmethod
    def backward(ctx: Any, *adjoints: Tensor) -> tuple[Any, ...]:
        x, *rest = ctx.saved_tensors
        parts = len(ctx.cell.parts)
        parameters = dict(zip(ctx.names, rest[parts:], strict=True))
        if torch.is_grad_enabled():
            found = bptt(ctx.cell, parameters, x, tuple(rest[:parts]), adjoints[0], adjoints[1:], ctx.lengths, ctx.masks)
            return None, None, None, None, None, None, None, found.x, *found.state, *found.parameters.values()
        needs = ctx.needs_input_grad[7:]
        want = {n for n, need in zip(ctx.names, needs[1 + parts :], strict=True) if need}
        d_x, d_state, d_parameters = ctx.kernel.backward(ctx.tape, parameters, adjoints[0], adjoints[1:], needs[0], want)
        return None, None, None, None, None, None, None, d_x, *d_state, *(d_parameters.get(n) for n in ctx.names)


def native(
    cell: Cell,
    parameters: Tensors,
    x: Tensor,
    state: State,
    lengths: Tensor | None = None,
    masks: Tensors | None = None,
    reverse: bool = False,
) -> tuple[Tensor, State]:
    kernel = kernel_for(cell, x.shape[2], hidden_size(cell, parameters), masks is not None, x.dtype)
    train = torch.is_grad_enabled() and any(t.requires_grad for t in (x, *state, *parameters.values()))
    y, *final = _Native.apply(kernel, cell, lengths, masks, tuple(parameters), reverse, train, x, *state, *parameters.values())
    return y, tuple(final)
