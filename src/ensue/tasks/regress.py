"""A number from a text, from tokens, or from a sequence of vectors, with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from ensue.metrics.table import NUMBER_METRICS
from ensue.settings import OneOf
from ensue.tasks.any_model import AnyModel
from ensue.tasks.model import Model
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.recognise import (
    RowRoles,
    as_guess,
    doubtful_number,
    number_wanted,
    row_guess,
    row_roles,
)
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.settings import BesideSettings, LinearSettings, NetworkSettings
from ensue.tasks.supervised.inputs.text import MIXED, PooledSettings
from ensue.tasks.supervised.learned import Learned
from ensue.tasks.supervised.options import OPTIONS
from ensue.tasks.supervised.text_task import TextTask
from ensue.tasks.targets.kinds import numeric_kinds
from ensue.tasks.targets.numbers import NumberTarget, label_values
from ensue.tasks.targets.target import Estimated, NumberSettings
from ensue.tasks.transfer.rows import ReaderTransfers


class RegressorSettings(
    PooledSettings, BesideSettings, LinearSettings, NumberSettings, NetworkSettings
):
    """The encoder, and the distribution of the number.

    >>> RegressorSettings(distribution='mixture').interval
    0.9
    """

    target: Annotated[str, OneOf(lambda: numeric_kinds(), "target")] = Field(
        NumberTarget.kind, description="Kind of target: a number, or a custom target."
    )

    @model_validator(mode="after")
    def _mixed_gaussians(self) -> Self:
        if self.linear == MIXED and self.distribution != "gaussian":
            raise ValueError(
                "linear: only a gaussian can be mixed; expected model.distribution = "
                f"gaussian, got {self.distribution}"
            )
        return self


class Regress(TextTask[RegressorSettings]):
    """A number from a text or a sequence of vectors, with its interval."""

    name = "regress"
    settings = RegressorSettings
    target_kinds = (NumberTarget.kind,)
    train_defaults: ClassVar[Mapping[str, Any]] = {"epochs": 20, "patience": 4}
    metrics = NUMBER_METRICS
    options = OPTIONS["regress"]
    estimators = ("SequenceRegressor",)
    transfers = ReaderTransfers(
        pooled=True, goals=lambda train, model: label_values(train)[:, np.newaxis]
    )

    def wants(self, sample: Sample, roles: RowRoles) -> bool:
        if roles.by_step or roles.several:
            return False
        return number_wanted(sample, roles.label) or doubtful_number(sample, roles)

    def infer(self, sample: Sample) -> Guess:
        readings = row_roles(sample).readings
        numbers = [reading for reading in readings if sample.numeric(reading.label)]
        return as_guess(numbers or readings, partial(self.guess, sample))

    def guess(self, sample: Sample, roles: RowRoles) -> Guess:
        return row_guess(sample, roles, f"{roles.label} is a number to predict", {})

    def mixes(self, model: AnyModel) -> bool:
        return bool(model.settings.distribution == "gaussian")


TASK = Regress()


class Regressor(Model[RegressorSettings, Part, Learned, Estimated]):
    """A number from a text, from tokens, or from a sequence of vectors, with its interval.

    >>> rows = [("a fine film", 8.5), ("dull and long", 3.0)] * 10
    >>> model = Regressor(model={"hidden_size": 8}, train={"epochs": 6, "rate": 0.05}).fit(rows)
    >>> fine, dull = model.predict(["a fine one", "dull"])
    >>> fine.value > dull.value
    True
    """

    task = TASK
