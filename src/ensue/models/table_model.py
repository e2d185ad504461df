"""`TableModel`: a row of a table in, a number with its interval or a class out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from ensue.data.series import number_of
from ensue.errors import DataError, OptionError
from ensue.models.collect import Collected, Examples, Numbers, counts_of
from ensue.models.evaluation import Evaluation
from ensue.models.labels import known_rows
from ensue.models.regression import Regression
from ensue.models.row_source import Arrays, RowSource, ScoredRows, taken
from ensue.models.saved import Saved, network_files, networks_of
from ensue.models.settings import Table
from ensue.models.table_cells import Grid, Rows, cells_of, rows_of
from ensue.models.table_classes import ClassTarget, SeveralTarget
from ensue.models.table_columns import TableColumns
from ensue.models.table_network import TableNetwork
from ensue.models.table_settings import TableSettings
from ensue.models.table_targets import Asked, NumberTarget, Target
from ensue.models.task_model import IN_MEMORY, Fitting, Given, TaskModel
from ensue.training import Outcome, RateCurve, Said, Watcher, find_rate

AT_ONCE = 4096  # rows that the networks see together when they answer
BASELINE_CATEGORIES = 50  # of a column, that the linear model sees
RIDGE = 1e-3  # of the linear model
FEW_NUMBERS = 20  # different whole numbers of a target that may be classes


class TableModel(TaskModel):
    """Predicts a column of a table from the others.

    model = TableModel().fit(rows, target="price")    # rows by column name, or columns by name
    model.predict([{"area": 93, "town": "Delft"}])[0].value

    Numbers are scaled, and categories known, by the training part alone."""

    kind = "table"
    model_settings: ClassVar[type[Table]] = TableSettings
    train_defaults: ClassVar[Given] = {"epochs": 100, "patience": 10, "rate": 2e-3}
    model: TableSettings

    columns: TableColumns
    goal: Target
    linear: Regression
    target = ""  # the column's name, where fit was told

    # ------------------------------------------------------------- the verbs
    def fit(
        self,
        rows: Rows,
        validation: Rows | None = None,
        *,
        target: str,
        folder: Path | str | None = None,
        watchers: Sequence[Watcher] = (),
    ) -> Self:
        """From rows with the target among their columns. Without validation, a tenth of the rows
        is held out."""
        self.target = target
        held = None if validation is None else self._examples(validation, target)
        return self._fit_rows(self._examples(rows, target), held, folder, watchers)

    def evaluate(self, rows: Rows, *, target: str = "") -> Evaluation:
        """Scores with intervals, baselines, calibration. target: the column, where it is not the
        one that `fit` was told."""
        self.must_be_fitted()
        part, numbers = self.collect(self._examples(rows, target or self.target))
        if not len(part):
            raise DataError("evaluate: expected rows, got none")
        return self.judge(part, numbers)

    def predict(self, inputs: Iterable[Any]) -> list[Any]:
        """An answer for each row: `Estimated` of a number, `Classified` of classes."""
        self.must_be_fitted()
        given = inputs if isinstance(inputs, Mapping) else list(inputs)
        rows = enumerate(rows_of(given), 1)
        examples = [(cells_of(row, f"row:{k}", (self.target,)), None) for k, row in rows]
        return self.answers(*self.collect(examples))

    def _examples(self, rows: Rows, target: str) -> Examples:
        """Pairs of cells and target."""
        found = []
        for number, row in enumerate(rows_of(rows), 1):
            if target not in row:
                raise DataError(
                    f"row:{number}: expected a column {target!r}, the target, "
                    f"got {', '.join(row) or 'no column'}"
                )
            label = row[target]
            if label is None or label == "" or (isinstance(label, float) and label != label):
                raise DataError(f"row:{number}: expected a value of {target!r}, got {label!r}")
            found.append((cells_of(row, f"row:{number}", (target,)), label))
        return found

    # ------------------------------------------------------------- learning
    def fit_parts(
        self,
        train: Collected,
        validation: Collected,
        numbers: Numbers,
        how: Fitting = IN_MEMORY,
    ) -> list[Outcome]:
        for name, part in (("training", train), ("validation", validation)):
            if not len(part) or part.labels is None:
                where = f", the first of them {part.unlabelled}" if part.unlabelled else ""
                raise DataError(
                    f"the {name} part: expected rows with targets, got {len(part)} rows"
                    + (" with some of them missing" + where) * bool(len(part))
                )
        arrays = self._learn(train, numbers)
        if self.goal.kind != "number":
            validation = self._known(train, validation, numbers, how.watchers)
        held = self._arrays(validation, numbers)
        wanted = arrays["targets"][:, 0] if self.goal.kind == "number" else None
        for watcher in how.watchers:
            for text in self.columns.remarks(arrays, wanted):
                watcher(Said(text))
        return self.fit_members(
            lambda seed: self._source(arrays, train, seed),
            lambda network: ScoredRows(lambda own: self._score(network, own), held),
            how,
        )

    def _known(
        self, train: Collected, part: Collected, numbers: Numbers, watchers: Sequence[Watcher]
    ) -> Collected:
        """The rows whose classes the training part has: nothing can learn the others."""
        kept, wrong = known_rows(part, train, numbers)
        if not len(kept):
            raise DataError(
                "the validation part: expected rows with classes of the training part, got none"
            )
        for watcher in watchers if len(wrong) else ():
            watcher(Said(f"{len(wrong):,} of the validation rows left out, with classes not seen"))
        return kept

    def _learn(self, train: Collected, numbers: Numbers) -> Arrays:
        """Columns, target and linear model; the training part as the networks see it."""
        self.columns = TableColumns.learn(Grid.of(train, numbers), self.model)
        self.goal = learned_target(train, numbers, self.model)
        arrays = self._arrays(train, numbers)
        x = torch.from_numpy(self.columns.dense(arrays, BASELINE_CATEGORIES))
        y = torch.from_numpy(arrays["targets"])
        self.linear = self._regression(x.shape[1])
        self.linear.solve(x, y.double() if y.is_floating_point() else y, RIDGE)
        return arrays

    def _regression(self, width: int) -> Regression:
        return Regression(width, self.goal.answers_wide, self.goal.regression).double()

    def _arrays(self, part: Collected, numbers: Numbers) -> dict[str, Any]:
        found = self.columns.encode(Grid.of(part, numbers), self.model)
        if part.labels is not None:
            found["targets"] = self.goal.encode(part, numbers)
        return found

    def _source(self, arrays: Arrays, part: Collected, seed: int) -> RowSource:
        return RowSource(arrays, seed=seed, batch_rows=self.model.batch_rows, names=part.names)

    def find_rate(self, train: Collected, numbers: Numbers) -> RateCurve:
        """Tries ever higher learning rates on a fresh network, and suggests one."""
        source = self._source(self._learn(train, numbers), train, self.train.seed)
        return find_rate(self.fresh(self.train.seed), source, self.train)

    def build(self) -> TableNetwork:
        counts = [len(column.categories) for column in self.columns.categories]
        goal = self.goal
        return TableNetwork(self.columns.width, counts, goal.width, goal.cost, self.model)

    # ------------------------------------------------------------- answers
    @torch.no_grad()
    def _outputs(self, network: nn.Module, arrays: Arrays) -> Tensor:
        """z (rows, width)."""
        assert isinstance(network, TableNetwork)
        rows = len(arrays["numbers"])
        seen = {name: own for name, own in arrays.items() if name != "targets"}
        found = [
            network.scores(taken(seen, slice(first, first + AT_ONCE)))
            for first in range(0, rows, AT_ONCE)
        ]
        return torch.cat(found) if found else torch.zeros(0, self.goal.width)

    def _score(self, network: nn.Module, arrays: Arrays) -> dict[str, float]:
        y = torch.from_numpy(arrays["targets"])
        return self.goal.score(self._outputs(network, arrays), y)

    def answers(self, part: Collected, numbers: Numbers) -> list[Any]:
        if not len(part):
            return []
        arrays = self.columns.encode(Grid.of(part, numbers), self.model)
        return self.goal.answers([self._outputs(own, arrays) for own in self.networks])

    @torch.no_grad()
    def judge(self, part: Collected, numbers: Numbers) -> Evaluation:
        if part.labels is None:
            raise DataError("evaluate: expected rows with targets, got rows without")
        arrays = self.columns.encode(Grid.of(part, numbers), self.model)
        x = torch.from_numpy(self.columns.dense(arrays, BASELINE_CATEGORIES))
        outputs = [self._outputs(own, arrays) for own in self.networks]
        asked = Asked(outputs, self.linear.scores(x), part, numbers, self.train.seed)
        return self.goal.judge(asked)

    # ------------------------------------------------------------- as files
    def fitted(self) -> bool:
        return bool(self.networks)

    def state(self) -> Saved:
        facts = {
            **self.settings_facts(),
            "columns": self.columns.to_dict(),
            "goal": {"kind": self.goal.kind, **self.goal.facts()},
            "target": self.target,
        }
        weights = self.linear.state_dict().items()
        arrays = {f"linear.{name}": own.numpy() for name, own in weights}
        return Saved(self.kind, facts, {}, arrays, network_files(self.networks))

    @classmethod
    def of_saved(cls, saved: Saved) -> Self:
        own = saved.facts
        found = cls(own["text"], own["model"], own["train"], members=own["members"])
        found.columns = TableColumns.from_dict(own["columns"])
        found.goal = restored_target(own["goal"], found.model)
        found.target = own["target"]
        linear = {name: torch.from_numpy(v.copy()) for name, v in saved.part("linear").items()}
        found.linear = found._regression(linear["weight"].shape[1])
        found.linear.load_state_dict(linear)
        found.networks = networks_of(saved, found.build)
        return found

    # ------------------------------------------------------------- to be looked at
    def summary(self) -> str:
        """What the model is, in a few lines."""
        own = self.model
        layers = " → ".join(map(str, own.hidden))
        what = f"{layers} units, {', '.join(own.activations)}" if own.hidden else "linear"
        lines = [f"{type(self).__name__}: {what}"]
        if self.networks:
            numbers, names = self.columns.numbers, self.columns.categories
            told = f"{len(numbers)} columns of numbers, {len(names)} of categories"
            lines.append(f"  {told} → {self.goal.described()}")
            lines.append(self.size_line())
        return "\n".join(lines)


def learned_target(train: Collected, numbers: Numbers, own: TableSettings) -> Target:
    """The kind of target that the settings name, or that the labels look like."""
    assert train.labels is not None
    kind = own.target
    if kind == "auto":
        several = bool((train.labels.lengths != 1).any())
        texts = list(counts_of(train.labels, numbers.labels))
        kind = "several" if several else "number" if look_like_numbers(texts) else "class"
    if kind == "number":
        return NumberTarget.learn(train, numbers, own)
    return (SeveralTarget if kind == "several" else ClassTarget).learn(train, numbers)


def restored_target(facts: Mapping[str, Any], own: TableSettings) -> Target:
    if facts["kind"] == "number":
        return NumberTarget.of_facts(facts, own)
    if facts["kind"] not in ("class", "several"):
        raise OptionError(f"unknown kind of target {facts['kind']!r}")
    return (SeveralTarget if facts["kind"] == "several" else ClassTarget).of_facts(facts)


def look_like_numbers(texts: Sequence[str]) -> bool:
    """Whether labels are numbers to predict: all of them numbers, and more than a few different
    ones, or some not whole."""
    values = [number_of(text) for text in texts]
    if any(value is None for value in values):
        return False
    whole = all(np.float64(value).is_integer() for value in values if value is not None)
    return len(values) > FEW_NUMBERS or not whole
