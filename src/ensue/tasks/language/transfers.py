"""Transfer from a language model: its encoder to other tasks, the whole network to another language
model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from ensue.data.vocabulary import Vocabulary
from ensue.errors import OptionError
from ensue.tasks.blocks.encoders import ENCODERS
from ensue.tasks.language.networks import LanguageNetwork
from ensue.tasks.saved_cells import cell_facts
from ensue.tasks.transfer.ability import TEXT, EncoderNames, Transfers
from ensue.tasks.transfer.new_words import with_rows
from ensue.tasks.transfer.pretrained import Pretrained, renamed
from ensue.tasks.transfer.two_ways import TWO_WAYS

if TYPE_CHECKING:
    from ensue.tasks.any_model import AnyModel

# Settings that follow from the causal encoder of a language model.
ONE_WAY = {
    "bidirectional": False,
    "backward_start": "zero",
    "directions": "joined",
    "causal": True,
}


# Settings that determine the weights of a language model.
NETWORK = (
    "family",
    "direction",
    "layers",
    "cell",
    "hidden_size",
    "initial_state",
    "output_layers",
    "heads",
    "inner_size",
    "norm",
    "context",
    "filter_size",
    "dilated",
    "embedding_size",
    "tied",
    "softmax",
    "softmax_cuts",
)
RAREST = 0.1  # share of the base's words whose mean bias is the initial bias of new words


class LanguageTransfers(Transfers):
    """Transfers of a language model. Other tasks take its word vectors and layers without the
    output; a language model takes everything."""

    backward_alone = True
    follows = Transfers.follows | {f"model.{key}" for key in NETWORK}

    def gives(self, model: AnyModel, called: str, digest: str) -> Pretrained:
        settings, learned = model.settings, model.learned
        network = cast(LanguageNetwork, model.networks[0]) if model.networks else None
        encoder = None if network is None else network.encoder
        if network is None or encoder is None:
            raise OptionError(
                f"{called}: model.family = {settings.family} cannot be a base: expected a language "
                "model with an encoder, model.family = recurrent, both, transformer or convolution"
            )
        table = cast(nn.Embedding, network.table).weight.detach().cpu()
        known = {**settings.table(), **(TWO_WAYS if network.two_ways else ONE_WAY)}
        keys = ("layers", *ENCODERS[encoder].keys)
        return Pretrained(
            called,
            digest,
            learned.tokeniser,
            {key: getattr(model.text, key) for key in TEXT},
            learned.words,
            torch.cat([table] * (2 if network.two_ways else 1), 1).clone(),
            encoder=encoder,
            settings={key: known[key] for key in keys},
            weights=renamed(network.state_dict(), network.encoder_weights),
            direction=settings.direction,
            cells=cell_facts(settings),
            language={key: settings.table()[key] for key in NETWORK},
            whole=renamed(network.state_dict(), {"": ""}),
            dropout={
                "dropout_input": settings.dropout_input,
                "dropout_layers": settings.dropout_layers,
                "dropout_output": settings.dropout_output,
                "dropout_recurrent": settings.dropout_recurrent,
                "word_dropout": settings.dropout_word,
            },
        )

    def adapted(self, pretrained: Pretrained, model: AnyModel) -> Pretrained:
        return pretrained

    def architecture(self, pretrained: Pretrained, model: AnyModel) -> dict[str, Any]:
        if not pretrained.language:
            raise OptionError(
                f"base: a language model cannot begin from {pretrained.called}: expected one "
                "language "
                "model with layers, of the same direction"
            )
        if model.base.layers is not None or model.base.added:
            raise OptionError(
                "base.layers, base.added: a language model continues with all layers of its base; "
                "leave these settings out"
            )
        return dict(pretrained.language)

    def recipe(
        self, pretrained: Pretrained, model: AnyModel, rows: int
    ) -> Mapping[str, Mapping[str, Any]]:
        """The recipe: all layers learn from the start at the same rate. Only new words are fresh,
        and these are in the lowest layer and in the output."""
        return {"base": {"recipe": "whole", "rate_decay": 1.0}, "train": {"schedule": "slanted"}}

    def names(self, network: nn.Module) -> EncoderNames:
        language_network = cast(LanguageNetwork, network)
        return EncoderNames(
            "table.", {weight: here for here, weight in language_network.encoder_weights.items()}
        )

    def first(
        self, pretrained: Pretrained, model: AnyModel, network: nn.Module
    ) -> dict[str, Tensor]:
        """The initial weights: all of the base's, with additional rows for new words."""
        assert pretrained.words is not None
        words, state = model.learned.words, network.state_dict()
        tensors = dict(pretrained.whole)
        for name, tensor in pretrained.whole.items():
            if len(tensor) != len(state[name]):  # of all words, or of the rarest cluster
                tensors[name] = _extended(tensor, pretrained.words, words, model.base.new_words)
        return tensors


def _extended(rows: Tensor, known: Vocabulary, words: Vocabulary, start: str) -> Tensor:
    """Appends rows for the words that the base lacks. rows (n, …): the rows of the last n words of
    the known vocabulary. A vector is extended by the mean over its rarest words."""
    new = len(words) - len(known)
    if rows.dim() == 1:
        rarest = max(round(len(rows) * RAREST), 1)
        return torch.cat([rows, rows[-rarest:].mean().expand(new)])
    first = len(known) - len(rows)
    vocabulary = Vocabulary(known.tokens[first:], known.counts[first:], known.specials[first:])
    every = Vocabulary(words.tokens[first:], words.counts[first:], vocabulary.specials)
    return with_rows(rows, vocabulary, every, start)
