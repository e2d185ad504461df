"""A column of a table from the others: a number with its interval, a class, several labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar

from pydantic import Field

from ensue.data.options import require
from ensue.metrics.table import CLASS_METRICS, NUMBER_METRICS
from ensue.settings import OneOf
from ensue.tasks.any_model import AnyModel
from ensue.tasks.columns.cells import Grid
from ensue.tasks.columns.recognise import table_guess, table_recipe, targets_of
from ensue.tasks.model import Model
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.recognise import number_wanted
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.search.ranges import Between, Choice, Searched, Space
from ensue.tasks.supervised.explain import ExplainUnits
from ensue.tasks.supervised.inputs.columns import Columns, ColumnsSettings
from ensue.tasks.supervised.learned import Learned
from ensue.tasks.supervised.options import EXPLAINED_VALUES, OPTIONS
from ensue.tasks.supervised.task import AUTO, Supervised
from ensue.tasks.targets.classes import SeveralTarget
from ensue.tasks.targets.kinds import TARGETS
from ensue.tasks.targets.numbers import NumberTarget
from ensue.tasks.targets.target import Classified, Estimated, NumberSettings, ThresholdSettings
from ensue.tasks.task import Recipe


class TableSettings(ThresholdSettings, NumberSettings, ColumnsSettings):
    """How a row is read, the network, and the target.

    >>> TableSettings(hidden=[32]).batch_rows
    64
    """

    target: Annotated[str, OneOf(lambda: (AUTO, *TARGETS), "target")] = Field(
        AUTO, description="Kind of target; auto: inferred from the label's column."
    )


class Tabular(Supervised[TableSettings]):
    """A column of a table from the others."""

    name = "table"
    settings = TableSettings
    input = Columns()
    target_kinds = (AUTO,)
    train_defaults: ClassVar[Mapping[str, Any]] = {"epochs": 100, "patience": 10, "rate": 2e-3}
    metrics = tuple({metric.name: metric for metric in (*NUMBER_METRICS, *CLASS_METRICS)}.values())
    options = OPTIONS["table"]
    explains = ExplainUnits(EXPLAINED_VALUES)
    ranges: ClassVar[Space] = {
        "model.hidden": Searched(
            Choice(([], [32], [64], [64, 64], [128, 128], [256], [64, 64, 64]))
        ),
        "model.activations": Searched(Choice((["relu"], ["tanh"], ["prelu"]))),
        "model.dropout_layers": Searched(Between(0.0, 0.5)),
        "train.weight_decay": Searched(Between(0.0, 0.01)),
    }
    # Often better, by benchmarks/find_defaults.py (docs/evidence/defaults.md).
    favourites: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {"model.dropout_layers": 0.2, "train.weight_decay": 0.005},
        {"model.activations": ["prelu"]},
    )
    columns: ClassVar[Mapping[str, str]] = {"target": "data.label", "label": "data.label"}
    estimators = ("TableClassifier", "TableRegressor")
    adapts = True

    def recognise(self, sample: Sample) -> Guess | None:
        return table_guess(sample, self._guess)

    def infer(self, sample: Sample) -> Guess:
        data = sample.data
        if not data.label:
            first, *others = map(partial(self._guess, sample), targets_of(sample))
            return replace(first, others=tuple(others))
        require([name for name in (data.group, data.label) if name], sample.columns, sample.place)
        return self._guess(sample, data.label)

    def _guess(self, sample: Sample, label: str) -> Guess:
        kind = SeveralTarget.kind if sample.data.separator else AUTO
        if number_wanted(sample, label):
            kind = NumberTarget.kind
        roles = [name for name in (sample.data.group, label) if name]
        why = f"{label} from {len(sample.columns) - len(roles)} columns"
        return Guess(why, {"label": label}, {"model": {"target": kind}})

    def fitted_settings(self, train: Part, model: AnyModel) -> Recipe:
        kind = self.target_kind(train, model.settings)
        return table_recipe(Grid.of(train), kind, model.settings, model.explicit["model"])


TASK = Tabular()


class TableModel(Model[TableSettings, Part, Learned, Classified | Estimated]):
    """A column of a table from the others.

    Scales of numbers and known categories come from the training part only.

    >>> rows = [{"area": float(area), "price": 2.0 * area} for area in range(40, 80)]
    >>> model = TableModel(train={"epochs": 5, "rate": 0.05}).fit(rows, target="price")
    >>> answer = model.predict([{"area": 50.0}])[0]
    >>> answer.low < answer.value < answer.high
    True
    """

    task = TASK
