"""The linear chain: a conditional random field with the usual features, without a network.

    score(l) = first[l_1] + Σ_t e_t[l_t] + Σ_t follow[l_{t−1}, l_t] + last[l_T],
    e_t = Σ_o Σ_f w_o[f], over the words o = −2 … 2 steps from t and the features f of each.

w is fitted by L-BFGS on the negative log-likelihood of the training part + strength·‖w‖² (Lafferty
et al. 2001). The problem is convex and needs no seed. Features are summed once for each distinct
word, then looked up at every step: the cost grows with the vocabulary, not with the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag

from ensue.data.ragged import Ragged
from ensue.data.vocabulary import Vocabulary
from ensue.layers.lengths import step_mask
from ensue.tasks.declarations import NEXT_TO, Keys, SavedAs, Shape, Words
from ensue.tasks.rows.surfaces import part_counts, shape_of
from ensue.training.optimiser import LBFGS

OFFSETS = (0, -1, 1, -2, 2)  # offsets of the words that a step sees
ENDS = ("before", "after")  # symbols for the positions before and after a row
Features = Callable[[str], Iterator[str]]


def own_features(word: str) -> Iterator[str]:
    """The features of the step's own word."""
    yield "always"
    yield f"word {word}"
    lower = word.lower()
    yield f"lower {lower}"
    for size in (1, 2, 3, 4):
        if len(lower) > size:
            yield f"ends {lower[-size:]}"
            yield f"begins {lower[:size]}"
    yield f"shape {shape_of(word)}"
    yield from _casing(word)


def near_features(word: str) -> Iterator[str]:
    """The features of the previous and the next word."""
    lower = word.lower()
    yield f"lower {lower}"
    yield f"ends {lower[-3:]}"
    yield f"shape {shape_of(word)}"
    yield from _casing(word)


def far_features(word: str) -> Iterator[str]:
    """The features of the words two steps away."""
    yield f"lower {word.lower()}"
    yield f"shape {shape_of(word)}"


def _casing(word: str) -> Iterator[str]:
    """The case of a word as features; none for scripts without capitals."""
    if word.isupper():
        yield "capitals"
    if word.istitle():
        yield "title"
    if word.islower():
        yield "small"
    if any(map(str.isdigit, word)):
        yield "digits" if word.isdigit() else "digit"


KINDS: dict[str, Features] = {"own": own_features, "near": near_features, "far": far_features}
KIND_OF = {0: "own", -1: "near", 1: "near", -2: "far", 2: "far"}


@dataclass(frozen=True)
class ChainFeatures:
    """The features of a linear chain. known: a vocabulary for each of KINDS. Every offset has its
    own rows in the table of weights, one offset after another in the order of OFFSETS; after each
    kind's features come two rows for the positions before and after a row."""

    known: Annotated[Mapping[str, Words], SavedAs("chain "), Keys(lambda _: KINDS)]

    @classmethod
    def learn(cls, surfaces: Mapping[str, int]) -> ChainFeatures:
        """Learns the vocabularies. surfaces: the words, with their counts."""
        return cls(
            {
                name: Vocabulary.build(part_counts(surfaces, features))
                for name, features in KINDS.items()
            }
        )

    def _sizes(self) -> list[int]:
        return [len(self.known[KIND_OF[offset]]) + len(ENDS) for offset in OFFSETS]

    @property
    def rows(self) -> int:
        """Number of rows in the table of weights."""
        return sum(self._sizes())

    def tables(self, surfaces: Sequence[str]) -> list[Ragged]:
        """The rows of weights of every word, for each of OFFSETS and then for ENDS. Features that
        training did not see are left out."""
        by_kind = {name: _numbers(self.known[name], KINDS[name], surfaces) for name in KINDS}
        begins = np.concatenate([[0], np.cumsum(self._sizes())])
        rows = []
        for begin, offset in zip(begins, OFFSETS, strict=False):
            kind = by_kind[KIND_OF[offset]]
            rows.append(Ragged(kind.values + begin, kind.starts))
        return rows


def _numbers(known: Vocabulary, features: Features, surfaces: Sequence[str]) -> Ragged:
    numbers, unknown = known.numbers, 1
    rows = [
        [n for n in map(numbers.__getitem__, features(word)) if n != unknown] for word in surfaces
    ]
    return Ragged.of([*rows, [len(known)], [len(known) + 1]], np.int64)


# -------------------------------------------------------------------------------------------------
# Chains of labels whose score is a sum over neighbours: sums, best paths, marginals.
#
# score(l) = first[l_0] + Σ_{t≥1} pair_t[l_{t−1}, l_t] + last[l_end]
#
# first (batch, labels); pair(t) (batch, before, after); last (labels,). Everything is
# in log space, for all rows at once; an empty row has only the empty chain, with score 0.

# The score of impossible transitions. It is finite, so that a chain without a path does not give
# −inf − (−inf); its exponential is still 0.
IMPOSSIBLE = -1e4


@dataclass(frozen=True)
class Chain:
    """A distribution over label sequences. time: steps of the longest row; lengths (batch,) on the
    device of the scores."""

    first: Tensor
    pair: Callable[[int], Tensor]
    last: Tensor
    lengths: Tensor
    time: int

    def log_partition(self) -> Tensor:
        """The log partition function, log Σ_l exp score(l), (batch,)."""
        if not self.time:
            return self.first.new_zeros(len(self.lengths))
        return self._end(self._ahead()[-1])

    def _end(self, alpha: Tensor) -> Tensor:
        total = torch.logsumexp(alpha + self.last, 1)
        return torch.where(self.lengths > 0, total, 0)

    def _alive(self, t: int) -> Tensor:
        return (t < self.lengths)[:, None]

    def _ahead(self) -> list[Tensor]:
        """α_t (batch, labels): log sum over all beginnings with this label at t; unchanged after a
        row's end."""
        alphas = [self.first]
        for t in range(1, self.time):
            new = torch.logsumexp(alphas[-1][:, :, None] + self.pair(t), 1)
            alphas.append(torch.where(self._alive(t), new, alphas[-1]))
        return alphas

    def log_marginals(self) -> Tensor:
        """log p(l_t), (time, batch, labels); zero at padding."""
        if not self.time:
            return self.first.new_zeros(0, *self.first.shape)
        double = self._double()
        alphas = double._ahead()
        end = double.last.expand_as(double.first)
        betas = [end]
        for t in reversed(range(1, double.time)):
            new = torch.logsumexp(double.pair(t) + betas[-1][:, None, :], 2)
            betas.append(torch.where(double._alive(t), new, end))
        logs = torch.stack(alphas) + torch.stack(betas[::-1]) - double._end(alphas[-1])[:, None]
        real = step_mask(self.lengths, self.time)[..., None]
        return torch.where(real, logs, 0).to(self.first.dtype)

    def _double(self) -> Chain:
        """The same chain in float64. Sums grow with the steps, and marginals are their small
        differences; float32, with a resolution of 6e-5 at 1,000, is too inaccurate."""
        return Chain(
            self.first.double(),
            lambda t: self.pair(t).double(),
            self.last.double(),
            self.lengths,
            self.time,
        )

    def best(self) -> tuple[Tensor, Tensor]:
        """The best chain (time, batch), 0 at padding, and its score (batch,) — Viterbi."""
        batch, labels = self.first.shape
        if not self.time:
            return self.lengths.new_zeros(0, batch), self.first.new_zeros(batch)
        double = self._double()
        score, came_from = double.first, []
        stay = torch.arange(labels, device=score.device).expand(batch, -1)
        for t in range(1, self.time):
            value, parent = (score[:, :, None] + double.pair(t)).max(1)
            score = torch.where(self._alive(t), value, score)
            came_from.append(torch.where(self._alive(t), parent, stay))
        highest, label = (score + double.last).max(1)
        path = [label]
        for parent in reversed(came_from):
            path.append(parent.gather(1, path[-1][:, None])[:, 0])
        path_of_labels = torch.stack(path[::-1]) * step_mask(self.lengths, self.time)
        return path_of_labels, torch.where(self.lengths > 0, highest, 0).to(self.first.dtype)


# -------------------------------------------------------------------------------------------------
# Sums over all label sequences of many rows whose transitions are the same at every step.
#
# In probability space, scaled at each step, so that a step of all rows is one small matrix product;
# rows in order of length, so that nothing is computed for those that have ended.


class PackedRows:
    """The steps of rows by time: steps[t] are those at time t, of all rows that are long enough, in
    falling order of length. first, last: the ends of rows; before, after: all pairs of neighbours.
    Empty rows contribute nothing."""

    def __init__(self, rows: Ragged) -> None:
        self.count = len(rows.values)
        order = np.argsort(-rows.lengths, kind="stable")
        order = order[rows.lengths[order] > 0]
        begin, lengths = rows.starts[order], rows.lengths[order]
        longest = int(lengths.max(initial=0))
        alive = [int((lengths > t).sum()) for t in range(longest)]
        self.steps = [torch.from_numpy(begin[:many] + t) for t, many in enumerate(alive)]
        self.first = torch.from_numpy(begin)
        self.last = torch.from_numpy(begin + lengths - 1)
        self.after = torch.cat([*self.steps[1:], torch.zeros(0, dtype=torch.int64)])
        self.before = self.after - 1


class Expectations(NamedTuple):
    """Expectations of a linear chain. log_partition: the sum over rows; labels (steps, labels):
    p(l_t); first, last (labels,) and follow (before, after): expected counts."""

    log_partition: Tensor
    labels: Tensor
    first: Tensor
    follow: Tensor
    last: Tensor


def expectations(
    rows: PackedRows, emissions: Tensor, first: Tensor, follow: Tensor, last: Tensor
) -> Expectations:
    """emissions (steps, labels); first, last (labels,); follow (before, after).

    With m_t the largest emission of a step, α_t ∝ (α_{t−1}·F) ∘ exp(e_t − m_t) and
    β_t ∝ F·(β_{t+1} ∘ exp(e_{t+1} − m_{t+1})), F = exp(follow), each scaled by Σ α_t = 1."""
    top = emissions.max(1, keepdim=True).values
    weights = (emissions - top).exp()
    shifts = [follow.max(), first.max(), last.max()]
    links, begins, ends = (
        (v - shift).exp() for v, shift in zip((follow, first, last), shifts, strict=True)
    )
    times = (len(rows.after), len(rows.first), len(rows.first))
    total = top.double().sum()
    for many, shift in zip(times, shifts, strict=True):
        total = total + many * shift.double()
    alpha, scales = torch.zeros_like(weights), weights.new_ones(len(weights), 1)
    before = weights.new_zeros(0)
    for t, steps in enumerate(rows.steps):
        now = weights[steps] * (begins if t == 0 else before[: len(steps)] @ links)
        scale = now.sum(1, keepdim=True)
        before = now / scale
        alpha[steps], scales[steps] = before, scale
    closing = (alpha[rows.last] * ends).sum(1, keepdim=True)
    total = total + scales.double().log().sum() + closing.double().log().sum()
    beta = torch.zeros_like(weights)
    beta[rows.last] = ends / closing
    weighted = weights / scales
    for t in reversed(range(len(rows.steps) - 1)):
        later = rows.steps[t + 1]
        beta[later - 1] = (beta[later] * weighted[later]) @ links.T
    labels = alpha * beta
    pairs = alpha[rows.before].T @ (beta[rows.after] * weighted[rows.after])
    return Expectations(
        total, labels, labels[rows.first].sum(0), links * pairs, labels[rows.last].sum(0)
    )


STRENGTH = 0.1
ITERATIONS = 120
HISTORY = 6  # pairs that L-BFGS keeps


@dataclass(frozen=True)
class LinearChain:
    """weights (rows of the features' table, labels); first, last (labels,); follow (before,
    after)."""

    features: Annotated[ChainFeatures, NEXT_TO]
    weights: Annotated[NDArray[np.float32], Shape("features.rows", "labels")]
    first: Annotated[NDArray[np.float32], Shape("labels")]
    follow: Annotated[NDArray[np.float32], Shape("labels", "labels")]
    last: Annotated[NDArray[np.float32], Shape("labels")]

    def of_words(self, words: Sequence[str]) -> ChainOfWords:
        """The chain for texts of these words."""
        bags = [_bag(table) for table in self.features.tables(words)]
        return ChainOfWords(self, _word_scores(bags, torch.from_numpy(self.weights)))


@dataclass(frozen=True)
class ChainOfWords:
    """A linear chain for a list of words. scores: a matrix for each of OFFSETS, with what a word at
    this offset adds to the score of each label; (words + 2, labels), the last two rows for the
    ends of a row."""

    linear: LinearChain
    scores: Sequence[Tensor]

    def chain(self, steps: Ragged) -> Chain:
        """The chain of rows. steps: the indices of their words."""
        words = len(self.scores[0]) - len(ENDS)
        total = sum(
            score[at] for score, at in zip(self.scores, _neighbours(steps, words), strict=True)
        )
        assert isinstance(total, Tensor)
        rows = np.arange(len(steps))
        e = torch.from_numpy(Ragged(total.numpy(), steps.starts).padded(rows))
        first, follow, last = map(
            torch.from_numpy, (self.linear.first, self.linear.follow, self.linear.last)
        )
        begin = e[0] if len(e) else e.new_zeros(e.shape[1:])
        lengths = torch.from_numpy(steps.lengths)
        return Chain(begin + first, lambda t: follow + e[t][:, None, :], last, lengths, len(e))


class DistinctWords:
    """The words of a text: the features of each distinct word, and the word at each step."""

    def __init__(self, features: ChainFeatures, words: Sequence[str], steps: Ragged) -> None:
        self.rows = features.rows
        self.bags = [_bag(table) for table in features.tables(words)]
        self.at = _neighbours(steps, len(words))

    def emissions(self, weights: Tensor) -> Tensor:
        """The score of each label at each step: Σ_o Σ_f w_o[f] (steps, labels)."""
        scores = weights.new_zeros(len(self.at[0]), weights.shape[1])
        for score, at in zip(_word_scores(self.bags, weights), self.at, strict=True):
            scores += score[at]
        return scores

    def gradient(self, slopes: Tensor) -> Tensor:
        """The gradient of the weights, from that of the emissions (steps, labels)."""
        slopes_of_features = slopes.new_zeros(self.rows, slopes.shape[1])
        for bag, at in zip(self.bags, self.at, strict=True):
            by_word = slopes.new_zeros(len(bag.starts), slopes.shape[1]).index_add_(0, at, slopes)
            slopes_of_features.index_add_(0, bag.features, by_word[bag.words])
        return slopes_of_features


class Bag(NamedTuple):
    """The features of all words, one after another; starts: where those of each word begin; words:
    the word of each feature."""

    features: Tensor
    starts: Tensor
    words: Tensor


def _bag(table: Ragged) -> Bag:
    words = np.repeat(np.arange(len(table)), table.lengths)
    features = torch.from_numpy(np.ascontiguousarray(table.values, np.int64))
    return Bag(features, torch.from_numpy(table.starts[:-1].copy()), torch.from_numpy(words))


def _word_scores(bags: Sequence[Bag], weights: Tensor) -> list[Tensor]:
    """(words, labels) for each of OFFSETS: the summed weights of each word's features."""
    return [embedding_bag(bag.features, weights, bag.starts, mode="sum") for bag in bags]


def _neighbours(steps: Ragged, words: int) -> list[Tensor]:
    """(steps,) for each of OFFSETS: the word at this offset; `words` before a row, `words + 1`
    after its end."""
    values = steps.values.astype(np.int64)
    begin = np.repeat(steps.starts[:-1], steps.lengths)
    end = np.repeat(steps.starts[1:], steps.lengths)
    neighbours = []
    for offset in OFFSETS:
        at = np.arange(len(values)) + offset
        inside = values[at.clip(0, max(0, len(values) - 1))]
        shifted = np.where(at < begin, words, np.where(at >= end, words + 1, inside))
        neighbours.append(torch.from_numpy(shifted))
    return neighbours


def fit_linear_chain(
    words: Sequence[str],
    steps: Ragged,
    targets: Ragged,
    labels: int,
    *,
    strength: float = STRENGTH,
    iterations: int = ITERATIONS,
) -> LinearChain:
    """Fits the chain. words: the words by index; steps: the words of each row; targets: the label
    of each step."""
    counts = np.bincount(steps.values, minlength=len(words)).tolist()
    features = ChainFeatures.learn({w: n for w, n in zip(words, counts, strict=True) if n})
    cost = ChainCost(DistinctWords(features, words, steps), steps, targets, labels, strength)
    weights = cost.zeros()
    search = LBFGS(
        weights,
        max_iter=iterations,
        history_size=HISTORY,
        tolerance_grad=1e-6,
        tolerance_change=1e-7,
        line_search_fn="strong_wolfe",
    )
    search.step(lambda: cost(weights))  # type: ignore[no-untyped-call]
    return LinearChain(features, *(weight.numpy() for weight in weights))


class ChainCost:
    """The mean over rows of the negative log-likelihood + strength·‖w‖², of weights (rows of the
    features' table, labels), first, follow and last; with its gradient."""

    def __init__(
        self, words: DistinctWords, steps: Ragged, targets: Ragged, labels: int, strength: float
    ) -> None:
        self.word_rows, self.labels, self.strength = words, labels, strength
        self.rows, self.scale = PackedRows(steps), 1 / max(1, len(steps))
        self.gold_labels = torch.from_numpy(targets.values.astype(np.int64))
        self.at = torch.arange(len(self.gold_labels)), self.gold_labels
        self.counts = gold_counts(self.rows, self.gold_labels, labels)

    def zeros(self) -> list[Tensor]:
        n = self.labels
        return [torch.zeros(shape) for shape in ((self.word_rows.rows, n), (n,), (n, n), (n,))]

    def __call__(self, weights: Sequence[Tensor]) -> Tensor:
        """Puts the gradient into each `grad`."""
        table, *links = weights
        emissions = self.word_rows.emissions(table)
        expected = expectations(self.rows, emissions, *links)
        gold = emissions[self.at].double().sum()
        for link, count in zip(links, self.counts, strict=True):
            gold += (link.double() * count).sum()
        expected.labels[self.at] -= 1
        gradients = [self.word_rows.gradient(expected.labels)]
        pairs = zip((expected.first, expected.follow, expected.last), self.counts, strict=True)
        gradients += [(expected_count - count).float() for expected_count, count in pairs]
        for link, slope in zip(weights, gradients, strict=True):
            link.grad = self.scale * (slope + 2 * self.strength * link)
        penalty = self.strength * sum(float(weight.square().sum()) for weight in weights)
        total = float(expected.log_partition - gold) + penalty
        return torch.tensor(self.scale * total, dtype=torch.float64)


def gold_counts(rows: PackedRows, labels_of_rows: Tensor, labels: int) -> list[Tensor]:
    """Counts of each label at the start, after each other label, and at the end."""
    first = torch.bincount(labels_of_rows[rows.first], minlength=labels).double()
    last = torch.bincount(labels_of_rows[rows.last], minlength=labels).double()
    pairs = labels_of_rows[rows.before] * labels + labels_of_rows[rows.after]
    follow = torch.bincount(pairs, minlength=labels * labels).double().view(labels, labels)
    return [first, follow, last]
