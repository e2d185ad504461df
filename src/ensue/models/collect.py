"""Rows as they are read, straight into arrays: no text is kept.

Tokens and labels get numbers as they come; a model exchanges these for its vocabulary's, once
it has seen the whole training part.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.errors import DataError


def counting() -> defaultdict[str, int]:
    """A dictionary that gives every new key the next number."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return numbers


@dataclass
class Numbers:
    """The numbers of tokens and labels, shared by the parts of one data set."""

    tokens: defaultdict[str, int] = field(default_factory=counting)
    labels: defaultdict[str, int] = field(default_factory=counting)


@dataclass(frozen=True)
class Collected:
    """The rows of one part. inputs: token numbers (int32) or vectors (float32, (total, n));
    labels: one number a row, one a step, or any number of them a row; None where they are not
    known. names: where each row comes from; unlabelled: the name of the first without label."""

    inputs: Ragged
    labels: Ragged | None
    names: Names
    unlabelled: str = ""

    def __len__(self) -> int:
        return len(self.inputs)

    def taken(self, rows: NDArray[np.int64]) -> Collected:
        labels = None if self.labels is None else self.labels.take(rows)
        return Collected(self.inputs.take(rows), labels, self.names.taken(rows))


@dataclass(frozen=True)
class Names:
    """Places of rows: a file's number and a line for each."""

    files: tuple[str, ...]
    file: NDArray[np.int32]
    line: NDArray[np.int64]

    def __getitem__(self, row: int) -> str:
        return f"{self.files[self.file[row]]}:{self.line[row]}"

    def taken(self, rows: NDArray[np.int64]) -> Names:
        return Names(self.files, self.file[rows], self.line[rows])


class Collector:
    """Takes rows one by one.

    tokenise: a text to its tokens; a list of tokens and an array of vectors stay what they are."""

    def __init__(self, numbers: Numbers, tokenise: Callable[[str], list[str]]) -> None:
        self._numbers, self._tokenise = numbers, tokenise
        self._tokens, self._vectors = array("i"), array("f")
        self._width: int | None = None  # of the vectors
        self._starts = array("q", [0])
        self._labels, self._label_starts = array("i"), array("q", [0])
        self._unlabelled = ""
        self._files: dict[str, int] = {}
        self._file, self._line = array("i"), array("q")

    def add(self, value: Any, label: Any, file: str, line: int) -> None:
        """One row; a label of None says that it is not known."""
        if isinstance(value, str):
            value = self._tokenise(value)
        if isinstance(value, np.ndarray):
            self._add_vectors(value, f"{file}:{line}")
        else:
            if self._width is not None and len(value):
                raise DataError(f"{file}:{line}: expected vectors as in the rows before, got text")
            self._tokens.extend(map(self._numbers.tokens.__getitem__, value))
        self._starts.append(self._starts[-1] + len(value))
        if label is None:
            self._unlabelled = self._unlabelled or f"{file}:{line}"
        else:
            given = label_texts(label, f"{file}:{line}")
            self._labels.extend(map(self._numbers.labels.__getitem__, given))
        self._label_starts.append(len(self._labels))
        self._file.append(self._files.setdefault(file, len(self._files)))
        self._line.append(line)

    def _add_vectors(self, value: NDArray[Any], place: str) -> None:
        if self._tokens:
            raise DataError(f"{place}: expected text as in the rows before, got vectors")
        if value.ndim != 2 or (self._width is not None and value.shape[1] != self._width):
            wanted = "numbers" if self._width is None else f"{self._width} numbers"
            raise DataError(
                f"{place}: expected an array (steps, n), steps of {wanted} each, "
                f"got shape {value.shape}"
            )
        if not np.isfinite(value).all():
            step = int(np.flatnonzero(~np.isfinite(value).all(1))[0])
            raise DataError(
                f"{place}: step {step}: expected finite numbers, got {value[step].tolist()}"
            )
        self._width = value.shape[1]
        self._vectors.frombytes(np.ascontiguousarray(value, np.float32).tobytes())

    def done(self) -> Collected:
        names = Names(
            tuple(self._files), _numpy(self._file, np.int32), _numpy(self._line, np.int64)
        )
        starts = _numpy(self._starts, np.int64)
        if self._width is None:
            inputs = Ragged(_numpy(self._tokens, np.int32), starts)
        else:
            inputs = Ragged(_numpy(self._vectors, np.float32).reshape(-1, self._width), starts)
        labels = Ragged(_numpy(self._labels, np.int32), _numpy(self._label_starts, np.int64))
        known = labels if not self._unlabelled and len(labels) else None
        return Collected(inputs, known, names, self._unlabelled)


def label_texts(label: Any, place: str) -> list[str]:
    """One label or several, as texts: the number 5 is the class "5"."""
    if isinstance(label, str):
        return [label]
    if isinstance(label, int | np.integer | float | np.floating) and label == label:
        return [str(label)]
    if isinstance(label, list | tuple | np.ndarray):
        return [text for own in label for text in label_texts(own, place)]
    raise DataError(f"{place}: label: expected a text, a number or a list of them, got {label!r}")


def _numpy(values: array[Any], dtype: Any) -> NDArray[Any]:
    return np.frombuffer(values, dtype) if len(values) else np.zeros(0, dtype)


def counts_of(inputs: Ragged, known: Iterable[str]) -> dict[str, int]:
    """How often each token occurs."""
    names = list(known)
    counts = np.bincount(inputs.values, minlength=len(names))
    return {name: int(n) for name, n in zip(names, counts, strict=True) if n}


def renumbered(inputs: Ragged, known: Iterable[str], numbers: dict[str, int]) -> Ragged:
    """The same rows with a vocabulary's numbers."""
    names = list(known)
    table = np.fromiter(map(numbers.__getitem__, names), np.int32, len(names))
    return Ragged(table[inputs.values] if len(names) else inputs.values, inputs.starts)


def shortened(rows: Ragged, most: int | None, cut: str) -> Ragged:
    """Rows of at most so many steps, cut at the "end" or at the "start"."""
    if most is None or not len(rows) or rows.lengths.max() <= most:
        return rows
    lengths = np.minimum(rows.lengths, most)
    begin = rows.starts[:-1] if cut == "end" else rows.starts[1:] - lengths
    starts = np.concatenate([[0], np.cumsum(lengths)])
    at = np.arange(starts[-1]) + np.repeat(begin - starts[:-1], lengths)
    return Ragged(rows.values[at], starts)


def collected(
    rows: Iterable[tuple[Any, Any]],
    numbers: Numbers,
    tokenise: Callable[[str], list[str]],
    file: str = "row",
) -> Collected:
    """From pairs of input and label in memory; a row is named by its number."""
    collector = Collector(numbers, tokenise)
    for line, (value, label) in enumerate(rows, 1):
        collector.add(_input(value, f"{file}:{line}"), label, file, line)
    return collector.done()


def pairs_of(rows: Iterable[Any]) -> Examples:
    """Rows that are pairs of input and label, in a list."""
    found = list(rows)
    for line, row in enumerate(found, 1):
        if not isinstance(row, tuple | list) or len(row) != 2:
            raise DataError(
                f"row:{line}: expected a pair (input, label), got {repr(row)[:60]}; of two lists "
                "make pairs with zip(inputs, labels)"
            )
    return found


def _input(value: Any, place: str) -> Any:
    """A text, tokens, or vectors; nothing else can be learned from."""
    if isinstance(value, str | np.ndarray):
        return value
    if isinstance(value, list | tuple) and all(isinstance(token, str) for token in value):
        return value
    raise DataError(
        f"{place}: expected a text, a list of tokens, or a numpy array (steps, n) of vectors, "
        f"got {type(value).__name__}"
    )


Examples = Sequence[tuple[Any, Any]]
