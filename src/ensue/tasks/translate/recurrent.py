"""Encoder and decoder of recurrent cells, with or without attention between them."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import dropout

from ensue.engine.rows import check_lengths, reverse_time
from ensue.errors import OptionError
from ensue.layers.lengths import step_mask
from ensue.tasks.blocks.attention_decoder import (
    AttentionDecoder,
    DecoderState,
    embedding_table,
)
from ensue.tasks.blocks.recurrent_layers import layers_of
from ensue.tasks.seq2seq.bridge import RandomStart, StateBridge
from ensue.tasks.seq2seq.decoder import DecodedPairs
from ensue.tasks.translate.reading import SourceSize, VectorTable
from ensue.tasks.translate.settings import PairSettings


class RecurrentPairs(DecodedPairs):
    """h_1 … h_n = encoder(x_1 … x_n); p(w_t | w_1 … w_{t−1}, x) as `AttentionDecoder`, which looks
    at h, has the encoder's layers and begins in its end states (bridge "states"), in a
    `RandomStart`, or as its cells begin.

    reverse_source: the encoder reads from the last word to the first; h_i stays with its word.
    source: how many words it has, or what vectors it is made of. decoder_cell: "" is the
    encoder's. shared: one embedding for both sides. sampling: in training, the share of the
    decoder's inputs that are its own words. smoothing: of the targets, see `Output`."""

    def __init__(
        self,
        source: int | SourceSize,
        target_words: int,
        settings: PairSettings,
        engine: str = "auto",
    ) -> None:
        super().__init__()
        size = SourceSize(source) if isinstance(source, int) else source
        _check(settings, size.words, target_words)
        self.reverse_source, self.sampling = settings.reverse_source, settings.sampling
        self.dropout_input = settings.dropout_input
        width = settings.embedding_size
        self.table: nn.Module
        if size.features:
            self.table = VectorTable(size.features, width)
        else:
            self.table = embedding_table(size.words, width)
        self.encoder = layers_of(
            settings,
            settings.embedding_size,
            bidirectional=settings.bidirectional,
            backward_start=settings.backward_start,
            engine=engine,
        )
        says = settings.decoder_cell or settings.cell
        self.decoder = AttentionDecoder(
            target_words,
            settings.model_copy(update={"cell": says}),
            memory_size=self.encoder.output_size,
            attend_output=settings.attend_output,
            table=self.table if isinstance(self.table, nn.Embedding) and settings.shared else None,
            engine=engine,
        )
        self.bridge: StateBridge | RandomStart | None = None
        if settings.bridge == "states":
            self.bridge = StateBridge(self.encoder, self.decoder.recurrent)
        elif settings.bridge == "random":
            self.bridge = RandomStart(self.decoder.recurrent)

    def begin(self, source: Tensor, lengths: Tensor) -> DecoderState:
        """source (time, batch), or vectors (time, batch, n), lengths (batch,)."""
        plain = check_lengths(lengths, *source.shape[:2])
        assert plain is not None
        x = self.table(reverse_time(source, plain) if self.reverse_source else source)
        if self.training and self.dropout_input:
            x = x * dropout(x.new_ones(1, *x.shape[1:]), self.dropout_input)
        memory, ends = self.encoder(x, lengths=plain)
        if self.reverse_source:
            memory = reverse_time(memory, plain)
        cells = None if self.bridge is None else self.bridge(ends)
        real = step_mask(plain.to(x.device), x.shape[0])
        # a row's positions lie together: every step reads them
        memory = memory.transpose(0, 1).contiguous()
        return self.decoder.begin(source.shape[1], cells, memory, real.T.contiguous())


def _check(settings: PairSettings, source_words: int, target_words: int) -> None:
    if settings.bridge != "states" and settings.attention == "none":
        raise OptionError(
            f"bridge: expected 'states' without attention, got {settings.bridge!r}: the decoder "
            "would know nothing of the source"
        )
    if settings.shared and source_words != target_words:
        raise OptionError(
            f"shared: expected one vocabulary for both sides, got {source_words} source words and "
            f"{target_words} target words"
        )
