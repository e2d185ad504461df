"""Runs a stack of layers of cells, in one or both directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import dropout

from ensue.cells import Cell
from ensue.engine.check import under_autocast
from ensue.engine.recurrence import State, Tensors
from ensue.engine.run import run
from ensue.equations.declare import Matrix, Parameter
from ensue.errors import ShapeError, unknown

STARTS = ("zero", "forward_end", "shared_end")


class Way(NamedTuple):
    """One cell over time in one direction, with its parameters."""

    cell: Cell
    parameters: Tensors

    def thinned(self, rate: float) -> Way:
        """DropConnect: each entry of the matrices of the old state is zero with probability `rate`,
        the same for all rows and steps; the others are divided by 1 − rate. Merity et al. 2018."""
        if not rate:
            return self
        of_state = [n for n, d in self.cell.parameters.items() if _of(d) in self.cell.parts]
        thin = {name: dropout(self.parameters[name], rate) for name in of_state}
        return Way(self.cell, {**self.parameters, **thin})


def _of(parameter: Parameter) -> str:
    """The operand of a matrix by name; "" for vectors."""
    return parameter.of if isinstance(parameter, Matrix) else ""


Masks = Mapping[str, Tensor]


def sample_masks(
    cell: Cell, input_size: int, hidden_size: int, x: Tensor
) -> dict[str, Tensor] | None:
    """Masks for the steps and rows of x (time, batch, …), drawn from torch's generator; None if the
    cell has none."""
    if not cell.masks:
        return None
    widths = cell.widths(input_size, hidden_size)
    drawn = {}
    for name, mask in cell.masks.items():
        times = (x.shape[0],) if mask.over == "step" else ()
        shape = (*times, x.shape[1], widths[mask.size])
        mask_values = torch.empty(shape, dtype=x.dtype, device=x.device).bernoulli_(1 - mask.rate)
        drawn[name] = mask_values / (1 - mask.rate) if mask.scaled else mask_values
    return drawn


def in_type(what: str, v: Tensor, dtype: torch.dtype) -> Tensor:
    """v in the parameters' dtype, which is used for computing. Under autocast, earlier layers may
    return another dtype, so v is converted; otherwise another dtype is an error."""
    if v.dtype == dtype:
        return v
    if under_autocast(v):
        return v.to(dtype)
    raise ShapeError(f"{what}: expected {dtype}, the parameters' type, got {v.dtype}")


def run_stack(
    layers: Sequence[Sequence[Way]],
    x: Tensor,
    states: Sequence[State | None],
    lengths: Tensor | None,
    masks: Sequence[Masks | None],
    engine: str,
    between: float = 0.0,
    start: str = "zero",
) -> tuple[Tensor, list[State]]:
    """Runs x (time, batch, input) through all layers. states and masks: one for each layer and
    direction, forward before backward; `between`: dropout between layers.

    `start`: how the backward direction begins: from its own state, from the forward end state, or
    with the forward end state as its state at the last step."""
    if start not in STARTS:
        raise unknown("backward start", start, STARTS)
    finals: list[State] = []
    for number, ways in enumerate(layers):
        if number and between:
            x = dropout(x, between)
        first = number * len(ways)
        layer_masks = masks[first : first + len(ways)]
        begin = states[first]
        assert begin is not None
        y, end = run(*ways[0], x, begin, lengths, layer_masks[0], engine)
        finals.append(end)
        if len(ways) == 2:
            back = states[first + 1] if start == "zero" else end
            assert back is not None
            last = y if start == "shared_end" else None
            y_back, end_back = run_backward(ways[1], x, back, lengths, layer_masks[1], engine, last)
            finals.append(end_back)
            y = torch.cat([y, y_back], -1)
        x = y
    return x, finals


def run_backward(
    way: Way,
    x: Tensor,
    state: State,
    lengths: Tensor | None,
    masks: Masks | None,
    engine: str,
    forward_outputs: Tensor | None,
) -> tuple[Tensor, State]:
    """One cell from each row's last real step to its first.

    With `forward_outputs`, the last step's output is the forward one, and the cell starts one step
    earlier, from `state`."""
    if forward_outputs is None or x.shape[0] == 0:
        return run(*way, x, state, lengths, masks, engine, reverse=True)
    shorter = None if lengths is None else (lengths - 1).clamp(min=0)
    rest = {n: m[:-1] if way.cell.masks[n].over == "step" else m for n, m in (masks or {}).items()}
    masks_of_rest = rest if masks is not None else None
    y, end = run(*way, x[:-1], state, shorter, masks_of_rest, engine, reverse=True)
    y = torch.cat([y, forward_outputs[-1:]])
    if lengths is not None:
        last = (torch.arange(len(y))[:, None] == lengths - 1)[..., None].to(y.device)
        y = torch.where(last, forward_outputs, torch.cat([y[:-1], torch.zeros_like(y[-1:])]))
    return y, end
