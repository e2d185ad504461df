"""A column of a table from the others: a number with its interval, a class, several labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ensue.data.frames.origin import Origin
from ensue.data.options import require
from ensue.data.settings import DataSettings
from ensue.errors import OptionError
from ensue.metrics.table import CLASS_METRICS, NUMBER_METRICS
from ensue.tasks.columns.cells import Grid, ShownRow, row_of_line
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.exported import Exported, Rounding
from ensue.tasks.model import Model
from ensue.tasks.rows.collect import Example
from ensue.tasks.rows.fixed_width import Arrays, RowSource, ScoredRows
from ensue.tasks.rows.labels import known_rows
from ensue.tasks.rows.part import Part, Tokenisers
from ensue.tasks.rows.recognise import number_wanted
from ensue.tasks.rows.task import Rows, RowTask
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.saved import Saved
from ensue.tasks.search.ranges import Between, Choice, Searched, Space
from ensue.tasks.table.averaging import CellAverages, RowModel, network_outputs
from ensue.tasks.table.content import TableContent, asked_in_memory, rows_in_memory
from ensue.tasks.table.exported import exported
from ensue.tasks.table.learned import CELLS, LearnedTable, kind_of
from ensue.tasks.table.network import TableNetwork
from ensue.tasks.table.options import OPTIONS
from ensue.tasks.table.recipe import table_recipe
from ensue.tasks.table.recognise import table_guess, targets_of
from ensue.tasks.table.settings import AUTO, TableSettings
from ensue.tasks.targets.answers import Classified, Estimated
from ensue.tasks.targets.classes import SeveralTarget
from ensue.tasks.targets.numbers import NumberTarget
from ensue.tasks.targets.target import TargetOutputs
from ensue.tasks.task import NOTHING, Asked, Packed, Recipe


class Tabular(RowTask[TableSettings, LearnedTable]):
    """A column of a table from the others."""

    name = "table"
    settings = TableSettings
    train_defaults: ClassVar[Mapping[str, Any]] = {"epochs": 100, "patience": 10, "rate": 2e-3}
    averages = CellAverages()
    metrics = tuple({metric.name: metric for metric in (*NUMBER_METRICS, *CLASS_METRICS)}.values())
    options = OPTIONS
    ranges: ClassVar[Space] = {
        "model.hidden": Searched(
            Choice(([], [32], [64], [64, 64], [128, 128], [256], [64, 64, 64]))
        ),
        "model.activations": Searched(Choice((["relu"], ["tanh"], ["prelu"]))),
        "model.dropout_layers": Searched(Between(0.0, 0.5)),
        "train.weight_decay": Searched(Between(0.0, 0.01)),
    }
    # Often better, by benchmarks/find_defaults.py (docs/defaults.md).
    favourites: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {"model.dropout_layers": 0.2, "train.weight_decay": 0.005},
        {"model.activations": ["prelu"]},
    )
    columns: ClassVar[Mapping[str, str]] = {"target": "data.label", "label": "data.label"}
    estimators = ("TableClassifier", "TableRegressor")
    adapts = True
    content = TableContent()

    # ------------------------------------------------------------- recognised
    def recognise(self, sample: Sample) -> Guess | None:
        return table_guess(sample, self._guess)

    def infer(self, sample: Sample) -> Guess:
        data = sample.data
        if not data.label:
            first, *others = map(partial(self._guess, sample), targets_of(sample))
            return replace(first, others=tuple(others))
        wanted = [name for name in (data.group, data.label) if name]
        require(wanted, sample.columns, sample.place)
        return self._guess(sample, data.label)

    def _guess(self, sample: Sample, label: str) -> Guess:
        data = sample.data
        kind = SeveralTarget.kind if data.separator else AUTO
        if number_wanted(sample, label):
            kind = NumberTarget.kind
        taken = [name for name in (data.group, label) if name]
        why = f"{label} from {len(sample.columns) - len(taken)} columns"
        return Guess(why, {"label": label}, {"model": {"target": kind}})

    # ------------------------------------------------------------- read
    def given(
        self,
        rows: Any,
        model: RowModel,
        columns: Mapping[str, str],
        before: Part | None = None,
    ) -> Part:
        """rows: by column name, or columns by name."""
        known = model.learned.target_column if model.fitted else ""
        target = columns.get("target") or columns.get("label") or known
        if not target:
            raise OptionError('target: expected the column to predict, target="price", got none')
        examples = list(rows_in_memory(rows, target))
        return self.collected(lambda: examples, model, before)

    def asked(self, inputs: Any, model: RowModel, asked: Asked = NOTHING) -> Part:
        """inputs: rows by column name, or columns by name."""
        given = inputs if isinstance(inputs, Mapping) else list(inputs)
        examples = list(asked_in_memory(given, model.learned.target_column))
        return self.collected(lambda: examples, model)

    def question_keys(self, origin: Origin) -> tuple[str, ...]:
        return ()

    def asked_lines(self, lines: Sequence[str], model: RowModel) -> Part:
        """Each line is a row as JSON."""
        return self.asked([row_of_line(line) for line in lines], model)

    def asked_content(self, data: DataSettings, model: RowModel) -> TableContent:
        """Without the column of the answers, which files that are asked about may have."""
        return TableContent((data.label, data.group, model.learned.target_column))

    def shown_input(self, example: Example) -> ShownRow:
        return ShownRow.of(example.value)

    def shown_line(self, line: str) -> ShownRow:
        return ShownRow(row_of_line(line))

    def tokenisers(self, rows: Rows, model: RowModel) -> Tokenisers:
        return CELLS

    def known_rows(self, train: Part, held: Part, model: RowModel) -> NDArray[np.int64] | None:
        """A number can be any; a class must be one of training."""
        number = kind_of(train, model.model) == NumberTarget.kind
        return None if number else known_rows(held, train)

    # ------------------------------------------------------------- learned
    def fitted_settings(self, train: Part, model: RowModel) -> Recipe:
        kind, said = kind_of(train, model.model), model.told["model"]
        return table_recipe(Grid.of(train), kind, model.model, said)

    def learn(self, train: Part, validation: Part, model: RowModel) -> LearnedTable:
        learned = LearnedTable.learn(train, model.model, model.roles.get("label", ""))
        return learned.cross_fitted(train, validation, model.model)

    def remarks(self, train: Part, validation: Part, model: RowModel) -> list[str]:
        return model.learned.remarks(train, model.model)

    def build(self, model: RowModel) -> TableNetwork:
        columns, target = model.learned.columns, model.learned.target
        counts = [len(column.categories) for column in columns.categories]
        made = columns.features.layer()
        return TableNetwork(columns.width, counts, target.width, target.cost, model.model, made)

    def source(self, train: Part, model: RowModel, seed: int) -> RowSource:
        arrays = model.learned.arrays(train, model.model)
        return RowSource(arrays, seed=seed, batch_rows=model.model.batch_rows, names=train.names)

    def validation(self, network: nn.Module, part: Part, model: RowModel) -> ScoredRows:
        def score(arrays: Arrays) -> dict[str, float]:
            target = model.learned.target
            z = network_outputs(network, arrays, target.width)
            return target.score(z, torch.from_numpy(arrays["targets"]), model.train.watch)

        return ScoredRows(score, model.learned.arrays(part, model.model))

    @torch.no_grad()
    def calibrate(self, validation: Part, model: RowModel) -> LearnedTable:
        arrays = model.learned.arrays(validation, model.model)
        width = model.learned.target.width
        outputs = [network_outputs(network, arrays, width) for network in model.networks]
        return model.learned.calibrated(outputs, arrays, model.model)

    # ------------------------------------------------------------- asked
    def decision_lines(self, asked: Asked, model: RowModel) -> list[str]:
        return model.learned.target.decision_lines(asked)

    def answer_names(self, model: RowModel) -> tuple[str, ...]:
        return model.learned.target.answer_names

    @torch.no_grad()
    def answers(self, part: Part, model: RowModel, asked: Asked = NOTHING) -> list[Any]:
        """`Estimated` of a number, `Classified` of classes. In float64: in float32 the last digits
        depend on which other rows are asked together."""
        if not len(part):
            return []
        own = self.averages
        return own.answers(own.outputs(part, model), part, model, asked)

    @torch.no_grad()
    def evaluate(self, part: Part, model: RowModel, asked: Asked = NOTHING) -> Evaluation:
        learned, inputs = model.learned, model.learned.inputs(part, model.model)
        outputs = [network_outputs(net, inputs, learned.target.width) for net in model.networks]
        baselines = self.averages.baselines(part, model)
        if learned.mixture is not None:
            baselines["network alone"] = torch.stack(outputs).mean(0)
        return learned.target.evaluate(
            TargetOutputs(
                learned.mixed(outputs, inputs),
                baselines,
                part,
                self.averages.shown(part),
                model.train.seed,
                asked,
            )
        )

    # ------------------------------------------------------------- kept, looked at
    def exported(self, model: RowModel) -> Exported:
        return exported(model)

    def rounded(self, learned: LearnedTable, rounding: Rounding) -> LearnedTable:
        if learned.mixture is None:
            return learned
        own = deepcopy(learned.linear)
        values = rounding(own.weight.detach().float().numpy())
        own.weight.data = torch.from_numpy(values).to(own.weight.dtype)
        return replace(learned, linear=own)

    def pack(self, learned: LearnedTable) -> Packed:
        return learned.pack()

    def unpack(self, saved: Saved, model: RowModel) -> LearnedTable:
        return LearnedTable.unpack(saved, model.model)

    def describe(self, model: RowModel) -> str:
        settings = model.model
        units = " → ".join(map(str, settings.hidden))
        return f"{units} units, {', '.join(settings.activations)}" if units else "linear"

    def facts(self, model: RowModel) -> list[str]:
        columns, target = model.learned.columns, model.learned.target
        read = f"{len(columns.numbers)} columns of numbers, {len(columns.categories)} of categories"
        features = columns.features.texts
        if features:
            read += f"; {len(features)} made: {', '.join(features)}"
        found = [f"{read} → {target.describe()}"]
        for number, network in enumerate(model.networks, 1):
            assert isinstance(network, TableNetwork)
            months = {} if network.features is None else network.features.learned_months()
            which = f" by network {number}" if model.members > 1 else ""
            found += [f"{text}: α = {alpha:.2f}{which}" for text, alpha in months.items()]
        return found


TASK = Tabular()


class TableModel(Model[TableSettings, Part, LearnedTable, Classified | Estimated]):
    """A column of a table from the others.

    Numbers are scaled, and categories known, by the training part alone.

    >>> rows = [{"area": float(area), "price": 2.0 * area} for area in range(40, 80)]
    >>> model = TableModel(train={"epochs": 5, "rate": 0.05}).fit(rows, target="price")
    >>> answer = model.predict([{"area": 50.0}])[0]
    >>> answer.low < answer.value < answer.high
    True
    """

    task = TASK
