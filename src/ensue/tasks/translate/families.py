"""The kinds of networks that translate, by `model.family`."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, cast

import torch
from torch import nn

from ensue.tasks.model import Model
from ensue.tasks.seq2seq.source import Taught
from ensue.tasks.task import Family
from ensue.tasks.translate.learned import LearnedPairs
from ensue.tasks.translate.reading import SourceSize
from ensue.tasks.translate.recurrent import RecurrentPairs
from ensue.tasks.translate.settings import PairSettings
from ensue.tasks.translate.transformer import TransformerPairs


class PairFamily(Family[PairSettings]):
    @abstractmethod
    def attends(self, settings: PairSettings) -> bool:
        """Whether the words of a translation look at those of the source."""


class RecurrentTranslation(PairFamily):
    def build(self, model: Model[PairSettings, Any, Any]) -> Taught:
        network = RecurrentPairs(*_sizes(model.learned), model.model)
        if model.learned.start is not None:
            with torch.no_grad():
                cast(nn.Embedding, network.table).weight.copy_(model.learned.start)
        return Taught(network)

    def describe(self, settings: PairSettings) -> str:
        ways = "bidirectional " if settings.bidirectional else ""
        looks = "no" if settings.attention == "none" else settings.attention
        layers = f"{settings.layers} × {ways}{settings.cell} of {settings.hidden_size}"
        return f"{layers}, {looks} attention"

    def attends(self, settings: PairSettings) -> bool:
        return settings.attention != "none"


class TransformerFamily(PairFamily):
    def build(self, model: Model[PairSettings, Any, Any]) -> Taught:
        return Taught(TransformerPairs(*_sizes(model.learned), model.model))

    def describe(self, settings: PairSettings) -> str:
        layers = settings.layers
        return f"transformer, {layers} + {layers} layers of {settings.hidden_size}"

    def attends(self, settings: PairSettings) -> bool:
        return True


FAMILIES: dict[str, PairFamily] = {
    "recurrent": RecurrentTranslation(),
    "transformer": TransformerFamily(),
}


def _sizes(learned: LearnedPairs) -> tuple[SourceSize, int]:
    """What sources are made of, and how many words the target has."""
    if learned.scale is not None:
        return SourceSize(features=learned.scale.width), len(learned.target.words)
    assert learned.source_words is not None
    return SourceSize(words=len(learned.source_words)), len(learned.target.words)
