"""The conditional random field: labels scored together, as a chain."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ensue.layers import step_mask
from ensue.models.chains import Chain
from ensue.models.label_outputs import Constraint, check_search
from ensue.models.spans import Legal


class CRF(nn.Module):
    """score(l) = first[l_1] + Σ_t e_t[l_t] + Σ_t follow[l_{t−1}, l_t] + last[l_T], e_t = V·y_t + b

    p(l | x) = exp score(l) / Σ_l' exp score(l'). The best labels are found exactly (Viterbi),
    and the probabilities are the marginals p(l_t | x). legal: transitions that are not are
    impossible, in training too."""

    searches = ("exact",)

    def __init__(self, width: int, labels: int, *, legal: Legal | None = None) -> None:
        super().__init__()
        self.scores = nn.Linear(width, labels)
        self.first = nn.Parameter(torch.zeros(labels))
        self.follow = nn.Parameter(torch.zeros(labels, labels))  # (before, after)
        self.last = nn.Parameter(torch.zeros(labels))
        self.constraint = Constraint(labels, legal)

    def chain(self, y: Tensor, lengths: Tensor) -> Chain:
        emissions = self.scores(y)
        emissions = emissions.to(torch.promote_types(emissions.dtype, torch.float32))
        follow = self.follow + self.constraint.follow
        at_first = emissions[0] if len(y) else emissions.new_zeros(emissions.shape[1:])
        return Chain(
            at_first + self.first + self.constraint.first,
            lambda t: follow + emissions[t][:, None, :],
            self.last + self.constraint.last,
            lengths.to(y.device),
            len(y),
        )

    def cost(self, y: Tensor, lengths: Tensor, targets: Tensor) -> Tensor:
        """log Σ exp score − score(targets), (batch,)."""
        self.constraint.check(targets, lengths)
        own = self.chain(y, lengths)
        return own.log_partition() - score_of(own, targets)

    def label(self, y: Tensor, lengths: Tensor, search: str, width: int) -> Tensor:
        check_search(search, self.searches)
        return self.chain(y, lengths).best()[0]

    def probabilities(self, y: Tensor, lengths: Tensor, labels: Tensor) -> Tensor:
        own = self.chain(y, lengths)
        return own.log_marginals().exp() * step_mask(own.lengths, own.time)[..., None]


def score_of(chain: Chain, labels: Tensor) -> Tensor:
    """score(l) of labels (time, batch): (batch,)."""
    if not chain.time:
        return chain.first.new_zeros(len(chain.lengths))
    rows = torch.arange(labels.shape[1], device=labels.device)
    steps = [chain.first[rows, labels[0]]]
    steps += [chain.pair(t)[rows, labels[t - 1], labels[t]] for t in range(1, chain.time)]
    real = step_mask(chain.lengths, chain.time)
    ends = labels.gather(0, (chain.lengths - 1).clamp(min=0)[None])[0]
    closing = torch.where(chain.lengths > 0, chain.last[ends], 0)
    return torch.where(real, torch.stack(steps), 0).sum(0) + closing
