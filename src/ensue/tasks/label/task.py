"""The label of each step of a sequence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, cast

from torch import Tensor, nn

from ensue.data.ragged import Ragged
from ensue.data.rows import Row
from ensue.data.settings import DataSettings
from ensue.data.tokenise import Tokeniser
from ensue.data.values import Unfit
from ensue.errors import OptionError
from ensue.metrics.classes import StepAnswers
from ensue.metrics.spans import illegal_step, scheme_of
from ensue.metrics.table import STEP_METRICS, scores_of
from ensue.tasks.abilities import NOTHING, Asked
from ensue.tasks.any_model import AnyModel
from ensue.tasks.blocks.embeddings import Embed
from ensue.tasks.blocks.encoders import ENCODERS, encoder_of
from ensue.tasks.blocks.letter_states import LetterStates
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.explaining.heads import EncoderHeads
from ensue.tasks.exported import Exported
from ensue.tasks.label.answer import Labelled
from ensue.tasks.label.averaging import StepAverages, evaluated, labelled
from ensue.tasks.label.evaluation import LabelEvaluation, tags_of_rows
from ensue.tasks.label.explain import ExplainLabels, run_network
from ensue.tasks.label.exported import exported
from ensue.tasks.label.learned import LearnedLabels
from ensue.tasks.label.network import LABEL_OUTPUTS, LabellerNetwork
from ensue.tasks.label.options import OPTIONS
from ensue.tasks.label.outputs import legal_scheme
from ensue.tasks.label.predicted import answering_of, columns_of
from ensue.tasks.label.settings import LabellerSettings
from ensue.tasks.model import Model
from ensue.tasks.rows.batch import Columns
from ensue.tasks.rows.collect import Content, Input, label_of
from ensue.tasks.rows.labels import labels_line
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


class StepContent(Content):
    """Tokens or vectors with a label each; texts and labels that are written in one are cut at
    their spaces."""

    by_step = True

    def value(self, row: Row, data: DataSettings) -> Input:
        value: Input = super().value(row, data)
        return value.split() if isinstance(value, str) else value

    def label(self, row: Row, data: DataSettings, value: Input) -> list[str]:
        return step_labels(row.fields.get(data.label), data.separator, len(value))


def step_labels(given: Any, separator: str, steps: int) -> list[str]:
    """The labels of so many steps; `Unfit` where it is another number of them."""
    written = isinstance(given, str) and not separator
    labels = given.split() if written else label_of(given, separator)
    if isinstance(labels, str):
        raise Unfit(f"expected a label for each of the {steps} steps, got one, {labels!r}")
    if len(labels) != steps:
        raise Unfit(f"expected a label for each of the {steps} steps, got {len(labels)}")
    return labels


# -------------------------------------------------------------------------------------------------
# Defaults of a labeller for a training part: by its number of rows, and whether it has spans.
#
# Chosen on samples of 1,000, 3,400 and 12,500 sentences, by parts that were not trained on
# (docs/evidence/defaults.md).

SEARCH = {"search", "beam"}  # where these are told, the network answers alone, by that search
NOT_OF_CRF = {*SEARCH, "class_weights", "smoothing"}  # and where these are, it is no CRF


class BySize(NamedTuple):
    """Up to `rows` rows."""

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


def label_recipe(train: Part, settings: LabellerSettings, told: frozenset[str]) -> Recipe:
    """told: the keys of [model] that a person gave."""
    model, training, why = dict[str, Any](), dict[str, Any](), list[str]()
    if train.texts and settings.encoder == "recurrent":
        size = next(own for own in SIZES if len(train) <= own.rows)
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
        if not told & NOT_OF_CRF:
            legal = all(illegal_step(row, scheme) is None for row in tags)
            model |= {"output": "crf", "legal_only": legal}
            built = "" if "output" in told and settings.output != "crf" else "a CRF, "
            why.append(f"spans ({scheme}): {built}judged by span F1")
    if train.texts and not told & SEARCH:
        model["linear_share"] = "fitted"
        if "linear_share" not in told:
            mixed = settings.search == "exact"  # a beam has no chain to be mixed
            beside = "mixed with a linear chain" if mixed else "with, as a baseline, a linear chain"
            why.append(f"{beside} of word features")
    many = f"{len(train):,} row{'s' * (len(train) != 1)} to learn from"
    return Recipe({"model": model, "train": training}, f"{many}: {'; '.join(why)}" if why else "")


def _tags_of_rows(train: Part) -> list[list[str]]:
    labels = train.labels
    assert isinstance(labels, Ragged)
    names = list(train.numbers.labels)
    return [[names[k] for k in labels.row(row)] for row in range(len(labels))]


# What a labeller reads of a word beside its vector: the layers of a base have no weights for it.
WORDS_ALONE = {"character_size": 0, "affixes": 0, "shapes": False}
LETTERS = "characters"  # the level of a base that reads letters


class LabelTransfers(RowTransfers):
    """The layers of a base of words read words alone; the letters of words are left to the linear
    chain that answers beside the network. The states of a base of letters stand beside all that a
    labeller of words reads."""

    def taken(self, own: Pretrained, model: AnyModel) -> Pretrained:
        own = super().taken(own, model)
        if own.text.get("level") != LETTERS or model.text.level == LETTERS or not own.encoder:
            return own
        if model.base.layers is not None or model.base.added:
            raise OptionError(
                f"base.layers, base.added: {own.called} reads letters, and its states stand beside "
                "the words; all of its layers are used, leave these settings out"
            )
        return Pretrained(own.called, own.digest, context=own)

    def architecture(self, own: Pretrained, model: AnyModel) -> dict[str, Any]:
        found = super().architecture(own, model)
        return {**found, **WORDS_ALONE} if own.encoder and own.words is not None else found

    def recipe(
        self, own: Pretrained, model: AnyModel, rows: int
    ) -> Mapping[str, Mapping[str, Any]]:
        if own.context is not None:
            return {"base": {"recipe": "frozen"}}
        return super().recipe(own, model, rows)

    def learned(self, own: Pretrained, model: AnyModel) -> Pretrained:
        return own.context or super().learned(own, model)

    def first(self, own: Pretrained, model: AnyModel, network: nn.Module) -> dict[str, Tensor]:
        """Of a base of letters, their vectors too."""
        letters = own.context
        if letters is None:
            return super().first(own, model, network)
        names = self.names(network)
        found = first_weights(letters, letters.layers, names, network)
        assert letters.table is not None
        return {**found, names.table: letters.table}

    def names(self, network: nn.Module) -> EncoderNames:
        for number, feature in enumerate(cast(EmbeddedRows, network).embed.features):
            if isinstance(feature, LetterStates):
                begin = f"embed.features.{number}."
                return EncoderNames(f"{begin}table.weight", {"": f"{begin}encoder."})
        return super().names(network)


LabellerModel = Model[LabellerSettings, Part, LearnedLabels]


class LabelReader(RowReader[Part]):
    content = StepContent()
    classes = True

    def tokenisers(self, rows: Rows) -> Tokenisers:
        """A text is cut into words as they are written: their letters and shapes are features.
        Only the vocabulary of words folds case and numbers."""
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

    # ------------------------------------------------------------- asked
    def answer_shape(self, model: LabellerModel) -> AnswerShape:
        return AnswerShape(("labels", "probabilities"))

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


def _legal(columns: Columns, model: LabellerModel) -> Columns:
    """The rows whose gold labels the model can answer with: all, unless only legal ones can be."""
    assert isinstance(columns.targets, Ragged)
    scheme = legal_scheme(model.model, model.learned.labels)
    if scheme is None:
        return columns
    rows = tags_of_rows(model.learned.labels.tokens, columns.targets)
    kept = [k for k, tags in enumerate(rows) if illegal_step(tags, scheme) is None]
    return columns if len(kept) == len(rows) else columns.taken(kept)
