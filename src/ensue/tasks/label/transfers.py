"""A labeller that begins from a base."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ensue.tasks.transfer.pretrained import Pretrained
from ensue.tasks.transfer.rows import RowTransfers

if TYPE_CHECKING:
    from ensue.tasks.model import Model

# What a labeller reads of a word beside its vector: the layers of a base have no weights for it.
WORDS_ALONE = {"character_size": 0, "affixes": 0, "shapes": False}


class LabelTransfers(RowTransfers):
    """The layers of a base read words alone; the letters of words are left to the linear chain
    that answers beside the network."""

    def architecture(self, own: Pretrained, model: Model[Any, Any, Any]) -> dict[str, Any]:
        found = super().architecture(own, model)
        return {**found, **WORDS_ALONE} if own.encoder and own.words is not None else found
