"""The network of a labeller: a label for each step of a sequence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from ensue.data.vocabulary import Vocabulary
from ensue.errors import OptionError, check_rates, unknown
from ensue.layers.lengths import step_mask
from ensue.layers.recurrent import Recurrent
from ensue.metrics.spans import Legal
from ensue.tasks.blocks.embeddings import Embed
from ensue.tasks.blocks.encoders import Encoder, RecurrentEncoder
from ensue.tasks.blocks.heads import CategoricalHead
from ensue.tasks.blocks.norms import check_norm_weight, norm_preserving
from ensue.tasks.label.linear_chain import IMPOSSIBLE, Chain
from ensue.tasks.label.outputs import (
    CRF,
    Constraint,
    LabelOutput,
    Offer,
    Stepwise,
    at_real_steps,
    check_search,
    class_weights_of,
    legal_of,
    step_costs,
)
from ensue.tasks.rows.batch import SequenceBatch, targets_of

if TYPE_CHECKING:
    from ensue.tasks.label.settings import LabellerSettings

# -------------------------------------------------------------------------------------------------
# Search for the best labels of a model with a step function.
#
# A step takes the previous labels (rows,) and a state, tensors with rows on axis 0, and returns log
# probabilities (rows, labels) and the new state. All rows run for the same number of steps; a row
# that has ended gets label 0 at no cost.

State = tuple[Tensor, ...]
Step = Callable[[Tensor, State], tuple[Tensor, State]]


def greedy(step: Step, begin: Tensor, state: State, steps: int) -> tuple[Tensor, Tensor]:
    """The best label at each step, given those before: labels (steps, rows), scores (rows,)."""
    return beam(step, begin, state, steps, 1)


def beam(step: Step, begin: Tensor, state: State, steps: int, width: int) -> tuple[Tensor, Tensor]:
    """Beam search with `width` beginnings: labels (steps, rows), scores (rows,).

    At full width (labels to the power of steps) it is exhaustive."""
    if width < 1:
        raise OptionError(f"width: expected a number of beginnings ≥ 1, got {width}")
    rows = len(begin)
    scores = torch.zeros(rows, 1, device=begin.device)
    labels, history = begin, list[tuple[Tensor, Tensor]]()
    for _ in range(steps):
        log_probs, state = step(labels, state)
        width_before = scores.shape[1]
        total = scores[:, :, None] + log_probs.view(rows, width_before, -1)
        size = total.shape[2]
        scores, index = total.flatten(1).topk(min(width, width_before * size), 1)
        parent, label = index // size, index % size
        history.append((parent, label))
        source = parent + width_before * torch.arange(rows, device=begin.device)[:, None]
        state = tuple(part[source.flatten()] for part in state)
        labels = label.flatten()
    return _trace(history, rows, begin.device), scores[:, 0]


def _trace(steps: list[tuple[Tensor, Tensor]], rows: int, device: torch.device) -> Tensor:
    """The labels (steps, rows) of the best hypothesis, traced by each step's parents and labels."""
    at = torch.zeros(rows, 1, dtype=torch.int64, device=device)
    path = []
    for parent, label in reversed(steps):
        path.append(label.gather(1, at)[:, 0])
        at = parent.gather(1, at)
    return torch.stack(path[::-1]) if path else at.new_zeros(0, rows)


def best_first(
    step: Step, begin: Tensor, state: State, steps: int, limit: int = 20_000
) -> tuple[Tensor, Tensor]:
    """Exact search: always extends the best beginning, so the first to reach the end is the best of
    all (a probability is at most 1). Row by row; raises an error after `limit` steps."""
    sequences = [
        _best_row(step, begin[row : row + 1], tuple(s[row : row + 1] for s in state), steps, limit)
        for row in range(len(begin))
    ]
    paths = [path for path, _ in sequences]
    labels = torch.tensor(paths, dtype=torch.int64).reshape(len(sequences), steps)
    scores = torch.tensor([score for _, score in sequences])
    return labels.T.to(begin.device), scores.to(begin.device)


def _best_row(
    step: Step, begin: Tensor, state: State, steps: int, limit: int
) -> tuple[list[int], float]:
    order = count()  # order among equals: first found
    waiting: list[tuple[float, int, list[int], State]] = [(0.0, next(order), [], state)]
    for _ in range(limit):
        cost, _, path, state = heappop(waiting)
        if len(path) == steps:
            return path, -cost
        last = begin.new_tensor(path[-1:]) if path else begin
        log_probs, state = step(last, state)
        for label, value in enumerate(log_probs[0].tolist()):
            heappush(waiting, (cost - value, next(order), [*path, label], state))
    raise OptionError(
        f"search: exact search looked at {limit} beginnings of a sequence of {steps} steps "
        "without reaching the end of the best; use beam"
    )


# -------------------------------------------------------------------------------------------------
# A labeller's output that reads the previous label: p(l | x) = Π_t p(l_t | l_{t−1}, …, x).
#
# In training the previous label is the true one (teacher forcing). In prediction it is the model's
# own, and a search finds the best sequence of labels.

STARTS = ("zero", "learned")
WIDEST_LABEL = 32  # width of a label's vector


class LayerJoint(nn.Module):
    """u_t = tanh(V·y_t + A·e(l_{t−1}) + b): depends on one previous label, so search is exact."""

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
    """u_t, state = cell([y_t; e(l_{t−1})], state): depends on all previous labels."""

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

    cell: the cell that joins them; None for a layer. start: e(l_0) is "zero" or "learned".
    Probabilities: with the layer p(l_t | x), summed over all previous labels; with a cell p(l_t |
    x, the predicted labels before t)."""

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
        self.labels = labels  # and the index for "no previous label"
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
        """The searches that this output offers. With a cell only beam and greedy: exact search
        would have to try all label sequences."""
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
        """The scores of each step given the previous labels; shape (time, batch, labels)."""
        before = torch.cat([torch.full_like(labels[:1], self.labels), labels[:-1]])
        state = self.joint.begin(y.new_empty(y.shape[1], 0))
        u, _ = self.joint(y, self.table(before), state, lengths)
        ends = step_mask(lengths.to(y.device), len(y), first=-1)
        return self._limited(self.scores(u), before, ends)

    def _limited(self, logits: Tensor, before: Tensor, ends: Tensor) -> Tensor:
        """Logits with illegal labels made impossible: labels that are not allowed after `before`
        (…), or at the end if `ends` (…)."""
        if not self.constraint.constrained:
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
        """The labels before the first step, and the state: row, step, and the joint's state."""
        rows = torch.arange(y.shape[1], device=y.device)
        joint = self.joint.begin(y.new_empty(y.shape[1], 0))
        return torch.full_like(rows, self.labels), (rows, torch.zeros_like(rows), *joint)

    def step(self, y: Tensor, lengths: Tensor) -> Step:
        """The step function for these sequences; a row that has ended gets label 0 at no cost."""
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
        """The output with a layer as a chain: pair_t[a, b] = log p(l_t = b | l_{t−1} = a, x)."""
        ends = lengths.to(y.device)

        def after(t: int, before: Tensor) -> Tensor:
            """log p of each label of step t, after each label of `before` (batch, before, "
            "labels)."""
            u, _ = self.joint(y[t][:, None], self.table(before)[None], (), None)
            last = (ends == t + 1)[:, None].expand(-1, len(before))
            return self._limited(self.scores(u), before, last).log_softmax(-1)

        every, none = torch.arange(self.labels + 1, device=y.device).tensor_split([self.labels])
        first = after(0, none)[:, 0] if len(y) else y.new_zeros(y.shape[1], self.labels)
        zero = y.new_zeros(self.labels)
        return Chain(first, lambda t: after(t, every), zero, ends, len(y))


LABEL_OUTPUTS: dict[str, type[LabelOutput]] = {
    "stepwise": Stepwise,
    "crf": CRF,
    "previous": PreviousLabel,
}


class BestLabels(NamedTuple):
    """labels (time, batch) and probabilities (time, batch, labels), both 0 at padding."""

    labels: Tensor
    probabilities: Tensor


class LabellerNetwork(nn.Module):
    """y = dropout(encode(embed(batch))); the output defines a distribution over labels.

    norm_weight: weight of the encoder's norm-preserving regulariser."""

    def __init__(
        self,
        embed: Embed,
        encoder: Encoder,
        output: LabelOutput,
        *,
        dropout: float = 0.0,
        norm_weight: float = 0.0,
    ) -> None:
        super().__init__()
        check_rates({"dropout": dropout})
        check_norm_weight(norm_weight, encoder)
        self.embed, self.encoder, self.output = embed, encoder, output
        self.dropout, self.norm_weight = dropout, norm_weight

    def forward(
        self, batch: SequenceBatch, carried: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The cost of the batch, summed over its real steps; no state is carried."""
        x = self.embed(batch.inputs)
        y, _ = self.encoder(x, batch.lengths)
        cost = self._cost(y, batch)
        if self.training and self.norm_weight:
            assert isinstance(self.encoder, RecurrentEncoder)
            cost = cost + self.norm_weight * norm_preserving(
                self.encoder.recurrent, x, lambda y, state: self._cost(y, batch), batch.lengths
            )
        return cost, {}

    def _cost(self, y: Tensor, batch: SequenceBatch) -> Tensor:
        y = dropout(y, self.dropout, self.training)
        return self.output.cost(y, batch.lengths, targets_of(batch)).sum()

    @torch.no_grad()
    def chain(self, batch: SequenceBatch) -> Chain | None:
        """The distribution over label sequences as a chain; None if the output has none."""
        y, _ = self.encoder(self.embed(batch.inputs), batch.lengths)
        return self.output.chain(y, batch.lengths)

    def probabilities_of(self, x: Tensor, lengths: Tensor, labels: Tensor) -> Tensor:
        """The probability of each label at each step (time, batch, labels), for embedded steps x
        (time, batch, width). labels (time, batch): the best ones."""
        y, _ = self.encoder(x, lengths)
        return self.output.probabilities(y, lengths, labels)

    @torch.no_grad()
    def label(self, batch: SequenceBatch, search: str = "exact", width: int = 8) -> BestLabels:
        """The best labels by this search ("exact", "beam" with `width`, "greedy"), and the
        probability of each label at each step."""
        y, _ = self.encoder(self.embed(batch.inputs), batch.lengths)
        labels = self.output.label(y, batch.lengths, search, width)
        return BestLabels(labels, self.output.probabilities(y, batch.lengths, labels))
