"""The best labels under a model that is asked one step at a time.

A step takes the labels before (rows,) and a state, tensors with rows on axis 0, and gives log
probabilities (rows, labels) and the new state. Every row is asked for the same number of
steps; one that has ended gives its label 0 for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

import torch
from torch import Tensor

from ensue.errors import OptionError

State = tuple[Tensor, ...]
Step = Callable[[Tensor, State], tuple[Tensor, State]]


def greedy(step: Step, begin: Tensor, state: State, steps: int) -> tuple[Tensor, Tensor]:
    """The best label at each step, given those before: labels (steps, rows), scores (rows,)."""
    return beam(step, begin, state, steps, 1)


def beam(step: Step, begin: Tensor, state: State, steps: int, width: int) -> tuple[Tensor, Tensor]:
    """The best of the `width` beginnings kept at each step: labels (steps, rows), scores (rows,).

    At full width (labels to the power of steps) it is exhaustive."""
    if width < 1:
        raise OptionError(f"width: expected a number of beginnings ≥ 1, got {width}")
    rows = len(begin)
    scores = torch.zeros(rows, 1, device=begin.device)
    labels, kept = begin, list[tuple[Tensor, Tensor]]()
    for _ in range(steps):
        log_probs, state = step(labels, state)
        width_before = scores.shape[1]
        total = scores[:, :, None] + log_probs.view(rows, width_before, -1)
        size = total.shape[2]
        scores, index = total.flatten(1).topk(min(width, width_before * size), 1)
        parent, label = index // size, index % size
        kept.append((parent, label))
        source = parent + width_before * torch.arange(rows, device=begin.device)[:, None]
        state = tuple(part[source.flatten()] for part in state)
        labels = label.flatten()
    return _trace(kept, rows, begin.device), scores[:, 0]


def _trace(kept: list[tuple[Tensor, Tensor]], rows: int, device: torch.device) -> Tensor:
    """The labels (steps, rows) of the best end, from each step's parents and labels."""
    at = torch.zeros(rows, 1, dtype=torch.int64, device=device)
    path = []
    for parent, label in reversed(kept):
        path.append(label.gather(1, at)[:, 0])
        at = parent.gather(1, at)
    return torch.stack(path[::-1]) if path else at.new_zeros(0, rows)


def best_first(
    step: Step, begin: Tensor, state: State, steps: int, limit: int = 20_000
) -> tuple[Tensor, Tensor]:
    """Exact: always lengthens the best beginning there is, so that the first to reach the end
    is the best of all (a probability is at most 1). Row by row; gives up after `limit` steps."""
    found = [
        _best_row(step, begin[row : row + 1], tuple(s[row : row + 1] for s in state), steps, limit)
        for row in range(len(begin))
    ]
    paths = [path for path, _ in found]
    labels = torch.tensor(paths, dtype=torch.int64).reshape(len(found), steps)
    scores = torch.tensor([score for _, score in found])
    return labels.T.to(begin.device), scores.to(begin.device)


def _best_row(
    step: Step, begin: Tensor, state: State, steps: int, limit: int
) -> tuple[list[int], float]:
    order = count()  # of equal scores the one found first
    waiting: list[tuple[float, int, list[int], State]] = [(0.0, next(order), [], state)]
    for _ in range(limit):
        cost, _, path, state = heappop(waiting)
        if len(path) == steps:
            return path, -cost
        last = begin.new_tensor(path[-1:]) if path else begin
        log_probs, state = step(last, state)
        for label, value in enumerate(log_probs[0].tolist()):
            heappush(waiting, (cost - value, next(order), [*path, label], state))
    raise OptionError(
        f"search: exact search looked at {limit} beginnings of a sequence of {steps} steps "
        "without reaching the end of the best; use beam"
    )
