"""Splits: every row in one part, the parts as large as asked for, and no part moves by chance."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ensue.data.rows import Place
from ensue.data.split import (
    SHARES,
    Split,
    by_block,
    by_group,
    by_hash,
    by_share,
    equal_shares,
    folds,
    fraction,
    hashed_content,
    part_of,
    part_of_line,
    stratified,
)
from ensue.errors import DataError, EnsueError, OptionError

TEXTS = [f"text {k}" for k in range(1000)]
LABELS = [k % 7 % 3 for k in range(1000)]
WAYS = {
    "hash": lambda seed: by_hash(TEXTS, seed=seed),
    "share": lambda seed: by_share(1000, seed=seed),
    "stratified": lambda seed: stratified(LABELS, seed=seed),
    "group": lambda seed: by_group([text[:-1] for text in TEXTS], seed=seed),
    "block": lambda seed: by_block(1000, seed=seed),
}


def same(a: Split, b: Split) -> bool:
    return list(a) == list(b) and all(np.array_equal(a[part], b[part]) for part in a)


@pytest.mark.parametrize("way", WAYS)
def test_every_row_is_in_one_part_and_the_seed_decides(way: str) -> None:
    split = WAYS[way](3)
    assert list(split) == ["train", "validation", "test"]
    assert sorted(np.concatenate(list(split.values())).tolist()) == list(range(1000))
    assert all(rows.tolist() == sorted(rows.tolist()) for rows in split.values())
    assert same(split, WAYS[way](3))
    assert not same(split, WAYS[way](4))
    for part, share in SHARES.items():  # four standard deviations; groups are 100
        spread = 4 * (share * (1 - share) / (100 if way == "group" else 1000)) ** 0.5
        assert abs(len(split[part]) / 1000 - share) < spread


def test_the_split_is_the_same_on_every_machine() -> None:
    digest = blake2b(b"7\nfilm", digest_size=8).digest()
    assert fraction("film", 7) == (int.from_bytes(digest, "big") >> 11) / 2**53
    # written down once: a run that is continued years later must find its rows again
    assert [part_of(text) for text in ("a", "b", "é", "\ud800", "")] == [
        "train",
        "train",
        "validation",
        "validation",
        "validation",
    ]
    assert by_share(10, {"a": 0.5, "b": 0.5}, seed=1)["a"].tolist() == [2, 4, 5, 7, 9]


@given(st.lists(st.text(max_size=3), max_size=30), st.lists(st.text(max_size=3), max_size=30))
def test_more_rows_move_no_row_and_equal_rows_fall_together(old, new) -> None:
    shares = {"a": 0.5, "b": 0.5}
    try:
        before, after = by_hash(old, shares), by_hash(old + new, shares)
    except DataError:
        assume(False)
    for part in shares:
        assert before[part].tolist() == [k for k in after[part].tolist() if k < len(old)]
        rows = {(old + new)[k] for k in after[part].tolist()}
        others = {(old + new)[k] for name in after if name != part for k in after[name].tolist()}
        assert not rows & others


@given(st.lists(st.integers(3, 20), min_size=1, max_size=6), st.integers(0, 5))
def test_classes_are_shared_out_within_one_row(sizes: list[int], seed: int) -> None:
    shares = {"train": 0.5, "validation": 0.25, "test": 0.25}
    labels = [label for label, size in enumerate(sizes) for _ in range(size)]
    split = stratified(labels, shares, seed)
    for part, share in shares.items():
        counts = Counter(labels[k] for k in split[part].tolist())
        for label, total in Counter(labels).items():
            assert abs(counts[label] - share * total) < 1


def test_the_odd_rows_of_many_classes_go_to_all_parts_in_turn() -> None:
    split = stratified([k // 5 for k in range(500)])  # 100 classes of 5: 4 and a half each
    assert [len(rows) for rows in split.values()] == [400, 50, 50]


@given(st.integers(3, 200), st.integers(0, 3))
def test_shares_are_exact_but_for_one_row(rows: int, seed: int) -> None:
    shares = {"a": 0.5, "b": 0.25, "c": 0.25}
    split = by_share(rows, shares, seed)
    assert all(abs(len(split[part]) - rows * share) < 1 for part, share in shares.items())


@given(st.integers(0, 9), st.integers(0, 3), st.sampled_from(["", "a.txt"]))
def test_of_ten_blocks_each_part_gets_its_share(cycle: int, seed: int, name: str) -> None:
    """1, 2, 4, … 256 lines a block; the ninth cycle and all after it have 256."""
    size = min(2**cycle, 256)
    first = 10 * (2**cycle - 1 if cycle < 9 else 511)
    lines = range(first, first + 10 * size)
    parts = [part_of_line(k, seed=seed, name=name) for k in lines]
    blocks = [set(parts[k : k + size]) for k in range(0, len(parts), size)]
    assert all(len(block) == 1 for block in blocks)
    assert Counter(parts) == {"train": 8 * size, "validation": size, "test": size}
    assert parts == [part_of_line(k, seed=seed, name=name) for k in lines]


def test_texts_are_split_each_in_its_own_way() -> None:
    ways = {tuple(part_of_line(k, name=f"{n}.txt") for k in range(100)) for n in range(20)}
    assert len(ways) == 20
    # written down once, as those of a hash
    assert [k for k in range(40) if part_of_line(k) != "train"] == [0, 6, 12, 13, 14, 15]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60))
def test_a_group_is_never_torn(groups: list[int]) -> None:
    try:
        split = by_group(map(str, groups), {"a": 0.5, "b": 0.5})
    except DataError:
        return
    groups_of_parts = [{groups[k] for k in rows.tolist()} for rows in split.values()]
    assert not groups_of_parts[0] & groups_of_parts[1]


def test_each_fold_is_tested_once_and_never_trained_on() -> None:
    pairs = folds(stratified(LABELS, equal_shares(7)))
    assert len(pairs) == 7
    for train, held_out in pairs:
        assert sorted([*train.tolist(), *held_out.tolist()]) == list(range(1000))
        assert abs(len(held_out) - 1000 / 7) < 3
    assert sorted(np.concatenate([test_rows for _, test_rows in pairs]).tolist()) == list(
        range(1000)
    )


MESSAGES = [
    (
        lambda: by_share(9, {"train": 0.8, "test": 0.3}),
        OptionError,
        "shares: expected two or more numbers > 0 that sum to 1, got train 0.8, test 0.3 (sum 1.1)",
    ),
    (
        lambda: by_hash([], {"train": 1.0}),
        OptionError,
        "shares: expected two or more numbers > 0 that sum to 1, got train 1 (sum 1)",
    ),
    (
        lambda: by_share(3),
        DataError,
        "no row falls into validation, test: 3 rows are too few for these shares. Give more data, "
        "larger shares, or another seed, or name a file for each part",
    ),
    (
        lambda: by_group(["one film"] * 50),
        DataError,
        "no row falls into validation, test: 1 groups are too few for these shares. Give more "
        "data, larger shares, or another seed, or name a file for each part",
    ),
    (
        lambda: stratified(["a"] * 9 + ["b", "c", "c"]),
        DataError,
        "2 of the classes have fewer rows than there are parts (3): 'b' (1), 'c' (2). "
        "Add rows, join classes, or split by share or by hash",
    ),
    (
        lambda: stratified(range(7)),
        DataError,
        "7 of the classes have fewer rows than there are parts (3): "
        "0 (1), 1 (1), 2 (1), 3 (1), 4 (1) and 2 more. "
        "Add rows, join classes, or split by share or by hash",
    ),
    (lambda: equal_shares(1), OptionError, "folds: expected a number ≥ 2, got 1"),
    (lambda: by_share(9, seed=-1), OptionError, "seed: expected a number ≥ 0, got -1"),
]


@pytest.mark.parametrize(("call", "kind", "message"), MESSAGES)
def test_messages(call, kind: type[EnsueError], message: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == message


def test_blank_rows_fall_into_all_parts() -> None:
    """Split by their content, which is the same, all of them would fall into one part."""
    blank = [Place("r.csv", line) for line in range(2, 202)]
    contents = [hashed_content(" " * (row.line % 2), row) for row in blank]
    parts = by_hash(contents)
    assert [140 < len(parts["train"]) < 180, *(len(parts[part]) > 5 for part in parts)] == [
        True
    ] * 4
    assert hashed_content("a", blank[0]) == "a"  # the content alone, where there is any
