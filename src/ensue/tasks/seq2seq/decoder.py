"""Pair networks whose words an `AttentionDecoder` says, whatever it looks at."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from ensue.tasks.blocks.attention_decoder import AttentionDecoder, DecoderState
from ensue.tasks.seq2seq.network import PairBatch


class DecodedPairs(nn.Module, ABC):
    """A `PairNetwork` but for how a source is read. sampling: the share of the decoder's own words
    among its inputs while it is trained."""

    decoder: AttentionDecoder
    sampling: float

    @abstractmethod
    def begin(self, source: Tensor, lengths: Tensor) -> DecoderState:
        """The source read: what the first step needs."""

    def forward(self, batch: PairBatch) -> Tensor:
        state = self.begin(batch.source, batch.lengths)
        sampling = self.sampling if self.training else 0.0
        r, _ = self.decoder(batch.before, state, batch.wanted_lengths, sampling)
        return self.decoder.cost(r, batch.wanted, batch.wanted_lengths)

    @torch.no_grad()
    def costs(self, batch: PairBatch) -> Tensor:
        state = self.begin(batch.source, batch.lengths)
        r, _ = self.decoder(batch.before, state, batch.wanted_lengths)
        return self.decoder.costs(r, batch.wanted, batch.wanted_lengths)

    def step(self, tokens: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        return self.decoder.step(tokens, state)

    def alignment(self, state: DecoderState) -> Tensor | None:
        return state.weights
