"""The largest of each row, with an order among equals."""

from __future__ import annotations

import torch
from torch import Tensor


def largest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest of each row and where they are (rows, count), greatest first; of equals
    the one that stands first. (-inf is impossible, and among those there is no order.)"""
    size = values.shape[1]
    if count >= size:
        ordered = values.sort(dim=1, descending=True, stable=True)
        return ordered.values, ordered.indices
    # topk promises no order among equals: its choice is unique where the next is smaller.
    top, where = values.topk(count + 1, 1)
    equal = (top[:, count - 1] == top[:, count]) & (top[:, count] > -torch.inf)
    where = where[:, :count].sort(1).values
    top, order = values.gather(1, where).sort(dim=1, descending=True, stable=True)
    where = where.gather(1, order)
    if bool(equal.any()):
        tied = equal.nonzero()[:, 0]
        ordered = values[tied].sort(dim=1, descending=True, stable=True)
        top[tied], where[tied] = ordered.values[:, :count], ordered.indices[:, :count]
    return top, where
