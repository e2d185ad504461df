"""The mean answer of several classifiers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from torch import Tensor

from ensue.metrics.answers import ClassAnswers
from ensue.metrics.table import CLASS_METRICS, scores_of
from ensue.tasks.abilities import Asked, Outputs
from ensue.tasks.classify.evaluation import evaluated
from ensue.tasks.classify.scoring import (
    ClassifierModel,
    Floats,
    columns_of,
    decided_of,
    mixed_in,
    network_scores,
    probabilities_of,
)
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.rows.batch import Columns
from ensue.tasks.rows.part import Part
from ensue.tasks.targets.answers import Classified
from ensue.tasks.targets.classes import class_answers, several_answers
from ensue.tasks.targets.decision import Decision


class ClassAverages:
    """Outputs are probabilities (rows, classes)."""

    def alone(self, model: ClassifierModel) -> bool:
        return len(model.networks) == 1 and model.learned.mixture is None

    def outputs(self, part: Part, model: ClassifierModel) -> list[Floats]:
        columns = columns_of(replace(part, labels=None), model)  # which may be unknown ones
        return _mixed(columns, mixed_in(part, columns, model), model)

    def gold_outputs(self, part: Part, model: ClassifierModel) -> list[Floats]:
        return self.outputs(part, model)

    def held(self, validation: Part, model: ClassifierModel) -> list[Floats]:
        columns, held = columns_of(validation, model), model.learned.held
        linear = mixed_in(validation, columns, model) if held is None else held
        return _mixed(columns, linear, model)

    def scores(
        self, outputs: Outputs, validation: Part, model: ClassifierModel
    ) -> dict[str, float]:
        return class_scores(_mean(outputs), columns_of(validation, model), model)

    def answers(
        self, outputs: Outputs, part: Part, model: ClassifierModel, asked: Asked
    ) -> list[Classified]:
        p, several = _mean(outputs), model.model.several
        decision = Decision.of(asked, model.learned.labels, several)
        if several:
            return several_answers(p, decision)
        return class_answers(p, decided_of(p, model), decision)

    def evaluate(
        self, outputs: Outputs, part: Part, model: ClassifierModel, asked: Asked
    ) -> Evaluation:
        return evaluated(_mean(outputs), part, model, asked)


def class_scores(p: Floats, columns: Columns, model: ClassifierModel) -> dict[str, float]:
    """What validation reports of probabilities (rows, classes)."""
    assert isinstance(columns.targets, np.ndarray)
    answers = ClassAnswers(columns.targets, decided_of(p, model), p)
    return scores_of(CLASS_METRICS, answers, model.train.watch)


def _mixed(columns: Columns, linear: Tensor | None, model: ClassifierModel) -> list[Floats]:
    scores = [network_scores(network, columns, model) for network in model.networks]
    return [probabilities_of([z], linear, model) for z in scores]


def _mean(outputs: Outputs) -> Floats:
    return np.asarray(sum(outputs) / len(outputs))
