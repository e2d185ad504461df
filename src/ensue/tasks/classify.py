"""The class of a sequence, or all of its labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ensue.metrics.table import CLASS_METRICS
from ensue.tasks.any_model import AnyModel
from ensue.tasks.explaining.heads import EncoderHeads
from ensue.tasks.model import Model
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.recipe import text_recipe
from ensue.tasks.rows.recognise import (
    RowRoles,
    as_guess,
    joined_guess,
    joined_label,
    joined_several,
    may_be_number,
    number_wanted,
    recognised,
    roles_of,
)
from ensue.tasks.rows.task import RowTask
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.search.ranges import Space
from ensue.tasks.search.usual import DROPPED_OUT, LEVEL, MIN_COUNT
from ensue.tasks.settings import BesideSettings, LabelSettings, LinearSettings
from ensue.tasks.supervised.explain import ExplainSteps
from ensue.tasks.supervised.inputs.joined import JoinsInputs, joined_recipe
from ensue.tasks.supervised.inputs.joined_learned import JoinedPart
from ensue.tasks.supervised.inputs.text import (
    MIXED,
    NgramSettings,
    PooledSettings,
    Text,
    WordTopics,
    telling_ngrams,
)
from ensue.tasks.supervised.learned import Learned
from ensue.tasks.supervised.options import OPTIONS
from ensue.tasks.supervised.task import Supervised, run_network
from ensue.tasks.targets.classes import ClassTarget, SeveralTarget
from ensue.tasks.targets.target import Classified, ThresholdSettings
from ensue.tasks.task import Recipe
from ensue.tasks.transfer.rows import ReaderTransfers


class ClassifierSettings(
    ThresholdSettings, NgramSettings, PooledSettings, BesideSettings, LinearSettings, LabelSettings
):
    """Its encoder, and what stands on top of it.

    >>> ClassifierSettings(pooling='mean+max').hidden_size
    128
    """

    several: bool = Field(False, description="A row may have several labels, or none.")

    @model_validator(mode="after")
    def _one_kind_of_ngrams(self) -> Self:
        if self.linear == MIXED and self.ngrams:
            raise ValueError(
                "linear: mixed has n-grams of its own; expected model.ngrams = 0, "
                f"got {self.ngrams}"
            )
        return self


class Classify(Supervised[ClassifierSettings]):
    """The class of a text, of tokens, or of a sequence of vectors."""

    name = "classify"
    settings = ClassifierSettings
    input = Text()
    joins = JoinsInputs()
    target_kinds = (ClassTarget.kind, SeveralTarget.kind)
    text_defaults: ClassVar[Mapping[str, Any]] = {"max_length": 20_000, "level": "auto"}
    train_defaults: ClassVar[Mapping[str, Any]] = {"patience": 3}
    metrics = CLASS_METRICS
    options = OPTIONS["classify"]
    ranges: ClassVar[Space] = {"text.level": LEVEL, "text.min_count": MIN_COUNT}
    favourites = (DROPPED_OUT,)
    columns: ClassVar[Mapping[str, str]] = {
        **RowTask.columns,
        "columns": "data.columns",
        "image": "data.image",
        "tree": "data.tree",
    }
    estimators = ("SequenceClassifier",)
    classes = True
    adapts = True
    heads = EncoderHeads(run_network)
    unlabelled = WordTopics()

    def target_kind(self, train: Any, settings: ClassifierSettings) -> str:
        return SeveralTarget.kind if settings.several else ClassTarget.kind

    def recognise(self, sample: Sample) -> Guess | None:
        if sample.data.joins:
            label = joined_label(sample)
            several = joined_several(sample, label)
            if not several and number_wanted(sample, label):
                return None
            doubtful = not several and may_be_number(sample, label)
            return replace(self._joined(sample, label), sure=not doubtful)
        return recognised(
            sample,
            lambda roles: (
                not roles.by_step and (roles.several or not number_wanted(sample, roles.label))
            ),
            partial(self._guess, sample),
        )

    def _joined(self, sample: Sample, label: str) -> Guess:
        several = joined_several(sample, label)
        return joined_guess(sample, label, {"model": {"several": True}} if several else {})

    def infer(self, sample: Sample) -> Guess:
        if sample.data.joins:
            return self._joined(sample, joined_label(sample))
        return as_guess(roles_of(sample).readings, partial(self._guess, sample))

    def _guess(self, sample: Sample, roles: RowRoles) -> Guess:
        unit = sample.data.sequence or "row"
        why = f"several labels for each {unit}" if roles.several else f"one label for each {unit}"
        return Guess(why, roles.data, {"model": {"several": True}} if roles.several else {})

    def fitted_settings(self, train: Any, model: AnyModel) -> Recipe:
        mixed = not model.told["model"] & {"ngrams"}
        if isinstance(train, JoinedPart):
            return joined_recipe(train, model, self.target_kind(train, model.model), bool(mixed))
        return text_recipe(train, model, bool(mixed))


def _indicators(train: Part, settings: ClassifierSettings) -> NDArray[Any]:
    """(rows, labels) zeros and ones, of one label for each row as of several."""
    if settings.several:
        return SeveralTarget.learn(train).encode(train)
    target = ClassTarget.learn(train)
    return np.eye(target.width, dtype=np.int64)[target.encode(train)]


TASK = Classify()
Classify.explains = ExplainSteps(TASK)
Classify.transfers = ReaderTransfers(pooled=True, goals=_indicators)


class Classifier(Model[ClassifierSettings, Part, Learned, Classified]):
    """The class of a text, of tokens, or of a sequence of vectors.

    >>> rows = [("a fine film", "good"), ("dull and long", "bad")] * 10
    >>> model = Classifier(model={"hidden_size": 8}, train={"epochs": 6, "rate": 0.05}).fit(rows)
    >>> model.predict(["a fine one"])[0].label
    'good'
    """

    task = TASK

    def most_telling(self, label: str, count: int = 10) -> list[str]:
        """The n-grams that speak most for a class, by the linear model."""
        return telling_ngrams(self.learned, label, count)
