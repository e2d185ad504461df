"""Rows of unequal length: the order in which they run, and the number alive at each step."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ensue.errors import ShapeError


def check_lengths(lengths: Tensor | None, time: int, batch: int) -> Tensor | None:
    """The lengths as a plain int64 tensor on the CPU, or an error that names the bad row."""
    if lengths is None:
        return None
    lengths = torch.as_tensor(lengths)
    if lengths.dtype not in (torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8):
        raise ShapeError(
            f"lengths: expected integers, got {lengths.dtype}; to convert a mask "
            "of real steps, sum it over time"
        )
    if lengths.shape != (batch,):
        raise ShapeError(
            f"lengths: expected one number a row, shape ({batch},), got {tuple(lengths.shape)}"
        )
    plain = lengths.to("cpu", torch.int64)
    if torch.compiler.is_compiling():
        return plain  # while tracing, values are unknown: the operator checks them when it runs
    bad = ((plain < 0) | (plain > time)).nonzero()
    if len(bad):
        row = int(bad[0])
        raise ShapeError(
            f"lengths[{row}] = {int(plain[row])}: expected 0 to {time}, the number of steps in x"
        )
    return plain


@dataclass(frozen=True)
class Rows:
    """Rows sorted by length, longest first, so that the rows alive at a step are a prefix."""

    order: Tensor | None  # sorted position → row; None: all are equally long
    alive: list[int]  # at each step

    @staticmethod
    def of(lengths: Tensor | None, time: int, batch: int) -> Rows:
        if lengths is None:
            return Rows(None, [batch] * time)
        order = lengths.argsort(descending=True, stable=True)
        alive = (lengths > torch.arange(time)[:, None]).sum(1).tolist()
        return Rows(order, alive)

    def sort(self, v: Tensor, axis: int) -> Tensor:
        return v if self.order is None else v.index_select(axis, self.order.to(v.device))

    def restore(self, v: Tensor, axis: int) -> Tensor:
        if self.order is None:
            return v
        return v.index_select(axis, self.order.argsort().to(v.device))


def reverse_time(v: Tensor, lengths: Tensor | None) -> Tensor:
    """v (time, batch, …) with the real steps of each row in reverse order, padding in place."""
    if lengths is None:
        return v.flip(0)
    time = torch.arange(v.shape[0])[:, None]
    source = torch.where(time < lengths, lengths - 1 - time, time).to(v.device)
    return v[source, torch.arange(v.shape[1], device=v.device)]
