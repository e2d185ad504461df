"""The plan of a call: which thread runs which rows, and where the rows of each step are stored."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import Tensor

# -------------------------------------------------------------------------------------------------
# A part of the state that holds the previous x, p' = x: its rows for all steps, and their adjoints.
#
# Rows are stored in the order of a `Plan`; the first step of each row reads the old state.


def rows_before(x: Tensor, begin: Tensor, plan: Plan) -> Tensor:
    """The previous x of every stored row: (rows, features). x is (time, batch, features); `begin`
    is the old state, with rows in storage order."""
    flat = x.reshape(plan.steps * plan.batch, x.shape[2])
    if plan.index is not None:
        assert plan.started is not None
        later = flat.index_select(0, _before(plan, plan.index[plan.began :]))
        return torch.cat([begin.index_select(0, plan.started), later])
    if not plan.rows:
        return flat
    n = plan.batch
    return torch.cat([flat[n:], begin]) if plan.reverse else torch.cat([begin, flat[:-n]])


def add_to_rows_before(d_x: Tensor, d: Tensor, plan: Plan) -> None:
    """Adds the adjoints d of `rows_before` to the adjoints of x (time · batch, features)."""
    n = plan.began
    if plan.index is not None:
        d_x.index_add_(0, _before(plan, plan.index[n:]), d[n:])
    elif plan.reverse:
        d_x[n:] += d[: plan.rows - n]
    else:
        d_x[: plan.rows - n] += d[n:]


def add_to_begin(d_begin: Tensor, d: Tensor, plan: Plan) -> None:
    """Adds the adjoints of first steps to the adjoints of `begin` (batch, features)."""
    n = min(plan.began, plan.rows)
    if plan.started is not None:
        d_begin.index_add_(0, plan.started, d[:n])
    elif n:
        d_begin += d[plan.rows - n :] if plan.reverse else d[:n]


def _before(plan: Plan, index: Tensor) -> Tensor:
    """The index of the previous step, for those rows of (time, batch) tensors that have one."""
    return index + plan.batch if plan.reverse else index - plan.batch


@dataclass(frozen=True)
class Plan:
    """The rows of one call. With lengths, rows are sorted, dealt to the threads, and stored step by
    step; `index` maps a stored row to its row in (time, batch) tensors."""

    steps: int
    batch: int
    threads: int
    reverse: bool
    rows: int  # stored rows: all real steps
    began: int  # rows of the first step
    first: Tensor  # (threads + 1): number of rows before each thread's
    order: Tensor | None = None  # position of a row → row of the batch
    index: Tensor | None = None
    base: Tensor | None = None  # (steps + 1, threads)
    alive: Tensor | None = None
    started: Tensor | None = None  # positions of rows that have a first step

    @functools.cached_property
    def addresses(self) -> tuple[int | None, ...]:
        """The addresses of base, alive, index and first, for a call."""
        tensors = (self.base, self.alive, self.index, self.first)
        return tuple(None if t is None else t.data_ptr() for t in tensors)


@functools.lru_cache(256)
def _plan_of_equal_rows(steps: int, batch: int, reverse: bool, threads: int) -> Plan:
    first = torch.tensor([batch * k // threads for k in range(threads + 1)], device="cpu")
    return Plan(steps, batch, threads, reverse, steps * batch, batch, first)


def make_plan(steps: int, batch: int, lengths: Tensor | None, reverse: bool, threads: int) -> Plan:
    """The plan of a batch. With lengths (batch,), the rows sorted by length are dealt to the
    threads in turn, so that all have about the same work."""
    if lengths is None:
        return _plan_of_equal_rows(steps, batch, reverse, threads)
    sorted_rows = lengths.argsort(descending=True, stable=True)
    shares = [sorted_rows[k::threads] for k in range(threads)]
    order = torch.cat(shares)
    count = torch.tensor([0, *(len(s) for s in shares)], device="cpu")
    time = torch.arange(steps, device="cpu")[:, None]
    real = lengths[order] > time  # (steps, batch)
    shares_alive = torch.split(real, count[1:].tolist(), dim=1)
    alive = torch.stack([part.sum(1) for part in shares_alive], 1)
    alive = torch.cat([alive, alive.new_zeros(1, threads)])
    base = torch.nn.functional.pad(alive.flatten().cumsum(0), (1, 0))[:-1].contiguous()
    time = lengths[order] - 1 - time if reverse else time.expand(steps, batch)
    index = (time * batch + order)[real]
    started = real[0].nonzero()[:, 0] if steps else order[:0]
    return Plan(
        steps,
        batch,
        threads,
        reverse,
        len(index),
        len(started),
        count.cumsum(0),
        order,
        index,
        base,
        alive,
        started,
    )
