"""The most probable word at each step."""

from __future__ import annotations

from torch import Tensor

from ensue.decoding.hypothesis import Hypothesis
from ensue.decoding.step import (
    Reorder,
    State,
    Step,
    Watch,
    check_possible,
    reordered,
    setting,
)
from ensue.decoding.walk import hypotheses, walk


def most_probable(log_probs: Tensor, rows: Tensor, number: int) -> Tensor:
    """(rows, words) → (rows,); of equals the first."""
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

    most_steps: for all, or for each row.

    >>> def step(words, state):  # after any word: 0 with 0.5, 1 with 0.3, the end 2 with 0.2
    ...     return torch.tensor([[0.5, 0.3, 0.2]]).log().expand(len(words), 3), state
    >>> start = torch.tensor([2])
    >>> greedy(step, start, None, end=2, most_steps=3)[0].tokens
    (0, 0, 0)
    """
    given = setting(step, start, state, end, most_steps, reorder, watch)
    return hypotheses(given, walk(given, most_probable))
