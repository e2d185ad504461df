"""The label of each step of a sequence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from torch import nn

from ensue.data.ragged import Ragged
from ensue.data.tokenise import Tokeniser
from ensue.errors import OptionError
from ensue.metrics.answers import StepAnswers
from ensue.metrics.spans import illegal_step, scheme_of
from ensue.metrics.table import STEP_METRICS, scores_of
from ensue.tasks.blocks.embeddings import Embed
from ensue.tasks.blocks.encoders import ENCODERS, encoder_of
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.explaining.attribution import Attributions
from ensue.tasks.explaining.encoder_heads import EncoderHeads
from ensue.tasks.explaining.heads import HeadMaps
from ensue.tasks.exported import Exported, Rounding
from ensue.tasks.given import check_words
from ensue.tasks.label.answer import Labelled
from ensue.tasks.label.averaging import (
    StepAverages,
    evaluated,
    labelled,
    step_scores,
)
from ensue.tasks.label.content import StepContent
from ensue.tasks.label.evaluation import (
    LabelEvaluation,
    tags_of_rows,
)
from ensue.tasks.label.explain import ExplainLabels, run_network
from ensue.tasks.label.exported import exported
from ensue.tasks.label.learned import LearnedLabels
from ensue.tasks.label.network import LABEL_OUTPUTS, LabellerNetwork
from ensue.tasks.label.options import OPTIONS
from ensue.tasks.label.outputs import legal_scheme
from ensue.tasks.label.predicted import answering_of, columns_of
from ensue.tasks.label.recipe import label_recipe
from ensue.tasks.label.settings import LabellerSettings
from ensue.tasks.label.transfers import LabelTransfers
from ensue.tasks.model import Model
from ensue.tasks.options import EXPLAIN
from ensue.tasks.rows.batch import Columns
from ensue.tasks.rows.labels import labels_line
from ensue.tasks.rows.part import Part, Tokenisers
from ensue.tasks.rows.recognise import RowRoles, as_guess, recognised, roles_of
from ensue.tasks.rows.source import ColumnScores, SequenceSource
from ensue.tasks.rows.task import Rows, RowTask
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.saved import Saved
from ensue.tasks.search.ranges import Between, Choice, Searched, Sizes, Space
from ensue.tasks.task import NOTHING, Asked, Packed, Recipe
from ensue.tasks.transfer.takeover import text_of

LabellerModel = Model[LabellerSettings, Part, LearnedLabels]


class Label(RowTask[LabellerSettings, LearnedLabels]):
    """A label for each token of a text, or for each vector of a sequence."""

    name = "label"
    settings = LabellerSettings
    text_defaults: ClassVar[Mapping[str, Any]] = {"min_count": 1}
    train_defaults: ClassVar[Mapping[str, Any]] = {"patience": 5}
    metrics = STEP_METRICS
    options = OPTIONS
    ranges: ClassVar[Space] = {
        "model.character_hidden": Searched(Sizes(1, 8)),
        "model.affixes": Searched(Choice((0, 2, 3, 4, 5), ordered=True)),
        "model.once_dropout": Searched(Between(0.0, 0.6)),
    }
    estimators = ("SequenceLabeller",)
    classes = True
    adapts = True
    explains = ExplainLabels()
    heads = EncoderHeads(run_network)
    transfers = LabelTransfers()
    averages = StepAverages()
    evaluation_class = LabelEvaluation
    content = StepContent()

    # ------------------------------------------------------------- recognised
    def recognise(self, sample: Sample) -> Guess | None:
        return recognised(sample, lambda own: own.by_step, partial(self._guess, sample))

    def infer(self, sample: Sample) -> Guess:
        return as_guess(roles_of(sample).readings, partial(self._guess, sample))

    def _guess(self, sample: Sample, roles: RowRoles) -> Guess:
        tables = dict[str, dict[str, Any]]()
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
        text = text_of(model)
        if text.level == "subwords" or text.max_length is not None:
            raise OptionError(
                "a labeller has a label for each word: text.level = 'subwords' and "
                "text.max_length are for classifiers; leave them out"
            )
        return Tokenisers(Tokeniser(text.level, breaks=text.breaks))

    def fitted_settings(self, train: Part, model: LabellerModel) -> Recipe:
        return label_recipe(train, model.model, model.told["model"])

    def learn(self, train: Part, validation: Part, model: LabellerModel) -> LearnedLabels:
        return LearnedLabels.learn(train, model.text, model.model, model.beginning)

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
        return SequenceSource.of(columns_of(train, model), train.names, model.model, seed)

    def validation(self, network: nn.Module, part: Part, model: LabellerModel) -> ColumnScores:
        answering = answering_of(part, model, [network])
        names = model.learned.labels.tokens

        def score(columns: Columns) -> dict[str, float]:
            assert isinstance(columns.targets, Ragged)
            predicted, _ = answering.predicted(columns)
            cost = answering.cost(_legal(columns, model))
            answers = StepAnswers(columns.targets, predicted, names, cost)
            return scores_of(self.metrics, answers, model.train.watch)

        return ColumnScores(score, columns_of(part, model))

    def calibrate(self, validation: Part, model: LabellerModel) -> LearnedLabels:
        learned = model.learned
        if learned.mixture is None or model.model.linear_share != "fitted":
            return learned
        columns = _legal(columns_of(validation, model), model)
        return replace(learned, mixture=answering_of(validation, model).fitted(columns))

    def answer_scores(self, validation: Part, model: LabellerModel) -> dict[str, float]:
        """With the linear chain, which learned from the training part alone."""
        if self.averages.alone(model):
            return {}
        columns = columns_of(validation, model)
        predicted, probabilities = answering_of(validation, model).predicted(columns)
        return step_scores(predicted, probabilities, columns, model)

    # ------------------------------------------------------------- asked
    def answer_names(self, model: LabellerModel) -> tuple[str, ...]:
        return ("labels", "probabilities")

    def answers(self, part: Part, model: LabellerModel, asked: Asked = NOTHING) -> list[Labelled]:
        labels, probabilities = answering_of(part, model).predicted(columns_of(part, model))
        return labelled(labels, probabilities, part, model)

    def evaluate(self, part: Part, model: LabellerModel, asked: Asked = NOTHING) -> Evaluation:
        columns = columns_of(replace(part, labels=None), model)
        answering = answering_of(part, model)
        predicted, probabilities = answering.predicted(columns)
        return evaluated(predicted, probabilities, part, model, answering.alone(columns))

    # ------------------------------------------------------------- kept, looked at
    def exported(self, model: LabellerModel) -> Exported:
        return exported(model)

    def rounded(self, learned: LearnedLabels, rounding: Rounding) -> LearnedLabels:
        own = learned.linear
        if own is None:
            return learned
        return replace(learned, linear=replace(own, weights=rounding(own.weights.T).T))

    def pack(self, learned: LearnedLabels) -> Packed:
        return learned.pack()

    def unpack(self, saved: Saved, model: LabellerModel) -> LearnedLabels:
        return LearnedLabels.unpack(saved)

    def describe(self, model: LabellerModel) -> str:
        network = ENCODERS[model.model.encoder].describe(model.model)
        if not model.fitted or model.learned.mixture is None:
            return network
        return f"{network}, together with a linear chain: {model.learned.mixture}"

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

    def explain(self, given: Any, **asked: Any) -> Attributions:
        """What the answer to one input rests on. asked: method ("occlusion", "gradient" or
        "integrated"), baseline, label, step."""
        check_words(TASK, asked, EXPLAIN)
        return TASK.explains.explain(self, given, asked)

    def attention(self, given: Any, layer: int | None = None) -> HeadMaps:
        """Where every head of a Transformer looks."""
        return TASK.heads.explain(self, given, {"layer": layer})


def _tags(values: Iterable[Any]) -> set[str]:
    """The labels of steps, as lists or written in one."""
    given = (value.split() if isinstance(value, str) else value for value in values)
    return {str(tag) for tags in given if isinstance(tags, Iterable) for tag in tags}


def _legal(columns: Columns, model: LabellerModel) -> Columns:
    """The rows whose gold labels the model can answer with: all, unless only legal ones can be."""
    assert isinstance(columns.targets, Ragged)
    scheme = legal_scheme(model.model, model.learned.labels)
    if scheme is None:
        return columns
    rows = tags_of_rows(model.learned.labels.tokens, columns.targets)
    kept = [k for k, tags in enumerate(rows) if illegal_step(tags, scheme) is None]
    return columns if len(kept) == len(rows) else columns.taken(kept)
