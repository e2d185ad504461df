"""The label of each step of a sequence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from torch import Tensor, nn

from ensue.data.ragged import Ragged
from ensue.data.rows import Row
from ensue.data.settings import DataSettings
from ensue.data.tokenise import Tokeniser
from ensue.data.values import Unfit
from ensue.errors import OptionError
from ensue.metrics.classes import StepAnswers, log_loss
from ensue.metrics.spans import illegal_step, scheme_of, spans_of
from ensue.metrics.table import STEP_METRICS, scores_of
from ensue.tasks.abilities import NOTHING, Averages, Outputs, RequestOptions
from ensue.tasks.any_model import AnyModel
from ensue.tasks.blocks.embeddings import Embed
from ensue.tasks.blocks.encoders import ENCODERS, encoder_of
from ensue.tasks.blocks.letter_states import LetterStates
from ensue.tasks.evaluation.report import Evaluation, preview
from ensue.tasks.explaining.heads import EncoderHeads
from ensue.tasks.exported import Exported
from ensue.tasks.label.answer import Labelled
from ensue.tasks.label.evaluation import LabelEvaluation, StepOutputs, evaluate_steps, tags_of_rows
from ensue.tasks.label.explain import ExplainLabels, run_network
from ensue.tasks.label.exported import exported
from ensue.tasks.label.learned import LearnedLabels
from ensue.tasks.label.network import LABEL_OUTPUTS, LabellerNetwork
from ensue.tasks.label.options import OPTIONS
from ensue.tasks.label.outputs import legal_scheme
from ensue.tasks.label.predicted import Floats, answering_of, columns_of
from ensue.tasks.label.settings import LabellerSettings
from ensue.tasks.model import Model
from ensue.tasks.rows.batch import UNKNOWN, Columns
from ensue.tasks.rows.collect import Content, Input, label_of
from ensue.tasks.rows.labels import labels_line, with_unknown
from ensue.tasks.rows.part import Part, Tokenisers
from ensue.tasks.rows.reader import RowReader, Rows
from ensue.tasks.rows.recognise import recognised_steps, steps_guess
from ensue.tasks.rows.source import ColumnScores, SequenceSource
from ensue.tasks.rows.task import RowTask
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.search.ranges import Between, Choice, Searched, Sizes, Space
from ensue.tasks.task import AnswerShape, Recipe
from ensue.tasks.transfer.ability import EncoderNames
from ensue.tasks.transfer.pretrained import Pretrained
from ensue.tasks.transfer.rows import EmbeddedRows, RowTransfers
from ensue.tasks.transfer.takeover import first_weights, text_of

LabellerModel = Model[LabellerSettings, Part, LearnedLabels]
BEFORE = 4  # tokens shown before a wrong label
NOBODY: Mapping[str, Ragged] = {}


class StepAverages(Averages):
    """Outputs are probabilities (steps, labels). The label of a step has the highest mean
    probability, independent of its neighbours."""

    def outputs(self, part: Part, model: LabellerModel) -> list[Floats]:
        columns = columns_of(replace(part, labels=None), model)
        every = (answering_of(part, model, [network]) for network in model.networks)
        return [network.predicted(columns)[1] for network in every]

    def model_scores(self, validation: Part, model: LabellerModel) -> dict[str, float]:
        """Scores including the linear chain, which learned only from the training part."""
        columns = columns_of(validation, model)
        predicted, probabilities = answering_of(validation, model).predicted(columns)
        return step_scores(predicted, probabilities, columns, model)

    def scores(self, outputs: Outputs, validation: Part, model: LabellerModel) -> dict[str, float]:
        return step_scores(*_mean(outputs, validation), columns_of(validation, model), model)

    def answers(
        self, outputs: Outputs, part: Part, model: LabellerModel, options: RequestOptions
    ) -> list[Labelled]:
        return labelled(*_mean(outputs, part), part, model)

    def evaluate(
        self, outputs: Outputs, part: Part, model: LabellerModel, options: RequestOptions
    ) -> Evaluation:
        return evaluated(*_mean(outputs, part), part, model)


def _mean(outputs: Outputs, part: Part) -> tuple[Ragged, Floats]:
    """The most probable label of each step, and the mean probabilities (steps, labels)."""
    mean = np.asarray(sum(outputs) / len(outputs))
    return Ragged(mean.argmax(1), part.inputs.starts), mean


def step_scores(
    predicted: Ragged, probabilities: Floats, columns: Columns, model: LabellerModel
) -> dict[str, float]:
    """The validation metrics; the cost is per step."""
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
    rows = []
    for row, tags in enumerate(tags_of_rows(learned.labels.tokens, labels)):
        steps = slice(labels.starts[row], labels.starts[row + 1])
        tokens = [names[k] for k in part.inputs.row(row)] if texts else []
        span_list = tuple(spans_of(tags)) if spans else None
        rows.append(Labelled(tuple(tokens), tuple(tags), tuple(sure[steps].tolist()), span_list))
    return rows


def evaluated(
    predicted: Ragged,
    probabilities: Floats,
    part: Part,
    model: LabellerModel,
    others: Mapping[str, Ragged] = NOBODY,
) -> Evaluation:
    """The evaluation of a part. others: labels by name to compare with, in addition to the labels
    of the baselines."""
    from ensue.tasks.label.learned import step_targets  # not needed for answers

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
            _step_texts(part),
            model.train.seed,
        )
    )


def _step_texts(part: Part) -> Callable[[int], tuple[str, str]]:
    """A function from a step to its name, and the words around it."""
    names, starts = part.numbers.token_names, part.inputs.starts

    def step_text(at: int) -> tuple[str, str]:
        row = int(np.searchsorted(starts, at, side="right")) - 1
        step = int(at - starts[row])
        if not part.texts:
            return part.names[row], f"step {step + 1}"
        tokens = [names[k] for k in part.inputs.row(row)]
        tokens[step] = f"[{tokens[step]}]"
        return part.names[row], preview(tokens[max(0, step - BEFORE) :])

    return step_text


class StepContent(Content):
    """Tokens or vectors with a label each. Texts and labels written as one string are split at
    spaces."""

    by_step = True

    def value(self, row: Row, data: DataSettings) -> Input:
        value: Input = super().value(row, data)
        return value.split() if isinstance(value, str) else value

    def label(self, row: Row, data: DataSettings, value: Input) -> list[str]:
        return step_labels(row.fields.get(data.label), data.separator, len(value))


def step_labels(value: Any, separator: str, steps: int) -> list[str]:
    """The labels of a row, one for each of its `steps`; raises `Unfit` if their number differs."""
    written = isinstance(value, str) and not separator
    labels = value.split() if written else label_of(value, separator)
    if isinstance(labels, str):
        raise Unfit(f"expected a label for each of the {steps} steps, got one, {labels!r}")
    if len(labels) != steps:
        raise Unfit(f"expected a label for each of the {steps} steps, got {len(labels)}")
    return labels


# -------------------------------------------------------------------------------------------------
# Defaults of a labeller for a training part: by its number of rows, and whether it has spans.
#
# Chosen on samples of 1,000, 3,400 and 12,500 sentences, by held-out parts
# (docs/evidence/defaults.md).

SEARCH = {"search", "beam"}  # if one of these is set, only the network answers, with this search
NOT_OF_CRF = {*SEARCH, "class_weights", "smoothing"}  # if one of these is set, there is no CRF


class BySize(NamedTuple):
    """Default settings for training parts of up to `rows` rows."""

    rows: float
    batch_rows: int
    epochs: int
    patience: int
    averaging: float
    embedding_size: int
    character_hidden: int


SIZES = (
    BySize(2_000, 8, 30, 10, 0.99, 50, 32),
    BySize(6_000, 16, 20, 7, 0.995, 100, 64),
    BySize(30_000, 32, 12, 4, 0.998, 100, 64),
    BySize(float("inf"), 32, 6, 3, 0.999, 100, 64),
)
RATE, DROPOUT, WORD_DROPOUT = 0.003, 0.5, 0.05


def label_recipe(train: Part, settings: LabellerSettings, explicit: frozenset[str]) -> Recipe:
    """The recipe of a training part. explicit: the keys of [model] that the user gave."""
    model, training, why = dict[str, Any](), dict[str, Any](), list[str]()
    if train.texts and settings.encoder == "recurrent":
        size = next(size_row for size_row in SIZES if len(train) <= size_row.rows)
        model |= {
            "batch_rows": size.batch_rows,
            "embedding_size": size.embedding_size,
            "character_hidden": size.character_hidden,
            "dropout_input": DROPOUT,
            "dropout_output": DROPOUT,
            "once_dropout": DROPOUT,
            "word_dropout": WORD_DROPOUT,
        }
        training |= {
            "epochs": size.epochs,
            "patience": size.patience,
            "averaging": size.averaging,
            "rate": RATE,
            "schedule": "linear",
        }
        why.append(f"dropout {DROPOUT:g}, weight averaging, at most {size.epochs} epochs")
    tags = _tags_of_rows(train)
    scheme = scheme_of({tag for row in tags for tag in row})
    if scheme is not None:
        training["watch"] = "span_f1"
        if not explicit & NOT_OF_CRF:
            legal = all(illegal_step(row, scheme) is None for row in tags)
            model |= {"output": "crf", "legal_only": legal}
            built = "" if "output" in explicit and settings.output != "crf" else "a CRF, "
            why.append(f"spans ({scheme}): {built}judged by span F1")
    if train.texts and not explicit & SEARCH:
        model["linear_share"] = "fitted"
        if "linear_share" not in explicit:
            mixed = settings.search == "exact"  # beam search has no chain to mix
            beside = "mixed" if mixed else "compared"
            why.append(f"{beside} with a linear chain of word features")
    many = f"{len(train):,} row{'s' * (len(train) != 1)} to learn from"
    return Recipe({"model": model, "train": training}, f"{many}: {'; '.join(why)}" if why else "")


def _tags_of_rows(train: Part) -> list[list[str]]:
    labels = train.labels
    assert isinstance(labels, Ragged)
    names = list(train.numbers.labels)
    return [[names[k] for k in labels.row(row)] for row in range(len(labels))]


# Inputs of a labeller in addition to word vectors: the layers of a base have no weights for them.
WORDS_ALONE = {"character_size": 0, "affixes": 0, "shapes": False}
LETTERS = "characters"  # level of a base that reads letters


class LabelTransfers(RowTransfers):
    """Transfers to labellers. Layers pretrained on words read only words; the linear chain still
    reads letters. The states of a base that reads letters become another input of each word."""

    def adapted(self, pretrained: Pretrained, model: AnyModel) -> Pretrained:
        pretrained = super().adapted(pretrained, model)
        if (
            pretrained.text.get("level") != LETTERS
            or model.text.level == LETTERS
            or not pretrained.encoder
        ):
            return pretrained
        if model.base.layers is not None or model.base.added:
            raise OptionError(
                f"base.layers, base.added: {pretrained.called} reads letters, and its states "
                "are read next to the "
                "words; all of its layers are used, leave these settings out"
            )
        return Pretrained(pretrained.called, pretrained.digest, context=pretrained)

    def architecture(self, pretrained: Pretrained, model: AnyModel) -> dict[str, Any]:
        tables = super().architecture(pretrained, model)
        return (
            {**tables, **WORDS_ALONE}
            if pretrained.encoder and pretrained.words is not None
            else tables
        )

    def recipe(
        self, pretrained: Pretrained, model: AnyModel, rows: int
    ) -> Mapping[str, Mapping[str, Any]]:
        if pretrained.context is not None:
            return {"base": {"recipe": "frozen"}}
        return super().recipe(pretrained, model, rows)

    def learned(self, pretrained: Pretrained, model: AnyModel) -> Pretrained:
        return pretrained.context or super().learned(pretrained, model)

    def first(
        self, pretrained: Pretrained, model: AnyModel, network: nn.Module
    ) -> dict[str, Tensor]:
        """The lowest layers; for a base of letters, including their vectors."""
        letters = pretrained.context
        if letters is None:
            return super().first(pretrained, model, network)
        names = self.names(network)
        weights = first_weights(letters, letters.layers, names, network)
        assert letters.table is not None
        return {**weights, names.table: letters.table}

    def names(self, network: nn.Module) -> EncoderNames:
        for number, feature in enumerate(cast(EmbeddedRows, network).embed.features):
            if isinstance(feature, LetterStates):
                begin = f"embed.features.{number}."
                return EncoderNames(f"{begin}table.weight", {"": f"{begin}encoder."})
        return super().names(network)


class LabelReader(RowReader[Part]):
    content = StepContent()
    classes = True

    def tokenisers(self, rows: Rows) -> Tokenisers:
        """Tokenisers that keep the original spelling of words, because letters and shapes are
        features. Only the vocabulary of words normalises case and numbers."""
        text = text_of(self.model)
        if text.level == "subwords" or text.max_length is not None:
            raise OptionError(
                "a labeller has a label for each word: text.level = 'subwords' and "
                "text.max_length are for classifiers; leave them out"
            )
        return Tokenisers(Tokeniser(text.level, breaks=text.breaks))


class Label(RowTask[LabellerSettings, LearnedLabels]):
    """A label for each token of a text, or for each vector of a sequence."""

    name = "label"
    settings = LabellerSettings
    learned_class = LearnedLabels
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
    adapts = True
    explains = ExplainLabels()
    heads = EncoderHeads(run_network)
    transfers = LabelTransfers()
    averages = StepAverages()
    evaluation_class = LabelEvaluation
    reader_class = LabelReader

    # ------------------------------------------------------------- recognised
    def recognise(self, sample: Sample) -> Guess | None:
        return recognised_steps(sample)

    def infer(self, sample: Sample) -> Guess:
        return steps_guess(sample)

    # ------------------------------------------------------------- learned
    def fitted_settings(self, train: Part, model: LabellerModel) -> Recipe:
        return label_recipe(train, model.settings, model.explicit["model"])

    def learn(self, train: Part, validation: Part, model: LabellerModel) -> LearnedLabels:
        return LearnedLabels.learn(train, model.text, model.settings, model.beginning)

    def build(self, model: LabellerModel) -> nn.Module:
        settings, learned = model.settings, model.learned
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
        budget, most = model.settings.batch_tokens, model.settings.batch_rows
        columns = columns_of(train, model)
        return SequenceSource(columns, train.names, seed=seed, budget=budget, most_rows=most)

    def validation(
        self, network: nn.Module, part: Part, model: LabellerModel
    ) -> ColumnScores[Columns]:
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
        if learned.mixture is None or model.settings.linear_share != "fitted":
            return learned
        columns = _legal(columns_of(validation, model), model)
        return replace(learned, mixture=answering_of(validation, model).fitted(columns))

    # ------------------------------------------------------------- asked
    def answer_shape(self, model: LabellerModel) -> AnswerShape:
        return AnswerShape(("labels", "probabilities"))

    def answers(
        self, part: Part, model: LabellerModel, options: RequestOptions = NOTHING
    ) -> list[Labelled]:
        labels, probabilities = answering_of(part, model).predicted(columns_of(part, model))
        return labelled(labels, probabilities, part, model)

    def evaluate(
        self, part: Part, model: LabellerModel, options: RequestOptions = NOTHING
    ) -> Evaluation:
        columns = columns_of(replace(part, labels=None), model)
        answering = answering_of(part, model)
        predicted, probabilities = answering.predicted(columns)
        return evaluated(predicted, probabilities, part, model, answering.alone(columns))

    # ------------------------------------------------------------- kept, looked at
    def exported(self, model: LabellerModel) -> Exported:
        return exported(model)

    def describe(self, model: LabellerModel) -> str:
        network = ENCODERS[model.settings.encoder].describe(model.settings)
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


def _legal(columns: Columns, model: LabellerModel) -> Columns:
    """The rows whose gold labels can be predicted: all, unless only legal sequences can."""
    assert isinstance(columns.targets, Ragged)
    scheme = legal_scheme(model.settings, model.learned.labels)
    if scheme is None:
        return columns
    rows = tags_of_rows(model.learned.labels.tokens, columns.targets)
    legal = [k for k, tags in enumerate(rows) if illegal_step(tags, scheme) is None]
    return columns if len(legal) == len(rows) else columns.take(legal)
