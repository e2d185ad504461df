"""A translator whose source encoder begins from a base."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from ensue.errors import OptionError
from ensue.tasks.transfer.ability import EncoderNames, Refuses
from ensue.tasks.transfer.first_weights import encoder_settings, first_weights
from ensue.tasks.transfer.pretrained import Pretrained, taken_layers

if TYPE_CHECKING:
    from ensue.tasks.model import Model

ENCODER = "recurrent"
NOT_KEYS = ("encoder", "directions")  # a translator has one kind, whose directions are joined


class TranslateTransfers(Refuses):
    """The words and layers that read a source; the decoder is learned anew. The text settings of a
    translator are those of its targets then: sources are cut as the texts of the base were."""

    def taken(self, own: Pretrained, model: Model[Any, Any, Any]) -> Pretrained:
        return replace(super().taken(own, model), text={})

    def architecture(self, own: Pretrained, model: Model[Any, Any, Any]) -> dict[str, Any]:
        settings = model.model
        misfits = {
            f"it has {_kind(own)}; expected recurrent layers over words": not _fits(own),
            "model.family: expected recurrent, got transformer": settings.family != ENCODER,
            "model.shared: expected false, a base has the words of one side": settings.shared,
            "model.reverse_source: expected false, as the base reads": settings.reverse_source,
        }
        wrong = [told for told, misfit in misfits.items() if misfit]
        if wrong:
            raise OptionError(
                f"base: a translate model cannot begin from {own.called}: {'; '.join(wrong)}"
            )
        found = encoder_settings(own, model.base)
        return {key: value for key, value in found.items() if key not in NOT_KEYS}

    def learned(self, own: Pretrained, model: Model[Any, Any, Any]) -> Pretrained:
        return replace(own, words=model.learned.source_words, table=model.learned.start)

    def names(self, network: nn.Module) -> EncoderNames:
        return EncoderNames("network.table.weight", {"recurrent.": "network.encoder."})

    def first(
        self, own: Pretrained, model: Model[Any, Any, Any], network: nn.Module
    ) -> dict[str, Tensor]:
        """Those of the layers; the vectors of words are there already."""
        return first_weights(own, taken_layers(own, model.base), self.names(network), network)


def _fits(own: Pretrained) -> bool:
    apart = own.settings.get("directions") == "apart"
    return own.encoder == ENCODER and own.words is not None and not apart


def _kind(own: Pretrained) -> str:
    if own.settings.get("directions") == "apart":
        return "two directions that are apart"
    if own.encoder and own.words is None:
        return "layers of vectors"
    return f"{own.encoder} layers" if own.encoder else "no layers"
