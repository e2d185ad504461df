"""Spans written as tags: reading, writing, what is legal, scores."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.errors import DataError, OptionError
from ensue.metrics.spans import (
    SCHEMES,
    Span,
    illegal_step,
    legal,
    may_follow,
    scheme_of,
    span_counts,
    span_scores,
    spans_of,
    tags_of,
)

TYPES = ("PER", "LOC")


@st.composite
def rows_of_spans(draw: st.DrawFn) -> tuple[list[Span], int]:
    """Spans that lie apart or touch, over some steps."""
    spans, at = [], 0
    for gap, size, kind in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.sampled_from(TYPES)))
    ):
        spans.append(Span(at + gap, at + gap + size, kind))
        at += gap + size
    return spans, at + draw(st.integers(0, 2))


@pytest.mark.parametrize("scheme", SCHEMES)
@given(rows_of_spans())
def test_reading_gives_what_was_written(scheme: str, row: tuple[list[Span], int]) -> None:
    spans, length = row
    tags = tags_of(spans, length, scheme)
    assert len(tags) == length
    assert spans_of(tags) == spans
    assert illegal_step(tags, scheme) is None


@pytest.mark.parametrize("scheme", SCHEMES)
@given(rows_of_spans())
def test_one_scheme_says_what_another_does(scheme: str, row: tuple[list[Span], int]) -> None:
    spans, length = row
    tags = tags_of(spans, length, "IOB2")
    assert tags_of(spans_of(tags), length, scheme) == tags_of(spans, length, scheme)


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("O I-PER I-PER O", [(1, 3, "PER")]),  # I where nothing is open begins one
        ("B-PER I-LOC", [(0, 1, "PER"), (1, 2, "LOC")]),  # another type is another span
        ("B-PER B-PER I-PER", [(0, 1, "PER"), (1, 3, "PER")]),
        ("I-PER B-PER", [(0, 1, "PER"), (1, 2, "PER")]),
        ("E-PER", [(0, 1, "PER")]),
        ("B-PER E-PER E-PER", [(0, 2, "PER"), (2, 3, "PER")]),
        ("B-PER E-PER I-PER", [(0, 2, "PER"), (2, 3, "PER")]),
        ("S-PER I-PER", [(0, 1, "PER"), (1, 2, "PER")]),
        ("B-PER S-PER O", [(0, 1, "PER"), (1, 2, "PER")]),
        ("B-PER O I-PER", [(0, 1, "PER"), (2, 3, "PER")]),
        ("B-a-b I-a-b", [(0, 2, "a-b")]),
        ("", []),
    ],
)
def test_illegal_tags_are_read_as_conlleval_reads_them(tags: str, spans: list[Span]) -> None:
    assert spans_of(tags.split()) == spans


@pytest.mark.parametrize(
    ("tags", "scheme", "step"),
    [
        ("O I-PER", "IOB2", 1),
        ("B-PER I-LOC", "IOB2", 1),
        ("I-PER", "IOB2", 0),
        ("B-PER I-PER I-PER", "IOB2", None),
        ("B-PER", "IOB1", 0),
        ("I-PER B-PER I-PER", "IOB1", None),
        ("I-PER B-LOC", "IOB1", 1),
        ("B-PER O", "BIOES", 1),
        ("B-PER I-PER", "BIOES", 2),
        ("B-PER E-PER S-PER", "BIOES", None),
        ("S-PER E-PER", "BIOES", 1),
        ("B-PER B-PER", "BIOES", 1),
    ],
)
def test_where_a_sequence_is_illegal(tags: str, scheme: str, step: int | None) -> None:
    assert illegal_step(tags.split(), scheme) == step


@pytest.mark.parametrize("scheme", SCHEMES)
@given(data=st.data())
def test_legal_is_what_writing_gives(scheme: str, data: st.DataObject) -> None:
    """A sequence of tags is legal exactly if it is how its own spans are written."""
    prefixes = "BIES" if scheme == "BIOES" else "BI"
    known = ["O", *(f"{p}-{t}" for p in prefixes for t in TYPES)]
    tags = data.draw(st.lists(st.sampled_from(known), max_size=5))
    written = tags_of(spans_of(tags), len(tags), scheme)
    assert (illegal_step(tags, scheme) is None) == (tags == written)


def test_the_table_of_what_is_legal() -> None:
    tags = ["O", "B-PER", "I-PER"]
    first, follow, last = legal(tags, "IOB2")
    assert first.tolist() == [True, True, False]
    assert follow.tolist() == [[True, True, False], [True, True, True], [True, True, True]]
    assert last.tolist() == [True, True, True]
    assert not legal(["O", "B-PER"], "BIOES").last[1]
    assert not may_follow("B-PER", "I-LOC", "IOB2")


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        (["O", "B-PER", "I-PER"], "IOB2"),
        (["O", "I-PER"], "IOB1"),
        (["O", "I-PER", "B-LOC"], "IOB1"),
        (["O", "B-PER", "E-PER"], "BIOES"),
        (["NOUN", "VERB", "INTJ"], None),
        (["O"], None),
        ([], None),
    ],
)
def test_the_scheme_of_tags(tags: list[str], scheme: str | None) -> None:
    assert scheme_of(tags) == scheme


def test_scores_by_hand() -> None:
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "O"]]
    predicted = [["B-PER", "O", "O", "B-LOC"], ["B-LOC", "B-PER"]]
    total, by_type = span_scores(gold, predicted)
    assert total == pytest.approx((2 / 4, 2 / 3, 4 / 7, 3))
    assert by_type["LOC"] == (1.0, 1.0, 1.0, 2)
    assert by_type["PER"] == (0.0, 0.0, 0.0, 1)
    assert span_counts(gold, predicted).tolist() == [[1, 2, 2], [1, 1, 2]]


def test_nothing_to_find_scores_nothing() -> None:
    assert span_scores([["O"]], [["O"]]) == ((0.0, 0.0, 0.0, 0), {})
    assert span_counts([], []).shape == (0, 3)
    assert np.issubdtype(span_counts([], []).dtype, np.integer)


def test_messages() -> None:
    with pytest.raises(OptionError, match="unknown scheme 'IOB'"):
        tags_of([], 1, "IOB")
    with pytest.raises(OptionError, match="unknown scheme 'bio'"):
        legal(["O"], "bio")
    message = (
        "spans: expected spans of one step or more that lie apart within 3 steps, "
        "got (1, 3, 'PER') after (0, 2, 'LOC')"
    )
    with pytest.raises(DataError, match=re.escape(message)):
        tags_of([Span(1, 3, "PER"), Span(0, 2, "LOC")], 3)
    with pytest.raises(DataError, match=re.escape("got (2, 4, 'PER')")):
        tags_of([Span(2, 4, "PER")], 3)
