"""The native engine as torch operators, for torch.compile and torch.export.

Outside of them the engine is an autograd function, which is quicker to call and keeps its
tape to itself. An operator has no such place: its tape is part of what it returns. With
lengths the tape has room for every step, since the number of real ones is not known when
a graph is traced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ensue.cells import Cell
from ensue.engine.eager import State, Tensors
from ensue.engine.native.kernel import Kernel, Tape
from ensue.engine.rows import check_lengths

_makers: list[Callable[[int, int, bool, torch.dtype], Kernel]] = []
_cells: list[Cell] = []


def register(cell: Cell, make: Callable[[int, int, bool, torch.dtype], Kernel]) -> int:
    """A number for the cell: operators take numbers and tensors only."""
    for number, known in enumerate(_cells):
        if known is cell:
            return number
    _cells.append(cell)
    _makers.append(make)
    return len(_cells) - 1


def _kernel(cell: int, x: Tensor, hidden: int, masks: list[Tensor]) -> Kernel:
    return _makers[cell](x.shape[2], hidden, bool(masks), x.dtype)


def _taped(kernel: Kernel, lengths: Tensor | None) -> list[str]:
    """The part of the tape that is returned: with equal lengths the output is one state's own."""
    if lengths is not None or kernel.output_part is None:
        return kernel.taped
    return [name for name in kernel.taped if name != f"S_{kernel.output_part}"]


@torch.library.custom_op("ensue::recurrence", mutates_args=())
def recurrence(
    x: Tensor,
    state: list[Tensor],
    parameters: list[Tensor],
    masks: list[Tensor],
    lengths: Tensor | None,
    cell: int,
    hidden: int,
    reverse: bool,
) -> list[Tensor]:
    """[output, *final states, *tape]"""
    kernel = _kernel(cell, x, hidden, masks)
    lengths = check_lengths(lengths, x.shape[0], x.shape[1])
    plan = kernel.plan(x.shape[0], x.shape[1], lengths, reverse)
    named = dict(zip(_cells[cell].parameters, parameters, strict=True))
    given = dict(zip(_cells[cell].masks, masks, strict=False))
    capacity = x.shape[0] * x.shape[1]
    y, final, tape = kernel.forward(x, state, named, given, plan, True, capacity)
    return [y, *final, *(tape.buffers[name] for name in _taped(kernel, lengths))]


@recurrence.register_fake
def _(
    x: Tensor,
    state: list[Tensor],
    parameters: list[Tensor],
    masks: list[Tensor],
    lengths: Tensor | None,
    cell: int,
    hidden: int,
    reverse: bool,
) -> list[Tensor]:
    kernel = _kernel(cell, x, hidden, masks)
    rows = x.shape[0] * x.shape[1]
    y = x.new_empty(x.shape[0], x.shape[1], kernel.widths[kernel.program.output.size])
    final = [torch.empty_like(s, memory_format=torch.contiguous_format) for s in state]
    return [y, *final, *(x.new_empty(rows, kernel.tape_width(n)) for n in _taped(kernel, lengths))]


@torch.library.custom_op("ensue::recurrence_backward", mutates_args=())
def recurrence_backward(
    x: Tensor,
    state: list[Tensor],
    parameters: list[Tensor],
    masks: list[Tensor],
    lengths: Tensor | None,
    cell: int,
    hidden: int,
    reverse: bool,
    y: Tensor,
    final: list[Tensor],
    tape: list[Tensor],
    d_y: Tensor,
    d_final: list[Tensor],
) -> list[Tensor]:
    """[∂x, *∂initial states, *∂parameters]"""
    kernel = _kernel(cell, x, hidden, masks)
    plan = kernel.plan(x.shape[0], x.shape[1], lengths, reverse)
    named = dict(zip(_cells[cell].parameters, parameters, strict=True))
    given = dict(zip(_cells[cell].masks, masks, strict=False))
    buffers = kernel.inputs(x, state, named, given, plan)
    buffers |= dict(zip(_taped(kernel, lengths), tape, strict=True))
    for part, end in zip(kernel.parts, final, strict=True):
        buffers[f"F_{part}"] = end if plan.order is None else end.index_select(0, plan.order)
    d_x, d_state, d_parameters = kernel.backward(
        Tape(plan, buffers),
        named,
        y,
        d_y,
        d_final,
        want_x=True,
        want_state=[True] * len(state),
        want=set(named),
        spend=False,
    )
    assert d_x is not None
    states = [d for d in d_state if d is not None]
    assert len(states) == len(state)
    return [d_x, *states, *(d_parameters[n] for n in named)]


@recurrence_backward.register_fake
def _(
    x: Tensor,
    state: list[Tensor],
    parameters: list[Tensor],
    masks: list[Tensor],
    lengths: Tensor | None,
    cell: int,
    hidden: int,
    reverse: bool,
    y: Tensor,
    final: list[Tensor],
    tape: list[Tensor],
    d_y: Tensor,
    d_final: list[Tensor],
) -> list[Tensor]:
    return [x.new_empty(t.shape) for t in (x, *state, *parameters)]


def _keep(ctx: Any, inputs: tuple[Any, ...], output: list[Tensor]) -> None:
    x, state, parameters, masks, lengths, cell, hidden, reverse = inputs
    ctx.counts = (len(state), len(parameters), len(masks))
    ctx.rest = (lengths, cell, hidden, reverse)
    ctx.save_for_backward(x, *state, *parameters, *masks, *output)


def _differentiate(ctx: Any, adjoints: list[Tensor | None]) -> tuple[Any, ...]:
    states, count, masks = ctx.counts
    x, *rest = ctx.saved_tensors
    state, rest = rest[:states], rest[states:]
    parameters, rest = rest[:count], rest[count:]
    given, (y, *rest) = rest[:masks], rest[masks:]
    final, tape = rest[:states], rest[states:]
    d_y, *d_final = (
        torch.zeros_like(t) if d is None else d
        for t, d in zip((y, *final), adjoints[: 1 + states], strict=True)
    )
    d_x, *found = recurrence_backward(
        x, state, parameters, given, *ctx.rest, y, final, tape, d_y, d_final
    )
    return d_x, found[:states], found[states:], [None] * masks, None, None, None, None


recurrence.register_autograd(_differentiate, setup_context=_keep)


def operate(
    cell: Cell,
    number: int,
    hidden: int,
    parameters: Tensors,
    x: Tensor,
    state: State,
    lengths: Tensor | None,
    masks: Tensors | None,
    reverse: bool,
) -> tuple[Tensor, State]:
    """The cell over x, as one operator."""
    given = [] if masks is None else [masks[name] for name in cell.masks]
    ordered = [parameters[name] for name in cell.parameters]
    out = recurrence(x, list(state), ordered, given, lengths, number, hidden, reverse)
    return out[0], tuple(out[1 : 1 + len(state)])
