"""A labeller that begins from a base."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from torch import Tensor, nn

from ensue.errors import OptionError
from ensue.tasks.blocks.letter_states import LetterStates
from ensue.tasks.transfer.ability import EncoderNames
from ensue.tasks.transfer.first_weights import first_weights
from ensue.tasks.transfer.pretrained import Pretrained
from ensue.tasks.transfer.rows import EmbeddedRows, RowTransfers

if TYPE_CHECKING:
    from ensue.tasks.model import Model

# What a labeller reads of a word beside its vector: the layers of a base have no weights for it.
WORDS_ALONE = {"character_size": 0, "affixes": 0, "shapes": False}
LETTERS = "characters"  # the level of a base that reads letters


class LabelTransfers(RowTransfers):
    """The layers of a base of words read words alone; the letters of words are left to the linear
    chain that answers beside the network. The states of a base of letters stand beside all that a
    labeller of words reads."""

    def taken(self, own: Pretrained, model: Model[Any, Any, Any]) -> Pretrained:
        own = super().taken(own, model)
        if own.text.get("level") != LETTERS or model.text.level == LETTERS or not own.encoder:
            return own
        if model.base.layers is not None or model.base.added:
            raise OptionError(
                f"base.layers, base.added: {own.called} reads letters, and its states stand beside "
                "the words; all of its layers are used, leave these settings out"
            )
        return Pretrained(own.called, own.digest, context=own)

    def architecture(self, own: Pretrained, model: Model[Any, Any, Any]) -> dict[str, Any]:
        found = super().architecture(own, model)
        return {**found, **WORDS_ALONE} if own.encoder and own.words is not None else found

    def recipe(
        self, own: Pretrained, model: Model[Any, Any, Any], rows: int
    ) -> Mapping[str, Mapping[str, Any]]:
        if own.context is not None:
            return {"base": {"recipe": "frozen"}}
        return super().recipe(own, model, rows)

    def learned(self, own: Pretrained, model: Model[Any, Any, Any]) -> Pretrained:
        return own.context or super().learned(own, model)

    def first(
        self, own: Pretrained, model: Model[Any, Any, Any], network: nn.Module
    ) -> dict[str, Tensor]:
        """Of a base of letters, their vectors too."""
        letters = own.context
        if letters is None:
            return super().first(own, model, network)
        names = self.names(network)
        found = first_weights(letters, letters.layers, names, network)
        assert letters.table is not None
        return {**found, names.table: letters.table}

    def names(self, network: nn.Module) -> EncoderNames:
        for number, feature in enumerate(cast(EmbeddedRows, network).embed.features):
            if isinstance(feature, LetterStates):
                begin = f"embed.features.{number}."
                return EncoderNames(f"{begin}table.weight", {"": f"{begin}encoder."})
        return super().names(network)
