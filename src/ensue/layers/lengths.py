"""Lengths and windows: cutting, padding, and the steps a cost is taken over."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from ensue.engine.rows import check_lengths
from ensue.errors import OptionError, ShapeError, unknown

CUTS = ("end", "start")


def to_length(
    x: Tensor, lengths: Tensor | None, length: int, cut: str = "end"
) -> tuple[Tensor, Tensor]:
    """x (time, batch, …) with exactly `length` steps, and its lengths.

    Longer rows lose steps at the "end" or at the "start"; shorter ones are padded with
    zeros at the end.

    >>> x, lengths = to_length(torch.zeros(5, 2, 8), torch.tensor([5, 2]), length=3)
    >>> x.shape, lengths
    (torch.Size([3, 2, 8]), tensor([3, 2]))
    """
    if cut not in CUTS:
        raise unknown("cut", cut, CUTS)
    if length < 0:
        raise OptionError(f"length: expected a number ≥ 0, got {length}")
    time, batch = x.shape[:2]
    plain = check_lengths(lengths, time, batch)
    if plain is None:
        plain = torch.full((batch,), time)
    if cut == "start" and time:
        skip = (plain - length).clamp(min=0)
        source = (torch.arange(time)[:, None] + skip).clamp(max=time - 1).to(x.device)
        x = x[source, torch.arange(batch, device=x.device)]
    x = x[:length]
    x = pad(x, (0, 0) * (x.dim() - 1) + (0, length - x.shape[0]))
    return x, plain.clamp(max=length)


def step_mask(lengths: Tensor, time: int, first: int = 0, last: int | None = None) -> Tensor:
    """Which steps count: a (time, batch) mask, True at the real steps first … last.

    Both ends are included and may be negative: −1 is each row's last real step.

    cost = errors[step_mask(lengths, time, first=-1)].mean() # the last output alone

    >>> step_mask(torch.tensor([3, 1]), time=3).int()
    tensor([[1, 1],
            [1, 0],
            [1, 0]], dtype=torch.int32)
    """
    at = torch.arange(time, device=lengths.device)[:, None]
    begin = lengths + first if first < 0 else torch.full_like(lengths, first)
    if last is None:
        end = lengths - 1
    else:
        end = lengths + last if last < 0 else torch.full_like(lengths, last)
    return (at >= begin.clamp(min=0)) & (at <= end) & (at < lengths)


def refuse_lengths(state: Any, name: str) -> None:
    """Raises an error if lengths are passed in the position of the state: layer(x, lengths). name:
    of the argument."""
    if isinstance(state, Tensor):
        lengths = state.dim() < 2 and not state.is_floating_point()
    else:
        lengths = bool(state) and all(isinstance(item, int) for item in state)
    if lengths:
        raise ShapeError(
            f"{name}: expected a state, got whole numbers; lengths are given by name: "
            "layer(x, lengths=lengths)"
        )
