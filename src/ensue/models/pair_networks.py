"""The network that a translator's settings describe."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from ensue.models.pair_settings import PairSettings
from ensue.models.recurrent_pairs import RecurrentPairs
from ensue.models.transformer_pairs import TransformerPairs


def network_of(own: PairSettings, source_words: int, target_words: int) -> nn.Module:
    """With fresh weights, for vocabularies of these sizes."""
    return FAMILIES[own.family](own, source_words, target_words)


def _recurrent(own: PairSettings, source_words: int, target_words: int) -> nn.Module:
    return RecurrentPairs(
        source_words,
        target_words,
        cell=own.cell,
        decoder_cell=own.decoder_cell or None,
        embedding_size=own.embedding_size,
        hidden_size=own.hidden_size,
        layers=own.layers,
        bidirectional=own.bidirectional,
        bridge=own.bridge,
        reverse_source=own.reverse_source,
        attention=own.attention,
        project=own.project,
        input_feeding=own.input_feeding,
        attend_output=own.attend_output,
        tied=own.tied,
        shared=own.shared,
        dropout_input=own.dropout_input,
        dropout_layers=own.dropout_layers,
        dropout_output=own.dropout_output,
        dropout_recurrent=own.dropout_recurrent,
        smoothing=own.smoothing,
        sampling=own.sampling,
        init=own.init,
    )


def _transformer(own: PairSettings, source_words: int, target_words: int) -> nn.Module:
    return TransformerPairs(
        source_words,
        target_words,
        width=own.width,
        heads=own.heads,
        layers=own.layers,
        inner=own.inner,
        norm=own.norm,
        dropout=own.dropout,
        dropout_attention=own.dropout_attention,
        smoothing=own.smoothing,
        tied=own.tied,
        shared=own.shared,
    )


FAMILIES: dict[str, Callable[[PairSettings, int, int], nn.Module]] = {
    "recurrent": _recurrent,
    "transformer": _transformer,
}
