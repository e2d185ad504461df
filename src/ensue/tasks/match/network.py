"""The network of a matcher: one encoder reads both sides, then they are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import dropout

from ensue.data.batches import batches, evaluation_batches
from ensue.data.fingerprint import fingerprint
from ensue.errors import DataError
from ensue.layers.lengths import step_mask
from ensue.tasks.blocks.embeddings import Embed
from ensue.tasks.blocks.encoders import Encoder
from ensue.tasks.blocks.heads import OutputHead
from ensue.tasks.blocks.pooling import Pooling
from ensue.tasks.blocks.standardised import Standardised
from ensue.tasks.rows.batch import Columns, SequenceBatch, collate
from ensue.tasks.rows.part import Names
from ensue.training.devices import device_of_weights, moved


@dataclass(frozen=True)
class MatchBatch:
    """The first side has the targets."""

    first: SequenceBatch
    second: SequenceBatch

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True)
class MatchColumns:
    """Both sides, row by row."""

    first: Columns
    second: Columns

    def __len__(self) -> int:
        return len(self.first)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Steps of the longer side."""
        return np.maximum(self.first.lengths, self.second.lengths)

    def take(self, rows: NDArray[np.int64]) -> MatchColumns:
        return MatchColumns(self.first.taken(rows), self.second.taken(rows))

    def arrays(self) -> dict[str, Any]:
        sides = {"first": self.first, "second": self.second}
        return {f"{s}.{n}": v for s, own in sides.items() for n, v in own.arrays().items()}

    def batch(self, rows: Sequence[int] | NDArray[np.int64]) -> MatchBatch:
        return MatchBatch(collate(self.first, rows), collate(self.second, rows))


class MatchSource:
    """Pairs in batches of a token budget; their order follows from the seed and the epoch."""

    def __init__(
        self, columns: MatchColumns, names: Names, *, seed: int, budget: int, most_rows: int | None
    ) -> None:
        self.columns, self.names, self.seed = columns, names, seed
        self.budget, self.most_rows = budget, most_rows
        self.fingerprint = fingerprint(columns.arrays())

    def batches(self, epoch: int) -> Sequence[Any]:
        lengths = self.columns.lengths
        return batches(lengths, self.budget, self.seed, epoch, most_rows=self.most_rows)

    def batch(self, rows: Sequence[int]) -> MatchBatch:
        return self.columns.batch(rows)

    def targets(self, rows: Sequence[int]) -> float:
        return float(len(rows))

    def tokens(self, rows: Sequence[int]) -> float:
        numbers = np.asarray(rows)
        sides = (self.columns.first, self.columns.second)
        return float(sum(own.lengths_of(numbers).sum() for own in sides))

    def name(self, row: int) -> str:
        return self.names[row]


def in_batches(
    columns: MatchColumns, network: nn.Module, budget: int
) -> Iterator[tuple[NDArray[np.int64], MatchBatch]]:
    """Row numbers and batch, rows of like length together, where the network's weights are."""
    device = device_of_weights(network)
    for rows in evaluation_batches(columns.lengths, budget):
        yield rows, moved(columns.batch(rows), device)


class Attended(nn.Module):
    """Every step with what it sees of the other side: ReLU(W·[y; c; |y − c|; y * c] + b), where
    c = Σ_k α_k·o_k over the steps o of the other side, α = softmax(y·o/√width); c = 0 where the
    other side is empty."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.compare = nn.Linear(4 * width, width)

    def forward(self, y: Tensor, other: Tensor, real: Tensor) -> Tensor:
        """y (time, batch, width), other (steps, batch, width), real (steps, batch) bool."""
        scores = torch.einsum("tbw,sbw->tbs", y, other) / y.shape[-1] ** 0.5
        hidden = ~real.t()[None]  # (1, batch, steps)
        weights = scores.masked_fill(hidden, -torch.inf).softmax(-1).nan_to_num(0.0)
        seen = torch.einsum("tbs,sbw->tbw", weights, other)
        compared = torch.cat([y, seen, (y - seen).abs(), y * seen], -1)
        found: Tensor = self.compare(compared).relu()
        return found


class MatchNetwork(nn.Module):
    """z = V·ReLU(W·[u; v; |u − v|; u * v] + d) + b, with u and v the two sides embedded, encoded
    and pooled by the same layers.

    attention: each side looks at the other before it is pooled; standardise: whether what is
    pooled is."""

    def __init__(
        self,
        embed: Embed,
        encoder: Encoder,
        pooling: Pooling,
        head: OutputHead,
        *,
        compared_size: int,
        attention: bool = False,
        standardise: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embed, self.encoder, self.pooling, self.head = embed, encoder, pooling, head
        self.standard = Standardised(pooling.width) if standardise else nn.Identity()
        self.attended = Attended(encoder.output_size) if attention else None
        self.dropout = dropout
        self.hidden = nn.Linear(4 * pooling.width, compared_size)
        self.output = nn.Linear(compared_size, head.classes)

    def forward(
        self, batch: MatchBatch, carried: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The cost of the batch, summed over its rows; nothing is carried on."""
        if batch.first.targets is None:
            raise DataError("targets: expected for a cost, got a batch without")
        return self.head.cost(self.scores(batch), batch.first.targets).sum(), {}

    def scores(self, batch: MatchBatch) -> Tensor:
        """z (batch, width)."""
        first, second = batch.first, batch.second
        sides = self.embed(first.inputs), self.embed(second.inputs)
        return self.scores_of(*sides, first.lengths, second.lengths)

    def scores_of(self, x: Tensor, other_x: Tensor, lengths: Tensor, others: Tensor) -> Tensor:
        """The same where the steps of both sides are x and other_x (time, batch, width) once they
        are embedded."""
        u, u_final = self.encoder(x, lengths)
        v, v_final = self.encoder(other_x, others)
        if self.attended is not None:
            seen_u = self.attended(u, v, step_mask(others.to(v.device), v.shape[0]))
            seen_v = self.attended(v, u, step_mask(lengths.to(u.device), u.shape[0]))
            u, v = seen_u, seen_v
        one = self.standard(self.pooling(u, u_final, lengths))
        other = self.standard(self.pooling(v, v_final, others))
        both = torch.cat([one, other, (one - other).abs(), one * other], -1)
        hidden = self.hidden(dropout(both, self.dropout, self.training)).relu()
        found: Tensor = self.output(dropout(hidden, self.dropout, self.training))
        return found


@torch.no_grad()
def network_outputs(network: nn.Module, columns: MatchColumns, batch_tokens: int) -> Tensor:
    """z (rows, width), from batches of twice as many tokens as in training."""
    assert isinstance(network, MatchNetwork)
    found = torch.zeros(len(columns), network.head.classes)
    for rows, batch in in_batches(columns, network, 2 * batch_tokens):
        found[torch.from_numpy(rows)] = network.scores(batch).cpu()
    return found
