"""What a model of tables learns from its training part, beside the weights of its networks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.data.tokenise import Tokeniser
from ensue.tasks.baselines.regression import Regression
from ensue.tasks.rows.part import Part, Tokenisers
from ensue.tasks.saved import Saved
from ensue.tasks.table.cells import Grid
from ensue.tasks.table.columns import TableColumns, almost_numbers
from ensue.tasks.table.settings import AUTO, TableSettings
from ensue.tasks.targets.kinds import TARGETS, target_facts, target_kind, target_of_facts
from ensue.tasks.targets.numbers import NumberTarget
from ensue.tasks.targets.target import Target
from ensue.tasks.task import Packed

BASELINE_CATEGORIES = 50  # of a column, that the linear model sees
RIDGE = 1e-3  # of the linear model
CELLS = Tokenisers(Tokeniser("spaces"))  # cells are tokens already: nothing is cut


@dataclass(frozen=True)
class LearnedTable:
    """columns: their scales and categories; linear: regression on all columns, to compare with;
    target_column: the name of the target's column, where `fit` was told."""

    columns: TableColumns
    target: Target
    linear: Regression
    target_column: str = ""

    @classmethod
    def learn(cls, train: Part, settings: TableSettings, target_column: str = "") -> LearnedTable:
        columns = TableColumns.learn(Grid.of(train), settings)
        target = TARGETS[kind_of(train, settings)].learn(train, settings)
        x = linear_inputs(columns, columns.encode(Grid.of(train), settings))
        y = torch.from_numpy(target.encode(train))
        linear = Regression(x.shape[1], target.linear_width, target.regression).double()
        linear.solve(x, y.double() if y.is_floating_point() else y, RIDGE)
        return cls(columns, target, linear, target_column)

    @property
    def tokenisers(self) -> Tokenisers:
        return CELLS

    def inputs(self, part: Part, settings: TableSettings) -> dict[str, NDArray[Any]]:
        """numbers (rows, n) and categories (rows, c), as the networks see them."""
        return self.columns.encode(Grid.of(part), settings)

    def arrays(self, part: Part, settings: TableSettings) -> dict[str, NDArray[Any]]:
        """A labelled part as the networks see it: the inputs, and the targets."""
        return {**self.inputs(part, settings), "targets": self.target.encode(part)}

    def linear_outputs(self, inputs: Mapping[str, NDArray[Any]]) -> Tensor:
        """z of the linear model, (rows, linear_width)."""
        return self.linear.scores(linear_inputs(self.columns, inputs))

    def remarks(self, train: Part, settings: TableSettings) -> list[str]:
        """What a user should know of the columns."""
        arrays = self.arrays(train, settings)
        number = self.target.kind == NumberTarget.kind
        told = almost_numbers(Grid.of(train), self.columns, settings)
        return told + self.columns.remarks(arrays, arrays["targets"][:, 0] if number else None)

    # ------------------------------------------------------------- as files
    def pack(self) -> Packed:
        facts = {
            "columns": self.columns.to_dict(),
            "goal": target_facts(self.target),
            "target": self.target_column,
        }
        arrays = {f"linear.{name}": values for name, values in self.linear.arrays().items()}
        return Packed(facts, {}, arrays)

    @classmethod
    def unpack(cls, saved: Saved, settings: TableSettings) -> LearnedTable:
        target = target_of_facts(saved.facts["goal"], settings)
        return cls(
            TableColumns.from_dict(saved.facts["columns"]),
            target,
            Regression.from_arrays(saved.part("linear"), target.regression),
            saved.facts["target"],
        )


def kind_of(train: Part, settings: TableSettings) -> str:
    """The kind of target that the settings name, or that the labels look like."""
    return target_kind(train) if settings.target == AUTO else settings.target


def linear_inputs(columns: TableColumns, inputs: Mapping[str, NDArray[Any]]) -> Tensor:
    """(rows, n), each column's most frequent categories as zeros and ones."""
    return torch.from_numpy(columns.dense(inputs, BASELINE_CATEGORIES))
