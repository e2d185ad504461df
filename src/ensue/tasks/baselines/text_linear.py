"""A linear model of texts as strong as one gets by hand: TF-IDF of words and letters, a margin.

Which n-grams, and how strong the penalty is, is what has the lowest cost on rows that were not
learned from: the validation part, or of few rows five folds of all. Scores are scaled so that
their softmax (or σ, of several labels) are probabilities. In the end it learns from all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy, softplus

from ensue.data.ragged import Ragged
from ensue.data.split import by_share, equal_shares
from ensue.tasks import checks
from ensue.tasks.baselines.margin import Margins, along_strengths
from ensue.tasks.baselines.margin_newton import RowWeights, row_weights_along
from ensue.tasks.baselines.ridge import solved_ridge
from ensue.tasks.baselines.sparse import SparseMatrix, side_by_side
from ensue.tasks.baselines.text_features import (
    LETTERS,
    WORDS,
    TextFeatures,
    Texts,
    few_enough,
    spelled_ngrams,
)

STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0)
PENALTIES = (10.0, 3.0, 1.0, 0.3)  # of a number that is predicted
SCALES = tuple(np.exp(np.linspace(np.log(0.3), np.log(20), 40)))
FEW_ROWS, HARDLY_ANY = 3_000, 200  # below, folds; below, fewer of them and no choice of n-grams
BY_ROWS = 1_200  # rows up to which solving over rows is quicker than over columns
FOLDS, SEED = 5, 1
TRUE_LABEL = 3.0  # what a row with a label counts for beside one without
TELLING = 50  # n-grams that are kept as words
WORSE = 1.01  # a path ends where the cost is so much above its lowest

Whole = NDArray[np.int64]


@dataclass(frozen=True)
class TextLinear:
    """weights (columns, k) and bias (k,): scores are X·weights + bias. extra: how many of the
    columns, the last ones, are not those of the text."""

    features: TextFeatures
    weights: NDArray[np.float32]
    bias: NDArray[np.float32]

    def scores(self, texts: Texts, beside: SparseMatrix | None = None) -> Tensor:
        """(rows, k), float64. beside: columns that do not come from the text."""
        x = with_columns(self.features.matrix(texts), beside)
        found = x.times(torch.from_numpy(self.weights)) + torch.from_numpy(self.bias)
        return found.double()

    def without_text(self, beside: SparseMatrix | None = None) -> NDArray[np.float64]:
        """(k,): what one row's score is but for its text: the bias, and its other columns."""
        found = self.bias.astype(np.float64)
        if beside is None:
            return found
        weights = torch.from_numpy(self.weights[-beside.width :])
        return np.asarray(found + beside.times(weights)[0].double().numpy())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that it is, to be stored by name."""
        return {**self.features.arrays(), "weights": self.weights, "bias": self.bias}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], outputs: int, beside: int = 0
    ) -> TextLinear | None:
        """The inverse of `arrays`; None of none. beside: columns that are not those of the text."""
        if not arrays:
            return None
        features = TextFeatures.from_arrays(arrays)
        weights = checks.array((len(features) + beside, outputs), checks.SINGLE)
        bias = checks.array((outputs,), checks.SINGLE)(arrays.get("bias"), "text_linear.bias")
        return cls(features, weights(arrays.get("weights"), "text_linear.weights"), bias)


class FittedLinear(NamedTuple):
    """held: scores of the validation rows (rows, k), by models that did not learn from them."""

    model: TextLinear
    held: Tensor


class FittedBoth(NamedTuple):
    """Learned from rows without labels as well; alone: scores of the validation rows by the model
    of the training rows alone, whose strength and scale were chosen in the same way."""

    fitted: FittedLinear
    alone: Tensor


def with_columns(x: SparseMatrix, beside: SparseMatrix | None) -> SparseMatrix:
    return x if beside is None else side_by_side([x, beside])


def joined(train: Texts, held: Texts) -> Texts:
    """The rows of both, which number words alike."""
    values = np.concatenate([train.rows.values, held.rows.values])
    starts = np.concatenate([train.rows.starts, train.rows.starts[-1] + held.rows.starts[1:]])
    return Texts(held.words, Ragged(values, starts))


def fit_text_linear(
    train: Texts,
    held: Texts,
    targets: NDArray[Any],
    classes: int,
    beside: SparseMatrix | None = None,
) -> FittedLinear:
    """targets: of the training rows and then the validation rows; classes (rows,), or zeros and
    ones (rows, labels). beside: other columns of the same rows."""
    problem = _Classes(torch.from_numpy(np.asarray(targets, np.int64)), classes)
    return _fitted(train, held, problem, beside)


def fit_with_own_labels(
    texts: Sequence[Texts],
    targets: NDArray[Any],
    classes: int,
    label: Callable[[Tensor, Tensor], NDArray[np.int64]],
    kinds: Sequence[str],
    beside: SparseMatrix | None = None,
) -> FittedBoth:
    """From rows without labels as well. texts: of the training rows, the validation rows and those
    without labels, which number words alike; targets: of the first two; label: the labels of the
    others, from scores of theirs and of the validation rows (rows, k) by a model of the training
    rows alone; kinds: of n-grams. The last model learns from all rows."""
    features, own = TextFeatures.learn(joined(joined(texts[0], texts[1]), texts[2]), kinds)
    x = with_columns(own, beside)
    first, known, rows = len(texts[0].rows), len(targets), len(x)
    train, held, others = np.arange(first), np.arange(first, known), np.arange(known, rows)
    filled = np.concatenate([targets, np.zeros((len(others), *targets.shape[1:]), np.int64)])
    counts = torch.ones(rows, 1)
    counts[:known] = TRUE_LABEL
    of_labels = _best_on_held(x, _Classes(torch.from_numpy(filled), classes), train, held)
    filled[known:] = label(of_labels.scores(x.take(others)), of_labels.scores(x.take(held)))
    problem = _Classes(torch.from_numpy(filled), classes, counts)
    chosen = _best_on_held(x, problem, np.concatenate([train, others]), held)
    (whole,) = problem.path(x, np.arange(rows), [chosen.strength])
    weights, bias = chosen.scale * whole.weights, chosen.scale * whole.bias
    model = TextLinear(features, weights.numpy(), bias.numpy())
    outside = x.take(held)
    return FittedBoth(FittedLinear(model, chosen.scores(outside)), of_labels.scores(outside))


def fit_text_ridge(
    train: Texts, held: Texts, values: NDArray[Any], beside: SparseMatrix | None = None
) -> FittedLinear:
    """values (rows,): numbers to predict, of the training rows and then the validation rows, of
    mean 0 and spread 1."""
    problem = _Numbers(torch.from_numpy(np.asarray(values, np.float32))[:, None])
    return _fitted(train, held, problem, beside)


def most_telling(model: TextLinear, texts: Texts, labels: Sequence[str]) -> dict[str, list[str]]:
    """The n-grams of words that speak most for each label, as they are spelled in these texts."""
    words = next((own for own in model.features.blocks if own.kind == WORDS), None)
    if words is None:
        return {label: [] for label in labels}
    weights = model.weights[: len(words.hashes)]
    best = np.argsort(-weights, 0, kind="stable")[:TELLING]
    spelled = spelled_ngrams(texts, words.hashes[np.unique(best)])
    found = {}
    for number, label in enumerate(labels):
        hashes = words.hashes[best[:, number]].tolist()
        found[label] = [spelled[own] for own in hashes if own in spelled]
    return found


# --- what is solved ------------------------------------------------------------------------------


class _Classes:
    """One class of many, or several labels. counts (rows, 1): what each row counts for."""

    def __init__(self, targets: Tensor, classes: int, counts: Tensor | None = None) -> None:
        self.targets, self.several, self.counts = targets, targets.ndim == 2, counts
        goal = targets if self.several else torch.nn.functional.one_hot(targets, classes)
        self.two = classes == 2 and not self.several
        self.signs = (2 * goal - 1).float()[:, 1:] if self.two else (2 * goal - 1).float()

    strengths = STRENGTHS

    def path(self, x: SparseMatrix, rows: Whole, strengths: Sequence[float]) -> Iterator[Margins]:
        """Models of these rows, with a column for each class."""
        if len(x) > BY_ROWS:
            found = along_strengths(
                x.take(rows), self.signs[rows], strengths, weights=self._counts_of(rows)
            )
        else:
            own = x.take(rows)
            found = (
                Margins(own.transposed_times(solved.beta.float()), solved.bias.float())
                for solved in self._over_rows(x, rows, strengths)
            )
        return (Margins(self._each_class(own.weights), self._each_class(own.bias)) for own in found)

    def scores_along(
        self, x: SparseMatrix, rows: Whole, out: Whole, strengths: Sequence[float]
    ) -> Iterator[Tensor]:
        """Of the rows `out` by models of these rows (out, classes)."""
        if len(x) > BY_ROWS:
            outside = x.take(out)
            return (own.scores(outside) for own in self.path(x, rows, strengths))
        across = _part_of(x.row_products, out, rows)
        found = self._over_rows(x, rows, strengths)
        return (self._each_class(own.scores(across)).float() for own in found)

    def _over_rows(
        self, x: SparseMatrix, rows: Whole, strengths: Sequence[float]
    ) -> Iterator[RowWeights]:
        products = _part_of(x.row_products, rows, rows)
        return row_weights_along(products, self.signs[rows], strengths, self._counts_of(rows))

    def _counts_of(self, rows: Whole) -> Tensor | None:
        return None if self.counts is None else self.counts[rows]

    def _each_class(self, own: Tensor) -> Tensor:
        """(…, k) with a column for each class: z/2 for class 1 and −z/2 for class 0 of two."""
        return torch.cat([-own / 2, own / 2], -1) if self.two else own

    def scaled(self, scores: Tensor, rows: Whole) -> tuple[float, float]:
        """The lowest mean cost of the scores times a number, and that number."""
        targets = self.targets[torch.from_numpy(rows)]
        costs = [float(self._cost(scale * scores, targets)) for scale in SCALES]
        best = int(np.argmin(costs))
        return costs[best], float(SCALES[best])

    def _cost(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Targets of n rows and k classes are (n + 1)/(n + k) sure, so that few rows that are all
        answered rightly do not ask for ever surer answers (Platt 1999)."""
        if self.several:
            doubt = 1 / (len(targets) + 2)
            wrong, right = (softplus((1 - 2 * own) * scores) for own in (1 - targets, targets))
            return ((1 - doubt) * right + doubt * wrong).sum(1).mean()
        classes = scores.shape[1]
        return cross_entropy(scores, targets, label_smoothing=classes / (len(targets) + classes))


class _Numbers:
    """A number."""

    def __init__(self, values: Tensor) -> None:
        self.values = values

    strengths = PENALTIES

    def path(self, x: SparseMatrix, rows: Whole, strengths: Sequence[float]) -> Iterator[Margins]:
        own, values = x.take(rows), self.values[torch.from_numpy(rows)]
        mean = values.mean(0)
        for strength in strengths:
            yield Margins(solved_ridge(own, values - mean, strength), mean)

    def scores_along(
        self, x: SparseMatrix, rows: Whole, out: Whole, strengths: Sequence[float]
    ) -> Iterator[Tensor]:
        outside = x.take(out)
        return (own.scores(outside) for own in self.path(x, rows, strengths))

    def scaled(self, scores: Tensor, rows: Whole) -> tuple[float, float]:
        wrong = scores - self.values[torch.from_numpy(rows)]
        return float(wrong.square().mean()), 1.0


def _part_of(products: Tensor, one: Whole, other: Whole) -> Tensor:
    """(one, other)"""
    return products.index_select(0, torch.from_numpy(one)).index_select(1, torch.from_numpy(other))


# --- how it is chosen ----------------------------------------------------------------------------


class _Candidate(NamedTuple):
    """The best of a path. scores: of all rows that were held out, in the order of the folds."""

    cost: float
    scale: float
    strength: float
    scores: Tensor


class _Tried(Protocol):
    @property
    def cost(self) -> float: ...


C = TypeVar("C", bound=_Tried)


def _cheapest(path: Iterator[C]) -> C:
    """The one of the lowest cost; a path is left where it has risen clearly."""
    best = next(path)
    for own in path:
        if own.cost < best.cost:
            best = own
        elif own.cost > WORSE * best.cost:
            break
    return best


def _fitted(
    train: Texts, held: Texts, problem: _Classes | _Numbers, beside: SparseMatrix | None
) -> FittedLinear:
    texts = joined(train, held)
    rows, tried = len(texts.rows), _kinds(texts)
    folds = _folds(len(train.rows), rows)
    out = np.concatenate([own for _, own in folds])
    best: tuple[_Candidate, TextFeatures, SparseMatrix] | None = None
    for kinds in tried:
        features, own = TextFeatures.learn(texts, kinds)
        x = with_columns(own, beside)
        found = _best_of_path(x, problem, folds, out, rows < HARDLY_ANY)
        if best is None or found.cost < best[0].cost:
            best = found, features, x
    assert best is not None
    chosen, features, x = best
    (whole,) = problem.path(x, np.arange(rows), [chosen.strength])
    weights, bias = chosen.scale * whole.weights, chosen.scale * whole.bias
    model = TextLinear(features, weights.numpy(), bias.numpy())
    order = np.argsort(out, kind="stable")
    found_held = chosen.scale * chosen.scores[torch.from_numpy(order)][-len(held.rows) :]
    return FittedLinear(model, found_held.double())


def _best_of_path(
    x: SparseMatrix,
    problem: _Classes | _Numbers,
    folds: Sequence[tuple[Whole, Whole]],
    out: Whole,
    quick: bool,
) -> _Candidate:
    """The strength whose models have the lowest cost on the rows that they did not learn from."""
    strengths = problem.strengths[1::2] if quick else problem.strengths
    paths = [problem.scores_along(x, rows, own, strengths) for rows, own in folds]

    def tried() -> Iterator[_Candidate]:
        for strength, *found in zip(strengths, *paths, strict=True):
            scores = torch.cat(found)
            cost, scale = problem.scaled(scores, out)
            yield _Candidate(cost, scale, strength, scores)

    return _cheapest(tried())


class _Scaled(NamedTuple):
    """The best of a path, by the cost of rows that it did not learn from."""

    cost: float
    scale: float
    strength: float
    model: Margins

    def scores(self, x: SparseMatrix) -> Tensor:
        return (self.scale * self.model.scores(x)).double()


def _best_on_held(x: SparseMatrix, problem: _Classes, rows: Whole, held: Whole) -> _Scaled:
    outside, strengths = x.take(held), problem.strengths

    def tried() -> Iterator[_Scaled]:
        for strength, model in zip(strengths, problem.path(x, rows, strengths), strict=True):
            cost, scale = problem.scaled(model.scores(outside), held)
            yield _Scaled(cost, scale, strength, model)

    return _cheapest(tried())


def _kinds(texts: Texts) -> list[tuple[str, ...]]:
    """The n-grams to choose from."""
    if not few_enough(texts):
        return [(WORDS,)]
    both = (WORDS, LETTERS)
    return [both] if len(texts.rows) < HARDLY_ANY else [both, (WORDS,), (LETTERS,)]


def _folds(train: int, rows: int) -> list[tuple[Whole, Whole]]:
    """Rows to learn from and rows to score, for each model that is tried: the validation rows are
    always scored."""
    if rows >= FEW_ROWS or train < FOLDS:
        return [(np.arange(train), np.arange(train, rows))]
    parts = by_share(rows, equal_shares(3 if rows < HARDLY_ANY else FOLDS), SEED)
    return [(np.setdiff1d(np.arange(rows), own), own) for own in parts.values()]
