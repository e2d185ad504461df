"""The most probable word at each step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from ensue.decoding.step import (
    Hypothesis,
    Reorder,
    Setting,
    State,
    Step,
    Watch,
    check_possible,
    check_same_shape,
    reordered,
    setting,
)

# log p (rows, words), which rows they are (rows,), the number of the step → words (rows,)
Choose = Callable[[Tensor, Tensor, int], Tensor]


class SearchStep(NamedTuple):
    """One step: the rows that continue, the word each takes, its log p, the watched values."""

    rows: Tensor
    tokens: Tensor
    log_probs: Tensor
    watched: Tensor | None


@torch.no_grad()
def walk(search: Setting, choose: Choose) -> Iterator[SearchStep]:
    """Yields steps until every row is over; finished rows are not computed."""
    tokens, state, limits = search.tokens, search.state, search.limits
    rows = torch.arange(len(tokens), device=tokens.device)
    number = 0
    while len(rows):
        log_probs, state = search.ask(tokens, state)
        tokens = choose(log_probs, rows, number)
        chosen = log_probs.gather(1, tokens[:, None])[:, 0].double().clamp(max=0)
        yield SearchStep(rows, tokens, chosen, search.watched(state, len(rows)))
        number += 1
        over = (tokens == search.end) | (limits == number)
        if bool(over.any()):
            rest = (~over).nonzero()[:, 0]
            rows, tokens, limits = rows[rest], tokens[rest], limits[rest]
            state = search.reorder(state, rest) if len(rest) else state


def hypotheses(search: Setting, steps: Iterator[SearchStep]) -> list[Hypothesis]:
    """The chosen sequences, row by row."""
    walked = list(steps)
    if not walked:
        return []
    rows = torch.cat([one.rows for one in walked])
    order = rows.argsort(stable=True)
    counts = rows.bincount(minlength=len(search.tokens)).tolist()
    tokens = torch.cat([one.tokens for one in walked])[order].split_with_sizes(counts)
    log_probs = torch.zeros(len(counts), dtype=torch.float64, device=rows.device)
    log_probs.index_add_(0, rows, torch.cat([one.log_probs for one in walked]))
    watched_rows = [one.watched for one in walked if one.watched is not None]
    check_same_shape(watched_rows)
    watched = (
        torch.cat(watched_rows)[order].split_with_sizes(counts)
        if watched_rows
        else [None] * len(counts)
    )
    return [
        Hypothesis(tuple(words), total, total, words[-1] == search.end, watched_steps)
        for words, total, watched_steps in zip(
            (token.tolist() for token in tokens), log_probs.tolist(), watched, strict=True
        )
    ]


def most_probable(log_probs: Tensor, rows: Tensor, number: int) -> Tensor:
    """The most probable word of each row, (rows, words) → (rows,); the first if several are "
    "equal."""
    greatest, tokens = log_probs.max(1)
    check_possible(greatest)
    return tokens


def greedy(
    step: Step,
    start: Tensor,
    state: State,
    *,
    end: int | None,
    most_steps: int | Tensor,
    reorder: Reorder = reordered,
    watch: Watch | None = None,
) -> list[Hypothesis]:
    """w_t = argmax p(w | w_1 … w_{t−1}): one sequence for each row of start (rows,).

    most_steps: maximum number of steps, one for all rows or one for each.

    >>> def step(words, state):  # after any word: 0 with 0.5, 1 with 0.3, the end 2 with 0.2
    ...     return torch.tensor([[0.5, 0.3, 0.2]]).log().expand(len(words), 3), state
    >>> start = torch.tensor([2])
    >>> greedy(step, start, None, end=2, most_steps=3)[0].tokens
    (0, 0, 0)
    """
    search = setting(step, start, state, end, most_steps, reorder, watch)
    return hypotheses(search, walk(search, most_probable))
