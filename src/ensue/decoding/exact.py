"""The most probable sequence of all, for sequences that are short."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

import torch
from torch import Tensor

from ensue.decoding.greedy import most_probable
from ensue.decoding.hypothesis import Hypothesis
from ensue.decoding.step import (
    Reorder,
    Setting,
    State,
    Step,
    Watch,
    check_greatest,
    reordered,
    setting,
)
from ensue.decoding.walk import hypotheses, walk
from ensue.errors import OptionError


def exact(
    step: Step,
    start: Tensor,
    state: State,
    *,
    end: int | None,
    most_steps: int | Tensor,
    most_expansions: int = 20_000,
    reorder: Reorder = reordered,
    watch: Watch | None = None,
) -> list[Hypothesis]:
    """The best sequence for each row of start (rows,), by its log-probability.

    Uniform cost: always the most probable beginning is lengthened. What follows can only make it
    less probable (log p ≤ 0), so the first that is over when its turn comes is the best. Beginnings
    that are no better than a sequence already known, at first the greedy one, are dropped.
    Row by row; gives up with an error after `most_expansions` steps of a row."""
    if most_expansions < 1:
        raise OptionError(f"most_expansions: expected a number ≥ 1, got {most_expansions}")
    given = setting(step, start, state, end, most_steps, reorder, watch)
    known = hypotheses(given, walk(given, most_probable))
    return [_best(given, row, one, most_expansions) for row, one in enumerate(known)]


class _Beginning(NamedTuple):
    """Words, and the state before the last of them was read."""

    words: tuple[int, ...]
    state: State
    seen: tuple[Tensor, ...]


@torch.no_grad()
def _best(given: Setting, row: int, known: Hypothesis, most_expansions: int) -> Hypothesis:
    start = given.tokens[row : row + 1]
    limit = int(given.limits[row])
    state = given.reorder(given.state, start.new_tensor([row]))
    order = count()  # of equals the one found first
    waiting = [(0.0, next(order), _Beginning((), state, ()))]
    for _ in range(most_expansions):
        if not waiting or waiting[0][0] >= -known.log_probability:
            return known
        cost, _, (words, state, seen) = heappop(waiting)
        log_probs, state = given.ask(start.new_tensor(words[-1:]) if words else start, state)
        check_greatest(log_probs.max())
        watched = given.watched(state, 1)
        seen = seen if watched is None else (*seen, watched)
        costs = cost - log_probs[0].double().clamp(max=0)
        for word in (costs < -known.log_probability).nonzero()[:, 0].tolist():
            own, longer = float(costs[word]), (*words, word)
            if word != given.end and len(longer) < limit:
                heappush(waiting, (own, next(order), _Beginning(longer, state, seen)))
            elif own < -known.log_probability:
                whole = torch.cat(seen) if seen else None
                known = Hypothesis(longer, -own, -own, word == given.end, whole)
    raise OptionError(
        f"exact: after {most_expansions} steps the best sequence of row {row} is not certain "
        f"(at most {limit} words, log p {known.log_probability:.4g} so far); use beam, or raise "
        "most_expansions"
    )
