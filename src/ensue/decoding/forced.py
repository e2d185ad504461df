"""How probable given sequences are."""

from __future__ import annotations

import torch
from torch import Tensor

from ensue.decoding.step import Reorder, State, Step, reordered, setting
from ensue.errors import ShapeError


@torch.no_grad()
def score(
    step: Step,
    start: Tensor,
    state: State,
    tokens: Tensor,
    lengths: Tensor | None = None,
    *,
    reorder: Reorder = reordered,
) -> Tensor:
    """log p(w_t | w_1 … w_{t−1}) of tokens (time, rows), w_0 being start (rows,): (time, rows).

    Beyond a row's length it is zero, and nothing is asked.

    >>> def step(words, state):  # after any word: 0 with 0.5, 1 with 0.3, the end 2 with 0.2
    ...     return torch.tensor([[0.5, 0.3, 0.2]]).log().expand(len(words), 3), state
    >>> start = torch.tensor([2])
    >>> score(step, start, None, torch.tensor([[1], [2]])).exp()
    tensor([[0.3000],
            [0.2000]], dtype=torch.float64)
    """
    if tokens.ndim != 2 or tokens.shape[1:] != start.shape:
        raise ShapeError(
            f"tokens: expected (time, rows) for {len(start)} rows, got {tuple(tokens.shape)}"
        )
    longest, rows = tokens.shape
    if lengths is None:
        lengths = torch.full((rows,), longest, device=tokens.device)
    if lengths.shape != start.shape or bool(((lengths < 0) | (lengths > longest)).any()):
        raise ShapeError(
            f"lengths: expected one for each of {rows} rows, from 0 to {longest}, "
            f"got {lengths.tolist()}"
        )
    given = setting(step, start, state, None, 1, reorder)
    found = torch.zeros(longest, rows, dtype=torch.float64, device=tokens.device)
    kept = torch.arange(rows, device=tokens.device)
    before = start
    for number in range(longest):
        going = (lengths[kept] > number).nonzero()[:, 0]
        if not len(going):
            break
        if len(going) < len(kept):
            kept, before, state = kept[going], before[going], reorder(state, going)
        log_probs, state = given.ask(before, state)
        before = tokens[number, kept]
        found[number, kept] = log_probs.gather(1, before[:, None])[:, 0].double()
    return found
