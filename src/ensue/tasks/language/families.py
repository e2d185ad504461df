"""The families of language models: counted, or trained."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, cast

from torch import nn

from ensue.data.ragged import Ragged
from ensue.errors import OptionError
from ensue.tasks.language.backward import FromTheRight
from ensue.tasks.language.both_sides import BothSidesLanguage
from ensue.tasks.language.convolution import ConvolutionLanguage
from ensue.tasks.language.ensemble import Ensemble, NextToken
from ensue.tasks.language.learned import LearnedLanguage, NgramDesign
from ensue.tasks.language.networks import LanguageNetwork
from ensue.tasks.language.recurrent import RecurrentLanguage
from ensue.tasks.language.settings import LanguageSettings
from ensue.tasks.language.transformer import TransformerLanguage
from ensue.tasks.language.window import WindowLanguage
from ensue.tasks.model import Model
from ensue.tasks.rows.part import Part
from ensue.tasks.search.ranges import Choice, Searched, Sizes, Space
from ensue.tasks.task import Family

AnyLanguageModel = Model[LanguageSettings, Part, LearnedLanguage]
BASELINE = NgramDesign(3, "kneser-ney")  # what networks are compared with


class LanguageFamily(Family[LanguageSettings]):
    """A kind of model that says what comes next. looks_ahead: in training it reads what comes
    after a piece of the text too."""

    looks_ahead: bool = False

    @abstractmethod
    def ngrams(self, settings: LanguageSettings) -> NgramDesign:
        """The n-grams that are counted in the training part."""

    @abstractmethod
    def members(self, model: AnyLanguageModel) -> Sequence[NextToken]:
        """What a fitted model answers with."""

    @abstractmethod
    def baselines(self, rows: Ragged, model: AnyLanguageModel) -> dict[str, float]:
        """Perplexities of simpler models."""


class NgramFamily(LanguageFamily):
    """N-grams: counted and smoothed."""

    solved: ClassVar[bool] = True

    def ngrams(self, settings: LanguageSettings) -> NgramDesign:
        return NgramDesign(settings.order, settings.ngram_smoothing, settings.add)

    def members(self, model: AnyLanguageModel) -> Sequence[NextToken]:
        return [model.learned.ngrams]

    def baselines(self, rows: Ragged, model: AnyLanguageModel) -> dict[str, float]:
        return {}

    def build(self, model: AnyLanguageModel) -> nn.Module:
        raise OptionError("model.family = ngram is counted and has no network")

    def describe(self, settings: LanguageSettings) -> str:
        return f"{settings.order}-grams, {settings.ngram_smoothing}"


class NetworkFamily(LanguageFamily):
    """Networks of one kind, trained."""

    def __init__(self, kind: type[LanguageNetwork], looks_ahead: bool = False) -> None:
        self._kind, self.looks_ahead = kind, looks_ahead

    def ngrams(self, settings: LanguageSettings) -> NgramDesign:
        return BASELINE

    def members(self, model: AnyLanguageModel) -> Sequence[NextToken]:
        networks = cast(list[LanguageNetwork], model.networks)
        if model.model.direction == "backward":
            return [FromTheRight(network) for network in networks]
        return networks

    def baselines(self, rows: Ragged, model: AnyLanguageModel) -> dict[str, float]:
        return {f"{BASELINE.order}-grams": model.learned.ngrams.perplexity(rows)}

    def build(self, model: AnyLanguageModel) -> nn.Module:
        return self._kind.of(model.model, len(model.learned.words))

    def describe(self, settings: LanguageSettings) -> str:
        return self._kind.describe(settings)


FAMILIES: dict[str, LanguageFamily] = {
    "recurrent": NetworkFamily(RecurrentLanguage),
    "both": NetworkFamily(BothSidesLanguage, looks_ahead=True),
    "window": NetworkFamily(WindowLanguage),
    "ngram": NgramFamily(),
    "transformer": NetworkFamily(TransformerLanguage),
    "convolution": NetworkFamily(ConvolutionLanguage),
}

TRAINED = ("recurrent", "window", "transformer", "convolution")
# Which word stands between others is another question than what comes next: no family of both.
RANGES: Space = {
    "model.family": Searched(Choice((*TRAINED, "ngram"))),
    "model.order": Searched(Choice((3, 4, 5, 6), ordered=True), {"model.family": ("ngram",)}),
    "model.window": Searched(Sizes(1), {"model.family": ("window",)}),
    "model.columns": Searched(Sizes(1, 4), {"model.family": TRAINED}),
}


def ensemble_of(model: AnyLanguageModel) -> Ensemble:
    """All members of a fitted model as one."""
    model.must_be_fitted()
    return Ensemble(FAMILIES[model.model.family].members(model))
