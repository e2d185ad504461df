"""Outputs of a labeller: the interface, the stepwise output and the CRF."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

from ensue.data.vocabulary import Vocabulary
from ensue.errors import DataError, unknown
from ensue.layers.lengths import step_mask
from ensue.metrics.spans import Legal, legal, scheme_of
from ensue.tasks.blocks.heads import CategoricalHead, balanced
from ensue.tasks.label.linear_chain import IMPOSSIBLE, Chain

if TYPE_CHECKING:
    from ensue.tasks.label.settings import LabellerSettings


class Offer(NamedTuple):
    """The searches that an output offers. searches: their names, default first; by: the settings
    that determine this, for a message."""

    searches: tuple[str, ...]
    by: str


class LabelOutput(nn.Module, ABC):
    """A distribution over the label sequences of rows, given y (time, batch, width) and lengths
    (batch)."""

    searches: ClassVar[tuple[str, ...]]

    @classmethod
    @abstractmethod
    def of(cls, settings: LabellerSettings, width: int, labels: Vocabulary) -> Self:
        """An output with fresh weights, for steps of this width."""

    @classmethod
    def offer(cls, table: Mapping[str, Any]) -> Offer:
        """The searches that an output supports. table: settings by name."""
        return Offer(cls.searches, f"model.output = {table['output']}")

    @abstractmethod
    def chain(self, y: Tensor, lengths: Tensor) -> Chain | None:
        """The distribution as a chain; None if a label depends on more than the previous one."""

    @abstractmethod
    def cost(self, y: Tensor, lengths: Tensor, targets: Tensor) -> Tensor:
        """−log p(targets | x), targets (time, batch) → (batch,)."""

    @abstractmethod
    def label(self, y: Tensor, lengths: Tensor, search: str, width: int) -> Tensor:
        """The best labels (time, batch), 0 at padding. width: the width of a beam."""

    @abstractmethod
    def probabilities(self, y: Tensor, lengths: Tensor, labels: Tensor) -> Tensor:
        """The probability of each label (time, batch, labels), zero at padding. labels: the best
        ones."""


class Constraint(nn.Module):
    """Scores to add for labels at the start, after each other label, and at the end: 0 if legal,
    else IMPOSSIBLE. By default all are legal."""

    first: Tensor
    follow: Tensor
    last: Tensor

    def __init__(self, labels: int, legal: Legal | None) -> None:
        super().__init__()
        self.constrained = legal is not None
        shapes = {"first": (labels,), "follow": (labels, labels), "last": (labels,)}
        for name, shape in shapes.items():
            scores = torch.zeros(shape)
            if legal is not None:
                scores[~torch.from_numpy(getattr(legal, name))] = IMPOSSIBLE
            self.register_buffer(name, scores, persistent=False)

    def check(self, targets: Tensor, lengths: Tensor) -> None:
        """Raises an error for targets (time, batch) that the constraint makes impossible."""
        if not self.constrained or not len(targets):
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


class Stepwise(LabelOutput):
    """log p(l_t | x) = log_softmax(V·y_t + b), each step separately.

    legal: labels must form a legal sequence; the best one is then found exactly."""

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
        self.head = CategoricalHead(labels, smoothing=smoothing, class_weights=class_weights)
        self.constraint = Constraint(labels, legal)

    @classmethod
    def of(cls, settings: LabellerSettings, width: int, labels: Vocabulary) -> Stepwise:
        return cls(
            width,
            len(labels),
            smoothing=settings.smoothing,
            class_weights=class_weights_of(settings, labels),
            legal=legal_of(settings, labels),
        )

    def chain(self, y: Tensor, lengths: Tensor) -> Chain:
        return chain(self.scores(y).log_softmax(-1), self.constraint, lengths)

    def cost(self, y: Tensor, lengths: Tensor, targets: Tensor) -> Tensor:
        return step_costs(self.head, self.scores(y), lengths, targets)

    def label(self, y: Tensor, lengths: Tensor, search: str, width: int) -> Tensor:
        check_search(search, self.searches)
        if not self.constraint.constrained:
            labels: Tensor = self.scores(y).argmax(-1)
            return labels * step_mask(lengths.to(y.device), y.shape[0])
        return self.chain(y, lengths).best()[0]

    def probabilities(self, y: Tensor, lengths: Tensor, labels: Tensor) -> Tensor:
        return at_real_steps(self.scores(y).softmax(-1), lengths)


def chain(emissions: Tensor, links: Constraint, lengths: Tensor) -> Chain:
    """The chain of scores (time, batch, labels) of each step, and scores of starts, transitions and
    ends."""
    begin = emissions[0] if len(emissions) else emissions.new_zeros(emissions.shape[1:])
    return Chain(
        begin + links.first,
        lambda t: links.follow + emissions[t][:, None, :],
        links.last,
        lengths.to(emissions.device),
        len(emissions),
    )


def step_costs(head: CategoricalHead, logits: Tensor, lengths: Tensor, targets: Tensor) -> Tensor:
    """The summed costs of each row's real steps; shape (batch,)."""
    costs = head.cost(logits.flatten(0, 1), targets.flatten()).view(targets.shape)
    return at_real_steps(costs, lengths).sum(0)


def at_real_steps(values: Tensor, lengths: Tensor) -> Tensor:
    """values (time, batch, …), zero at padding."""
    real = step_mask(lengths.to(values.device), len(values))
    return torch.where(real.view(*real.shape, *[1] * (values.dim() - 2)), values, 0)


def check_search(search: str, known: Iterable[str]) -> None:
    if search not in known:
        raise unknown("search", search, known)


def legal_scheme(settings: LabellerSettings, labels: Vocabulary) -> str | None:
    """The span scheme of the labels, if they have one and the settings enforce it."""
    return scheme_of(labels.tokens) if settings.legal_only else None


def legal_of(settings: LabellerSettings, labels: Vocabulary) -> Legal | None:
    """The transitions that the scheme allows."""
    scheme = legal_scheme(settings, labels)
    return None if scheme is None else legal(labels.tokens, scheme)


def class_weights_of(settings: LabellerSettings, labels: Vocabulary) -> Tensor | None:
    if settings.class_weights == "none":
        return None
    return balanced(torch.tensor(labels.counts))


class CRF(LabelOutput):
    """score(l) = first[l_1] + Σ_t e_t[l_t] + Σ_t follow[l_{t−1}, l_t] + last[l_T], e_t = V·y_t + b

    p(l | x) = exp score(l) / Σ_l' exp score(l'). The best labels are found exactly (Viterbi), and
    the probabilities are the marginals p(l_t | x). legal: other transitions are impossible, in
    training too."""

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
