"""Batches of rows with similar lengths, as many as fit a budget of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.errors import DataError, OptionError, unknown

LONG_ROWS = ("alone", "refuse")
NOISE = 0.1  # rows whose lengths differ by less than about this share may share a batch

Numbers = NDArray[np.int64]


def batches(
    lengths: Sequence[int] | Numbers,
    budget: int,
    seed: int,
    epoch: int,
    *,
    most_rows: int | None = None,
    long_rows: str = "alone",
) -> list[Numbers]:
    """The row numbers of each batch of an epoch: every row once, rows × longest ≤ budget.

    Lengths are slightly perturbed and sorted, so that batches need little padding and change in
    each epoch. Batches come in random order. Both are a pure function of the seed and the epoch.
    long_rows: a row longer than the budget becomes a batch "alone", or is an error ("refuse")."""
    lengths = _checked(lengths, budget, most_rows, long_rows)
    if min(seed, epoch) < 0:
        raise OptionError(f"seed and epoch: expected numbers ≥ 0, got {seed} and {epoch}")
    # raw draws: their stream, unlike that of numpy's Generator, is the same in all versions
    generator = np.random.PCG64(np.random.SeedSequence([seed, epoch]))
    uniform = (generator.random_raw(len(lengths)) >> np.uint64(11)) * 2.0**-53
    near = (lengths + 1) * (1 + NOISE * uniform)
    cut = _cut(np.argsort(near, kind="stable"), lengths, budget, most_rows)
    return [cut[k] for k in np.argsort(generator.random_raw(len(cut)), kind="stable")]


def evaluation_batches(
    lengths: Sequence[int] | Numbers,
    budget: int,
    *,
    most_rows: int | None = None,
    long_rows: str = "alone",
) -> list[Numbers]:
    """Batches without randomness: rows by rising length, which minimises padding."""
    lengths = _checked(lengths, budget, most_rows, long_rows)
    return _cut(np.argsort(lengths, kind="stable"), lengths, budget, most_rows)


def too_few(tokens: int, columns: int) -> DataError:
    """The error for a text too short to give every column a token."""
    return DataError(
        f"{tokens} tokens are too few for {columns} columns: take fewer columns "
        "(model.columns), or give more text"
    )


def contiguous(tokens: NDArray[Any], batch: int, size: int) -> Iterator[NDArray[Any]]:
    """One long text as `batch` parallel columns, in pieces (time ≤ size, batch).

    Column k is the k-th stretch of the text: the state at the end of a piece is the state before
    the next. The remainder of fewer than `batch` tokens is left out.

    tokens 0 … 9, batch 3, size 2: columns 0 1 2 | 3 4 5 | 6 7 8, pieces of 2 steps and 1."""
    for name, value in (("batch", batch), ("size", size)):
        if value < 1:
            raise OptionError(f"{name}: expected a number ≥ 1, got {value}")
    steps = len(tokens) // batch
    if steps == 0:
        raise too_few(len(tokens), batch)
    columns = tokens[: steps * batch].reshape(batch, steps, *tokens.shape[1:]).swapaxes(0, 1)
    return (np.ascontiguousarray(columns[t : t + size]) for t in range(0, steps, size))


def _checked(
    lengths: Sequence[int] | Numbers, budget: int, most_rows: int | None, long_rows: str
) -> Numbers:
    if budget < 1:
        raise OptionError(f"budget: expected a number of tokens ≥ 1, got {budget}")
    if most_rows is not None and most_rows < 1:
        raise OptionError(f"most_rows: expected a number ≥ 1, got {most_rows}")
    if long_rows not in LONG_ROWS:
        raise unknown("way with long rows", long_rows, LONG_ROWS)
    plain = np.asarray(lengths, np.int64)
    long = np.flatnonzero(plain > budget)
    if long_rows == "refuse" and len(long):
        raise DataError(
            f"{len(long)} rows are longer than the budget of {budget} tokens, the first of them "
            f"row {long[0]} with {plain[long[0]]}: raise the budget, or cut rows with max_length"
        )
    return plain


def _cut(order: Numbers, lengths: Numbers, budget: int, most_rows: int | None) -> list[Numbers]:
    """Cuts the order where the next row would exceed the budget; an empty row counts as one
    token."""
    batches = []
    sizes = np.maximum(lengths[order], 1)
    first = 0
    while first < len(order):
        most = max(budget // int(sizes[first]), 1)
        if most_rows is not None:
            most = min(most, most_rows)
        longest = np.maximum.accumulate(sizes[first : first + most])
        area = longest * np.arange(1, len(longest) + 1)
        last = first + max(int(np.searchsorted(area, budget, side="right")), 1)
        batches.append(order[first:last])
        first = last
    return batches
