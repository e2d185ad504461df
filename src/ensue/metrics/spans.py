"""Spans written as tags, such as B-PER I-PER O.

IOB2 (BIO) B begins every span, I continues it IOB1 I throughout; B only where a span touches one of
its own type BIOES B begins, I continues, E ends, S is a span of one

Spans are read as in conlleval, from legal and illegal sequences. A span begins at B and S, and
where the type changes or no span was open. It ends after E and S, and before the next span or O.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.errors import DataError, unknown

SCHEMES = ("IOB1", "IOB2", "BIOES")
OUTSIDE = "O"
OPEN, INSIDE = ("B", "I"), ("I", "E")  # tags that leave a span open; tags that continue one


class Span(NamedTuple):
    """Steps start … end − 1 of one type.

    >>> Span(start=0, end=2, type="PER")
    Span(start=0, end=2, type='PER')
    """

    start: int
    end: int
    type: str


def split_tag(tag: str) -> tuple[str, str]:
    """Splits a tag: "B-PER" → B, PER; "O" → O, ""."""
    prefix, _, kind = tag.partition("-")
    return prefix, kind


def is_span_tag(tag: str) -> bool:
    return tag == OUTSIDE or (tag[:1] in "BIES" and tag[1:2] == "-")


def scheme_of(tags: Iterable[str]) -> str | None:
    """The scheme of these tags; None if they are not spans."""
    known = set(tags)
    if not known or known == {OUTSIDE} or not all(map(is_span_tag, known)):
        return None
    prefixes = {split_tag(tag)[0] for tag in known}
    if prefixes & {"E", "S"}:
        return "BIOES"
    begun = {kind for prefix, kind in map(split_tag, known) if prefix == "B"}
    inside = {kind for prefix, kind in map(split_tag, known) if prefix == "I"}
    return "IOB2" if inside <= begun else "IOB1"


def spans_of(tags: Sequence[str]) -> list[Span]:
    """All spans, in order.

    >>> spans_of(["B-PER", "I-PER", "O", "I-LOC"])
    [Span(start=0, end=2, type='PER'), Span(start=3, end=4, type='LOC')]
    """
    spans: list[Span] = []
    begun, before, open_type = -1, OUTSIDE, ""
    for at, tag in enumerate([*tags, OUTSIDE]):
        prefix, kind = split_tag(tag)
        goes_on = prefix in INSIDE and before in OPEN and kind == open_type
        if begun >= 0 and not goes_on:
            spans.append(Span(begun, at, open_type))
            begun = -1
        if prefix != OUTSIDE and begun < 0:
            begun, open_type = at, kind
        before = prefix
    return spans


def tags_of(spans: Iterable[Span], length: int, scheme: str = "IOB2") -> list[str]:
    """The spans as tags of `length` steps."""
    if scheme not in SCHEMES:
        raise unknown("scheme", scheme, SCHEMES)
    tags = [OUTSIDE] * length
    previous = Span(0, 0, "")
    for span in sorted(spans):
        if not previous.end <= span.start < span.end <= length:
            raise DataError(
                f"spans: expected spans of one step or more that lie apart within {length} "
                f"steps, got {tuple(span)} after {tuple(previous)}"
            )
        touches = span.start == previous.end and span.type == previous.type
        tags[span.start : span.end] = _written(span, scheme, touches)
        previous = span
    return tags


def _written(span: Span, scheme: str, touches: bool) -> list[str]:
    size = span.end - span.start
    prefixes = ["I"] * size
    if scheme == "BIOES":
        prefixes = ["S"] if size == 1 else ["B", *prefixes[2:], "E"]
    elif scheme == "IOB2" or touches:
        prefixes[0] = "B"
    return [f"{prefix}-{span.type}" for prefix in prefixes]


# --- which tag may follow which --------------------------------------------------------------


class Legal(NamedTuple):
    """first (labels,), follow (before, after), last (labels,): True where a tag may stand."""

    first: NDArray[np.bool_]
    follow: NDArray[np.bool_]
    last: NDArray[np.bool_]


def legal(tags: Sequence[str], scheme: str) -> Legal:
    """The transitions between these tags that the scheme allows."""
    if scheme not in SCHEMES:
        raise unknown("scheme", scheme, SCHEMES)
    return Legal(
        np.array([may_follow(OUTSIDE, tag, scheme) for tag in tags]),
        np.array([[may_follow(a, b, scheme) for b in tags] for a in tags]),
        np.array([may_follow(tag, OUTSIDE, scheme) for tag in tags]),
    )


def may_follow(before: str, after: str, scheme: str) -> bool:
    """Whether `after` may follow `before`; a sequence has O before and after it."""
    (first, old), (second, new) = split_tag(before), split_tag(after)
    inside = first in OPEN and old == new
    if scheme == "IOB1":
        return second != "B" or inside
    if scheme == "IOB2":
        return second != "I" or inside
    return inside if second in INSIDE else first not in OPEN


def illegal_step(tags: Sequence[str], scheme: str) -> int | None:
    """The first step whose tag may not follow the previous one; the length if the sequence may not
    end there; None for a legal sequence."""
    padded = [OUTSIDE, *tags, OUTSIDE]
    for at, (before, after) in enumerate(pairwise(padded)):
        if not may_follow(before, after, scheme):
            return at
    return None


# --- scores ----------------------------------------------------------------------------------


class SpanCounts(NamedTuple):
    """Counts of spans: right, gold, predicted."""

    right: int
    gold: int
    predicted: int


def count_spans(gold: Sequence[Span], predicted: Sequence[Span]) -> SpanCounts:
    """A span is right if start, end and type are."""
    return SpanCounts(len(set(gold) & set(predicted)), len(gold), len(predicted))


def span_counts(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> NDArray[np.int64]:
    """Right, gold, predicted of each row, for `bootstrap`; shape (rows, 3)."""
    pairs = zip(gold, predicted, strict=True)
    counts = [count_spans(spans_of(g), spans_of(p)) for g, p in pairs]
    return np.array(counts, np.int64).reshape(-1, 3)


class SpanScore(NamedTuple):
    precision: float
    recall: float
    f1: float
    support: int


def span_scores(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> tuple[SpanScore, dict[str, SpanScore]]:
    """Scores over all spans, and for each type by name."""
    by_type: dict[str, list[int]] = {}
    for g, p in zip(gold, predicted, strict=True):
        gold_spans, other = set(spans_of(g)), set(spans_of(p))
        for kind, spans in enumerate((gold_spans & other, gold_spans, other)):
            for span in spans:
                by_type.setdefault(span.type, [0, 0, 0])[kind] += 1
    total = np.array(list(by_type.values()), np.int64).reshape(-1, 3).sum(0).tolist()
    return _score(total), {name: _score(by_type[name]) for name in sorted(by_type)}


def _score(counts: Sequence[int]) -> SpanScore:
    right, gold, predicted = counts
    return SpanScore(
        right / predicted if predicted else 0.0,
        right / gold if gold else 0.0,
        2 * right / (gold + predicted) if gold + predicted else 0.0,
        gold,
    )
