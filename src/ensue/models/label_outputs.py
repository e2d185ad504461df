"""Outputs of a labeller that normalise each step by itself, and what all outputs share.

An output takes y (time, batch, width) and lengths (batch) and offers
  cost(y, lengths, targets (time, batch)) → (batch,), the negative log-likelihood of each row
  label(y, lengths, search, width) → labels (time, batch), 0 at padding
  probabilities(y, lengths, labels) → (time, batch, labels), zero at padding
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from ensue.errors import DataError, unknown
from ensue.layers import step_mask
from ensue.models.chains import IMPOSSIBLE, Chain
from ensue.models.heads import Categorical
from ensue.models.spans import Legal


class Constraint(nn.Module):
    """Which labels may stand first, after which, and last, as scores to be added: 0 or
    IMPOSSIBLE; all may where nothing is given."""

    first: Tensor
    follow: Tensor
    last: Tensor

    def __init__(self, labels: int, legal: Legal | None) -> None:
        super().__init__()
        self.given = legal is not None
        shapes = {"first": (labels,), "follow": (labels, labels), "last": (labels,)}
        for name, shape in shapes.items():
            scores = torch.zeros(shape)
            if legal is not None:
                scores[~torch.from_numpy(getattr(legal, name))] = IMPOSSIBLE
            self.register_buffer(name, scores, persistent=False)

    def check(self, targets: Tensor, lengths: Tensor) -> None:
        """Refuses targets (time, batch) that the constraint makes impossible."""
        if not self.given or not len(targets):
            return
        real = step_mask(lengths.to(targets.device), len(targets))
        last = step_mask(lengths.to(targets.device), len(targets), first=-1)
        before = torch.cat([self.first[targets[:1]], self.follow[targets[:-1], targets[1:]]])
        wrong = ((before < 0) & real) | ((self.last[targets] < 0) & last)
        if wrong.any():
            step, row = (int(v) for v in wrong.nonzero()[0])
            where = "at the start" if step == 0 else f"after label {int(targets[step - 1, row])}"
            raise DataError(
                f"targets: row {row} of the batch, step {step}: label {int(targets[step, row])} "
                f"{where} is against the labelling scheme; correct the data or train without "
                "the constraint"
            )


class Stepwise(nn.Module):
    """log p(l_t | x) = log_softmax(V·y_t + b), each step for itself.

    legal: the labels together must be a legal sequence; then the best legal one is found
    exactly."""

    searches = ("exact",)

    def __init__(
        self,
        width: int,
        labels: int,
        *,
        smoothing: float = 0.0,
        class_weights: Tensor | None = None,
        legal: Legal | None = None,
    ) -> None:
        super().__init__()
        self.scores = nn.Linear(width, labels)
        self.head = Categorical(labels, smoothing=smoothing, class_weights=class_weights)
        self.constraint = Constraint(labels, legal)

    def cost(self, y: Tensor, lengths: Tensor, targets: Tensor) -> Tensor:
        return step_costs(self.head, self.scores(y), lengths, targets)

    def label(self, y: Tensor, lengths: Tensor, search: str, width: int) -> Tensor:
        check_search(search, self.searches)
        logs = self.scores(y).log_softmax(-1)
        if not self.constraint.given:
            labels: Tensor = logs.argmax(-1) * step_mask(lengths.to(y.device), len(y))
            return labels
        return chain(logs, self.constraint, lengths).best()[0]

    def probabilities(self, y: Tensor, lengths: Tensor, labels: Tensor) -> Tensor:
        return at_real_steps(self.scores(y).softmax(-1), lengths)


def chain(emissions: Tensor, links: Constraint, lengths: Tensor) -> Chain:
    """Scores (time, batch, labels) of each step, and of what stands first, behind and last."""
    begin = emissions[0] if len(emissions) else emissions.new_zeros(emissions.shape[1:])
    return Chain(
        begin + links.first,
        lambda t: links.follow + emissions[t][:, None, :],
        links.last,
        lengths.to(emissions.device),
        len(emissions),
    )


def step_costs(head: Categorical, logits: Tensor, lengths: Tensor, targets: Tensor) -> Tensor:
    """(batch,): the costs of each row's real steps together."""
    costs = head.cost(logits.flatten(0, 1), targets.flatten()).view(targets.shape)
    return at_real_steps(costs, lengths).sum(0)


def at_real_steps(values: Tensor, lengths: Tensor) -> Tensor:
    """values (time, batch, …), zero at padding."""
    real = step_mask(lengths.to(values.device), len(values))
    return torch.where(real.view(*real.shape, *[1] * (values.dim() - 2)), values, 0)


def check_search(search: str, known: Iterable[str]) -> None:
    if search not in known:
        raise unknown("search", search, known)
