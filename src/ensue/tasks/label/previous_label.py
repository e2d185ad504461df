"""A labeller's output that reads the label before: p(l | x) = Π_t p(l_t | l_{t−1}, …, x).

In training the label before is the true one (teacher forcing); in use it is the model's own,
and which labels are best together is a search.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ensue.data.vocabulary import Vocabulary
from ensue.errors import unknown
from ensue.layers.lengths import step_mask
from ensue.layers.recurrent import Recurrent
from ensue.metrics.spans import Legal
from ensue.tasks.blocks.heads import CategoricalHead
from ensue.tasks.label.chains import IMPOSSIBLE, Chain
from ensue.tasks.label.outputs import (
    Constraint,
    LabelOutput,
    Offer,
    at_real_steps,
    check_search,
    class_weights_of,
    legal_of,
    step_costs,
)
from ensue.tasks.label.search import State, Step, beam, best_first, greedy

if TYPE_CHECKING:
    from ensue.tasks.label.settings import LabellerSettings

STARTS = ("zero", "learned")
WIDEST_LABEL = 32  # numbers of a label's vector


class LayerJoint(nn.Module):
    """u_t = tanh(V·y_t + A·e(l_{t−1}) + b): knows one label before, so that search is exact."""

    first_order = True

    def __init__(self, width: int, label_width: int, hidden_size: int) -> None:
        super().__init__()
        self.of_step = nn.Linear(width, hidden_size)
        self.of_label = nn.Linear(label_width, hidden_size, bias=False)

    def begin(self, like: Tensor) -> State:
        return ()

    def forward(
        self, y: Tensor, before: Tensor, state: State, lengths: Tensor | None
    ) -> tuple[Tensor, State]:
        return torch.tanh(self.of_step(y) + self.of_label(before)), ()


class CellJoint(nn.Module):
    """u_t, state = cell([y_t; e(l_{t−1})], state): knows all labels before."""

    first_order = False

    def __init__(self, width: int, label_width: int, hidden_size: int, cell: str) -> None:
        super().__init__()
        self.recurrent = Recurrent(cell, width + label_width, hidden_size)

    def begin(self, like: Tensor) -> State:
        """The state before the first step, for the rows of like (batch, …)."""
        sizes = self.recurrent.ways[0].state_sizes
        return tuple(like.new_zeros(len(like), size) for size in sizes)

    def forward(
        self, y: Tensor, before: Tensor, state: State, lengths: Tensor | None
    ) -> tuple[Tensor, State]:
        u, (end,) = self.recurrent(torch.cat([y, before], -1), [state], lengths)
        return u, end


class PreviousLabel(LabelOutput):
    """log p(l_t | l_{t−1}, …, x) = log_softmax(W·u_t + d), u_t the joint of y_t and e(l_{t−1}).

    cell: None joins them by a layer, a name by a cell of that name. start: e(l_0) is "zero" or
    "learned". Probabilities: with the layer p(l_t | x), all labels before summed over; with a
    cell p(l_t | x, the labels given before t)."""

    searches = ("exact", "beam", "greedy")

    def __init__(
        self,
        width: int,
        labels: int,
        *,
        label_width: int,
        hidden_size: int,
        cell: str | None = None,
        start: str = "learned",
        smoothing: float = 0.0,
        class_weights: Tensor | None = None,
        legal: Legal | None = None,
    ) -> None:
        super().__init__()
        if start not in STARTS:
            raise unknown("start", start, STARTS)
        self.labels = labels  # and the number of "no label before"
        self.table = nn.Embedding(
            labels + 1, label_width, padding_idx=labels if start == "zero" else None
        )
        self.joint = (
            LayerJoint(width, label_width, hidden_size)
            if cell is None
            else CellJoint(width, label_width, hidden_size, cell)
        )
        self.scores = nn.Linear(hidden_size, labels)
        self.head = CategoricalHead(labels, smoothing=smoothing, class_weights=class_weights)
        self.constraint = Constraint(labels, legal)

    @classmethod
    def of(cls, settings: LabellerSettings, width: int, labels: Vocabulary) -> PreviousLabel:
        return cls(
            width,
            len(labels),
            label_width=min(WIDEST_LABEL, settings.hidden_size),
            hidden_size=settings.hidden_size,
            cell=settings.previous_cell or None,
            start=settings.previous_start,
            smoothing=settings.smoothing,
            class_weights=class_weights_of(settings, labels),
            legal=legal_of(settings, labels),
        )

    @classmethod
    def offer(cls, table: Mapping[str, Any]) -> Offer:
        """Exact search after a cell tries sequence after sequence, and gives up on long ones."""
        cell = table.get("previous_cell", "")
        if not cell:
            return super().offer(table)
        return Offer(
            ("beam", "greedy"),
            f"model.previous_cell = {cell} (a cell remembers every label before, "
            "so that exact search would have to try all sequences)",
        )

    # ------------------------------------------------------------- all steps at once
    def logits(self, y: Tensor, lengths: Tensor, labels: Tensor) -> Tensor:
        """(time, batch, labels): the scores of each step after the given labels before it."""
        before = torch.cat([torch.full_like(labels[:1], self.labels), labels[:-1]])
        state = self.joint.begin(y.new_empty(y.shape[1], 0))
        u, _ = self.joint(y, self.table(before), state, lengths)
        ends = step_mask(lengths.to(y.device), len(y), first=-1)
        return self._limited(self.scores(u), before, ends)

    def _limited(self, logits: Tensor, before: Tensor, ends: Tensor) -> Tensor:
        """With what is illegal after `before` (…), or where `ends` (…) at the end, impossible."""
        if not self.constraint.given:
            return logits
        links = torch.cat([self.constraint.follow, self.constraint.first[None]])
        return logits + links[before] + ends[..., None] * self.constraint.last

    def cost(self, y: Tensor, lengths: Tensor, targets: Tensor) -> Tensor:
        self.constraint.check(targets, lengths)
        return step_costs(self.head, self.logits(y, lengths, targets), lengths, targets)

    def probabilities(self, y: Tensor, lengths: Tensor, labels: Tensor) -> Tensor:
        if self.joint.first_order:
            return at_real_steps(self._links(y, lengths).log_marginals().exp(), lengths)
        return at_real_steps(self.logits(y, lengths, labels).softmax(-1), lengths)

    # ------------------------------------------------------------- searching
    def label(self, y: Tensor, lengths: Tensor, search: str, width: int) -> Tensor:
        check_search(search, self.searches)
        if search == "exact" and self.joint.first_order:
            return self._links(y, lengths).best()[0]
        begin, state = self.begin(y)
        step = self.step(y, lengths)
        if search == "beam":
            return beam(step, begin, state, len(y), width)[0]
        if search == "greedy":
            return greedy(step, begin, state, len(y))[0]
        return best_first(step, begin, state, len(y))[0]

    def begin(self, y: Tensor) -> tuple[Tensor, State]:
        """The labels before the first step, and the state: row, step, and that of the joint."""
        rows = torch.arange(y.shape[1], device=y.device)
        joint = self.joint.begin(y.new_empty(y.shape[1], 0))
        return torch.full_like(rows, self.labels), (rows, torch.zeros_like(rows), *joint)

    def step(self, y: Tensor, lengths: Tensor) -> Step:
        """One step over these sequences; a row that has ended gives its label 0 for nothing."""
        ends = lengths.to(y.device)
        nothing = y.new_full((self.labels,), IMPOSSIBLE)
        nothing[0] = 0

        def step(before: Tensor, state: State) -> tuple[Tensor, State]:
            row, at, *joint = state
            u, new = self.joint(y[at, row][None], self.table(before)[None], tuple(joint), None)
            logits = self._limited(self.scores(u[0]), before, at == ends[row] - 1)
            alive = (at < ends[row])[:, None]
            return torch.where(alive, logits.log_softmax(-1), nothing), (row, at + 1, *new)

        return step

    def chain(self, y: Tensor, lengths: Tensor) -> Chain | None:
        return self._links(y, lengths) if self.joint.first_order else None

    def _links(self, y: Tensor, lengths: Tensor) -> Chain:
        """The joint by a layer as a chain: pair_t[a, b] = log p(l_t = b | l_{t−1} = a, x)."""
        ends = lengths.to(y.device)

        def after(t: int, before: Tensor) -> Tensor:
            """(batch, before, labels)."""
            u, _ = self.joint(y[t][:, None], self.table(before)[None], (), None)
            last = (ends == t + 1)[:, None].expand(-1, len(before))
            return self._limited(self.scores(u), before, last).log_softmax(-1)

        every, none = torch.arange(self.labels + 1, device=y.device).tensor_split([self.labels])
        first = after(0, none)[:, 0] if len(y) else y.new_zeros(y.shape[1], self.labels)
        zero = y.new_zeros(self.labels)
        return Chain(first, lambda t: after(t, every), zero, ends, len(y))
