"""Labels of steps with their probabilities, of one labeller or as the mean of several: as answers
and against gold labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ensue.data.ragged import Ragged
from ensue.metrics.classes import StepAnswers, log_loss
from ensue.metrics.spans import scheme_of, spans_of
from ensue.metrics.table import STEP_METRICS, scores_of
from ensue.tasks.abilities import Asked, Averages, Outputs
from ensue.tasks.evaluation.report import Evaluation, preview
from ensue.tasks.label.answer import Labelled
from ensue.tasks.label.evaluation import StepOutputs, evaluate_steps, tags_of_rows
from ensue.tasks.label.predicted import Floats, answering_of, columns_of
from ensue.tasks.rows.batch import UNKNOWN, Columns
from ensue.tasks.rows.labels import with_unknown
from ensue.tasks.rows.part import Part

if TYPE_CHECKING:
    from ensue.tasks.label.learned import LearnedLabels
    from ensue.tasks.label.settings import LabellerSettings
    from ensue.tasks.model import Model

    LabellerModel = Model[LabellerSettings, Part, LearnedLabels]

BEFORE = 4  # tokens shown before a wrong label
NOBODY: Mapping[str, Ragged] = {}


class StepAverages(Averages):
    """Outputs are probabilities (steps, labels); the label of a step is the one of the highest
    mean, whatever its neighbours are."""

    def outputs(self, part: Part, model: LabellerModel) -> list[Floats]:
        columns = columns_of(replace(part, labels=None), model)
        every = (answering_of(part, model, [network]) for network in model.networks)
        return [own.predicted(columns)[1] for own in every]

    def model_scores(self, validation: Part, model: LabellerModel) -> dict[str, float]:
        """With the linear chain, which learned from the training part alone."""
        columns = columns_of(validation, model)
        predicted, probabilities = answering_of(validation, model).predicted(columns)
        return step_scores(predicted, probabilities, columns, model)

    def scores(self, outputs: Outputs, validation: Part, model: LabellerModel) -> dict[str, float]:
        return step_scores(*_mean(outputs, validation), columns_of(validation, model), model)

    def answers(
        self, outputs: Outputs, part: Part, model: LabellerModel, asked: Asked
    ) -> list[Labelled]:
        return labelled(*_mean(outputs, part), part, model)

    def evaluate(
        self, outputs: Outputs, part: Part, model: LabellerModel, asked: Asked
    ) -> Evaluation:
        return evaluated(*_mean(outputs, part), part, model)


def _mean(outputs: Outputs, part: Part) -> tuple[Ragged, Floats]:
    """The most probable label of each step, and the mean probabilities (steps, labels)."""
    mean = np.asarray(sum(outputs) / len(outputs))
    return Ragged(mean.argmax(1), part.inputs.starts), mean


def step_scores(
    predicted: Ragged, probabilities: Floats, columns: Columns, model: LabellerModel
) -> dict[str, float]:
    """What validation reports; the cost is that of single steps."""
    assert isinstance(columns.targets, Ragged)
    cost = log_loss(columns.targets.values, probabilities)
    answers = StepAnswers(columns.targets, predicted, model.learned.labels.tokens, cost)
    return scores_of(STEP_METRICS, answers, model.train.watch)


def labelled(
    labels: Ragged, probabilities: Floats, part: Part, model: LabellerModel
) -> list[Labelled]:
    """An answer for each row. probabilities (steps, labels)."""
    sure = probabilities[np.arange(len(labels.values)), labels.values]
    learned, names = model.learned, part.numbers.token_names
    texts = learned.inputs.words is not None
    spans = scheme_of(learned.labels.tokens) is not None
    found = []
    for row, tags in enumerate(tags_of_rows(learned.labels.tokens, labels)):
        steps = slice(labels.starts[row], labels.starts[row + 1])
        tokens = [names[k] for k in part.inputs.row(row)] if texts else []
        there = tuple(spans_of(tags)) if spans else None
        found.append(Labelled(tuple(tokens), tuple(tags), tuple(sure[steps].tolist()), there))
    return found


def evaluated(
    predicted: Ragged,
    probabilities: Floats,
    part: Part,
    model: LabellerModel,
    others: Mapping[str, Ragged] = NOBODY,
) -> Evaluation:
    """others: labels by name that are compared, beside those of the baselines."""
    from ensue.tasks.label.learned import step_targets  # of which much is made that has no answer

    learned = model.learned
    names = with_unknown(part, learned.labels)
    gold, words = step_targets(part, names), learned.words(part, model.text)
    overall = Ragged(np.full_like(gold.values, learned.majority.overall), gold.starts)
    baselines = {"majority label": overall, "majority by word": learned.majority.label(words)}
    return evaluate_steps(
        StepOutputs(
            names,
            gold,
            predicted,
            probabilities,
            {**baselines, **others},
            words.values == UNKNOWN,
            _shown(part),
            model.train.seed,
        )
    )


def _shown(part: Part) -> Callable[[int], tuple[str, str]]:
    """The place of a step, and the words around it."""
    names, starts = part.numbers.token_names, part.inputs.starts

    def shown(at: int) -> tuple[str, str]:
        row = int(np.searchsorted(starts, at, side="right")) - 1
        step = int(at - starts[row])
        if not part.texts:
            return part.names[row], f"step {step + 1}"
        tokens = [names[k] for k in part.inputs.row(row)]
        tokens[step] = f"[{tokens[step]}]"
        return part.names[row], preview(tokens[max(0, step - BEFORE) :])

    return shown
