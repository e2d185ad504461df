"""Batches: every row once, within the budget, in an order that seed and epoch decide."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.data.batches import batches, contiguous, evaluation_batches
from ensue.errors import DataError, EnsueError, OptionError

LENGTHS = st.lists(st.integers(0, 400), max_size=60)
REVIEWS = np.random.default_rng(0).lognormal(5.2, 0.7, 25_000).astype(np.int64)


def plan(batches_of_rows: list[np.ndarray]) -> list[list[int]]:
    return [rows.tolist() for rows in batches_of_rows]


@pytest.mark.parametrize("kind", ["training", "evaluation"])
@given(LENGTHS, st.integers(1, 2000), st.none() | st.integers(1, 5))
def test_every_row_stands_in_one_batch_and_no_batch_is_too_large(
    kind: str, lengths: list[int], budget: int, most_rows: int | None
) -> None:
    if kind == "training":
        batch_plan = plan(batches(lengths, budget, 1, 2, most_rows=most_rows))
    else:
        batch_plan = plan(evaluation_batches(lengths, budget, most_rows=most_rows))
    assert sorted(row for rows in batch_plan for row in rows) == list(range(len(lengths)))
    for rows in batch_plan:
        assert len(rows) <= (most_rows or len(lengths))
        longest = max(max(lengths[row] for row in rows), 1)
        assert len(rows) * longest <= budget or len(rows) == 1


@given(LENGTHS, st.integers(1, 2000))
def test_evaluation_batches_are_sorted_and_full(lengths: list[int], budget: int) -> None:
    batch_plan = plan(evaluation_batches(lengths, budget))
    ordered = [lengths[row] for rows in batch_plan for row in rows]
    assert ordered == sorted(ordered)
    for rows, after in pairwise(batch_plan):  # one more row would be too many
        assert (len(rows) + 1) * max(lengths[after[0]], 1) > budget


def test_the_order_is_a_pure_function_of_seed_and_epoch() -> None:
    first = plan(batches(REVIEWS[:500], 4000, 7, 3))
    np.random.seed(99)
    assert plan(batches(REVIEWS[:500], 4000, 7, 3)) == first
    others = [plan(batches(REVIEWS[:500], 4000, seed, epoch)) for seed, epoch in ((7, 4), (8, 3))]
    assert others[0] != others[1]
    for other in others:
        assert other != first
        together = {frozenset(rows) for rows in other} & {frozenset(rows) for rows in first}
        assert len(together) < len(first) / 4  # the company changes too, not only the order


def test_the_order_of_batches_follows_no_length() -> None:
    longest = [REVIEWS[rows].max() for rows in batches(REVIEWS, 8000, 0, 0)]
    assert abs(np.corrcoef(longest, np.arange(len(longest)))[0, 1]) < 0.15


def test_rows_of_like_length_meet_and_little_is_padding() -> None:
    batch_rows = batches(REVIEWS, 8000, 0, 0)
    area = sum(len(rows) * REVIEWS[rows].max() for rows in batch_rows)
    assert REVIEWS.sum() / area > 0.9
    assert all(len(rows) * REVIEWS[rows].max() <= 8000 or len(rows) == 1 for rows in batch_rows)
    chosen = np.random.default_rng(0).permutation(len(REVIEWS))[:16000].reshape(-1, 32)
    unsorted = REVIEWS[chosen].sum() / (32 * REVIEWS[chosen].max(1).sum())
    assert unsorted < 0.5  # what the same would cost without


def test_equal_lengths_are_shuffled_too() -> None:
    a, b = (plan(batches([5] * 100, 50, 0, epoch)) for epoch in (0, 1))
    assert [len(rows) for rows in a] == [10] * 10
    assert {frozenset(rows) for rows in a} != {frozenset(rows) for rows in b}


def test_twenty_five_thousand_rows_take_milliseconds() -> None:
    times = []
    for epoch in range(5):
        start = time.perf_counter()
        batches(REVIEWS, 8000, 0, epoch)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.1  # some 10 ms on a machine that does nothing else


@given(st.integers(1, 60), st.integers(1, 6), st.integers(1, 9))
def test_contiguous_pieces_give_the_text_back(count: int, batch: int, size: int) -> None:
    text = np.arange(count)
    if count < batch:
        with pytest.raises(DataError) as caught:
            contiguous(text, batch, size)
        assert str(caught.value) == (
            f"{count} tokens are too few for {batch} columns: take fewer columns "
            "(model.columns), or give more text"
        )
        return
    pieces = list(contiguous(text, batch, size))
    assert all(piece.shape == (size, batch) for piece in pieces[:-1])
    assert 1 <= len(pieces[-1]) <= size
    read = np.concatenate(pieces).T.reshape(-1)
    assert read.tolist() == text[: len(read)].tolist()
    assert count - len(read) < batch


LONG = (
    "2 rows are longer than the budget of 9 tokens, the first of them row 1 with 10: "
    "raise the budget, or cut rows with max_length"
)
MESSAGES = [
    (lambda: batches([3, 10, 11], 9, 0, 0, long_rows="refuse"), DataError, LONG),
    (lambda: evaluation_batches([3, 10, 11], 9, long_rows="refuse"), DataError, LONG),
    (
        lambda: batches([1], 9, 0, 0, long_rows="allone"),
        OptionError,
        "unknown way with long rows 'allone': did you mean 'alone'? Known: alone, refuse",
    ),
    (
        lambda: batches([1], 0, 0, 0),
        OptionError,
        "budget: expected a number of tokens ≥ 1, got 0",
    ),
    (
        lambda: batches([1], 9, 0, 0, most_rows=0),
        OptionError,
        "most_rows: expected a number ≥ 1, got 0",
    ),
    (
        lambda: batches([1], 9, -1, 0),
        OptionError,
        "seed and epoch: expected numbers ≥ 0, got -1 and 0",
    ),
    (lambda: contiguous(np.arange(9), 0, 1), OptionError, "batch: expected a number ≥ 1, got 0"),
    (lambda: contiguous(np.arange(9), 1, 0), OptionError, "size: expected a number ≥ 1, got 0"),
]


@pytest.mark.parametrize(("call", "kind", "message"), MESSAGES)
def test_messages(call, kind: type[EnsueError], message: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == message
