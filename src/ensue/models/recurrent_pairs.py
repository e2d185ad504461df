"""Encoder and decoder of recurrent cells, with or without attention between them."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import dropout

from ensue.engine.rows import check_lengths, reverse_time
from ensue.errors import OptionError, unknown
from ensue.layers import Recurrent, step_mask
from ensue.models.attention_decoder import (
    AttentionDecoder,
    DecoderState,
    embedding_table,
    with_dropout,
)
from ensue.models.bridge import StateBridge
from ensue.models.decoded_pairs import DecodedPairs

BRIDGES = ("states", "zero")


class RecurrentPairs(DecodedPairs):
    """h_1 … h_n = encoder(x_1 … x_n); p(w_t | w_1 … w_{t−1}, x) as `AttentionDecoder`, which looks
    at h, has the encoder's layers and begins in its end states (bridge "states") or in zero.

    reverse_source: the encoder reads from the last word to the first; h_i stays with its word.
    decoder_cell: None is the encoder's. shared: one embedding for both sides. project: the memory
    is brought to the decoder's width. sampling: in training, the share of the decoder's inputs that
    are its own words. smoothing: of the targets, see `Output`."""

    def __init__(
        self,
        source_words: int,
        target_words: int,
        *,
        cell: str = "GRU",
        decoder_cell: str | None = None,
        embedding_size: int,
        hidden_size: int,
        layers: int = 1,
        bidirectional: bool = True,
        bridge: str = "states",
        reverse_source: bool = False,
        attention: str = "additive",
        project: bool = False,
        input_feeding: bool = False,
        attend_output: str = "combined",
        tied: bool = True,
        shared: bool = False,
        dropout_input: float = 0.0,
        dropout_layers: float = 0.0,
        dropout_output: float = 0.0,
        dropout_recurrent: float = 0.0,
        smoothing: float = 0.0,
        sampling: float = 0.0,
        init: str = "standard",
        engine: str = "auto",
    ) -> None:
        super().__init__()
        _check(bridge, attention, sampling, shared, source_words, target_words)
        self.reverse_source, self.sampling = reverse_source, sampling
        self.dropout_input = dropout_input
        self.table = embedding_table(source_words, embedding_size)
        self.encoder = Recurrent(
            with_dropout(cell, dropout_recurrent),
            embedding_size,
            hidden_size,
            layers,
            bidirectional=bidirectional,
            dropout=dropout_layers,
            init=init,
            engine=engine,
        )
        self.decoder = AttentionDecoder(
            target_words,
            memory_size=self.encoder.output_size,
            cell=decoder_cell or cell,
            embedding_size=embedding_size,
            hidden_size=hidden_size,
            layers=layers,
            attention=attention,
            project=project,
            input_feeding=input_feeding,
            attend_output=attend_output,
            tied=tied,
            table=self.table if shared else None,
            dropout_input=dropout_input,
            dropout_layers=dropout_layers,
            dropout_output=dropout_output,
            dropout_recurrent=dropout_recurrent,
            smoothing=smoothing,
            init=init,
            engine=engine,
        )
        self.bridge = (
            StateBridge(self.encoder, self.decoder.recurrent) if bridge == "states" else None
        )

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


def _check(
    bridge: str,
    attention: str,
    sampling: float,
    shared: bool,
    source_words: int,
    target_words: int,
) -> None:
    if bridge not in BRIDGES:
        raise unknown("bridge", bridge, BRIDGES)
    if bridge == "zero" and attention == "none":
        raise OptionError(
            "bridge: expected 'states' without attention, got 'zero': the decoder would know "
            "nothing of the source"
        )
    if not 0 <= sampling <= 1:
        raise OptionError(f"sampling: expected a share from 0 to 1, got {sampling}")
    if shared and source_words != target_words:
        raise OptionError(
            f"shared: expected one vocabulary for both sides, got {source_words} source words and "
            f"{target_words} target words"
        )
