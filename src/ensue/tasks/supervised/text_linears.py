"""Linear models of texts and sequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.tasks.baselines.contributions import (
    Contributions,
    ngram_contributions,
    text_contributions,
)
from ensue.tasks.baselines.linear import LinearModel
from ensue.tasks.baselines.regression import Regression
from ensue.tasks.baselines.ridge import RidgeModel
from ensue.tasks.baselines.text_features import Texts
from ensue.tasks.baselines.text_linear import TextLinear
from ensue.tasks.columns.beside import MOST_CATEGORIES, ColumnsBeside
from ensue.tasks.columns.exported import CATEGORIES, NUMBERS
from ensue.tasks.declarations import Derived, Keys, Let, OfClass, SavedAs, Words
from ensue.tasks.explaining.attribution import LinearAttribution, Phrase
from ensue.tasks.exported import Rounding
from ensue.tasks.rows.exported import COLUMNS, VALUES, LinearScores, linear_steps
from ensue.tasks.rows.inputs import vocabulary_rows
from ensue.tasks.rows.part import Part, texts_of
from ensue.tasks.supervised.learned import Linear, LinearQuestion, Named, saved_regression
from ensue.tasks.targets.target import Target

if TYPE_CHECKING:
    from ensue.tasks.any_model import ModelView
    from ensue.tasks.explaining.measures import ExplainedOutput

PHRASES = 10  # features that are named


def linear_attributions(
    explained: Sequence[ExplainedOutput],
    words: Sequence[str],
    parts: Contributions,
    bias: NDArray[np.floating],
) -> tuple[LinearAttribution, ...]:
    """The linear attribution of each answer. words: the words of the linear model; bias
    (answers,)."""
    attributions = []
    for k, answer in enumerate(explained):
        scores = parts.by_word[:, k].tolist()
        strongest = sorted(parts.features.items(), key=lambda item: -abs(item[1][k]))[:PHRASES]
        phrases = tuple(Phrase(text, float(values[k])) for text, values in strongest)
        constant = float(bias[k])
        output = constant + float(parts.by_word[:, k].sum())
        attributions.append(
            LinearAttribution(
                answer.name, None, output, constant, tuple(words), tuple(scores), phrases
            )
        )
    return tuple(attributions)


def _ngram_class(record: Any) -> type[LinearModel] | type[RidgeModel]:
    return RidgeModel if record.target.numeric else LinearModel


NgramModel = Annotated[
    LinearModel | RidgeModel, SavedAs("", arrays="linear"), OfClass(_ngram_class)
]
NGRAMS, RIDGE_NGRAMS = "linear n-grams", "ridge on n-grams"  # names in evaluations


@dataclass(frozen=True)
class MixedText(Linear):
    """TF-IDF of words and letters, and the columns next to the text. It is mixed with the network,
    and also learns from the validation part. telling: the n-grams with the highest weights for each
    label."""

    knows_validation: ClassVar[bool] = True

    model: Annotated[
        TextLinear,
        SavedAs("", arrays="linear"),
        Let(
            extra=lambda record: 0 if record.beside is None else record.beside.dense_width,
            outputs="target.linear_width",
        ),
    ]
    beside: Annotated[ColumnsBeside | None, Derived("input.beside")]
    number: Annotated[bool, Derived(lambda record: record.target.numeric)]
    telling: Annotated[
        Mapping[str, Sequence[str]],
        Keys(lambda record: () if record.number else record.target.labels.tokens),
    ] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return RIDGE_NGRAMS if self.number else NGRAMS

    def scores(self, part: Part) -> Tensor:
        more = None if self.beside is None else self.beside.matrix(part)
        return self.model.scores(texts_of(part), more)

    def most_telling(self, label: str, number: int, count: int) -> list[str]:
        """The n-grams with the highest weights for a label."""
        return list(self.telling[label][:count])

    def rounded(self, rounding: Rounding) -> MixedText:
        weights = rounding(self.model.weights.T).T
        return replace(self, model=replace(self.model, weights=weights))

    def question(self, model: ModelView) -> LinearQuestion:
        read = linear_steps(self.model.features, model.learned.tokenisers.input)
        return LinearQuestion(read.inputs, read.steps, TextScores(self.model, self.beside))

    def attributions(
        self, part: Part, explained: Sequence[ExplainedOutput], target: Target
    ) -> tuple[LinearAttribution, ...]:
        texts = texts_of(part)
        more = None if self.beside is None else self.beside.matrix(part)
        without = self.model.without_text(more)
        directions, constant = target.linear_directions(explained)
        bias = without @ directions + constant
        parts = text_contributions(self.model, texts, directions)
        words = [texts.words[k] for k in texts.rows.values]
        return linear_attributions(explained, words, parts, bias)


class TextScores(nn.Module):
    """Computes z of a linear model of texts, and of the columns next to them, from the inputs of an
    exported graph."""

    def __init__(self, model: TextLinear, beside: ColumnsBeside | None) -> None:
        super().__init__()
        self.linear, self.beside = LinearScores(model), beside

    def forward(self, named: Named) -> Tensor:
        z: Tensor = self.linear(named[COLUMNS], named[VALUES], self._dense(named))
        return z

    def _dense(self, named: Named) -> Tensor | None:
        """The columns for the linear model: numbers, and the most frequent categories as zeros and
        ones."""
        if self.beside is None:
            return None
        parts = [named[NUMBERS]]
        for k, column in enumerate(self.beside.columns.categories):
            kinds = torch.arange(1, min(len(column.categories), MOST_CATEGORIES) + 1)
            parts.append((named[CATEGORIES][:, k, None] == kinds).to(torch.float32))
        return torch.cat(parts, 1)


@dataclass(frozen=True)
class NgramText(Linear):
    """N-grams of whole words: a baseline; in a classifier they may also contribute to answers."""

    words: Annotated[Words, SavedAs("ngram_words")]
    model: Annotated[
        NgramModel,
        Let(
            word_count=lambda record: len(record.words),
            outputs="target.linear_width",
            several="target.several",
        ),
    ]

    @property
    def name(self) -> str:
        return RIDGE_NGRAMS if isinstance(self.model, RidgeModel) else NGRAMS

    def scores(self, part: Part) -> Tensor:
        rows = vocabulary_rows(part, self.words.numbers)
        if isinstance(self.model, RidgeModel):
            return torch.from_numpy(self.model.values(rows))[:, None]
        return torch.from_numpy(self.model.scores(rows)).double()

    def most_telling(self, label: str, number: int, count: int) -> list[str]:
        """The n-grams with the highest weights for a label."""
        assert isinstance(self.model, LinearModel)
        best = self.model.most_telling(number, count)
        return [" ".join(self.words.tokens_of(words)) for words, _ in best]

    def attributions(
        self, part: Part, explained: Sequence[ExplainedOutput], target: Target
    ) -> tuple[LinearAttribution, ...]:
        assert isinstance(self.model, LinearModel)
        return self.parts_of(part, explained, target, self.model.weights, self.model.bias)

    def parts_of(
        self,
        part: Part,
        explained: Sequence[ExplainedOutput],
        target: Target,
        weights: NDArray[Any],
        bias: NDArray[Any],
    ) -> tuple[LinearAttribution, ...]:
        """The contribution of each word, by weights (n-grams, classes)."""
        assert isinstance(self.model, LinearModel)
        directions, _ = target.linear_directions(explained)
        texts = Texts(self.words.tokens, vocabulary_rows(part, self.words.numbers))
        parts = ngram_contributions(self.model.ngrams, weights, texts, directions)
        words = [texts.words[k] for k in texts.rows.values]
        return linear_attributions(explained, words, parts, bias @ directions)


@dataclass(frozen=True)
class VectorLinear(Linear):
    """Regression on the mean and the last vector of a sequence."""

    regression: Annotated[
        Regression,
        SavedAs("linear"),
        saved_regression(lambda record: 2 * record.input.inputs.scale.width),
    ]

    @property
    def name(self) -> str:
        return "linear model"

    @torch.no_grad()
    def scores(self, part: Part) -> Tensor:
        return self.regression.scores(vector_features(part)).float()

    def question(self, model: ModelView) -> None:
        return None


def vector_features(part: Part) -> Tensor:
    """The mean and the last vector; zeros for an empty row; shape (rows, 2·n)."""
    values, starts = part.inputs.values, part.inputs.starts
    width = values.shape[1] if values.ndim == 2 else 0
    features = np.zeros((len(part), 2 * width), np.float64)
    for row in range(len(part)):
        steps = values[starts[row] : starts[row + 1]]
        if len(steps):
            features[row] = np.concatenate([steps.mean(0), steps[-1]])
    return torch.from_numpy(features)
