"""The most probable of all sequences, for short sequences."""

from __future__ import annotations

import math
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

import torch
from torch import Tensor

from ensue.decoding.beam import BeamSearch, beam
from ensue.decoding.step import (
    Hypothesis,
    Reorder,
    Setting,
    State,
    Step,
    Watch,
    check_greatest,
    reordered,
    setting,
)
from ensue.errors import OptionError

KNOWN = 4  # width of the beam that gives the first bound


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

    Uniform-cost search: it always extends the most probable beginning. More words can only lower
    the probability (log p ≤ 0), so the first finished sequence that is taken from the queue is the
    best. Beginnings no better than a known sequence are dropped; a beam search gives the first one.
    Rows are searched one by one. Raises an error after `most_expansions` steps of a row.

    >>> def step(words, state):  # after any word: 0 with 0.5, 1 with 0.3, the end 2 with 0.2
    ...     return torch.tensor([[0.5, 0.3, 0.2]]).log().expand(len(words), 3), state
    >>> start = torch.tensor([2])
    >>> exact(step, start, None, end=2, most_steps=2)[0].tokens
    (0, 0)
    """
    if most_expansions < 1:
        raise OptionError(f"most_expansions: expected a number ≥ 1, got {most_expansions}")
    search = setting(step, start, state, end, most_steps, reorder, watch)
    known = beam(
        step,
        start,
        state,
        BeamSearch(width=KNOWN),
        end=end,
        most_steps=most_steps,
        reorder=reorder,
        watch=watch,
    )
    return [
        _best(search, row, hypotheses[0] if hypotheses else None, most_expansions)
        for row, hypotheses in enumerate(known)
    ]


class _Beginning(NamedTuple):
    """Words, and the state before the last of them was read."""

    words: tuple[int, ...]
    state: State
    watched: tuple[Tensor, ...]


@torch.no_grad()
def _best(search: Setting, row: int, known: Hypothesis | None, most_expansions: int) -> Hypothesis:
    start = search.tokens[row : row + 1]
    limit = int(search.limits[row])
    state = search.reorder(search.state, start.new_tensor([row]))
    order = count()  # order among equals: first found
    waiting = [(0.0, next(order), _Beginning((), state, ()))]
    for used in count():
        best = math.inf if known is None else -known.log_probability
        if not waiting or waiting[0][0] >= best:
            break
        if used == most_expansions:
            raise _uncertain(most_expansions, row, limit)
        cost, _, (words, state, watched_steps) = heappop(waiting)
        log_probs, state = search.ask(start.new_tensor(words[-1:]) if words else start, state)
        check_greatest(log_probs.max())
        watched = search.watched(state, 1)
        watched_steps = watched_steps if watched is None else (*watched_steps, watched)
        costs = cost - log_probs[0].double().clamp(max=0)
        better = (costs < best).nonzero()[:, 0]
        for word, cost_of_word in zip(better.tolist(), costs[better].tolist(), strict=True):
            longer = (*words, word)
            if word != search.end and len(longer) < limit:
                heappush(
                    waiting, (cost_of_word, next(order), _Beginning(longer, state, watched_steps))
                )
            elif cost_of_word < best:
                whole = torch.cat(watched_steps) if watched_steps else None
                best, known = (
                    cost_of_word,
                    Hypothesis(longer, -cost_of_word, -cost_of_word, word == search.end, whole),
                )
    if known is None:
        raise OptionError(
            f"exact: no sequence of row {row} is possible; every prefix leads to a step that "
            "gives all words the probability 0"
        )
    return known


def _uncertain(expansions: int, row: int, limit: int) -> OptionError:
    return OptionError(
        f"exact: after {expansions} steps the best sequence of row {row}, of at most {limit} "
        "words, is not certain; use beam, or raise most_expansions"
    )
