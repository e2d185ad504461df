"""Evaluation of step labels against gold labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.drawing.document import Block
from ensue.metrics import classes as metrics
from ensue.metrics.spans import scheme_of, span_counts, span_scores
from ensue.tasks.evaluation.bootstrap import RowSums, intervals
from ensue.tasks.evaluation.calibration import (
    RowDisplay,
    class_rows,
    log_loss_of_known,
    surest_mistakes,
)
from ensue.tasks.evaluation.report import ClassRow, Evaluation, class_section


@dataclass(frozen=True)
class LabelEvaluation(Evaluation):
    """The evaluation of a labeller. types: the scores of each span type, if the labels are span
    tags. A span is right if its start, end and type are right."""

    types: Sequence[ClassRow] = ()

    tables: ClassVar[Mapping[str, type[Any]]] = {**Evaluation.tables, "types": ClassRow}

    def sections(self) -> Sequence[Block]:
        types = [class_section("spans by type", self.types, "type", "spans")] * bool(self.types)
        return [*types, *super().sections()]


class StepOutputs(NamedTuple):
    """The input of an evaluation. names: the labels of training, then those only in gold; gold,
    predicted: a label index for each step; probabilities (steps, labels of training); baselines:
    labels predicted by baselines; unknown (steps,): words that training did not have; shown: the
    name of a step, and its text."""

    names: Sequence[str]
    gold: Ragged
    predicted: Ragged
    probabilities: NDArray[np.float64]
    baselines: Mapping[str, Ragged]
    unknown: NDArray[np.bool_]
    step_text: RowDisplay
    seed: int

    @property
    def known(self) -> int:
        """The number of labels that can be predicted."""
        return int(self.probabilities.shape[1])

    @property
    def spans(self) -> bool:
        """Whether the labels are span tags."""
        return scheme_of(self.names[: self.known]) is not None

    def right(self, labels: Ragged) -> NDArray[np.int64]:
        """How many of these labels of each row are right; shape (rows,)."""
        total = np.concatenate([[0], np.cumsum(self.gold.values == labels.values)])
        return np.asarray(np.diff(total[self.gold.starts]), np.int64)

    def span_types(self) -> list[ClassRow]:
        """The scores of each span type; none if the labels are not span tags."""
        if not self.spans:
            return []
        both = (tags_of_rows(self.names, labels) for labels in (self.gold, self.predicted))
        return [ClassRow(name, *score) for name, score in span_scores(*both)[1].items()]

    def span_counts(self, labels: Ragged) -> NDArray[np.int64]:
        """Counts of spans: right, gold, predicted by these labels; shape (rows, 3)."""
        return span_counts(tags_of_rows(self.names, self.gold), tags_of_rows(self.names, labels))


def tags_of_rows(names: Sequence[str], labels: Ragged) -> list[list[str]]:
    return [[names[k] for k in labels.row(row)] for row in range(len(labels))]


def evaluate_steps(outputs: StepOutputs) -> LabelEvaluation:
    """The evaluation. The main score is span_f1 if the labels are span tags, else accuracy."""
    names, gold, predicted = outputs.names, outputs.gold, outputs.predicted
    totals = metrics.class_counts(gold.values, predicted.values, len(names))
    sums = _sums(outputs, predicted)
    return LabelEvaluation(
        rows=len(gold),
        steps=len(gold.values),
        scores=intervals(sums, outputs.seed),
        others=_others(outputs, totals),
        baselines={name: _compared(outputs, labels) for name, labels in outputs.baselines.items()},
        baseline_sums={
            name: next(iter(_sums(outputs, labels).values()))
            for name, labels in outputs.baselines.items()
        },
        classes=class_rows(names, totals),
        confusion=metrics.confusion(gold.values, predicted.values, len(names)).tolist(),
        worst=surest_mistakes(
            gold.values, predicted.values, outputs.probabilities, names, outputs.step_text
        ),
        unknown=sum(bool((gold.row(row) >= outputs.known).any()) for row in range(len(gold))),
        sums=sums,
        types=outputs.span_types(),
    )


def _sums(outputs: StepOutputs, labels: Ragged) -> dict[str, RowSums]:
    sums = dict[str, RowSums]()
    if outputs.spans:
        sums["span_f1"] = RowSums("span_f1", outputs.span_counts(labels))
    sums["accuracy"] = RowSums("ratio", np.stack([outputs.right(labels), outputs.gold.lengths], 1))
    return sums


def _others(outputs: StepOutputs, totals: NDArray[np.int64]) -> dict[str, float]:
    gold, predicted, unknown = outputs.gold.values, outputs.predicted.values, outputs.unknown
    others = {"macro_f1": float(metrics.macro_f1(totals))}
    others |= log_loss_of_known(gold, outputs.probabilities)
    if unknown.any():
        others["on unknown words"] = float((gold == predicted)[unknown].mean())
    return others


def _compared(outputs: StepOutputs, labels: Ragged) -> float:
    """The main score of a baseline's labels."""
    if outputs.spans:
        return float(metrics.span_f1(outputs.span_counts(labels).sum(0)))
    return metrics.accuracy(outputs.gold.values, labels.values)
