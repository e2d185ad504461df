"""A strong linear model of texts: TF-IDF of words and letters, with a margin cost.

The n-grams and the penalty strength are those with the lowest cost on held-out rows: the validation
part or, for small data, five folds of all rows. Scores are scaled so that their softmax (or σ, for
several labels) gives probabilities. At the end the model learns from all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy, softplus

from ensue.data.ragged import Ragged
from ensue.data.split import by_share, equal_shares
from ensue.tasks.baselines.margin import Margins, RowWeights, along_strengths, row_weights_along
from ensue.tasks.baselines.ridge import solved_ridge
from ensue.tasks.baselines.sparse import SparseMatrix, side_by_side
from ensue.tasks.baselines.text_features import (
    LETTERS,
    WORDS,
    Block,
    TextFeatures,
    Texts,
    few_enough,
    joined,
    spelled_ngrams,
)
from ensue.tasks.declarations import NEXT_TO, Shape

MOST, ROWS_EACH = 200, 20  # number of topics, and minimum rows per topic
# -------------------------------------------------------------------------------------------------
# Topics of texts without labels: the directions in which both halves of a text agree.
#
# a and b are the TF-IDF of the first and the second half of a text, minus their means over texts.
# M = Σ (a·bᵀ + b·aᵀ)/2 has large eigenvalues for properties of a whole text: its subject, its tone,
# its language; chance combinations of words in one sentence do not contribute (two views of the
# same thing: Ando & Zhang 2007, Foster, Kakade & Zhang 2008). The largest eigenvalues are found by
# subspace iteration (Halko, Martinsson & Tropp 2011).
#
# Words that occur in the same texts have similar rows of V. So a linear model u of a text's topics
# X·V gives every word the weight V·u, even words that no labelled text has.

MOST_NUMBERS = 100_000_000  # maximum size of V: more words get fewer topics
# Subspace iteration: additional columns, iterations, seed.
BESIDE, ROUNDS, TOPIC_SEED = 20, 5, 1
LEAST_ROWS = 5  # minimum texts of a word or pair that occurs in no labelled text
LEAST_VALUE = 1e-6  # minimum eigenvalue, relative to the largest


def common_words(labelled: Texts, others: Texts) -> tuple[Block, SparseMatrix]:
    """A block of words and pairs of words (all that occur in labelled texts, and those in other
    texts that are not rare), and the rows of the labelled texts."""
    block, x = Block.learn(WORDS, joined(labelled, others))
    in_rows = np.bincount(x.columns.values, minlength=x.width)
    in_rows[x.take(np.arange(len(labelled.rows))).columns.values] = LEAST_ROWS
    common = block.take(np.flatnonzero(in_rows >= LEAST_ROWS))
    return common, common.matrix(labelled)


def halves(texts: Texts) -> tuple[Texts, Texts]:
    """The first and the second half of each text; a word in the middle is in the second."""
    starts = texts.rows.starts
    edges = np.append(np.stack([starts[:-1], (starts[:-1] + starts[1:]) // 2], 1), starts[-1])
    pieces, first = Ragged(texts.rows.values, edges), np.arange(0, 2 * len(texts.rows), 2)
    return Texts(texts.words, pieces.take(first)), Texts(texts.words, pieces.take(first + 1))


def topics(words: Block, texts: Texts) -> Tensor:
    """V (columns of words, k); the norm of each column is the agreement of the halves of texts in
    it.

    idf is applied twice here: words of every text tell little about any, but would dominate M."""
    twice = replace(words, idf=words.idf**2)
    values, directions = agreement(*(twice.matrix(half) for half in halves(texts)))
    return (
        torch.from_numpy(words.idf)[:, None]
        * directions
        * (values / values[0].clamp(min=LEAST_VALUE))
    )


@torch.no_grad()
def agreement(first: SparseMatrix, second: SparseMatrix) -> tuple[Tensor, Tensor]:
    """The largest eigenvalues (k,) of M, falling, and its eigenvectors (columns, k)."""
    rows, width = len(first), first.width
    count = max(min(MOST, rows // ROWS_EACH, MOST_NUMBERS // max(width, 1), width), 1)
    means = [half.transposed_times(torch.full((rows, 1), 1 / rows)) for half in (first, second)]

    def product(v: Tensor) -> Tensor:
        one = first.transposed_times(second.times(v)) - rows * means[0] @ (means[1].T @ v)
        other = second.transposed_times(first.times(v)) - rows * means[1] @ (means[0].T @ v)
        return (one + other) / 2

    draw = torch.Generator().manual_seed(TOPIC_SEED)
    basis = torch.randn(width, min(count + BESIDE, width), generator=draw)
    for _ in range(ROUNDS):
        basis = torch.linalg.qr(product(basis)).Q
    within = (basis.T @ product(basis)).double()
    values, turned = torch.linalg.eigh((within + within.T) / 2)
    largest = values.flip(0)[:count].clamp(min=0)
    used = max(int((largest > LEAST_VALUE * largest[0].clamp(min=LEAST_VALUE)).sum()), 1)
    directions: Tensor = basis.double() @ turned.flip(1)[:, :used]
    return largest[:used].float(), directions.float()


STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0)
PENALTIES = (10.0, 3.0, 1.0, 0.3)  # for predicted numbers
SCALES = tuple(np.exp(np.linspace(np.log(0.3), np.log(20), 40)))
FEW_ROWS, HARDLY_ANY = 3_000, 200  # below: folds; fewer folds, no choice of n-grams
BY_ROWS = 1_200  # maximum rows for which solving over rows is faster than over columns
FOLDS, SEED = 5, 1
SHARES = (0.0, 1.0, 4.0, 16.0)  # of topics, relative to n-grams of size 1
LEAST_SIZE = 1e-6  # norm by which topics are divided
TELLING = 50  # maximum n-grams stored with their words
SURE = 2.0  # standard errors by which a gain from topics must exceed 0
WORSE = 1.01  # a path ends when the cost exceeds its minimum by this factor

Whole = NDArray[np.int64]
Folds = Sequence[tuple[Whole, Whole]]  # rows to learn from, and rows to score


@dataclass(frozen=True)
class TextLinear:
    """weights (columns, k) and bias (k,): scores are X·weights + bias. extra: number of last
    columns that do not come from the text."""

    features: Annotated[TextFeatures, NEXT_TO]
    weights: Annotated[
        NDArray[np.float32], Shape(lambda model: len(model.features) + model.extra, "outputs")
    ]
    bias: Annotated[NDArray[np.float32], Shape("outputs")]

    def scores(self, texts: Texts, beside: SparseMatrix | None = None) -> Tensor:
        """(rows, k), float64. beside: columns that do not come from the text."""
        x = with_columns(self.features.matrix(texts), beside)
        times = x.times(torch.from_numpy(self.weights)) + torch.from_numpy(self.bias)
        return times.double()

    def without_text(self, beside: SparseMatrix | None = None) -> NDArray[np.float64]:
        """The score of a row without its text, from the bias and its other columns; shape (k,)."""
        text = self.bias.astype(np.float64)
        if beside is None:
            return text
        weights = torch.from_numpy(self.weights[-beside.width :])
        return np.asarray(text + beside.times(weights)[0].double().numpy())


class FittedLinear(NamedTuple):
    """A fitted model. held: scores of the validation rows (rows, k), by models that did not learn
    from them."""

    model: TextLinear
    out_of_sample: Tensor


class FittedTopics(NamedTuple):
    """A fitted model with topics. share: weight of topics relative to n-grams, 0 if they do not
    help; without, best: the mean costs of held-out rows, without topics and with that share."""

    linear: FittedLinear
    share: float
    without: float
    best: float


def with_columns(x: SparseMatrix, beside: SparseMatrix | None) -> SparseMatrix:
    return x if beside is None else side_by_side([x, beside])


def fit_text_linear(
    train: Texts,
    texts: Texts,
    targets: NDArray[Any],
    classes: int,
    beside: SparseMatrix | None = None,
) -> FittedLinear:
    """Fits the model. targets: the targets of the training rows, then of the validation rows:
    classes (rows,), or zeros and ones (rows, labels). beside: other columns of the same rows."""
    problem = _Classes(torch.from_numpy(np.asarray(targets, np.int64)), classes)
    return _fitted(train, texts, problem, beside)


def fit_with_topics(
    train: Texts,
    texts: Texts,
    others: Texts,
    targets: NDArray[Any],
    classes: int,
    kinds: Sequence[str],
    beside: SparseMatrix | None = None,
) -> FittedTopics:
    """Fits the model with topics from unlabelled texts: a row's topics are added to its n-grams,
    with a weight that is chosen like the strength. Topics are sums over words, so each word again
    gets a weight, as in any other model. All texts share word indices; targets: the targets of the
    training rows, then of the validation rows; kinds: the kinds of n-grams; beside: other columns
    of these rows."""
    problem = _Classes(torch.from_numpy(np.asarray(targets, np.int64)), classes)
    labelled = joined(train, texts)
    rows = len(labelled.rows)
    words, known = common_words(labelled, others)
    blocks, parts = [words], [known]
    if LETTERS in kinds:
        letters, learn = Block.learn(LETTERS, labelled)
        blocks, parts = [words, letters], [known, learn]
    x = with_columns(side_by_side(parts), beside)
    directions = topics(words, joined(labelled, others))
    place = known.times(directions)
    size = place.var(0, correction=0).sum().sqrt().clamp(min=LEAST_SIZE)
    folds = _folds(len(train.rows), rows)
    tried = []
    for share in SHARES:
        learn = side_by_side([x, SparseMatrix.of_dense(share**0.5 / size * place)]) if share else x
        tried.append((_best_of_path(learn, problem, folds, rows < HARDLY_ANY), share, learn))
    plain = tried[0][0]
    best, share, x = min(tried, key=lambda candidate: candidate[0].cost)
    if not _clearly_lower(best, plain, problem, folds):
        best, share, x = tried[0]
    weights, bias, of_held = _solved_whole(x, problem, best, folds, len(texts.rows))
    if share:
        of_topics, weights = weights[-len(directions.T) :], weights[: -len(directions.T)]
        weights[: known.width] += share**0.5 / size * directions @ of_topics
    model = TextLinear(TextFeatures.of(blocks), weights.numpy(), bias.numpy())
    return FittedTopics(FittedLinear(model, of_held), share, plain.cost, best.cost)


def fit_text_ridge(
    train: Texts, texts: Texts, values: NDArray[Any], beside: SparseMatrix | None = None
) -> FittedLinear:
    """Fits the model to numbers. values (rows,): of the training rows, then of the validation rows,
    with mean 0 and standard deviation 1."""
    problem = _Numbers(torch.from_numpy(np.asarray(values, np.float32))[:, None])
    return _fitted(train, texts, problem, beside)


def most_telling(model: TextLinear, texts: Texts, labels: Sequence[str]) -> dict[str, list[str]]:
    """The n-grams of words with the highest weight for each label, as spelled in the texts."""
    words = next((block for block in model.features.blocks if block.kind == WORDS), None)
    if words is None:
        return {label: [] for label in labels}
    weights = model.weights[: len(words.hashes)]
    best = np.argsort(-weights, 0, kind="stable")[:TELLING]
    spelled = spelled_ngrams(texts, words.hashes[np.unique(best)])
    telling = {}
    for number, label in enumerate(labels):
        hashes = words.hashes[best[:, number]].tolist()
        telling[label] = [spelled[number] for number in hashes if number in spelled]
    return telling


# --- what is solved ------------------------------------------------------------------------------


class _Classes:
    """The problem of one class, or of several labels."""

    def __init__(self, targets: Tensor, classes: int) -> None:
        self.targets, self.several = targets, targets.ndim == 2
        goal = targets if self.several else torch.nn.functional.one_hot(targets, classes)
        self.two = classes == 2 and not self.several
        self.signs = (2 * goal - 1).float()[:, 1:] if self.two else (2 * goal - 1).float()

    strengths = STRENGTHS

    def path(self, x: SparseMatrix, rows: Whole, strengths: Sequence[float]) -> Iterator[Margins]:
        """Models of these rows, with a column for each class."""
        if len(x) > BY_ROWS:
            margins = along_strengths(x.take(rows), self.signs[rows], strengths)
        else:
            subset = x.take(rows)
            margins = (
                Margins(subset.transposed_times(solved.beta.float()), solved.bias.float())
                for solved in self._over_rows(x, rows, strengths)
            )
        return (
            Margins(self._each_class(each.weights), self._each_class(each.bias)) for each in margins
        )

    def scores_along(
        self, x: SparseMatrix, rows: Whole, out: Whole, strengths: Sequence[float]
    ) -> Iterator[Tensor]:
        """Scores (out, classes) of the rows `out`, by models of the rows `rows`."""
        if len(x) > BY_ROWS:
            outside = x.take(out)
            return (margins.scores(outside) for margins in self.path(x, rows, strengths))
        across = _part_of(x.row_products, out, rows)
        weights_along = self._over_rows(x, rows, strengths)
        return (self._each_class(margins.scores(across)).float() for margins in weights_along)

    def _over_rows(
        self, x: SparseMatrix, rows: Whole, strengths: Sequence[float]
    ) -> Iterator[RowWeights]:
        products = _part_of(x.row_products, rows, rows)
        return row_weights_along(products, self.signs[rows], strengths)

    def _each_class(self, values: Tensor) -> Tensor:
        """Values (…, k) with a column for each class; two classes get z/2 for class 1 and −z/2 for
        class 0."""
        return torch.cat([-values / 2, values / 2], -1) if self.two else values

    def scaled(self, scores: Tensor, rows: Whole) -> tuple[float, float]:
        """The lowest mean cost over all scalings of the scores, and the scaling."""
        targets = self.targets[torch.from_numpy(rows)]
        costs = [float(self._costs(scale * scores, targets).mean()) for scale in SCALES]
        best = int(np.argmin(costs))
        return costs[best], float(SCALES[best])

    def row_costs(self, scores: Tensor, rows: Whole) -> Tensor:
        """The costs (rows,) of scaled scores."""
        return self._costs(scores, self.targets[torch.from_numpy(rows)])

    def _costs(self, scores: Tensor, targets: Tensor) -> Tensor:
        """The costs with smoothed targets: for n rows and k classes the target probability is (n +
        1)/(n + k). Otherwise few rows, all answered correctly, would drive probabilities to 1
        (Platt 1999)."""
        if self.several:
            doubt = 1 / (len(targets) + 2)
            wrong, right = (
                softplus((1 - 2 * indicator) * scores) for indicator in (1 - targets, targets)
            )
            return ((1 - doubt) * right + doubt * wrong).sum(1)
        classes = scores.shape[1]
        doubt = classes / (len(targets) + classes)
        return cross_entropy(scores, targets, reduction="none", label_smoothing=doubt)


class _Numbers:
    """The problem of a number."""

    def __init__(self, values: Tensor) -> None:
        self.values = values

    strengths = PENALTIES

    def path(self, x: SparseMatrix, rows: Whole, strengths: Sequence[float]) -> Iterator[Margins]:
        subset, values = x.take(rows), self.values[torch.from_numpy(rows)]
        mean = values.mean(0)
        for strength in strengths:
            yield Margins(solved_ridge(subset, values - mean, strength), mean)

    def scores_along(
        self, x: SparseMatrix, rows: Whole, out: Whole, strengths: Sequence[float]
    ) -> Iterator[Tensor]:
        outside = x.take(out)
        return (margins.scores(outside) for margins in self.path(x, rows, strengths))

    def scaled(self, scores: Tensor, rows: Whole) -> tuple[float, float]:
        wrong = scores - self.values[torch.from_numpy(rows)]
        return float(wrong.square().mean()), 1.0


def _part_of(products: Tensor, one: Whole, other: Whole) -> Tensor:
    """The products of the rows `one` with the rows `other`."""
    return products.index_select(0, torch.from_numpy(one)).index_select(1, torch.from_numpy(other))


# --- how it is chosen ----------------------------------------------------------------------------


class _Candidate(NamedTuple):
    """The best model of a path. scores: the scores of all held-out rows, in the order of the
    folds."""

    cost: float
    scale: float
    strength: float
    scores: Tensor


def _cheapest(path: Iterator[_Candidate]) -> _Candidate:
    """The candidate with the lowest cost; the path is abandoned when the cost has clearly risen."""
    best = next(path)
    for candidate in path:
        if candidate.cost < best.cost:
            best = candidate
        elif candidate.cost > WORSE * best.cost:
            break
    return best


def _clearly_lower(one: _Candidate, other: _Candidate, problem: _Classes, folds: Folds) -> bool:
    """Whether the cost of `one` is lower by a hundredth and beyond chance, because on few rows the
    costs of any two models differ."""
    rows = np.concatenate([fold for _, fold in folds])
    mine, others = (
        problem.row_costs(candidate.scale * candidate.scores, rows) for candidate in (one, other)
    )
    gain = others - mine
    chance = float(gain.std()) / len(rows) ** 0.5
    return WORSE * one.cost <= other.cost and float(gain.mean()) > SURE * chance


def _fitted(
    train: Texts, validation: Texts, problem: _Classes | _Numbers, beside: SparseMatrix | None
) -> FittedLinear:
    texts = joined(train, validation)
    rows, folds = len(texts.rows), _folds(len(train.rows), len(texts.rows))
    best: tuple[_Candidate, TextFeatures, SparseMatrix] | None = None
    for kinds in _kinds(texts):
        features, learn = TextFeatures.learn(texts, kinds)
        x = with_columns(learn, beside)
        path = _best_of_path(x, problem, folds, rows < HARDLY_ANY)
        if best is None or path.cost < best[0].cost:
            best = path, features, x
    assert best is not None
    chosen, features, x = best
    weights, bias, of_held = _solved_whole(x, problem, chosen, folds, len(validation.rows))
    return FittedLinear(TextLinear(features, weights.numpy(), bias.numpy()), of_held)


def _solved_whole(
    x: SparseMatrix,
    problem: _Classes | _Numbers,
    chosen: _Candidate,
    folds: Folds,
    validation_rows: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Weights and bias fitted to all rows, and the scores of the last `validation_rows`, by models
    that did not learn from them."""
    (whole,) = problem.path(x, np.arange(len(x)), [chosen.strength])
    order = np.argsort(np.concatenate([fold for _, fold in folds]), kind="stable")
    of_held = chosen.scale * chosen.scores[torch.from_numpy(order)][-validation_rows:]
    return chosen.scale * whole.weights, chosen.scale * whole.bias, of_held.double()


def _best_of_path(
    x: SparseMatrix, problem: _Classes | _Numbers, folds: Folds, quick: bool
) -> _Candidate:
    """The strength with the lowest cost on held-out rows."""
    strengths = problem.strengths[1::2] if quick else problem.strengths
    paths = [problem.scores_along(x, rows, fold, strengths) for rows, fold in folds]
    out = np.concatenate([fold for _, fold in folds])

    def tried() -> Iterator[_Candidate]:
        for strength, *path in zip(strengths, *paths, strict=True):
            scores = torch.cat(path)
            cost, scale = problem.scaled(scores, out)
            yield _Candidate(cost, scale, strength, scores)

    return _cheapest(tried())


def _kinds(texts: Texts) -> list[tuple[str, ...]]:
    """The n-grams to choose from."""
    if not few_enough(texts):
        return [(WORDS,)]
    both = (WORDS, LETTERS)
    return [both] if len(texts.rows) < HARDLY_ANY else [both, (WORDS,), (LETTERS,)]


def _folds(train: int, rows: int) -> list[tuple[Whole, Whole]]:
    """Rows to learn from and rows to score, for each tried model; validation rows are always
    scored."""
    if rows >= FEW_ROWS or train < FOLDS:
        return [(np.arange(train), np.arange(train, rows))]
    parts = by_share(rows, equal_shares(3 if rows < HARDLY_ANY else FOLDS), SEED)
    return [(np.setdiff1d(np.arange(rows), part), part) for part in parts.values()]
