"""The network of texts, as laws over its parts build it."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ensue.tasks.blocks.embeddings import Embed
from ensue.tasks.blocks.encoders import Encoder
from ensue.tasks.blocks.heads import Head
from ensue.tasks.blocks.pooling import Pooling
from ensue.tasks.rows.batch import SequenceBatch, targets_of
from ensue.tasks.supervised.inputs.text import NgramScores, TextEncoder
from ensue.tasks.supervised.network import LabelledBatch, SupervisedNetwork


class PooledNetwork(SupervisedNetwork):
    """Takes a batch of sequences with its targets."""

    def __init__(
        self,
        embed: Embed,
        encoder: Encoder,
        pooling: Pooling,
        head: Head,
        ngrams: NgramScores | None = None,
        **options: Any,
    ) -> None:
        super().__init__(TextEncoder(embed, encoder, pooling, **options), head, ngrams)

    def forward(  # type: ignore[override]
        self, batch: SequenceBatch, carried: dict[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return super().forward(LabelledBatch(batch, targets_of(batch), len(batch)), carried)

    def log_probabilities(self, batch: SequenceBatch) -> Tensor:
        assert isinstance(self.head, Head)
        return self.head.log_probabilities(self.scores(batch))
