"""What a model of tables learns from its training part, beside the weights of its networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.data.tokenise import Tokeniser
from ensue.tasks import checks
from ensue.tasks.baselines.mixture import EQUAL, SAVED, BaselineMixture, fitted_mixture
from ensue.tasks.baselines.regression import Regression
from ensue.tasks.columns.cells import Grid
from ensue.tasks.columns.learned import TableColumns, almost_numbers
from ensue.tasks.rows.part import Part, Tokenisers
from ensue.tasks.saved import Saved
from ensue.tasks.table.settings import AUTO, TableSettings
from ensue.tasks.table.threshold import ENOUGH, cross_fitted_threshold, fitted_threshold
from ensue.tasks.targets.classes import ClassTarget, SeveralTarget
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
    target_column: the name of the target's column, where `fit` was told; mixture: of network and
    linear model, where both answer."""

    columns: TableColumns
    target: Target
    linear: Regression
    target_column: str = ""
    mixture: BaselineMixture | None = None

    @classmethod
    def learn(cls, train: Part, settings: TableSettings, target_column: str = "") -> LearnedTable:
        columns = TableColumns.learn(Grid.of(train), settings)
        target = TARGETS[kind_of(train, settings)].learn(train, settings)
        x = linear_inputs(columns, columns.encode(Grid.of(train), settings))
        y = torch.from_numpy(target.encode(train))
        linear = Regression(x.shape[1], target.linear_width, target.regression).double()
        linear.solve(x, y.double() if y.is_floating_point() else y, RIDGE)
        share, mixture = settings.linear_share, None
        if share and not isinstance(target, NumberTarget):
            mixture = EQUAL if share == "fitted" else BaselineMixture(1 - share, share)
        if isinstance(target, ClassTarget) and isinstance(settings.threshold, float):
            target = replace(target, threshold=settings.threshold)
        return cls(columns, target, linear, target_column, mixture)

    def cross_fitted(self, train: Part, validation: Part, settings: TableSettings) -> LearnedTable:
        """With a threshold of the training part, where the validation part has too few rows of the
        rarer class to fit one."""
        target = self.target
        if not _tunes_threshold(target, settings):
            return self
        if (target.encode(validation) == target.rare).sum() >= ENOUGH:
            return self
        x, y = linear_inputs(self.columns, self.inputs(train, settings)), target.encode(train)
        found = cross_fitted_threshold(x, torch.from_numpy(y), target.rare, RIDGE)
        return replace(self, target=replace(target, threshold=found))

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

    def mixed(self, outputs: Sequence[Tensor], inputs: Mapping[str, NDArray[Any]]) -> list[Tensor]:
        """z of each member, with the linear model where both answer."""
        if self.mixture is None:
            return list(outputs)
        several, linear = isinstance(self.target, SeveralTarget), self.linear_outputs(inputs)
        return [self.mixture.scores(z.double(), linear.double(), several) for z in outputs]

    def calibrated(
        self, outputs: Sequence[Tensor], arrays: Mapping[str, NDArray[Any]], settings: TableSettings
    ) -> LearnedTable:
        """With mixture and threshold fitted to a part that the networks did not learn from."""
        found, y = self, torch.from_numpy(arrays["targets"])
        if self.mixture is not None and settings.linear_share == "fitted":
            scores, linear = [z.double() for z in outputs], self.linear_outputs(arrays).double()
            found = replace(found, mixture=fitted_mixture(scores, linear, y.to(torch.int64)))
        target = found.target
        if _tunes_threshold(target, settings) and (y == target.rare).sum() >= ENOUGH:
            p = target.probabilities(found.mixed(outputs, arrays))
            fitted = fitted_threshold(p, arrays["targets"], target.rare)
            found = replace(found, target=replace(target, threshold=fitted))
        return found

    def remarks(self, train: Part, settings: TableSettings) -> list[str]:
        """What a user should know of the columns."""
        arrays = self.arrays(train, settings)
        number = self.target.kind == NumberTarget.kind
        told = almost_numbers(Grid.of(train), self.columns, settings)
        return told + self.columns.remarks(arrays, arrays["targets"][:, 0] if number else None)

    # ------------------------------------------------------------- as files
    def pack(self) -> Packed:
        facts: dict[str, Any] = {
            "columns": self.columns.to_dict(),
            "goal": target_facts(self.target),
            "target": self.target_column,
        }
        if self.mixture is not None:
            facts["mixture"] = self.mixture._asdict()
        arrays = {f"linear.{name}": values for name, values in self.linear.arrays().items()}
        return Packed(facts, {}, arrays)

    @classmethod
    def unpack(cls, saved: Saved, settings: TableSettings) -> LearnedTable:
        target = target_of_facts(saved.facts["goal"], settings)
        columns = TableColumns.from_dict(saved.facts["columns"], "columns")
        sizes = columns.dense_width(BASELINE_CATEGORIES), target.linear_width
        mixture = checks.maybe(SAVED)(saved.facts.get("mixture"), "mixture")
        if mixture is not None and isinstance(target, NumberTarget):
            raise checks.Unfit("mixture: expected none beside a number")
        return cls(
            columns,
            target,
            Regression.from_arrays(saved.part("linear"), target.regression, *sizes),
            checks.text(saved.facts["target"], "target"),
            mixture,
        )


def kind_of(train: Part, settings: TableSettings) -> str:
    """The kind of target that the settings name, or that the labels look like."""
    return target_kind(train) if settings.target == AUTO else settings.target


def _tunes_threshold(target: Target, settings: TableSettings) -> TypeGuard[ClassTarget]:
    """Whether the rarer of two classes is answered from a probability that is fitted."""
    two = isinstance(target, ClassTarget) and len(target.labels) == 2
    return two and settings.threshold == "auto"


def linear_inputs(columns: TableColumns, inputs: Mapping[str, NDArray[Any]]) -> Tensor:
    """(rows, n), each column's most frequent categories as zeros and ones, and the features."""
    return torch.from_numpy(columns.dense(inputs, BASELINE_CATEGORIES))
