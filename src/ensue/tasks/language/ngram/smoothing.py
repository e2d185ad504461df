"""From counts to probabilities that leave some mass for unseen n-grams.

Every smoothing has the form

    P(w | h) = direct(h w) + left(h) · P(w | h without its first token).

Here direct is 0 for an unseen n-gram, and left is 1 for an unseen context. The context of single
tokens backs off to the uniform distribution over all tokens that can be predicted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.errors import OptionError, unknown
from ensue.tasks.language.ngram.counts import NgramCounts, NgramIndex, picked, totals
from ensue.tasks.language.ngram.symbols import bounded

# -------------------------------------------------------------------------------------------------
# Jelinek–Mercer weights, estimated by expectation–maximisation on a held-out text.
#
#     P_k(w | h) = λ · c(h w) / c(h) + (1 − λ) · P_{k−1}(w | h without its first token)
#
# P_0 is uniform. λ depends on the order and on ⌊log₂ c(h)⌋: frequent contexts get
# more trust. Each λ has the prior λ (1 − λ), so it is between 0 and 1, and ½ if the held-out text
# has no evidence.

GROUPS = 31  # c(h) < 2³¹
MOST_ROUNDS = 200
LEAST_GAIN = 1e-7  # tolerance of the mean log probability of a token
Floats = NDArray[np.float64]


def group_of(often: Floats) -> NDArray[np.int64]:
    """⌊log₂ c(h)⌋, −1 for an unseen context."""
    return np.frexp(often)[1].astype(np.int64) - 1


def estimate(counts: NgramCounts, held_out: Ragged) -> Floats:
    """λ for each order and count of the context; shape (order, GROUPS)."""
    likelihood, groups = _looked_up(counts, held_out)  # (order, tokens) both
    uniform = 1.0 / counts.index.symbols.predicted.sum()
    weights = np.full((counts.order, GROUPS), 0.5)
    before = -np.inf
    for _ in range(MOST_ROUNDS):
        weights, value = _improved(weights, likelihood, groups, uniform)
        if value - before < LEAST_GAIN * max(1, likelihood.shape[1]):
            break
        before = value
    return weights


def _looked_up(counts: NgramCounts, rows: Ragged) -> tuple[Floats, NDArray[np.int64]]:
    """For each order and token: c(h w) / c(h), and the group of h."""
    index, text = counts.index, bounded(rows, counts.index.symbols)
    inside = text.inside
    likelihood = np.zeros((counts.order, int(inside.sum())))
    groups = np.full(likelihood.shape, -1)
    contexts, numbers = np.zeros(len(text.tokens), np.int64), text.tokens.astype(np.int64)
    for order in range(1, counts.order + 1):
        if order > 1:
            contexts, numbers = index.following(order, text, numbers)
        often = totals(index, order, counts.counts[order - 1])
        counted = picked(counts.counts[order - 1], numbers[inside])
        of_context = picked(often, contexts[inside])
        likelihood[order - 1] = counted / np.maximum(of_context, 1)
        groups[order - 1] = group_of(of_context)
    return likelihood, groups


def _improved(
    weights: Floats, likelihood: Floats, groups: NDArray[np.int64], uniform: float
) -> tuple[Floats, float]:
    """One round: the new weights, and the log posterior of the old ones."""
    trusted = np.where(groups >= 0, np.take_along_axis(weights, np.maximum(groups, 0), 1), 0.0)
    mixed = [np.full(likelihood.shape[1], uniform)]
    for logs, trust in zip(likelihood, trusted, strict=True):
        mixed.append(trust * logs + (1 - trust) * mixed[-1])
    value = float(np.log(mixed[-1]).sum() + np.log(weights * (1 - weights)).sum())
    better = np.empty_like(weights)
    reached = np.ones(likelihood.shape[1])  # probability of this order or a lower one
    for k in range(len(weights) - 1, -1, -1):
        stopped = reached * trusted[k] * likelihood[k] / mixed[k + 1]
        present = groups[k] >= 0
        accepted, passed = (
            np.bincount(groups[k][present], weights=chance[present], minlength=GROUPS)
            for chance in (stopped, reached)
        )
        better[k] = (accepted + 1) / (passed + 2)
        reached = reached - stopped
    return better, value


MAXIMUM_LIKELIHOOD, ADD_K, INTERPOLATED, KNESER_NEY, MODIFIED_KNESER_NEY = SMOOTHINGS = (
    "maximum-likelihood",
    "add-k",
    "interpolated",
    "kneser-ney",
    "modified-kneser-ney",
)
Tails = list[NDArray[np.int32]]


class Parts(NamedTuple):
    """One order's direct part (n-grams) and left (contexts)."""

    direct: Floats
    left: Floats


Smoother = Callable[[int], Parts]  # of an order


def smoother(
    counts: NgramCounts, name: str, tails: Tails, k: float, held_out: Ragged | None
) -> Smoother:
    """The smoothing with this name. tails: `counts.index.tails()`."""
    if name == MAXIMUM_LIKELIHOOD:
        return _maximum_likelihood(counts)
    if name == ADD_K:
        return _add_k(counts, k)
    if name == INTERPOLATED:
        if held_out is None:
            raise OptionError(
                f"{INTERPOLATED}: its weights are estimated on a text that was not counted: "
                "give held_out"
            )
        return _interpolated(counts, estimate(counts, held_out))
    if name in (KNESER_NEY, MODIFIED_KNESER_NEY):
        discounts = modified_discounts if name == MODIFIED_KNESER_NEY else single_discount
        return _kneser_ney(counts, tails, discounts)
    raise unknown("smoothing", name, SMOOTHINGS)


def _maximum_likelihood(counts: NgramCounts) -> Smoother:
    """c(h w) / c(h); for an unseen context, that of its longest seen suffix."""

    def parts(order: int) -> Parts:
        counted = counts.counts[order - 1]
        total = totals(counts.index, order, counted)
        return Parts(_ratio(counted, total, counts.index, order), (total == 0).astype(np.float64))

    return parts


def _add_k(counts: NgramCounts, k: float) -> Smoother:
    """(c(h w) + k) / (c(h) + k · V); what is left goes to the uniform distribution at once."""
    if not (np.isfinite(k) and k > 0):
        raise OptionError(f"k: expected a number > 0, got {k}")
    added = k * int(counts.index.symbols.predicted.sum())

    def parts(order: int) -> Parts:
        counted = counts.counts[order - 1]
        total = totals(counts.index, order, counted) + added
        return Parts(_ratio(counted, total, counts.index, order), added / total)

    return parts


def _interpolated(counts: NgramCounts, weights: Floats) -> Smoother:
    """λ · c(h w) / c(h) + (1 − λ) · …, with the weights of `estimate`."""

    def parts(order: int) -> Parts:
        counted = counts.counts[order - 1]
        total = totals(counts.index, order, counted)
        trust = np.where(total > 0, weights[order - 1][group_of(total)], 0.0)
        by_count = _ratio(counted, total, counts.index, order)
        return Parts(by_count * trust[counts.index.contexts(order)], 1 - trust)

    return parts


def _kneser_ney(
    counts: NgramCounts, tails: Tails, discounts: Callable[[NDArray[np.int64]], Floats]
) -> Smoother:
    """(a(h w) − D(a(h w))) / a(h) + Σ_v D(a(h v)) / a(h) · …

    a is the count in the highest order, and for n-grams that begin with the row's start; in the
    others the number of different tokens before h w."""

    def parts(order: int) -> Parts:
        index, often = counts.index, counts.counts[order - 1]
        if order < counts.order:
            before = np.bincount(tails[order], minlength=len(often))
            # an n-gram without a token before it can only begin with a start
            often = np.where(before > 0, before, often).astype(np.int32)
        discounted = discounts(np.bincount(np.minimum(often, 5), minlength=6))[np.minimum(often, 3)]
        total = totals(index, order, often)
        left = np.divide(
            totals(index, order, discounted), total, where=total > 0, out=np.ones_like(total)
        )
        return Parts(_ratio(often - discounted, total, index, order), left)

    return parts


def single_discount(having: NDArray[np.int64]) -> Floats:
    """D for counts 0, 1, 2 and ≥ 3: n₁ / (n₁ + 2 n₂) for all; ½ if n₁ or n₂ is 0. having[c]: the
    number of n-grams with count c."""
    once, twice = map(float, having[1:3])
    d = once / (once + 2 * twice) if once and twice else 0.5
    return np.array([0, d, d, d])


def modified_discounts(having: NDArray[np.int64]) -> Floats:
    """D for counts 0, 1, 2 and ≥ 3 (Chen and Goodman): c − (c + 1) Y n₍c₊₁₎ / n₍c₎ with Y = n₁ /
    (n₁ + 2 n₂); ½, 1 and 1½ if one of them is not between 0 and c, as in small texts."""
    n = having.astype(np.float64)
    if (n[1:5] > 0).all():
        y = n[1] / (n[1] + 2 * n[2])
        d = np.array([c - (c + 1) * y * n[c + 1] / n[c] for c in (1, 2, 3)])
        if (d > 0).all():
            return np.array([0, *d])
    return np.array([0, 0.5, 1, 1.5])


def _ratio(values: NDArray[np.generic], total: Floats, index: NgramIndex, order: int) -> Floats:
    """Each n-gram's value divided by its context's total; 0 if the total is 0."""
    below = total[index.contexts(order)]
    shares: Floats = np.divide(values, below, where=below > 0, out=np.zeros_like(below))
    return shares


def logarithms(index: NgramIndex, parts: Smoother, tails: Tails, to_uniform: bool) -> list[Parts]:
    """log₁₀ of P(w | h) of every seen n-gram, and of left, order by order. to_uniform: the mass
    left goes to the uniform distribution, not to the shorter context."""
    predicted = index.symbols.predicted
    uniform = predicted / predicted.sum()
    tables, shorter = [], uniform
    for order in range(1, index.order + 1):
        direct, left = parts(order)
        if order > 1:
            lower = uniform[index.words(order)] if to_uniform else shorter[tails[order - 1]]
        else:
            lower = uniform
        shorter = left[index.contexts(order)]  # in place, because these are the largest arrays
        shorter *= lower
        shorter += direct
        np.minimum(shorter, 1, out=shorter)
        with np.errstate(divide="ignore"):
            tables.append(Parts(np.log10(shorter), np.log10(left)))
    return tables
