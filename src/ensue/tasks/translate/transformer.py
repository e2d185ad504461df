"""A Transformer that turns a sequence into another."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from ensue.decoding import Shared
from ensue.errors import OptionError
from ensue.layers.lengths import step_mask
from ensue.layers.positions import placed
from ensue.layers.transformer import Decoded, DecoderBlocks, Design, EncoderBlocks
from ensue.tasks.blocks.softmax_output import Output
from ensue.tasks.seq2seq.network import PairBatch
from ensue.tasks.translate.reading import SourceSize, VectorTable
from ensue.tasks.translate.settings import PairSettings


class TransformerState(NamedTuple):
    """Between two steps of a search: for each block of the decoder what it remembers of the words
    before (rows, words, 2·width) and what it sees of the source; where the source is real;
    looked (rows, 1, width), the queries by which the last step looked at it."""

    past: tuple[Tensor, ...]
    memories: tuple[Shared, ...]
    real: Shared
    looked: Tensor | None = None


class TransformerPairs(nn.Module):
    """s = encode(√width·E(source) + positions); p(w_t) = softmax of
    decode(√width·E'(<s> w_1 … w_{t−1}) + positions; s).

    layers: of the encoder, and of the decoder. tied: E' is the output's matrix too; shared: E is
    E', of one vocabulary. dropout_layers: of embeddings with positions and of each sublayer's
    output. smoothing: of the cost that is trained."""

    def __init__(self, source: int | SourceSize, target_words: int, settings: PairSettings) -> None:
        super().__init__()
        size = SourceSize(source) if isinstance(source, int) else source
        if settings.shared and size.words != target_words:
            raise OptionError(
                "shared: expected one vocabulary for both sides, "
                f"got {size.words} words and {target_words}"
            )
        design = Design(
            settings.hidden_size,
            settings.heads,
            settings.inner_size,
            settings.norm,
            settings.dropout_layers,
            settings.dropout_attention,
        )
        self.width, self.dropout = design.width, design.dropout
        self.smoothing = settings.smoothing
        self.target = _table(target_words, self.width)
        self.source: nn.Module
        if size.features:
            self.source = VectorTable(size.features, self.width)
        else:
            self.source = self.target if settings.shared else _table(size.words, self.width)
        self.encoder = EncoderBlocks(settings.layers, design)
        self.decoder = DecoderBlocks(settings.layers, design)
        self.output = Output(target_words, self.width, self.target if settings.tied else None)

    def _embedded(self, table: nn.Module, tokens: Tensor, first: int = 0) -> Tensor:
        """(time, batch, width) of tokens (time, batch), or of vectors, which stand at first,
        first + 1, …"""
        x = placed(table(tokens) * math.sqrt(self.width), first)
        return dropout(x, self.dropout, self.training)

    def _encoded(self, source: Tensor, lengths: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        """What each block of the decoder sees of the source, and where it is real (batch, time)."""
        lengths = lengths.to(source.device)
        y = self.encoder(self._embedded(self.source, source), lengths)
        return self.decoder.memories(y), step_mask(lengths, source.shape[0]).t()

    def _decoded(self, batch: PairBatch) -> Tensor:
        memories, real = self._encoded(batch.source, batch.lengths)
        decoded: Decoded = self.decoder(self._embedded(self.target, batch.before), memories, real)
        return decoded.y

    def forward(self, batch: PairBatch) -> Tensor:
        real = step_mask(batch.wanted_lengths.to(batch.wanted.device), len(batch.wanted))
        return self.output.cost(self._decoded(batch), batch.wanted, real, self.smoothing)

    @torch.no_grad()
    def costs(self, batch: PairBatch) -> Tensor:
        trained = self.training
        self.eval()
        try:
            costs = self.output.costs(self._decoded(batch), batch.wanted)
        finally:
            self.train(trained)
        return costs * step_mask(batch.wanted_lengths.to(costs.device), len(costs))

    @torch.no_grad()
    def begin(self, source: Tensor, lengths: Tensor) -> TransformerState:
        memories, real = self._encoded(source, lengths)
        nothing = memories[0].new_zeros(real.shape[0], 0, 2 * self.width)
        return TransformerState(
            tuple(nothing for _ in memories),
            tuple(Shared(memory) for memory in memories),
            Shared(real),
        )

    @torch.no_grad()
    def step(self, tokens: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        x = self._embedded(self.target, tokens[None], first=state.past[0].shape[1])
        memories = tuple(memory.values for memory in state.memories)
        y, past, looked = self.decoder(x, memories, state.real.values, state.past)
        logs = self.output.log_probabilities(y[0])
        return logs, state._replace(past=past, looked=looked)

    @torch.no_grad()
    def alignment(self, state: TransformerState) -> Tensor | None:
        """The mean over the heads of the last block, found only when it is asked for."""
        if state.looked is None:  # nothing was said yet
            return None
        memory, real = state.memories[-1].values, state.real.values
        return self.decoder.weights(state.looked, memory, real)[:, 0]


def _table(words: int, width: int) -> nn.Embedding:
    table = nn.Embedding(words, width)
    nn.init.normal_(table.weight, std=width**-0.5)  # times √width: the scale of the positions
    return table
