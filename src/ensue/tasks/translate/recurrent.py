"""Encoder and decoder of recurrent cells, with or without attention between them."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import dropout

from ensue.engine.rows import check_lengths, reverse_time
from ensue.errors import OptionError
from ensue.layers.lengths import step_mask
from ensue.layers.recurrent import Recurrent
from ensue.tasks.blocks.attention_decoder import (
    AttentionDecoder,
    DecoderState,
    embedding_table,
    with_dropout,
)
from ensue.tasks.seq2seq.bridge import StateBridge
from ensue.tasks.seq2seq.decoder import DecodedPairs
from ensue.tasks.translate.settings import PairSettings


class RecurrentPairs(DecodedPairs):
    """h_1 … h_n = encoder(x_1 … x_n); p(w_t | w_1 … w_{t−1}, x) as `AttentionDecoder`, which looks
    at h, has the encoder's layers and begins in its end states (bridge "states") or in zero.

    reverse_source: the encoder reads from the last word to the first; h_i stays with its word.
    decoder_cell: "" is the encoder's. shared: one embedding for both sides. sampling: in training,
    the share of the decoder's inputs that are its own words. smoothing: of the targets, see
    `Output`."""

    def __init__(
        self, source_words: int, target_words: int, settings: PairSettings, engine: str = "auto"
    ) -> None:
        super().__init__()
        _check(settings, source_words, target_words)
        self.reverse_source, self.sampling = settings.reverse_source, settings.sampling
        self.dropout_input = settings.dropout_input
        self.table = embedding_table(source_words, settings.embedding_size)
        self.encoder = Recurrent(
            with_dropout(settings.cell, settings.dropout_recurrent),
            settings.embedding_size,
            settings.hidden_size,
            settings.layers,
            bidirectional=settings.bidirectional,
            dropout=settings.dropout_layers,
            init=settings.init,
            engine=engine,
        )
        says = settings.decoder_cell or settings.cell
        self.decoder = AttentionDecoder(
            target_words,
            settings.model_copy(update={"cell": says}),
            memory_size=self.encoder.output_size,
            attend_output=settings.attend_output,
            table=self.table if settings.shared else None,
            engine=engine,
        )
        begins = settings.bridge == "states"
        self.bridge = StateBridge(self.encoder, self.decoder.recurrent) if begins else None

    def begin(self, source: Tensor, lengths: Tensor) -> DecoderState:
        """source (time, batch), lengths (batch,)."""
        plain = check_lengths(lengths, *source.shape)
        assert plain is not None
        x = self.table(reverse_time(source, plain) if self.reverse_source else source)
        if self.training and self.dropout_input:
            x = x * dropout(x.new_ones(1, *x.shape[1:]), self.dropout_input)
        memory, ends = self.encoder(x, lengths=plain)
        if self.reverse_source:
            memory = reverse_time(memory, plain)
        cells = None if self.bridge is None else self.bridge(ends)
        real = step_mask(plain.to(x.device), len(x))
        # a row's positions lie together: every step reads them
        memory = memory.transpose(0, 1).contiguous()
        return self.decoder.begin(len(plain), cells, memory, real.T.contiguous())


def _check(settings: PairSettings, source_words: int, target_words: int) -> None:
    if settings.bridge == "zero" and settings.attention == "none":
        raise OptionError(
            "bridge: expected 'states' without attention, got 'zero': the decoder would know "
            "nothing of the source"
        )
    if settings.shared and source_words != target_words:
        raise OptionError(
            f"shared: expected one vocabulary for both sides, got {source_words} source words and "
            f"{target_words} target words"
        )
