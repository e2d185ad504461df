"""The native engine as torch operators, for torch.compile and torch.export.

Outside of them the engine is an autograd function, which is faster to call and has a private tape.
An operator has nowhere to keep a tape, so it returns the tape with its results. With lengths the
tape has room for every step, because the number of real steps is unknown while tracing. Tracing
compiles nothing: the shapes of a tape follow from the equations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ensue.cells.cell import Cell
from ensue.engine.native.call import Adjoints, Needed
from ensue.engine.native.emission import buffers
from ensue.engine.native.kernel import Kernel, Tape, TapeLayout
from ensue.engine.recurrence import Recurrence, State, hidden_size
from ensue.engine.rows import check_lengths


class Makers(NamedTuple):
    """Functions that run a cell and describe its tape; each caches its result per size."""

    kernel: Callable[[int, int, bool, torch.dtype], Kernel]
    layout: Callable[[int, int, bool], TapeLayout]


_makers: list[Makers] = []
_cells: list[Cell] = []


def register(cell: Cell, makers: Makers) -> int:
    """Returns a number for the cell, because operators take only numbers and tensors."""
    for number, known in enumerate(_cells):
        if known is cell:
            return number
    _cells.append(cell)
    _makers.append(makers)
    return len(_cells) - 1


def _kernel(cell: int, x: Tensor, hidden: int, masks: list[Tensor]) -> Kernel:
    return _makers[cell].kernel(x.shape[2], hidden, bool(masks), x.dtype)


def _recurrence_of(
    inputs: list[Tensor], lengths: Tensor | None, cell: int, reverse: bool
) -> Recurrence:
    """The recurrence of an operator's inputs: x, the state, the parameters, the masks."""
    known = _cells[cell]
    x, *rest = inputs
    state, rest = rest[: len(known.parts)], rest[len(known.parts) :]
    parameters = dict(zip(known.parameters, rest, strict=False))
    masks = dict(zip(known.masks, rest[len(parameters) :], strict=False))
    return Recurrence(known, parameters, x, tuple(state), lengths, masks or None, reverse)


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
    run = _recurrence_of([x, *state, *parameters, *masks], lengths, cell, reverse)
    y, final, tape = kernel.forward(run, plan, True, capacity=x.shape[0] * x.shape[1])
    return [y, *final, *(tape.memory[buffer] for buffer in kernel.layout.returned(lengths))]


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
    layout = _makers[cell].layout(x.shape[2], hidden, bool(masks))
    rows = x.shape[0] * x.shape[1]
    y = x.new_empty(x.shape[0], x.shape[1], layout.output_size)
    final = [torch.empty_like(s, memory_format=torch.contiguous_format) for s in state]
    widths = [layout.widths[buffer] for buffer in layout.returned(lengths)]
    return [y, *final, *(x.new_empty(rows, width) for width in widths)]


@torch.library.custom_op("ensue::recurrence_backward", mutates_args=())
def recurrence_backward(
    inputs: list[Tensor],
    lengths: Tensor | None,
    cell: int,
    hidden: int,
    reverse: bool,
    returned: list[Tensor],
    adjoints: list[Tensor],
) -> list[Tensor]:
    """[∂x, *∂initial states, *∂parameters]. inputs: x, the state, the parameters, the masks;
    returned: the results of `recurrence`; adjoints: the adjoints of the output and of the final
    states."""
    run = _recurrence_of(inputs, lengths, cell, reverse)
    x, parts = run.x, len(run.state)
    kernel = _kernel(cell, x, hidden, list((run.masks or {}).values()))
    plan = kernel.plan(x.shape[0], x.shape[1], lengths, reverse)
    y, final, tape = returned[0], returned[1 : 1 + parts], returned[1 + parts :]
    memory = kernel.inputs(run, plan)
    memory |= dict(zip(kernel.layout.returned(lengths), tape, strict=True))
    for part, end in zip(kernel.parts, final, strict=True):
        ended = end if plan.order is None else end.index_select(0, plan.order)
        memory[buffers.final(part)] = ended
    slopes = kernel.backward(
        Tape(plan, memory),
        run.parameters,
        y,
        Adjoints(adjoints[0], adjoints[1:]),
        Needed(True, (True,) * parts, tuple(run.parameters)),
        spend=False,
    )
    derivatives = [slopes.x, *slopes.state, *(slopes.parameters[n] for n in run.parameters)]
    assert all(d is not None for d in derivatives)
    return [d for d in derivatives if d is not None]


@recurrence_backward.register_fake
def _(
    inputs: list[Tensor],
    lengths: Tensor | None,
    cell: int,
    hidden: int,
    reverse: bool,
    returned: list[Tensor],
    adjoints: list[Tensor],
) -> list[Tensor]:
    run = _recurrence_of(inputs, lengths, cell, reverse)
    return [run.x.new_empty(t.shape) for t in run.tensors]


def _keep(ctx: Any, inputs: tuple[Any, ...], output: list[Tensor]) -> None:
    x, state, parameters, masks, *ctx.rest = inputs
    tensors = [x, *state, *parameters, *masks]
    ctx.inputs, ctx.counts = len(tensors), (len(state), len(parameters), len(masks))
    ctx.save_for_backward(*tensors, *output)


def _differentiate(ctx: Any, adjoints: list[Tensor | None]) -> tuple[Any, ...]:
    states, _, masks = ctx.counts
    inputs, returned = ctx.saved_tensors[: ctx.inputs], ctx.saved_tensors[ctx.inputs :]
    arriving = [
        torch.zeros_like(v) if d is None else d
        for v, d in zip(returned[: 1 + states], adjoints[: 1 + states], strict=True)
    ]
    d_x, *slopes = recurrence_backward(list(inputs), *ctx.rest, list(returned), arriving)
    return d_x, slopes[:states], slopes[states:], [None] * masks, None, None, None, None


recurrence.register_autograd(_differentiate, setup_context=_keep)


def operate(run: Recurrence, number: int) -> tuple[Tensor, State]:
    """Runs the cell over x as one operator. number: the cell's number, from `register`."""
    cell, parameters, x, state, lengths, masks, reverse = run
    ordered = [parameters[name] for name in cell.parameters]
    listed = [] if masks is None else [masks[name] for name in cell.masks]
    hidden = hidden_size(cell, parameters)
    out = recurrence(x, list(state), ordered, listed, lengths, number, hidden, reverse)
    return out[0], tuple(out[1 : 1 + len(state)])
