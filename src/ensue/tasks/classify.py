"""The class of a sequence, or all of its labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ensue.metrics.table import CLASS_METRICS
from ensue.tasks.any_model import AnyModel
from ensue.tasks.model import Model
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.recognise import (
    RowRoles,
    number_wanted,
    row_guess,
)
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.settings import BesideSettings, LabelSettings, LinearSettings
from ensue.tasks.supervised.inputs.text import (
    MIXED,
    NgramSettings,
    PooledSettings,
    WordTopics,
    telling_ngrams,
)
from ensue.tasks.supervised.learned import Learned
from ensue.tasks.supervised.options import OPTIONS
from ensue.tasks.supervised.text_task import TextTask
from ensue.tasks.targets.classes import ClassTarget, SeveralTarget
from ensue.tasks.targets.target import Classified, ThresholdSettings
from ensue.tasks.transfer.rows import ReaderTransfers


class ClassifierSettings(
    ThresholdSettings, NgramSettings, PooledSettings, BesideSettings, LinearSettings, LabelSettings
):
    """The encoder, and the layers on top of it.

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


class Classify(TextTask[ClassifierSettings]):
    """The class of a text, of tokens, or of a sequence of vectors."""

    name = "classify"
    settings = ClassifierSettings
    target_kinds = (ClassTarget.kind, SeveralTarget.kind)
    train_defaults: ClassVar[Mapping[str, Any]] = {"patience": 3}
    metrics = CLASS_METRICS
    options = OPTIONS["classify"]
    estimators = ("SequenceClassifier",)
    classes = True
    unlabelled = WordTopics()

    def target_kind(self, train: Any, settings: ClassifierSettings) -> str:
        return SeveralTarget.kind if settings.several else ClassTarget.kind

    def wants(self, sample: Sample, roles: RowRoles) -> bool:
        number = not roles.several and number_wanted(sample, roles.label)
        return not (roles.by_step or number)

    def guess(self, sample: Sample, roles: RowRoles) -> Guess:
        unit = sample.data.sequence or "row"
        why = f"several labels for each {unit}" if roles.several else f"one label for each {unit}"
        tables = {"model": {"several": True}} if roles.several else {}
        return row_guess(sample, roles, why, tables)

    def mixes(self, model: AnyModel) -> bool:
        return "ngrams" not in model.explicit["model"]


def _indicators(train: Part, settings: ClassifierSettings) -> NDArray[Any]:
    """(rows, labels) of zeros and ones, for single and multiple labels."""
    if settings.several:
        return SeveralTarget.learn(train).encode(train)
    target = ClassTarget.learn(train)
    return np.eye(target.width, dtype=np.int64)[target.encode(train)]


TASK = Classify()
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
        """The n-grams with the highest weights for a class, by the linear model."""
        return telling_ngrams(self.learned, label, count)
