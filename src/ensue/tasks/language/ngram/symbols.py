"""The tokens of n-gram models, and sentences with their boundaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.data.vocabulary import END, PAD, START
from ensue.errors import DataError, OptionError


@dataclass(frozen=True)
class NgramSymbols:
    """Tokens are the integers 0 … size − 1.

    start: comes before every row and is never predicted; `size` if no token has this role. end:
    predicted after every row; None if rows are pieces of a stream instead of sentences.
    unpredicted: further tokens that occur in no text, such as "<pad>"."""

    size: int
    start: int
    end: int | None = None
    unpredicted: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        problems = []
        if not 0 <= self.start <= self.size:
            problems.append(f"start: expected 0 … {self.size}, got {self.start}")
        if self.end is not None and not 0 <= self.end < self.size:
            problems.append(f"end: expected 0 … {self.size - 1}, got {self.end}")
        wrong = [number for number in self.unpredicted if not 0 <= number < self.size]
        if wrong:
            problems.append(f"unpredicted: expected 0 … {self.size - 1}, got {wrong[0]}")
        if self.end is not None and self.end in (self.start, *self.unpredicted):
            problems.append(f"end: expected a token that is predicted, got {self.end}")
        if not problems and not self.predicted.any():
            problems.append("size: expected at least one token that is predicted")
        if problems:
            raise OptionError("\n  ".join(["these are not the symbols of a language", *problems]))

    @classmethod
    def of(cls, tokens: Sequence[str], *, sentences: bool = True) -> NgramSymbols:
        """The symbols of a vocabulary: "<s>", "</s>" and "<pad>" have their roles. Without
        `sentences`, rows have no ends and "</s>" is an ordinary token."""
        numbers = {token: number for number, token in enumerate(tokens)}
        if sentences and END not in numbers:
            raise OptionError(
                f"the vocabulary has no {END!r}, which is predicted after every sentence: "
                "build it with that token, or use sentences=False for a stream"
            )
        return cls(
            size=len(tokens),
            start=numbers.get(START, len(tokens)),
            end=numbers[END] if sentences else None,
            unpredicted=(numbers[PAD],) if PAD in numbers else (),
        )

    @property
    def width(self) -> int:
        """The number of tokens, including the start."""
        return max(self.size, self.start + 1)

    @property
    def predicted(self) -> NDArray[np.bool_]:
        """The tokens that may follow; shape (width,)."""
        may = np.ones(self.width, np.bool_)
        may[[self.start, *self.unpredicted]] = False
        return may


class Bounded(NamedTuple):
    """Rows with a start before each and, in sentences, an end after it: row k is
    tokens[starts[k]:starts[k + 1]]."""

    tokens: NDArray[np.int32]
    starts: NDArray[np.int64]

    @property
    def offsets(self) -> NDArray[np.int64]:
        """The distance of each token from its row's start: 0 for the start itself."""
        return np.arange(len(self.tokens)) - np.repeat(self.starts[:-1], np.diff(self.starts))

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Marks all tokens except the starts."""
        mask = np.ones(len(self.tokens), np.bool_)
        mask[self.starts[:-1]] = False
        return mask


def bounded(rows: Ragged, symbols: NgramSymbols) -> Bounded:
    """The rows with their boundaries; raises DataError for a token that cannot occur in a text."""
    _check(rows, symbols)
    added = 1 + (symbols.end is not None)
    starts = rows.starts + added * np.arange(len(rows) + 1)
    tokens = np.empty(int(starts[-1]), np.int32)
    text = np.ones(len(tokens), np.bool_)
    text[starts[:-1]] = False
    tokens[starts[:-1]] = symbols.start
    if symbols.end is not None:
        text[starts[1:] - 1] = False
        tokens[starts[1:] - 1] = symbols.end
    tokens[text] = rows.values
    return Bounded(tokens, starts)


def _check(rows: Ragged, symbols: NgramSymbols) -> None:
    if rows.values.ndim != 1 or rows.values.dtype.kind not in "iu":
        raise DataError(
            "tokens: expected whole numbers, one for each, got "
            f"{rows.values.dtype} of shape {rows.values.shape}"
        )
    if not len(rows.values):
        return
    beyond = (rows.values < 0) | (rows.values >= symbols.size)
    if beyond.any():
        _refuse(rows, beyond, f"expected tokens 0 … {symbols.size - 1}")
    allowed = symbols.predicted
    if symbols.end is not None:
        allowed[symbols.end] = False
    wrong = ~allowed[rows.values]
    if wrong.any():
        _refuse(rows, wrong, "expected no start, end or padding inside a row")


def _refuse(rows: Ragged, wrong: NDArray[np.bool_], expected: str) -> None:
    at = int(wrong.argmax())
    row = int(np.searchsorted(rows.starts, at, side="right")) - 1
    raise DataError(
        f"row {row}, token {at - int(rows.starts[row])}: {expected}, got {rows.values[at]} "
        f"({int(wrong.sum())} such tokens in all); encode texts with the model's vocabulary"
    )


def sentences(stream: NDArray[Any], end: int) -> Ragged:
    """The rows of a stream in which every `end` closes a sentence; an unclosed sentence is the last
    row."""
    stops = np.flatnonzero(stream == end)
    last = stops[-1] + 1 if len(stops) else 0
    lengths = np.diff(np.concatenate([[-1], stops])) - 1
    if last < len(stream):
        lengths = np.append(lengths, len(stream) - last)
    return Ragged(stream[stream != end], np.concatenate([[0], np.cumsum(lengths)]))
