"""A sequence in, one distribution out: embed, encode, pool, and a layer on top."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from ensue.errors import OptionError, ShapeError
from ensue.tasks.blocks.embeddings import Embed, check_rates
from ensue.tasks.blocks.encoders import Encoder, RecurrentEncoder
from ensue.tasks.blocks.heads import Head, OutputHead, weighted_sum
from ensue.tasks.blocks.norms import check_norm_weight, norm_preserving
from ensue.tasks.blocks.pooling import Pooling
from ensue.tasks.blocks.standardised import Standardised
from ensue.tasks.columns.network import ColumnVector
from ensue.tasks.rows.batch import SequenceBatch, targets_of


class NgramScores(nn.Module):
    """What a row's n-grams say of its classes: z = Σ of w_n over the row's n-grams n.

    start: w (count, classes) to begin with, such as a linear model's; zero if not given. In
    training an n-gram is left out with probability `dropout`, and ½·l2·‖w − start‖² is the
    penalty of a row."""

    start: Tensor | None

    def __init__(
        self,
        count: int,
        classes: int,
        *,
        start: Tensor | None = None,
        dropout: float = 0.0,
        l2: float = 0.0,
    ) -> None:
        super().__init__()
        check_rates({"dropout": dropout})
        if l2 < 0:
            raise OptionError(f"l2: expected a number ≥ 0, got {l2}")
        if start is not None and start.shape != (count, classes):
            raise ShapeError(
                f"start: expected ({count}, {classes}), n-grams and classes, "
                f"got {tuple(start.shape)}"
            )
        self.dropout, self.l2 = dropout, l2
        self.weight = nn.Parameter(torch.zeros(count, classes) if start is None else start.clone())
        self.register_buffer("start", start.clone() if start is not None and l2 else None)

    def forward(self, inputs: Mapping[str, Tensor]) -> Tensor:
        ids, starts = inputs["ngrams"], inputs["ngrams.starts"]
        kept = None
        if self.training and self.dropout:
            kept = dropout(self.weight.new_ones(ids.shape), self.dropout)
        return torch.nn.functional.embedding_bag(
            ids, self.weight, starts, mode="sum", per_sample_weights=kept
        )

    def penalty(self) -> Tensor:
        away = self.weight if self.start is None else self.weight - self.start
        return 0.5 * self.l2 * (away * away).sum()


class PooledNetwork(nn.Module):
    """z = V·[dropout(pool(encode(embed(batch)))), c] + b (+ n-gram scores); the head makes of z a
    distribution, and the cost is its negative log-likelihood summed over the batch.

    beside: what c comes from, the columns beside the sequence, if there are any; standardise:
    whether what is pooled is; norm_weight: how much the norm-preserving regulariser of the encoder
    counts."""

    def __init__(
        self,
        embed: Embed,
        encoder: Encoder,
        pooling: Pooling,
        head: OutputHead,
        *,
        ngrams: NgramScores | None = None,
        beside: ColumnVector | None = None,
        standardise: bool = False,
        dropout: float = 0.0,
        norm_weight: float = 0.0,
    ) -> None:
        super().__init__()
        check_rates({"dropout": dropout})
        check_norm_weight(norm_weight, encoder)
        self.embed, self.encoder, self.pooling, self.head = embed, encoder, pooling, head
        self.ngrams, self.dropout, self.norm_weight = ngrams, dropout, norm_weight
        self.beside = beside
        self.standard = Standardised(pooling.width) if standardise else nn.Identity()
        self.output = nn.Linear(pooling.width + (beside.width if beside else 0), head.classes)

    def forward(
        self, batch: SequenceBatch, carried: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The cost of the batch, summed over its rows; nothing is carried on."""
        x = self.embed(batch.inputs)
        y, final = self.encoder(x, batch.lengths)
        cost = self._cost(y, final, batch)
        if self.training and self.ngrams is not None and self.ngrams.l2:
            cost = cost + len(batch) * self.ngrams.penalty()
        if self.training and self.norm_weight:
            cost = cost + self.norm_weight * self._norm_penalty(x, batch)
        return cost, {}

    def _cost(self, y: Tensor, final: Tensor, batch: SequenceBatch) -> Tensor:
        costs = self.head.cost(self._logits(y, final, batch), targets_of(batch))
        return weighted_sum(costs, batch.weights)

    def _logits(self, y: Tensor, final: Tensor, batch: SequenceBatch) -> Tensor:
        pooled = self.standard(self.pooling(y, final, batch.lengths))
        pooled = dropout(pooled, self.dropout, self.training)
        if self.beside is not None:
            pooled = torch.cat([pooled, self.beside(batch.inputs)], -1)
        logits: Tensor = self.output(pooled)
        return logits if self.ngrams is None else logits + self.ngrams(batch.inputs)

    def _norm_penalty(self, x: Tensor, batch: SequenceBatch) -> Tensor:
        encoder = self.encoder
        assert isinstance(encoder, RecurrentEncoder)
        return norm_preserving(
            encoder.recurrent,
            x,
            lambda y, state: self._cost(y, encoder.final(state), batch),
            batch.lengths,
        )

    def scores(self, batch: SequenceBatch) -> Tensor:
        """Logits z (batch, classes)."""
        return self.scores_of(self.embed(batch.inputs), batch)

    def scores_of(self, x: Tensor, batch: SequenceBatch) -> Tensor:
        """The same where the steps are x (time, batch, width) once they are embedded."""
        y, final = self.encoder(x, batch.lengths)
        return self._logits(y, final, batch)

    def log_probabilities(self, batch: SequenceBatch) -> Tensor:
        """(batch, classes): of each class, or of each label being there."""
        assert isinstance(self.head, Head)
        return self.head.log_probabilities(self.scores(batch))

    def attention(self, batch: SequenceBatch) -> Tensor:
        """(time, batch): what each step counts for in the pooling by attention."""
        y, _ = self.encoder(self.embed(batch.inputs), batch.lengths)
        return self.pooling.attention(y, batch.lengths)
