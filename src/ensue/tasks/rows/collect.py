"""Collects examples to a part: rows one by one, directly into arrays."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.data.rows import Place, Row
from ensue.data.settings import DataSettings
from ensue.data.tokenise import Tokeniser
from ensue.data.values import NO_LABEL, Unfit
from ensue.errors import DataError
from ensue.tasks.columns.cells import cells_of
from ensue.tasks.rows.part import NameCollector, Numbers, Part, Tokenisers, as_numpy

EMPTY = "expected a text on both sides, got an empty one: fill it in, or leave the row out"
Input = str | list[str] | NDArray[np.float32]


class Content:
    """A text, tokens or vectors, with one label or several."""

    by_step = False  # whether each step has a label
    all_columns = False  # whether all columns of a row are used

    def example(self, row: Row, data: DataSettings) -> Example:
        """The example of a row; raises `Unfit` with the column's name if it is missing."""
        name = "features" if data.sequence else data.text_column
        value = named(name, self.value, row, data)
        label = named(data.label, self.label, row, data, value) if data.label else None
        return Example(value, label, row.place, self.second(row, data), cells_beside(row, data))

    def value(self, row: Row, data: DataSettings) -> Any:
        return sequence(row.fields.get("features" if data.sequence else data.text_column))

    def second(self, row: Row, data: DataSettings) -> Any:
        """The second input of a pair; None if there is none."""
        return None

    def label(self, row: Row, data: DataSettings, value: Any) -> Any:
        return label_of(row.fields.get(data.label), data.separator)

    def hashed(self, example: Example) -> str:
        """The content whose hash decides the part of a row."""
        return written(example.value)

    def looked_up(self, example: Example, data: DataSettings) -> Example:
        """The example with its value resolved, such as a picture instead of its file name: only for
        rows of the part in use."""
        return example


def cells_beside(row: Row, data: DataSettings) -> list[str] | None:
    """The cells of the columns next to the text; None if there are none."""
    if not data.columns:
        return None
    if missing := [name for name in data.columns if name not in row.fields]:
        raise Unfit(f"expected a column {missing[0]!r} next to the text, got none")
    try:
        return cells_of({name: row.fields[name] for name in data.columns}, "")
    except DataError as error:
        raise Unfit(str(error).removeprefix(": ")) from None


def named(column: str, find: Any, row: Row, *rest: Any) -> Any:
    """Calls `find`; faults begin with the name of the column."""
    try:
        return find(row, *rest)
    except Unfit as unfit:
        raise Unfit(f"{column}: {unfit}") from None


def sequence(value: Any) -> Input:
    """Checks a text, tokens, or vectors (steps, n); raises `Unfit` for other values."""
    if isinstance(value, str):
        return value
    if isinstance(value, np.ndarray):
        vectors = np.asarray(value, np.float32)
        return vectors[:, None] if vectors.ndim == 1 else vectors
    if isinstance(value, list):
        return value
    raise Unfit(f"expected a text or a sequence, got {value_text(value)}")


def label_of(value: Any, separator: str) -> str | list[str]:
    """A label, or a list if a row may have several; raises `Unfit` if it is missing. Numbers are
    names of classes."""
    if isinstance(value, list):
        return value
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return [f"{number:g}" for number in value.tolist()]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if value is None:
        raise Unfit(NO_LABEL)
    if not isinstance(value, str):
        raise Unfit(f"expected a label, got {value_text(value)}")
    text = value.strip()
    if separator:
        return [part.strip() for part in text.split(separator) if part.strip()]
    if not text:
        raise Unfit(NO_LABEL)
    return text


class PairContent(Content):
    """A source text and its target text; neither may be empty."""

    def value(self, row: Row, data: DataSettings) -> Any:
        """The input of a row. A list of only numbers is one vector, not steps of one number
        each."""
        value = super().value(row, data)
        cell = row.fields.get(data.text_column)
        if isinstance(value, np.ndarray) and isinstance(cell, np.ndarray) and cell.ndim == 1:
            value = value.T
        if not written(value).strip():
            raise Unfit(EMPTY)
        return value

    def label(self, row: Row, data: DataSettings, value: Any) -> Any:
        label = row.fields.get(data.label)
        if label is None or (isinstance(label, str | list) and not written(label).strip()):
            raise Unfit(EMPTY)
        return label_of(label, "")


def written(value: Input) -> str:
    """An input as one text."""
    if isinstance(value, np.ndarray):
        return value.tobytes().hex()
    return value if isinstance(value, str) else " ".join(value)


def value_text(value: Any) -> str:
    return "nothing" if value is None else repr(value)


Examples = Sequence[tuple[Any, Any]]
IN_MEMORY = "row"  # name of rows in memory


class Example(NamedTuple):
    """A row. value: a text, tokens, or vectors (steps, n); label: one or several labels, or a
    number; None if unknown. second: the second input of a pair; cells: the cells of the columns
    next to the input, in the form of `cells_of`."""

    value: Any
    label: Any
    place: Place
    second: Any = None
    cells: Sequence[str] | None = None


class Sequences:
    """Sequences of tokens or of vectors, one row after another."""

    def __init__(self, numbers: Numbers, tokenise: Tokeniser) -> None:
        self._numbers, self._tokenise = numbers, tokenise
        self._tokens, self._vectors = array("i"), array("f")
        self._width: int | None = None  # of the vectors
        self._starts = array("q", [0])

    def add(self, value: Any, place: Place) -> None:
        """Adds a row. A text is tokenised; lists of tokens and arrays of vectors stay unchanged."""
        if isinstance(value, str):
            value = self._tokenise(value)
        if isinstance(value, np.ndarray):
            self._add_vectors(value, place)
        else:
            if self._width is not None and len(value):
                raise DataError(f"{place}: expected vectors as in the rows before, got text")
            self._tokens.extend(map(self._numbers.tokens.__getitem__, value))
        self._starts.append(self._starts[-1] + len(value))

    def _add_vectors(self, value: NDArray[Any], place: Place) -> None:
        if self._tokens:
            raise DataError(f"{place}: expected text as in the rows before, got vectors")
        if value.ndim != 2 or (self._width is not None and value.shape[1] != self._width):
            expected_numbers = "numbers" if self._width is None else f"{self._width} numbers"
            raise DataError(
                f"{place}: expected an array (steps, n), steps of {expected_numbers} each, "
                f"got shape {value.shape}"
            )
        if not np.isfinite(value).all():
            step = int(np.flatnonzero(~np.isfinite(value).all(1))[0])
            raise DataError(
                f"{place}: step {step}: expected finite numbers, got {value[step].tolist()}"
            )
        self._width = value.shape[1]
        self._vectors.frombytes(np.ascontiguousarray(value, np.float32).tobytes())

    def done(self) -> Ragged:
        starts = as_numpy(self._starts, np.int64)
        if self._width is None:
            return Ragged(as_numpy(self._tokens, np.int32), starts)
        return Ragged(as_numpy(self._vectors, np.float32).reshape(-1, self._width), starts)


class Collector:
    """Collects examples one by one."""

    def __init__(self, numbers: Numbers, tokenisers: Tokenisers) -> None:
        self._numbers, self._tokenisers = numbers, tokenisers
        self._inputs = Sequences(numbers, tokenisers.input)
        self._second = Sequences(numbers, tokenisers.input)
        self._paired = False
        self._cells, self._cell_starts = array("i"), array("q", [0])
        self._labels, self._label_starts = array("i"), array("q", [0])
        self._unlabelled = ""
        self._names = NameCollector()

    def add(self, example: Example) -> None:
        place = example.place
        self._inputs.add(example.value, place)
        if example.second is not None:
            self._paired = True
            self._second.add(example.second, place)
        if example.cells is not None:
            self._cells.extend(map(self._numbers.cells.__getitem__, example.cells))
            self._cell_starts.append(len(self._cells))
        self._add_label(example.label, place)
        self._names.add(*place)

    def _add_label(self, label: Any, place: Place) -> None:
        if label is None:
            self._unlabelled = self._unlabelled or str(place)
        else:
            if self._tokenisers.label is not None and isinstance(label, str):
                label = self._tokenisers.label(label)
            texts = label_texts(label, str(place))
            self._labels.extend(map(self._numbers.labels.__getitem__, texts))
        self._label_starts.append(len(self._labels))

    def done(self) -> Part:
        starts = as_numpy(self._label_starts, np.int64)
        labels = Ragged(as_numpy(self._labels, np.int32), starts)
        known = not self._unlabelled and len(labels) > 0
        return Part(
            self._inputs.done(),
            labels if known else None,
            self._names.done(),
            self._numbers,
            self._tokenisers,
            self._unlabelled,
            self._second.done() if self._paired else None,
            self._beside(),
        )

    def _beside(self) -> Ragged | None:
        if len(self._cell_starts) == 1:
            return None
        starts = as_numpy(self._cell_starts, np.int64)
        return Ragged(as_numpy(self._cells, np.int32), starts)


def collect(
    examples: Iterable[Example], tokenisers: Tokenisers, numbers: Numbers | None = None
) -> Part:
    """Collects examples to a part. numbers: indices of the other parts of the data set, None for
    new indices."""
    collector = Collector(Numbers() if numbers is None else numbers, tokenisers)
    for example in examples:
        collector.add(example)
    return collector.done()


def label_texts(label: Any, place: str) -> list[str]:
    """One or several labels as texts: the number 5 is the class "5"."""
    if isinstance(label, str):
        return [label]
    if isinstance(label, int | np.integer | float | np.floating) and label == label:
        return [str(label)]
    if isinstance(label, list | tuple | np.ndarray):
        return [text for item in label for text in label_texts(item, place)]
    raise DataError(f"{place}: label: expected a text, a number or a list of them, got {label!r}")


def pairs_of(rows: Iterable[Any]) -> Examples:
    """Rows that are pairs of input and label, in a list."""
    pairs = list(rows)
    for line, row in enumerate(pairs, 1):
        if not isinstance(row, tuple | list) or len(row) != 2:
            raise DataError(
                f"row:{line}: expected a pair (input, label), got {repr(row)[:60]}; for two lists, "
                "pass zip(inputs, labels)"
            )
    return pairs


def in_memory(pairs: Iterable[tuple[Any, Any]], file: str = IN_MEMORY) -> Iterator[Example]:
    """Examples from pairs of input and label; the name of a row is its number."""
    for line, (value, label) in enumerate(pairs, 1):
        place = Place(file, line)
        yield Example(sequence_of(value, place), label, place)


def sequence_of(value: Any, place: Place) -> Any:
    """Checks a value: a text, tokens, or vectors; raises DataError for others."""
    if isinstance(value, str | np.ndarray):
        return value
    if isinstance(value, list | tuple) and all(isinstance(token, str) for token in value):
        return value
    raise DataError(
        f"{place}: expected a text, a list of tokens, or a numpy array (steps, n) of vectors, "
        f"got {type(value).__name__}"
    )
