"""Vocabularies: numbers and tokens are each other's inverse, and nothing is lost in json."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.data.vocabulary import (
    END,
    PAD,
    SPECIALS,
    START,
    UNKNOWN,
    Vocabulary,
    count_tokens,
)
from ensue.errors import DataError, EnsueError, OptionError

TOKENS = st.text("abcé", min_size=1, max_size=3)
ROWS = st.lists(st.lists(TOKENS, max_size=8), min_size=1, max_size=8).filter(any)


@given(ROWS, st.integers(1, 3), st.integers(4, 9))
def test_a_vocabulary_keeps_the_commonest_tokens(rows, min_count: int, max_size: int) -> None:
    counts = Counter(token for row in rows for token in row)
    if max(counts.values()) < min_count:
        with pytest.raises(DataError, match="no token is seen"):
            Vocabulary.build(counts, min_count=min_count)
        return
    v = Vocabulary.build(count_tokens(rows), min_count=min_count, max_size=max_size)
    assert v.tokens[:2] == (PAD, UNKNOWN)
    assert len(v) == len(v.tokens) <= max_size
    for token, n in zip(v.tokens[2:], v.counts[2:], strict=True):
        assert n == counts[token] >= min_count
    left_out = set(counts) - set(v.tokens)
    ranks = [(-counts[token], token) for token in v.tokens[2:]]
    assert ranks == sorted(ranks)
    if len(v) < max_size:
        assert all(counts[token] < min_count for token in left_out)
    else:
        assert all(
            counts[t] < min_count or (-counts[t], t) > max(ranks, default=()) for t in left_out
        )
    assert sum(v.counts) == sum(counts.values())
    assert v.counts[1] == sum(counts[token] for token in left_out)


@given(ROWS)
def test_ids_and_tokens_are_inverse_and_json_keeps_all(rows) -> None:
    v = Vocabulary.build(count_tokens(rows), specials=(*SPECIALS, START, END))
    for row in rows:
        assert v.tokens_of(v.ids(row)) == row
    everything = list(range(1, len(v)))
    assert v.ids(v.tokens_of(everything)) == everything
    again = Vocabulary.from_dict(json.loads(json.dumps(v.to_dict())))
    assert again == v
    assert again.ids(rows[0]) == v.ids(rows[0])


@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(rows, chance: random.Random) -> None:
    shuffled = [list(row) for row in rows]
    chance.shuffle(shuffled)
    assert Vocabulary.build(count_tokens(shuffled)) == Vocabulary.build(count_tokens(rows))


def test_what_is_unknown_has_number_one_and_is_not_remembered() -> None:
    v = Vocabulary.build({"to": 3, "be": 1}, min_count=2)
    assert v.ids(["to", "be", "or", "to"]) == [2, 1, 1, 2]
    assert ("to" in v, "be" in v, "or" in v, len(v)) == (True, False, False, 3)
    assert v.counts == (0, 1, 3)


def test_padding_in_a_text_is_no_padding_but_a_written_unknown_is_unknown() -> None:
    v = Vocabulary.build({"a": 1, PAD: 2, UNKNOWN: 4})
    assert v.tokens == (PAD, UNKNOWN, "a")
    assert v.ids([PAD, UNKNOWN, "a"]) == [1, 1, 2]
    assert v.counts == (0, 6, 1)


def test_a_closed_vocabulary_knows_all_its_tokens_and_no_other() -> None:
    v = Vocabulary.closed({"pos": 3, "neg": 9})
    assert v.tokens == ("neg", "pos")
    assert v.counts == (9, 3)
    assert Vocabulary.from_dict(v.to_dict()) == v
    with pytest.raises(DataError) as caught:
        v.ids(["pos", "neutral"])
    assert str(caught.value) == "unknown token 'neutral': expected one of neg, pos"
    with pytest.raises(DataError) as caught:
        v.tokens_of([1, 2])
    assert str(caught.value) == "no token has the number 2: there are 2, from 0 on"


GOOD = {"specials": list(SPECIALS), "tokens": [*SPECIALS, "a"], "counts": [0, 0, 1]}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            [],
            "this is not a vocabulary: expected the keys specials, tokens, counts, got list",
        ),
        (
            {**GOOD, "size": 3},
            "this is not a vocabulary: expected the keys specials, tokens, counts, "
            "got specials, tokens, counts, size",
        ),
        ({**GOOD, "tokens": "abc"}, "this is not a vocabulary: tokens: expected a list, got str"),
        (
            {**GOOD, "tokens": [*SPECIALS, 7]},
            "this is not a vocabulary\n  tokens: expected strings, got 7",
        ),
        (
            {**GOOD, "tokens": [*SPECIALS, "a", "a"]},
            "this is not a vocabulary\n  tokens: 1 occur more than once, such as 'a'\n"
            "  counts: expected 4 of them, got 3",
        ),
        (
            {**GOOD, "tokens": ["a", *SPECIALS]},
            "this is not a vocabulary\n  tokens: expected <pad>, <unk> first",
        ),
        (
            {**GOOD, "specials": [PAD], "counts": [0, -1, True]},
            "this is not a vocabulary\n  specials: expected <pad>, <unk> first, or none at all\n"
            "  counts: expected whole numbers ≥ 0, got -1",
        ),
    ],
)
def test_what_is_not_a_vocabulary_is_refused(wrong: object, message: str) -> None:
    with pytest.raises(DataError) as caught:
        Vocabulary.from_dict(wrong)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"min_count": 0}, OptionError, "min_count: expected a number ≥ 1, got 0"),
        ({"max_size": 2}, OptionError, "max_size: expected more than the 2 specials, got 2"),
        (
            {"min_count": 5},
            DataError,
            "no token is seen 5 times or more: lower min_count, or give more data",
        ),
    ],
)
def test_options_out_of_range(options: dict[str, int], kind: type[EnsueError], message) -> None:
    with pytest.raises(kind) as caught:
        Vocabulary.build({"a": 1}, **options)
    assert str(caught.value) == message
