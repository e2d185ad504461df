"""The interface between a model and a search: a step function that takes and returns a state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ensue.errors import OptionError, ShapeError


@dataclass(frozen=True)
class Hypothesis:
    """A finished sequence.

    tokens: its words, including the end if there is one (`ended`). log_probability: log p of all
    words. score: the value it was ranked by. watched (words, …): the values of `watch` at each
    word; None without `watch`.

    >>> Hypothesis((0, 1, 2), log_probability=-3.5, score=-3.5, ended=True).content
    (0, 1)
    """

    tokens: tuple[int, ...]
    log_probability: float
    score: float
    ended: bool
    watched: Tensor | None = field(default=None, compare=False)

    @property
    def content(self) -> tuple[int, ...]:
        """The words without the end."""
        return self.tokens[:-1] if self.ended else self.tokens


def largest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest of each row and their positions (rows, count), largest first; among
    equals the first. (-inf is impossible, without an order among them.)"""
    size = values.shape[1]
    if count >= size:
        ordered = values.sort(dim=1, descending=True, stable=True)
        return ordered.values, ordered.indices
    # topk promises no order among equals; its choice is unique only if the next value is smaller.
    top, where = values.topk(count + 1, 1)
    equal = (top[:, count - 1] == top[:, count]) & (top[:, count] > -torch.inf)
    where = where[:, :count].sort(1).values
    top, order = values.gather(1, where).sort(dim=1, descending=True, stable=True)
    where = where.gather(1, order)
    if bool(equal.any()):
        tied = equal.nonzero()[:, 0]
        ordered = values[tied].sort(dim=1, descending=True, stable=True)
        top[tied], where[tied] = ordered.values[:, :count], ordered.indices[:, :count]
    return top, where


# Tensors in tuples, lists and mappings, at any depth.
State = Any
# words (rows,) int64, state → log p (rows, words) of what follows each, new state
Step = Callable[[Tensor, State], tuple[Tensor, State]]
# state, order (rows after,) → the state whose row k is row order[k]
Reorder = Callable[[State, Tensor], State]
# the state that a step returned → values to keep for each chosen word (rows, …)
Watch = Callable[[State], Tensor]

# Rounding may lift log 1 a little above zero; anything more is not a log-probability.
ROUNDING = 1e-3


@dataclass(frozen=True)
class Shared:
    """Part of a state that all hypotheses of a sentence share, such as the encoder's outputs:
    values (sentences, …), each shared by `each` consecutive rows.

    A search keeps a sentence's rows together, the same number for all sentences. So a step may view
    its rows as (sentences, each, …), and copies are made only when a sentence is done.

    >>> Shared(torch.tensor([10, 20]), each=2).rows()
    tensor([10, 10, 20, 20])
    """

    values: Tensor
    each: int = 1

    def rows(self) -> Tensor:
        """The values repeated for each row: (rows, …)."""
        return self.values.repeat_interleave(self.each, 0)

    def reordered(self, order: Tensor) -> Shared:
        owners = order // self.each
        owners_left, counts = torch.unique_consecutive(owners, return_counts=True)
        each = len(order) // max(len(owners_left), 1)
        if not bool((counts == each).all()):
            owners_left, each = owners, 1
        same = len(owners_left) == len(self.values) and bool((owners_left.diff() > 0).all())
        owners_left = owners_left.to(self.values.device)
        return Shared(self.values if same else self.values.index_select(0, owners_left), each)


def reordered(state: State, order: Tensor) -> State:
    """The state whose row k is row order[k] of this one; rows are on axis 0 of every tensor.
    Numbers and None have no rows and stay unchanged.

    >>> reordered((torch.tensor([10, 20, 30]), None), torch.tensor([2, 0]))
    (tensor([30, 10]), None)
    """
    if isinstance(state, Tensor):
        return state.index_select(0, order.to(state.device))
    if isinstance(state, Shared):
        return state.reordered(order)
    if isinstance(state, Mapping):
        return {name: reordered(part, order) for name, part in state.items()}
    if isinstance(state, tuple) and hasattr(state, "_fields"):
        return type(state)(*(reordered(part, order) for part in state))
    if isinstance(state, tuple | list):
        return type(state)(reordered(part, order) for part in state)
    if state is None or isinstance(state, int | float):
        return state
    raise OptionError(
        f"state: expected tensors in tuples, lists and mappings, got {type(state).__name__}; "
        "pass reorder=, a function of the state and the order of its rows"
    )


@dataclass(frozen=True)
class Setting:
    """The input of every search, checked once. tokens (rows,): the word before the first; limits
    (rows,): the maximum length of each row's sequence; end: −1 if no word ends a sequence."""

    step: Step
    tokens: Tensor
    state: State
    end: int
    limits: Tensor
    reorder: Reorder
    watch: Watch | None = None

    def ask(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Calls the step: log p (rows, words) and the new state."""
        log_probs, state = self.step(tokens, state)
        if log_probs.ndim != 2 or len(log_probs) != len(tokens):
            raise ShapeError(
                f"step: expected log-probabilities of shape ({len(tokens)}, words) for "
                f"{len(tokens)} words, got {tuple(log_probs.shape)}"
            )
        if self.end >= log_probs.shape[1]:
            raise OptionError(
                f"end: expected one of the {log_probs.shape[1]} words that the step knows "
                f"(0 to {log_probs.shape[1] - 1}), got {self.end}"
            )
        return log_probs, state

    def watched(self, state: State, rows: int) -> Tensor | None:
        if self.watch is None:
            return None
        tensors = self.watch(state)
        if len(tensors) != rows:
            raise ShapeError(f"watch: expected {rows} rows, one for each word, got {len(tensors)}")
        return tensors


def setting(
    step: Step,
    start: Tensor,
    state: State,
    end: int | None,
    most_steps: int | Tensor,
    reorder: Reorder,
    watch: Watch | None = None,
) -> Setting:
    problems = []
    if start.ndim != 1 or start.dtype != torch.int64:
        problems.append(
            "start: expected one word for each row, an int64 tensor of shape (rows,), "
            f"got {start.dtype} of shape {tuple(start.shape)}"
        )
    limits = torch.as_tensor(most_steps, dtype=torch.int64, device=start.device)
    if limits.ndim and limits.shape != start.shape[:1]:
        problems.append(
            f"most_steps: expected one number, or one for each of {len(start)} rows, "
            f"got shape {tuple(limits.shape)}"
        )
    elif limits.numel() and int(limits.min()) < 1:
        problems.append(f"most_steps: expected numbers ≥ 1, got {int(limits.min())}")
    if end is not None and end < 0:
        problems.append(f"end: expected the number of a word, or None, got {end}")
    if problems:
        raise OptionError("\n".join(problems))
    return Setting(
        step,
        start,
        state,
        -1 if end is None else end,
        limits.expand(start.shape),
        reorder,
        watch,
    )


def check_greatest(greatest: Tensor) -> None:
    """Raises an error if the greatest log-probability of a row is above 0 or NaN."""
    if not bool((greatest <= ROUNDING).all()):
        wrong = greatest[~(greatest <= ROUNDING)][0]
        raise OptionError(
            f"step: expected log-probabilities, which are at most 0, got {float(wrong):g}; "
            "apply log_softmax to scores; a value of nan comes from the model"
        )


def check_possible(greatest: Tensor) -> None:
    """Like `check_greatest`; also raises an error for a row in which no word is possible."""
    check_greatest(greatest)
    dead = greatest == -torch.inf
    if bool(dead.any()):
        raise OptionError(
            f"step: row {int(dead.nonzero()[0])} of {len(greatest)} gives every word the "
            "probability 0, so that nothing can follow; at least one must be possible"
        )


def check_same_shape(tensors: list[Tensor]) -> None:
    """Checks that watched values (rows, …) have the same shape at all steps."""
    shapes = {tuple(one.shape[1:]) for one in tensors}
    if len(shapes) > 1:
        raise ShapeError(f"watch: expected the same shape at every step, got {sorted(shapes)}")


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

    Beyond a row's length it is zero, and the model is not called for that row.

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
    search = setting(step, start, state, None, 1, reorder)
    scores = torch.zeros(longest, rows, dtype=torch.float64, device=tokens.device)
    rows_left = torch.arange(rows, device=tokens.device)
    before = start
    for number in range(longest):
        going = (lengths[rows_left] > number).nonzero()[:, 0]
        if not len(going):
            break
        if len(going) < len(rows_left):
            rows_left, before, state = rows_left[going], before[going], reorder(state, going)
        log_probs, state = search.ask(before, state)
        before = tokens[number, rows_left]
        scores[number, rows_left] = log_probs.gather(1, before[:, None])[:, 0].double()
    return scores
