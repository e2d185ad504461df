"""Sampling: words drawn by their probabilities, with temperature, top-k and top-p."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.decoding.greedy import Choose, hypotheses, most_probable, walk
from ensue.decoding.step import (
    Hypothesis,
    Reorder,
    State,
    Step,
    Watch,
    check_possible,
    largest,
    reordered,
    setting,
)
from ensue.errors import OptionError

WORD = 2**64
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: multiples of it differ in all bits
ROWS = 0x52_4F_57_53  # keeps the seeds of rows apart from the draws of a seed


def seeds(seed: int, rows: int) -> list[int]:
    """A seed for each row; the first seeds do not depend on the number of rows.

    >>> seeds(1, 3)[:2] == seeds(1, 2)
    True
    """
    counts = np.arange(1, rows + 1, dtype=np.uint64)
    start = _mixed(np.array([(seed ^ ROWS) % WORD], dtype=np.uint64))
    return [int(one) for one in _mixed(start + counts * GOLDEN)]


def uniform(states: NDArray[np.uint64], number: int) -> NDArray[np.float64]:
    """(rows,) in [0, 1): the draw of each seed at step `number`, with 53 bits."""
    bits = _mixed(_mixed(states) + np.full(1, number + 1, dtype=np.uint64) * GOLDEN)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: every bit of the result depends on all bits of the input."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@dataclass(frozen=True)
class Sampling:
    """The options of `candidates`, and the seed of the draws.

    >>> Sampling(seed=1, temperature=0.7, top_k=40)
    Sampling(seed=1, temperature=0.7, top_k=40, top_p=None)
    """

    seed: int | Sequence[int]
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None


def sample(
    step: Step,
    start: Tensor,
    state: State,
    how: Sampling,
    *,
    end: int | None,
    most_steps: int | Tensor,
    reorder: Reorder = reordered,
    watch: Watch | None = None,
) -> list[Hypothesis]:
    """One sequence for each row of start (rows,), each word drawn from `candidates`.

    seed: a single seed, from which each row's seed is derived (`seeds`), or one seed for each row.
    A row's draws follow from its seed and the number of the step alone. temperature 0 is greedy
    search. log_probability is the log probability of the model, whatever the sampling options.

    >>> def step(words, state):  # after any word: 0 with 0.5, 1 with 0.3, the end 2 with 0.2
    ...     return torch.tensor([[0.5, 0.3, 0.2]]).log().expand(len(words), 3), state
    >>> start = torch.tensor([2])
    >>> found = [sample(step, start, None, Sampling(seed=7), end=2, most_steps=9) for _ in "ab"]
    >>> found[0] == found[1]
    True
    """
    search = setting(step, start, state, end, most_steps, reorder, watch)
    choose = _chooser(len(start), how)
    return hypotheses(search, walk(search, choose))


def stream(
    step: Step,
    start: Tensor,
    state: State,
    how: Sampling,
    *,
    end: int | None,
    most_steps: int,
    reorder: Reorder = reordered,
) -> Iterator[int]:
    """Yields the words of `sample` for one row, start (1,), each as soon as it is drawn.

    >>> def step(words, state):  # after any word: 0 with 0.5, 1 with 0.3, the end 2 with 0.2
    ...     return torch.tensor([[0.5, 0.3, 0.2]]).log().expand(len(words), 3), state
    >>> start = torch.tensor([2])
    >>> list(stream(step, start, None, Sampling(seed=7, temperature=0), end=2, most_steps=3))
    [0, 0, 0]
    """
    search = setting(step, start, state, end, most_steps, reorder)
    if len(start) != 1:
        raise OptionError(f"start: expected one row to stream, got {len(start)}; use sample")
    choose = _chooser(1, how)
    return (int(step_taken.tokens) for step_taken in walk(search, choose))


def candidates(
    log_probs: Tensor, temperature: float, top_k: int | None, top_p: float | None
) -> tuple[Tensor, Tensor]:
    """The candidates for a draw: probabilities (rows, kept) in float64, and the words they belong
    to.

    p ∝ exp(log p / temperature), reduced to the top_k most probable words and normalised; then to
    the fewest most probable words whose probabilities sum to at least top_p."""
    words = log_probs.shape[1]
    if top_k is None and top_p is None:
        values, order = log_probs, torch.arange(words, device=log_probs.device)
        order = order.expand(log_probs.shape)
    else:
        values, order = largest(log_probs, words if top_k is None else min(top_k, words))
    values = values.double()
    probs = ((values - values.amax(1, keepdim=True)) / temperature).softmax(1)
    if top_p is not None:
        before = probs.cumsum(1) - probs
        # The first word always stays, so rounding cannot leave a row empty.
        reached = before >= top_p
        reached[:, 0] = False
        probs = probs.masked_fill(reached, 0.0)
    return probs / probs.sum(1, keepdim=True), order


def _chooser(rows: int, how: Sampling) -> Choose:
    seed, temperature, top_k, top_p = how.seed, how.temperature, how.top_k, how.top_p
    states = seeds(seed, rows) if isinstance(seed, int) else list(seed)
    problems = []
    if len(states) != rows:
        problems.append(f"seed: expected one, or one for each of {rows} rows, got {len(states)}")
    if not 0 <= temperature < float("inf"):
        problems.append(f"temperature: expected a number ≥ 0, got {temperature}")
    if top_k is not None and top_k < 1:
        problems.append(f"top_k: expected a number of words ≥ 1, got {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        problems.append(f"top_p: expected a probability above 0, at most 1, got {top_p}")
    if problems:
        raise OptionError("\n".join(problems))
    if temperature == 0:
        return most_probable
    kinds = np.array([one % WORD for one in states], dtype=np.uint64)

    def drawn(log_probs: Tensor, rows: Tensor, number: int) -> Tensor:
        check_possible(log_probs.amax(1))
        probs, order = candidates(log_probs, temperature, top_k, top_p)
        draws = torch.from_numpy(uniform(kinds[rows.cpu().numpy()], number)).to(probs.device)
        return order.gather(1, _inverse(probs, draws)[:, None])[:, 0]

    return drawn


def _inverse(probs: Tensor, draws: Tensor) -> Tensor:
    """The first place whose cumulative probability exceeds the draw; shape (rows,)."""
    reach = probs.cumsum(1)
    total = reach[:, -1:].contiguous()
    place = torch.searchsorted(reach, draws[:, None] * total, right=True)
    # A draw close to 1 may round to the total; it then takes the last word with a probability above
    # 0.
    last = torch.searchsorted(reach, total)
    return torch.minimum(place, last)[:, 0]
