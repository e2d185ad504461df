"""The encoder of a language model, as other tasks take it over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn

from ensue.errors import OptionError
from ensue.tasks.blocks.encoders import ENCODERS
from ensue.tasks.kept_cells import cell_facts
from ensue.tasks.language.networks import LanguageNetwork
from ensue.tasks.transfer.ability import TEXT, EncoderNames, Transfers
from ensue.tasks.transfer.pretrained import Pretrained, renamed
from ensue.tasks.transfer.two_ways import TWO_WAYS

if TYPE_CHECKING:
    from ensue.tasks.model import Model

# What the encoder of a language model is beside its settings: it sees nothing of what comes next.
ONE_WAY = {
    "bidirectional": False,
    "backward_start": "zero",
    "directions": "joined",
    "causal": True,
}


class LanguageTransfers(Transfers):
    """The word vectors and the layers that say what comes next, without what is read off them."""

    def gives(self, model: Model[Any, Any, Any], called: str, digest: str) -> Pretrained:
        settings, learned = model.model, model.learned
        network = cast(LanguageNetwork, model.networks[0]) if model.networks else None
        own = None if network is None else network.encoder
        if network is None or own is None:
            raise OptionError(
                f"{called}: model.family = {settings.family} cannot be a base: expected a language "
                "model with an encoder, model.family = recurrent, both, transformer or convolution"
            )
        table = cast(nn.Embedding, network.table).weight.detach().cpu()
        known = {**settings.table(), **(TWO_WAYS if network.two_ways else ONE_WAY)}
        keys = ("layers", *ENCODERS[own].keys)
        return Pretrained(
            called,
            digest,
            learned.tokeniser,
            {key: getattr(model.text, key) for key in TEXT},
            learned.words,
            torch.cat([table] * (2 if network.two_ways else 1), 1).clone(),
            encoder=own,
            settings={key: known[key] for key in keys},
            weights=renamed(network.state_dict(), network.encoder_weights),
            direction=settings.direction,
            cells=cell_facts(settings),
            dropout={
                "dropout_input": settings.dropout_input,
                "dropout_layers": settings.dropout_layers,
                "dropout_output": settings.dropout_output,
                "dropout_recurrent": settings.dropout_recurrent,
                "word_dropout": settings.dropout_word,
            },
        )

    def architecture(self, own: Pretrained, model: Model[Any, Any, Any]) -> dict[str, Any]:
        raise OptionError(
            f"base: a language model cannot begin from {own.called}: it learns "
            "all of its layers anew"
        )

    def names(self, network: nn.Module) -> EncoderNames:
        raise AssertionError("a base was refused")
