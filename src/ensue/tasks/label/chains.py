"""Chains of labels whose score is a sum over neighbours: sums, best paths, marginals.

score(l) = first[l_0] + Σ_{t≥1} pair_t[l_{t−1}, l_t] + last[l_end]

first (batch, labels); pair(t) (batch, before, after); last (labels,). Everything is
in log space, for all rows at once; a row without steps has the one empty chain, of score 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ensue.layers.lengths import step_mask

# The score of what cannot be. Finite, so that a chain without any way is no −inf − (−inf);
# its exponential is 0 all the same.
IMPOSSIBLE = -1e4


@dataclass(frozen=True)
class Chain:
    """time: steps of the longest row; lengths (batch,) on the device of the scores."""

    first: Tensor
    pair: Callable[[int], Tensor]
    last: Tensor
    lengths: Tensor
    time: int

    def log_partition(self) -> Tensor:
        """log Σ_l exp score(l), (batch,)."""
        if not self.time:
            return self.first.new_zeros(len(self.lengths))
        return self._end(self._ahead()[-1])

    def _end(self, alpha: Tensor) -> Tensor:
        total = torch.logsumexp(alpha + self.last, 1)
        return torch.where(self.lengths > 0, total, 0)

    def _alive(self, t: int) -> Tensor:
        return (t < self.lengths)[:, None]

    def _ahead(self) -> list[Tensor]:
        """α_t (batch, labels): log sum of all beginnings that are at a label at t; as it was
        after a row's end."""
        alphas = [self.first]
        for t in range(1, self.time):
            new = torch.logsumexp(alphas[-1][:, :, None] + self.pair(t), 1)
            alphas.append(torch.where(self._alive(t), new, alphas[-1]))
        return alphas

    def log_marginals(self) -> Tensor:
        """log p(l_t), (time, batch, labels); zero at padding."""
        if not self.time:
            return self.first.new_zeros(0, *self.first.shape)
        own = self._double()
        alphas = own._ahead()
        end = own.last.expand_as(own.first)
        betas = [end]
        for t in reversed(range(1, own.time)):
            new = torch.logsumexp(own.pair(t) + betas[-1][:, None, :], 2)
            betas.append(torch.where(own._alive(t), new, end))
        logs = torch.stack(alphas) + torch.stack(betas[::-1]) - own._end(alphas[-1])[:, None]
        real = step_mask(self.lengths, self.time)[..., None]
        return torch.where(real, logs, 0).to(self.first.dtype)

    def _double(self) -> Chain:
        """The same chain in float64. Sums grow with the steps, and what is left of them at a step
        is their small difference: in float32, whose steps are 6e-5 at 1,000, it would be wrong by
        as much."""
        return Chain(
            self.first.double(),
            lambda t: self.pair(t).double(),
            self.last.double(),
            self.lengths,
            self.time,
        )

    def best(self) -> tuple[Tensor, Tensor]:
        """The best chain (time, batch), 0 at padding, and its score (batch,) — Viterbi."""
        batch, labels = self.first.shape
        if not self.time:
            return self.lengths.new_zeros(0, batch), self.first.new_zeros(batch)
        own = self._double()
        score, came_from = own.first, []
        stay = torch.arange(labels, device=score.device).expand(batch, -1)
        for t in range(1, self.time):
            value, parent = (score[:, :, None] + own.pair(t)).max(1)
            score = torch.where(self._alive(t), value, score)
            came_from.append(torch.where(self._alive(t), parent, stay))
        highest, label = (score + own.last).max(1)
        path = [label]
        for parent in reversed(came_from):
            path.append(parent.gather(1, path[-1][:, None])[:, 0])
        found = torch.stack(path[::-1]) * step_mask(self.lengths, self.time)
        return found, torch.where(self.lengths > 0, highest, 0).to(self.first.dtype)
