"""A number from a text, from tokens, or from a sequence of vectors, with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from ensue.metrics.table import NUMBER_METRICS
from ensue.settings import OneOf
from ensue.tasks.any_model import AnyModel
from ensue.tasks.explaining.heads import EncoderHeads
from ensue.tasks.model import Model
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.recipe import text_recipe
from ensue.tasks.rows.recognise import (
    RowRoles,
    as_guess,
    doubtful_number,
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
from ensue.tasks.settings import BesideSettings, LinearSettings, NetworkSettings
from ensue.tasks.supervised.explain import ExplainSteps
from ensue.tasks.supervised.inputs.joined import JoinsInputs, joined_recipe
from ensue.tasks.supervised.inputs.joined_learned import JoinedPart
from ensue.tasks.supervised.inputs.text import MIXED, PooledSettings, Text
from ensue.tasks.supervised.learned import Learned
from ensue.tasks.supervised.options import OPTIONS
from ensue.tasks.supervised.task import Supervised, run_network
from ensue.tasks.targets.kinds import numeric_kinds
from ensue.tasks.targets.numbers import NumberTarget, label_values
from ensue.tasks.targets.target import Estimated, NumberSettings
from ensue.tasks.task import Recipe
from ensue.tasks.transfer.rows import ReaderTransfers


class RegressorSettings(
    PooledSettings, BesideSettings, LinearSettings, NumberSettings, NetworkSettings
):
    """Its encoder, and the distribution of the number.

    >>> RegressorSettings(distribution='mixture').interval
    0.9
    """

    target: Annotated[str, OneOf(lambda: numeric_kinds(), "target")] = Field(
        NumberTarget.kind, description="What is predicted: a number, or a target of your own."
    )

    @model_validator(mode="after")
    def _mixed_gaussians(self) -> Self:
        if self.linear == MIXED and self.distribution != "gaussian":
            raise ValueError(
                "linear: a gaussian alone can be mixed; expected model.distribution = gaussian, "
                f"got {self.distribution}"
            )
        return self


class Regress(Supervised[RegressorSettings]):
    """A number from a text or a sequence of vectors, with its interval."""

    name = "regress"
    settings = RegressorSettings
    input = Text()
    joins = JoinsInputs()
    target_kinds = (NumberTarget.kind,)
    text_defaults: ClassVar[Mapping[str, Any]] = {"max_length": 20_000, "level": "auto"}
    train_defaults: ClassVar[Mapping[str, Any]] = {"epochs": 20, "patience": 4}
    metrics = NUMBER_METRICS
    options = OPTIONS["regress"]
    ranges: ClassVar[Space] = {"text.level": LEVEL, "text.min_count": MIN_COUNT}
    favourites = (DROPPED_OUT,)
    columns: ClassVar[Mapping[str, str]] = {
        **RowTask.columns,
        "columns": "data.columns",
        "image": "data.image",
        "tree": "data.tree",
    }
    estimators = ("SequenceRegressor",)
    adapts = True
    heads = EncoderHeads(run_network)
    transfers = ReaderTransfers(
        pooled=True, goals=lambda train, model: label_values(train)[:, np.newaxis]
    )

    def recognise(self, sample: Sample) -> Guess | None:
        if sample.data.joins:
            label = joined_label(sample)
            doubtful = may_be_number(sample, label)
            if joined_several(sample, label) or not (doubtful or number_wanted(sample, label)):
                return None
            return replace(joined_guess(sample, label, {}), sure=not doubtful)
        return recognised(
            sample,
            lambda roles: (
                not roles.by_step
                and not roles.several
                and (number_wanted(sample, roles.label) or doubtful_number(sample, roles))
            ),
            self._guess,
        )

    def infer(self, sample: Sample) -> Guess:
        if sample.data.joins:
            return joined_guess(sample, joined_label(sample), {})
        roles = roles_of(sample)
        numbers = [reading for reading in roles.readings if sample.numeric(reading.label)]
        return as_guess(numbers or roles.readings, self._guess)

    def _guess(self, roles: RowRoles) -> Guess:
        return Guess(f"{roles.label} is a number to predict", roles.data)

    def fitted_settings(self, train: Any, model: AnyModel) -> Recipe:
        mixed = model.model.distribution == "gaussian"
        if isinstance(train, JoinedPart):
            return joined_recipe(train, model, self.target_kind(train, model.model), bool(mixed))
        return text_recipe(train, model, bool(mixed))


TASK = Regress()
Regress.explains = ExplainSteps(TASK)


class Regressor(Model[RegressorSettings, Part, Learned, Estimated]):
    """A number from a text, from tokens, or from a sequence of vectors, with its interval.

    >>> rows = [("a fine film", 8.5), ("dull and long", 3.0)] * 10
    >>> model = Regressor(model={"hidden_size": 8}, train={"epochs": 6, "rate": 0.05}).fit(rows)
    >>> fine, dull = model.predict(["a fine one", "dull"])
    >>> fine.value > dull.value
    True
    """

    task = TASK
