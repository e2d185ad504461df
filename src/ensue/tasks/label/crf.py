"""The conditional random field: labels scored together, as a chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ensue.data.vocabulary import Vocabulary
from ensue.layers.lengths import step_mask
from ensue.metrics.spans import Legal
from ensue.tasks.label.chains import Chain
from ensue.tasks.label.outputs import (
    Constraint,
    LabelOutput,
    at_real_steps,
    check_search,
    legal_of,
)

if TYPE_CHECKING:
    from ensue.tasks.label.settings import LabellerSettings


class CRF(LabelOutput):
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

    @classmethod
    def of(cls, settings: LabellerSettings, width: int, labels: Vocabulary) -> CRF:
        return cls(width, len(labels), legal=legal_of(settings, labels))

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
        chain = self.chain(y, lengths)
        return chain.log_partition() - score_of(chain, targets)

    def label(self, y: Tensor, lengths: Tensor, search: str, width: int) -> Tensor:
        check_search(search, self.searches)
        return self.chain(y, lengths).best()[0]

    def probabilities(self, y: Tensor, lengths: Tensor, labels: Tensor) -> Tensor:
        return at_real_steps(self.chain(y, lengths).log_marginals().exp(), lengths)


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
