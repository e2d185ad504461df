"""A part of the state that is the x before, p' = x: its rows for all steps, and back.

Rows are stored as a `Plan` says; the first step of each row of the batch reads the old state."""

from __future__ import annotations

import torch
from torch import Tensor

from ensue.engine.native.plan import Plan


def rows_before(x: Tensor, begin: Tensor, plan: Plan) -> Tensor:
    """The x before that of every stored row (rows, features), of x (time, batch, features) and
    the old state `begin`, rows of the batch in the order in which they are stored."""
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
    """Adds the adjoints d of `rows_before` to those of x (time · batch, features)."""
    n = plan.began
    if plan.index is not None:
        d_x.index_add_(0, _before(plan, plan.index[n:]), d[n:])
    elif plan.reverse:
        d_x[n:] += d[: plan.rows - n]
    else:
        d_x[: plan.rows - n] += d[n:]


def add_to_begin(d_begin: Tensor, d: Tensor, plan: Plan) -> None:
    """Adds them to those of `begin` (batch, features)."""
    n = min(plan.began, plan.rows)
    if plan.started is not None:
        d_begin.index_add_(0, plan.started, d[:n])
    elif n:
        d_begin += d[plan.rows - n :] if plan.reverse else d[:n]


def _before(plan: Plan, index: Tensor) -> Tensor:
    """Where the step before stands, of rows of (time, batch) tensors that have one."""
    return index + plan.batch if plan.reverse else index - plan.batch
