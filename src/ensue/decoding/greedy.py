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

    most_steps: for all, or for each row."""
    given = setting(step, start, state, end, most_steps, reorder, watch)
    return hypotheses(given, walk(given, most_probable))
