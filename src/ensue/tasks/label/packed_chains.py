"""Sums over all label sequences of many rows whose transitions are the same at every step.

In probability space, scaled at each step, so that a step of all rows is one small matrix product;
rows in order of length, so that nothing is computed for those that have ended.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ensue.data.ragged import Ragged


class PackedRows:
    """The steps of rows by their time: steps[t] are those at time t of the rows that are that
    long, in falling order of length. first, last: the ends of rows; before, after: all pairs of
    neighbours. Rows without steps add nothing."""

    def __init__(self, rows: Ragged) -> None:
        self.count = len(rows.values)
        order = np.argsort(-rows.lengths, kind="stable")
        order = order[rows.lengths[order] > 0]
        begin, lengths = rows.starts[order], rows.lengths[order]
        longest = int(lengths.max(initial=0))
        alive = [int((lengths > t).sum()) for t in range(longest)]
        self.steps = [torch.from_numpy(begin[:many] + t) for t, many in enumerate(alive)]
        self.first = torch.from_numpy(begin)
        self.last = torch.from_numpy(begin + lengths - 1)
        self.after = torch.cat([*self.steps[1:], torch.zeros(0, dtype=torch.int64)])
        self.before = self.after - 1


class Expectations(NamedTuple):
    """log_partition: over all rows together; labels (steps, labels): p(l_t); first, last
    (labels,) and follow (before, after): how often each is expected."""

    log_partition: Tensor
    labels: Tensor
    first: Tensor
    follow: Tensor
    last: Tensor


def expectations(
    rows: PackedRows, emissions: Tensor, first: Tensor, follow: Tensor, last: Tensor
) -> Expectations:
    """emissions (steps, labels); first, last (labels,); follow (before, after).

    With m_t the largest emission of a step, α_t ∝ (α_{t−1}·F) ∘ exp(e_t − m_t) and
    β_t ∝ F·(β_{t+1} ∘ exp(e_{t+1} − m_{t+1})), F = exp(follow), each scaled by Σ α_t = 1."""
    top = emissions.max(1, keepdim=True).values
    own = (emissions - top).exp()
    shifts = [follow.max(), first.max(), last.max()]
    links, begins, ends = (
        (v - shift).exp() for v, shift in zip((follow, first, last), shifts, strict=True)
    )
    times = (len(rows.after), len(rows.first), len(rows.first))
    total = top.double().sum()
    for many, shift in zip(times, shifts, strict=True):
        total = total + many * shift.double()
    alpha, scales = torch.zeros_like(own), own.new_ones(len(own), 1)
    before = own.new_zeros(0)
    for t, steps in enumerate(rows.steps):
        now = own[steps] * (begins if t == 0 else before[: len(steps)] @ links)
        scale = now.sum(1, keepdim=True)
        before = now / scale
        alpha[steps], scales[steps] = before, scale
    closing = (alpha[rows.last] * ends).sum(1, keepdim=True)
    total = total + scales.double().log().sum() + closing.double().log().sum()
    beta = torch.zeros_like(own)
    beta[rows.last] = ends / closing
    weighted = own / scales
    for t in reversed(range(len(rows.steps) - 1)):
        later = rows.steps[t + 1]
        beta[later - 1] = (beta[later] * weighted[later]) @ links.T
    labels = alpha * beta
    pairs = alpha[rows.before].T @ (beta[rows.after] * weighted[rows.after])
    return Expectations(
        total, labels, labels[rows.first].sum(0), links * pairs, labels[rows.last].sum(0)
    )
