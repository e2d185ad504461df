"""The label of each step of a sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ensue.data.ragged import Ragged
from ensue.data.tokenise import Tokeniser
from ensue.errors import OptionError
from ensue.metrics.answers import StepAnswers
from ensue.metrics.spans import scheme_of, spans_of
from ensue.metrics.table import STEP_METRICS, scores_of
from ensue.tasks.blocks.embeddings import Embed
from ensue.tasks.blocks.encoders import ENCODERS, encoder_of
from ensue.tasks.evaluation.report import Evaluation, preview
from ensue.tasks.label.answer import Labelled
from ensue.tasks.label.content import StepContent
from ensue.tasks.label.evaluation import StepOutputs, evaluate_steps, tags_of_rows
from ensue.tasks.label.learned import LearnedLabels, step_targets
from ensue.tasks.label.network import LABEL_OUTPUTS, LabellerNetwork
from ensue.tasks.label.options import OPTIONS
from ensue.tasks.label.settings import LabellerSettings
from ensue.tasks.model import Model
from ensue.tasks.rows.batch import UNKNOWN, Columns, SequenceBatch
from ensue.tasks.rows.labels import labels_line, with_unknown
from ensue.tasks.rows.part import Part, Tokenisers
from ensue.tasks.rows.recognise import recognised_roles, roles_of
from ensue.tasks.rows.source import ColumnScores, SequenceSource, in_batches
from ensue.tasks.rows.task import Rows, RowTask
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.saved import Saved
from ensue.tasks.task import NOTHING, Asked, Packed

BEFORE = 4  # tokens shown before a wrong label

Floats = NDArray[np.float64]


class Label(RowTask[LabellerSettings, LearnedLabels]):
    """A label for each token of a text, or for each vector of a sequence."""

    name = "label"
    settings = LabellerSettings
    text_defaults: ClassVar[Mapping[str, Any]] = {"min_count": 1}
    train_defaults: ClassVar[Mapping[str, Any]] = {"patience": 5}
    metrics = STEP_METRICS
    options = OPTIONS
    estimators = ("SequenceLabeller",)
    classes = True
    content = StepContent()

    # ------------------------------------------------------------- recognised
    def recognise(self, sample: Sample) -> Guess | None:
        roles = recognised_roles(sample)
        return None if roles is None or not roles.by_step else self.infer(sample)

    def infer(self, sample: Sample) -> Guess:
        roles, tables = roles_of(sample), dict[str, dict[str, Any]]()
        if roles.text:
            if isinstance(sample.values(roles.text)[0], str):
                tables["text"] = {"level": "spaces"}
            if scheme_of(_tags(sample.values(roles.label))) is not None:
                tables["train"] = {"watch": "span_f1"}
        return Guess("a label for each step", roles.data, tables)

    # ------------------------------------------------------------- learned
    def tokenisers(self, rows: Rows, model: LabellerModel) -> Tokenisers:
        """A text is cut into words as they are written: their letters and shapes are features.
        Only the vocabulary of words folds case and numbers."""
        text = model.text
        if text.level == "subwords" or text.max_length is not None:
            raise OptionError(
                "a labeller has a label for each word: text.level = 'subwords' and "
                "text.max_length are for classifiers; leave them out"
            )
        return Tokenisers(Tokeniser(text.level, breaks=text.breaks))

    def learn(self, train: Part, validation: Part, model: LabellerModel) -> LearnedLabels:
        return LearnedLabels.learn(train, model.text, model.model)

    def build(self, model: LabellerModel) -> nn.Module:
        settings, learned = model.model, model.learned
        embed = Embed(learned.features(settings), settings.dropout_input)
        encoder = encoder_of(settings, embed.width)
        return LabellerNetwork(
            embed,
            encoder,
            LABEL_OUTPUTS[settings.output].of(settings, encoder.output_size, learned.labels),
            dropout=settings.dropout_output,
            norm_weight=settings.norm_weight,
        )

    def source(self, train: Part, model: LabellerModel, seed: int) -> SequenceSource:
        return SequenceSource.of(_columns(train, model), train.names, model.model, seed)

    def validation(self, network: nn.Module, part: Part, model: LabellerModel) -> ColumnScores:
        names = model.learned.labels.tokens

        def score(columns: Columns) -> dict[str, float]:
            assert isinstance(columns.targets, Ragged)
            predicted, _ = _predicted([network], columns, model)
            cost = _mean_cost(network, columns, model)
            answers = StepAnswers(columns.targets, predicted, names, cost)
            return scores_of(self.metrics, answers, model.train.watch)

        return ColumnScores(score, _columns(part, model))

    # ------------------------------------------------------------- asked
    def answer_names(self, model: LabellerModel) -> tuple[str, ...]:
        return ("labels", "probabilities")

    def answers(self, part: Part, model: LabellerModel, asked: Asked = NOTHING) -> list[Labelled]:
        labels, probabilities = _predicted(model.networks, _columns(part, model), model)
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

    def evaluate(self, part: Part, model: LabellerModel, asked: Asked = NOTHING) -> Evaluation:
        learned = model.learned
        names = with_unknown(part, learned.labels)
        gold, words = step_targets(part, names), learned.words(part, model.text)
        columns = _columns(replace(part, labels=None), model)
        predicted, probabilities = _predicted(model.networks, columns, model)
        overall = Ragged(np.full_like(gold.values, learned.majority.overall), gold.starts)
        return evaluate_steps(
            StepOutputs(
                names,
                gold,
                predicted,
                probabilities,
                {"majority label": overall, "majority by word": learned.majority.label(words)},
                words.values == UNKNOWN,
                _shown(part),
                model.train.seed,
            )
        )

    # ------------------------------------------------------------- kept, looked at
    def pack(self, learned: LearnedLabels) -> Packed:
        return learned.pack()

    def unpack(self, saved: Saved, model: LabellerModel) -> LearnedLabels:
        return LearnedLabels.unpack(saved)

    def describe(self, model: LabellerModel) -> str:
        return ENCODERS[model.model.encoder].describe(model.model)

    def facts(self, model: LabellerModel) -> list[str]:
        return [labels_line(model.learned.labels.tokens)]


TASK = Label()


class Labeller(Model[LabellerSettings, Part, LearnedLabels, Labelled]):
    """The label of each token of a sentence, or of each vector of a sequence.

    >>> rows = [(["the", "dog", "barks"], ["DET", "NOUN", "VERB"])] * 20
    >>> model = Labeller(model={"hidden_size": 8}, train={"epochs": 6, "rate": 0.05}).fit(rows)
    >>> model.predict([["the", "dog"]])[0].labels
    ('DET', 'NOUN')
    """

    task = TASK


LabellerModel = Model[LabellerSettings, Part, LearnedLabels]


def _columns(part: Part, model: LabellerModel) -> Columns:
    return model.learned.columns(part, model.text, model.model)


def _tags(values: Iterable[Any]) -> set[str]:
    """The labels of steps, as lists or written in one."""
    given = (value.split() if isinstance(value, str) else value for value in values)
    return {str(tag) for tags in given if isinstance(tags, Iterable) for tag in tags}


# --- networks together -------------------------------------------------------------------------


@torch.no_grad()
def _predicted(
    networks: Sequence[nn.Module], columns: Columns, model: LabellerModel
) -> tuple[Ragged, Floats]:
    """The label of every step, and (steps, labels) probabilities, the mean of the networks."""
    starts = np.concatenate([[0], np.cumsum(columns.lengths)])
    labels = np.zeros(starts[-1], np.int64)
    probabilities = np.zeros((starts[-1], len(model.learned.labels)))
    for rows, batch in in_batches(columns, networks[0], 2 * model.model.batch_tokens):
        best, mean = _of_batch(networks, batch, model.model)
        _put(labels, starts, rows, best)
        _put(probabilities, starts, rows, mean)
    return Ragged(labels, starts), probabilities


def _of_batch(
    networks: Sequence[nn.Module], batch: SequenceBatch, settings: LabellerSettings
) -> tuple[NDArray[np.int64], Floats]:
    """Labels (time, batch) and probabilities (time, batch, labels): of one network its best labels
    together, by its search; of several the best label of each step by their mean."""
    found = []
    for network in networks:
        assert isinstance(network, LabellerNetwork)
        found.append(network.label(batch, settings.search, settings.beam))
    mean = np.asarray(sum(p.double().cpu().numpy() for _, p in found) / len(found))
    return (found[0].labels.cpu().numpy() if len(found) == 1 else mean.argmax(-1)), mean


@torch.no_grad()
def _mean_cost(network: nn.Module, columns: Columns, model: LabellerModel) -> float:
    """Of a step."""
    batches = in_batches(columns, network, 2 * model.model.batch_tokens)
    cost = sum(float(network(batch, {})[0]) for _, batch in batches)
    return cost / max(1, int(columns.lengths.sum()))


def _put(
    values: NDArray[Any], starts: NDArray[np.int64], rows: NDArray[np.int64], padded: NDArray[Any]
) -> None:
    """Puts padded rows (time, batch, …) at their places among the steps of all rows."""
    lengths = starts[rows + 1] - starts[rows]
    at = np.arange(lengths.sum()) + np.repeat(starts[rows] - np.cumsum(lengths) + lengths, lengths)
    values[at] = padded.swapaxes(0, 1)[np.arange(len(padded)) < lengths[:, None]]


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
