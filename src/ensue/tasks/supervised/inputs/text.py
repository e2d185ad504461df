"""A text, tokens, or a sequence of vectors; columns may be read next to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
import torch
from pydantic import Field, field_validator, model_validator
from torch import Tensor, nn
from torch.nn.functional import dropout, embedding_bag

from ensue.data.ragged import Ragged
from ensue.data.vocabulary import Vocabulary
from ensue.errors import DataError, OptionError, ShapeError, check_rates
from ensue.settings import Expected, Rate, Table
from ensue.tasks.baselines.linear import LinearModel, fit_linear
from ensue.tasks.baselines.mixture import FEW_TEXTS
from ensue.tasks.baselines.regression import Regression
from ensue.tasks.baselines.ridge import fit_ridge
from ensue.tasks.baselines.text_features import joined
from ensue.tasks.baselines.text_linear import (
    fit_text_linear,
    fit_text_ridge,
    fit_with_topics,
    most_telling,
)
from ensue.tasks.blocks.embeddings import Embed
from ensue.tasks.blocks.encoders import ENCODERS, Encoder, RecurrentEncoder, encoder_of
from ensue.tasks.blocks.norms import check_norm_weight, norm_preserving
from ensue.tasks.blocks.pooling import POOLED, STANDARDISED, Pooling, PoolingName, Standardised
from ensue.tasks.codec import unpacked
from ensue.tasks.columns.beside import CATEGORIES as CATEGORIES_BESIDE
from ensue.tasks.columns.beside import NUMBERS as NUMBERS_BESIDE
from ensue.tasks.columns.beside import ColumnsBeside, ColumnVector
from ensue.tasks.columns.exported import CATEGORIES, NUMBERS, column_inputs, row_step
from ensue.tasks.declarations import NEXT_TO
from ensue.tasks.explaining.attribution import LinearAttribution
from ensue.tasks.explaining.methods import Sides
from ensue.tasks.exported import Piecewise, refuse
from ensue.tasks.rows.batch import Columns, SequenceBatch, batch_of
from ensue.tasks.rows.exported import read_steps
from ensue.tasks.rows.inputs import LearnedInputs, token_counts, vocabulary_rows
from ensue.tasks.rows.part import Part, Tokenisers, shared_texts, shown_of
from ensue.tasks.saved import Saved
from ensue.tasks.supervised.input import Input
from ensue.tasks.supervised.learned import (
    FittedLinear,
    InputQuestion,
    Learned,
    LearnedInput,
    Linear,
    Named,
    Occlusions,
    Share,
)
from ensue.tasks.supervised.network import Cost, SideScores, StepEncoder, SupervisedNetwork
from ensue.tasks.supervised.text_linears import MixedText, NgramText, VectorLinear, vector_features
from ensue.tasks.targets.classes import LabelTarget
from ensue.tasks.targets.target import Target

if TYPE_CHECKING:
    from ensue.tasks.any_model import ModelView
    from ensue.tasks.explaining.measures import ExplainedOutput
    from ensue.tasks.supervised.task import SupervisedModel

MOST_UNITS = 40  # maximum units of an explained row
RARE = 2  # minimum rows of an n-gram of the linear model
RIDGE = 1e-3  # of the linear model of vectors
MIXED = "mixed"
TEXT = "text"  # the text of a question with columns


class PooledSettings(Table):
    """How the steps of a sequence become one vector."""

    pooling: PoolingName = Field("max", description=POOLED)
    standardise: bool = Field(False, description=STANDARDISED)


class NgramSettings(Table):
    """The n-grams of a text classifier without a mixed linear model."""

    ngrams: Annotated[int, Field(ge=0, le=3)] = Field(
        0, description="Longest n-gram to read next to the network; 0 for no n-grams."
    )
    ngram_dropout: Rate = Field(0.5, description="Dropout of the n-grams.")
    ngram_l2: float = Field(0.0, ge=0, description="L2 penalty on the weights of the n-grams.")
    ngram_share: Annotated[
        float | Literal["fitted"], Expected("a number from 0 to 1, or fitted")
    ] = Field(
        0.0,
        description="Share of a linear n-gram model in the answer, or fitted to the "
        "validation part; the network then learns without n-grams. 0 trains both "
        "together.",
    )

    @field_validator("ngram_share", mode="before")
    @classmethod
    def _number_or_fitted(cls, share: object) -> object:
        number = isinstance(share, int | float) and not isinstance(share, bool)
        if share != "fitted" and not (number and 0 <= share <= 1):  # type: ignore[operator]
            raise ValueError(f"expected a number from 0 to 1, or fitted, got {share!r}")
        return share

    @model_validator(mode="after")
    def _share_of_something(self) -> Self:
        if self.ngram_share and not self.ngrams:
            raise ValueError("ngram_share: expected model.ngrams ≥ 1 as well, got 0")
        return self


# --- learned -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LearnedText(LearnedInput):
    """The learned part of texts. inputs: the vocabulary of words, or the scale of vectors; beside:
    the columns next to the text, if any."""

    inputs: Annotated[LearnedInputs, NEXT_TO]
    beside: ColumnsBeside | None = None

    @property
    def tokenisers(self) -> Tokenisers:
        return self.inputs.tokenisers

    def encode(self, part: Part, model: ModelView) -> Columns:
        columns = self.inputs.columns(part, model.text)
        linear = model.learned.linear
        if getattr(model.settings, "ngrams", 0) and isinstance(linear, NgramText):
            assert isinstance(linear.model, LinearModel)
            rows = vocabulary_rows(part, linear.words.numbers)
            columns = replace(columns, ngrams=linear.model.ngrams.present(rows))
        return columns if self.beside is None else self.beside.joined(columns, part)

    def repeated(self, part: Part, model: ModelView, rows: int) -> SequenceBatch:
        """The only row of a part, repeated `rows` times, with its real numbers in float64."""
        return batch_of(self.encode(part, model), rows)

    def encoder(self, model: ModelView) -> TextEncoder:
        settings = model.settings
        embed = Embed([self.inputs.feature(settings)], settings.dropout_input)
        encoder = encoder_of(settings, embed.width)
        return TextEncoder(
            embed,
            encoder,
            Pooling(settings.pooling, encoder.output_size, encoder.final_size),
            beside=None if self.beside is None else self.beside.network(),
            standardise=settings.standardise,
            dropout=settings.dropout_output,
            norm_weight=settings.norm_weight,
        )

    def side(self, model: ModelView, outputs: int) -> NgramScores | None:
        """The n-grams inside the network; None if they are mixed with it, or not used."""
        settings, linear = model.settings, model.learned.linear
        if not getattr(settings, "ngrams", 0) or settings.ngram_share:
            return None
        if not isinstance(linear, NgramText):
            return None
        assert isinstance(linear.model, LinearModel)
        return NgramScores(
            len(linear.model.ngrams),
            outputs,
            start=torch.from_numpy(linear.model.weights),
            dropout=settings.ngram_dropout,
            l2=settings.ngram_l2,
        )

    def row_texts(self, part: Part) -> Callable[[int], tuple[str, str]]:
        return shown_of(part)

    def remarks(self, train: Part, target: Target, model: ModelView) -> list[str]:
        most, lengths = model.text.max_length, train.inputs.lengths
        count = 0 if most is None else int((lengths > most).sum())
        if not count:
            return []
        row = int(lengths.argmax())
        return [
            f"{count:,} row{'s' * (count > 1)} longer than text.max_length = {most:,} steps: cut "
            f"at the {model.text.cut} (the longest, {train.names[row]}, has {lengths[row]:,})"
        ]

    def fact(self) -> str:
        return "" if self.beside is None else self.beside.describe()

    # ------------------------------------------------------------- linear models
    def linear(
        self, train: Part, validation: Part, target: Target, model: ModelView
    ) -> FittedLinear:
        if self.inputs.words is None:
            x, y = vector_features(train), torch.from_numpy(target.encode(train))
            regression = Regression(x.shape[1], target.linear_width, target.regression).double()
            regression.solve(x, y.double() if y.is_floating_point() else y, RIDGE)
            return FittedLinear(VectorLinear(regression))
        if model.settings.linear == MIXED:
            return self._mixed(train, validation, target)
        counts = token_counts(train)
        least = min(RARE, max(counts.values(), default=1))
        words = Vocabulary.build(counts, min_count=least)
        rows, values = vocabulary_rows(train, words.numbers), target.encode(train)
        if target.numeric:
            others = vocabulary_rows(validation, words.numbers)
            numbers = target.encode(validation)[:, 0]
            ridge = fit_ridge(rows, values[:, 0], others, numbers, min_rows=RARE)
            return FittedLinear(NgramText(words, ridge))
        longest = getattr(model.settings, "ngrams", 0) or 2
        fitted = fit_linear(rows, values, target.width, longest=longest, min_rows=RARE)
        return FittedLinear(NgramText(words, fitted))

    def _mixed(self, train: Part, validation: Part, target: Target) -> FittedLinear:
        first, second = shared_texts(train, validation)
        more = None if self.beside is None else self.beside.matrix(train, validation)
        y = np.concatenate([target.encode(train), target.encode(validation)])
        if target.numeric:
            number = fit_text_ridge(first, second, y[:, 0], more)
            return FittedLinear(MixedText(number.model, self.beside, True), number.out_of_sample)
        assert isinstance(target, LabelTarget)
        fitted = fit_text_linear(first, second, y, target.width, more)
        telling = most_telling(fitted.model, first, target.labels.tokens)
        return FittedLinear(
            MixedText(fitted.model, self.beside, False, telling), fitted.out_of_sample
        )

    # ------------------------------------------------------------- explained
    def occlusions(self, part: Part, model: ModelView) -> Occlusions:
        """A row for each token, without it; in a long row, tokens are grouped to limit the number
        of units."""
        row, names = part.inputs.row(0), part.numbers.token_names
        count = min(len(row), MOST_UNITS)
        edges = np.linspace(0, len(row), count + 1).round().astype(int).tolist()
        units, rows = list[str](), list[Any]()
        for begin, end in pairwise(edges):
            if part.texts:
                units.append(" ".join(names[k] for k in row[begin:end]))
            else:
                units.append(f"steps {begin + 1}–{end}")
            rows.append(np.concatenate([row[:begin], row[end:]]))
        again = part.take(np.zeros(count, np.int64))
        values = np.concatenate([row[:0], *rows])
        starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        what = "token" if part.texts else "step"
        how = (
            f"each {what} left out" if count == len(row) else f"{what}s next to each other left out"
        )
        return Occlusions(
            tuple(units), how, replace(again, inputs=Ragged(values, starts), labels=None)
        )

    def answerers(self, networks: Sequence[Any]) -> str:
        inside = any(network.side is not None for network in networks)
        return "network with n-grams in it" if inside else ""

    def side_attributions(
        self,
        part: Part,
        explained: Sequence[ExplainedOutput],
        learned: Learned,
        networks: Sequence[Any],
    ) -> tuple[LinearAttribution, ...]:
        sides = [network.side for network in networks if network.side is not None]
        if not sides:
            return ()
        assert isinstance(learned.linear, NgramText)
        assert isinstance(learned.linear.model, LinearModel)
        mean = torch.stack([side.weight.detach().cpu() for side in sides]).mean(0)
        weights = (mean / learned.temperature).numpy()  # weighted as in the answer
        nothing = 0 * learned.linear.model.bias
        return learned.linear.parts_of(part, explained, learned.target, weights, nothing)

    # ------------------------------------------------------------- exported
    def question(self, model: ModelView) -> InputQuestion:
        """A question with columns is a row by column name."""
        for network in model.networks:
            if not isinstance(network, SupervisedNetwork) or network.side is not None:
                raise refuse("ngrams", model.task.name)
        beside, column = self.beside, str(model.roles.get("text", ""))
        source = "question" if beside is None else TEXT
        read = read_steps(self.inputs, model.text, source, column="" if beside else column)
        name, inputs, steps = read.inputs[0].name, read.inputs, read.steps
        if beside is not None:
            text = {"name": column or TEXT, "to": TEXT}
            steps = ({**row_step(beside.columns, gaps=True), TEXT: text}, *steps)
            inputs = (*inputs, *column_inputs(beside.columns))

        def batch(named: Named) -> SequenceBatch:
            tensors = {name: named[name]}
            if beside is not None:
                tensors |= {NUMBERS_BESIDE: named[NUMBERS], CATEGORIES_BESIDE: named[CATEGORIES]}
            return SequenceBatch(tensors, named["lengths"])

        return InputQuestion(inputs, steps, batch, Piecewise() if beside is None else None)


# --- the network ---------------------------------------------------------------------------------


class TextEncoder(StepEncoder):
    """[dropout(pool(encode(embed(steps)))), c], where c are the columns next to the steps, if any.

    standardise: whether pooled values are standardised; norm_weight: weight of the encoder's
    norm-preserving regulariser."""

    def __init__(
        self,
        embed: Embed,
        encoder: Encoder,
        pooling: Pooling,
        *,
        beside: ColumnVector | None = None,
        standardise: bool = False,
        dropout: float = 0.0,
        norm_weight: float = 0.0,
    ) -> None:
        super().__init__()
        check_rates({"dropout": dropout})
        check_norm_weight(norm_weight, encoder)
        self.embed, self.encoder, self.pooling = embed, encoder, pooling
        self.dropout, self.norm_weight, self.beside = dropout, norm_weight, beside
        self.standard = Standardised(pooling.width) if standardise else nn.Identity()
        self.width = pooling.width + (beside.width if beside else 0)

    def embedded(self, inputs: SequenceBatch) -> Sides:
        """The steps as vectors (time, batch, width)."""
        return (self.embed(inputs.inputs),)

    def read_steps(self, sides: Sides, inputs: SequenceBatch) -> Tensor:
        """The vectors of embedded steps."""
        y, final = self.encoder(sides[0], inputs.lengths)
        return self._vectors(y, final, inputs)

    def _vectors(self, y: Tensor, final: Tensor, inputs: SequenceBatch) -> Tensor:
        pooled = self.standard(self.pooling(y, final, inputs.lengths))
        pooled = dropout(pooled, self.dropout, self.training)
        if self.beside is not None:
            pooled = torch.cat([pooled, self.beside(inputs.inputs)], -1)
        vectors: Tensor = pooled
        return vectors

    def penalty(self, inputs: SequenceBatch, cost: Cost) -> Tensor | None:
        if not self.norm_weight:
            return None
        encoder = self.encoder
        assert isinstance(encoder, RecurrentEncoder)
        return self.norm_weight * norm_preserving(
            encoder.recurrent,
            self.embed(inputs.inputs),
            lambda y, state: cost(self._vectors(y, encoder.final(state), inputs)),
            inputs.lengths,
        )

    def attention(self, inputs: SequenceBatch) -> Tensor:
        """The weights of attention pooling; shape (time, batch)."""
        y, _ = self.encoder(self.embed(inputs.inputs), inputs.lengths)
        return self.pooling.attention(y, inputs.lengths)


class NgramScores(SideScores):
    """Scores of classes from a row's n-grams: z = Σ w_n over the row's n-grams n.

    start: initial w (count, classes), such as a linear model's; None for zero. In training an
    n-gram is dropped with probability `dropout`, and the penalty of a row is ½·l2·‖w − start‖²."""

    start: Tensor | None

    def __init__(
        self,
        count: int,
        classes: int,
        *,
        start: Tensor | None = None,
        dropout: float = 0.0,
        l2: float = 0.0,
    ) -> None:
        super().__init__()
        check_rates({"dropout": dropout})
        if l2 < 0:
            raise OptionError(f"l2: expected a number ≥ 0, got {l2}")
        if start is not None and start.shape != (count, classes):
            raise ShapeError(
                f"start: expected ({count}, {classes}), n-grams and classes, "
                f"got {tuple(start.shape)}"
            )
        self.dropout, self.l2 = dropout, l2
        self.weight = nn.Parameter(torch.zeros(count, classes) if start is None else start.clone())
        self.register_buffer("start", start.clone() if start is not None and l2 else None)

    def forward(self, inputs: SequenceBatch) -> Tensor:
        ids, starts = inputs.inputs["ngrams"], inputs.inputs["ngrams.starts"]
        weights = None
        if self.training and self.dropout:
            weights = dropout(self.weight.new_ones(ids.shape), self.dropout)
        return embedding_bag(ids, self.weight, starts, mode="sum", per_sample_weights=weights)

    def penalty(self) -> Tensor | None:
        if not self.l2:
            return None
        away = self.weight if self.start is None else self.weight - self.start
        return 0.5 * self.l2 * (away * away).sum()


# --- the input -----------------------------------------------------------------------------------


class Text(Input):
    """A text, tokens, or a sequence of vectors."""

    name = "text"
    learned_class = LearnedText

    def learn(self, train: Part, model: ModelView) -> LearnedText:
        column, base = str(model.roles.get("text", "")), model.beginning
        inputs = LearnedInputs.learn(train, model.text, model.settings, base=base, column=column)
        return LearnedText(inputs, ColumnsBeside.learn(train, model.settings))

    def unpack_linear(
        self, saved: Saved, learned: LearnedText, target: Target, model: ModelView
    ) -> Linear:
        kind: type[Linear] = MixedText if model.settings.linear == MIXED else NgramText
        if learned.inputs.scale is not None:
            kind = VectorLinear
        return unpacked(kind, saved, input=learned, target=target)

    def share(self, settings: Any, target: Target) -> Share:
        if settings.linear == MIXED:
            return "fitted"
        share: Literal["fitted"] | float = getattr(settings, "ngram_share", 0.0)
        return share or None

    def describe(self, settings: Any) -> str:
        return ENCODERS[settings.encoder].describe(settings)


def telling_ngrams(learned: Learned, label: str, count: int) -> list[str]:
    """The n-grams with the highest weights for a label, by the linear model."""
    target, linear = learned.target, learned.linear
    assert isinstance(target, LabelTarget)
    (number,) = target.labels.ids([label])
    if not isinstance(linear, MixedText | NgramText):
        got = "one of vectors" if isinstance(linear, VectorLinear) else "one of several inputs"
        raise DataError(f"most_telling: expected a model of text, got {got}")
    return linear.most_telling(label, number, count)


# -------------------------------------------------------------------------------------------------
# Unlabelled texts: from them the linear model learns which words occur together.
#
# Labelled rows alone give weights only to their own words. Words that occur in the same texts
# extend these weights to other words, and to rare ones.


class WordTopics:
    """Fits the linear model again, with the topics of all texts."""

    def refused(self, model: SupervisedModel) -> str:
        """Why a model with these settings cannot learn topics; "" if it can."""
        if model.inputs:
            return "expected a model of one text, got several inputs"
        if model.settings.linear == MIXED:
            return ""
        return (
            "expected a linear model that is mixed with the network and learns from these texts, "
            f"model.linear = mixed, got {model.settings.linear}"
        )

    def learned(
        self, unlabelled: Part, train: Part, validation: Part, model: SupervisedModel
    ) -> tuple[Learned, str]:
        """The learned part with the linear model and the mixture fitted again, if topics improve
        answers to held-out rows; else unchanged."""
        from ensue.tasks.supervised.task import outputs_of

        learned = model.learned
        target, linear = learned.target, learned.linear
        assert isinstance(target, LabelTarget)
        assert isinstance(linear, MixedText)
        parts = (train, validation)
        labels = [target.encode(part) for part in parts]
        first, second, others = shared_texts(*parts, unlabelled)
        topics = fit_with_topics(
            first,
            second,
            others,
            np.concatenate(labels),
            target.width,
            [block.kind for block in linear.model.features.blocks],
            None if linear.beside is None else linear.beside.matrix(*parts),
        )
        line = (
            f"{len(unlabelled):,} row{'s' * (len(unlabelled) > 1)} without labels: cost of the "
            f"linear model on rows that it did not learn from {topics.without:.4f} without the "
            "topics of all texts"
        )
        if not topics.share:
            return learned, f"{line}, not clearly lower with them, so they are left out"
        fitted, y = topics.linear, torch.from_numpy(labels[1])
        telling = most_telling(fitted.model, joined(first, others), target.labels.tokens)
        outputs = outputs_of(validation, model)
        new = replace(
            learned,
            linear=replace(linear, model=fitted.model, telling=telling),
            out_of_sample=fitted.out_of_sample,
            mixture=target.fitted_mixture(outputs, fitted.out_of_sample, y, FEW_TEXTS),
        )
        return new, f"{line}, {topics.best:.4f} with them"
