"""Jelinek–Mercer weights, estimated by expectation–maximisation on a held-out text.

    P_k(w | h) = λ · c(h w) / c(h) + (1 − λ) · P_{k−1}(w | h without its first token)

P_0 is uniform. λ depends on the order and on ⌊log₂ c(h)⌋: a context seen often is trusted more.
Each λ has the prior λ (1 − λ), so that it lies between 0 and 1, and is ½ where the held-out text
says nothing of it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.tasks.language.ngram.counts import NgramCounts, totals
from ensue.tasks.language.ngram.index import picked
from ensue.tasks.language.ngram.symbols import bounded

GROUPS = 31  # c(h) < 2³¹
MOST_ROUNDS = 200
LEAST_GAIN = 1e-7  # in the mean log probability of a token
Floats = NDArray[np.float64]


def group_of(often: Floats) -> NDArray[np.int64]:
    """⌊log₂ c(h)⌋, −1 for a context never seen."""
    return np.frexp(often)[1].astype(np.int64) - 1


def estimate(counts: NgramCounts, held_out: Ragged) -> Floats:
    """(order, GROUPS): λ for each order and count of the context."""
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
    contexts, found = np.zeros(len(text.tokens), np.int64), text.tokens.astype(np.int64)
    for order in range(1, counts.order + 1):
        if order > 1:
            contexts, found = index.following(order, text, found)
        often = totals(index, order, counts.counts[order - 1])
        own = picked(counts.counts[order - 1], found[inside])
        of_context = picked(often, contexts[inside])
        likelihood[order - 1] = own / np.maximum(of_context, 1)
        groups[order - 1] = group_of(of_context)
    return likelihood, groups


def _improved(
    weights: Floats, likelihood: Floats, groups: NDArray[np.int64], uniform: float
) -> tuple[Floats, float]:
    """One round: the new weights, and the log posterior of the old ones."""
    trusted = np.where(groups >= 0, np.take_along_axis(weights, np.maximum(groups, 0), 1), 0.0)
    mixed = [np.full(likelihood.shape[1], uniform)]
    for own, trust in zip(likelihood, trusted, strict=True):
        mixed.append(trust * own + (1 - trust) * mixed[-1])
    value = float(np.log(mixed[-1]).sum() + np.log(weights * (1 - weights)).sum())
    better = np.empty_like(weights)
    reached = np.ones(likelihood.shape[1])  # chance that the token came from this order or below
    for k in range(len(weights) - 1, -1, -1):
        stopped = reached * trusted[k] * likelihood[k] / mixed[k + 1]
        there = groups[k] >= 0
        taken, passed = (
            np.bincount(groups[k][there], weights=chance[there], minlength=GROUPS)
            for chance in (stopped, reached)
        )
        better[k] = (taken + 1) / (passed + 2)
        reached = reached - stopped
    return better, value
