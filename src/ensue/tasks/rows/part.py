"""`Part`: the rows of one part of a data set as arrays, without their texts.

Tokens and labels are first indexed in order of occurrence. After reading the whole training part, a
model replaces these indices by indices of its vocabulary."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.data.tokenise import Tokeniser
from ensue.tasks.baselines.text_features import Texts
from ensue.tasks.declarations import NOT_SAVED, SavedAs
from ensue.tasks.evaluation.report import preview


def counting() -> defaultdict[str, int]:
    """A dictionary that gives every new key the next index."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return numbers


@dataclass
class Numbers:
    """The indices of tokens, labels and cells, shared by the parts of one data set."""

    tokens: defaultdict[str, int] = field(default_factory=counting)
    labels: defaultdict[str, int] = field(default_factory=counting)
    cells: defaultdict[str, int] = field(default_factory=counting)

    @property
    def token_names(self) -> Sequence[str]:
        """The tokens in order of their indices."""
        return list(self.tokens)


@dataclass(frozen=True)
class Names:
    """Places of rows: a file's number and a line for each."""

    files: tuple[str, ...]
    file: NDArray[np.int32]
    line: NDArray[np.int64]

    def __getitem__(self, row: int) -> str:
        return f"{self.files[self.file[row]]}:{self.line[row]}"

    def take(self, rows: NDArray[np.int64]) -> Names:
        return Names(self.files, self.file[rows], self.line[rows])


class NameCollector:
    """Collects the place of each row, one by one."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}
        self._file, self._line = array("i"), array("q")

    def add(self, file: str, line: int) -> None:
        self._file.append(self._files.setdefault(file, len(self._files)))
        self._line.append(line)

    def done(self) -> Names:
        files = tuple(self._files)
        return Names(files, as_numpy(self._file, np.int32), as_numpy(self._line, np.int64))


class LabelledPart(Protocol):
    """The interface of parts with labels, classes or numbers to predict, for any kind of rows."""

    @property
    def labels(self) -> Ragged | None: ...
    @property
    def names(self) -> Names: ...
    @property
    def numbers(self) -> Numbers: ...
    @property
    def unlabelled(self) -> str: ...
    def __len__(self) -> int: ...


class Tokenisers(NamedTuple):
    """The tokenisers of texts, and of labels that are texts (None for others)."""

    input: Annotated[Tokeniser, SavedAs("tokeniser")]
    label: Annotated[Tokeniser | None, NOT_SAVED] = None


@dataclass(frozen=True)
class Part:
    """Rows of sequences: training, validation or test rows, or rows to answer.

    inputs: token indices (int32) or vectors (float32, (total, n)); second: the second inputs of
    pairs; labels: one per row, one per step, or several per row; None if unknown. names: the origin
    of each row; unlabelled: the name of the first without label. numbers: indices of tokens and
    labels, shared by all parts of a data set; tokenisers: the tokenisers of its texts; cells: the
    indices of the cells in the columns next to the inputs."""

    inputs: Ragged
    labels: Ragged | None
    names: Names
    numbers: Numbers
    tokenisers: Tokenisers
    unlabelled: str = ""
    second: Ragged | None = None
    cells: Ragged | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    def take(self, rows: NDArray[np.int64]) -> Part:
        """The rows with these indices."""
        return replace(
            self,
            inputs=self.inputs.take(rows),
            labels=None if self.labels is None else self.labels.take(rows),
            names=self.names.take(rows),
            second=None if self.second is None else self.second.take(rows),
            cells=None if self.cells is None else self.cells.take(rows),
        )

    @property
    def texts(self) -> bool:
        """Whether the inputs are tokens, not vectors."""
        return self.inputs.values.ndim == 1


def as_numpy(values: array[Any], dtype: Any) -> NDArray[Any]:
    return np.frombuffer(values, dtype) if len(values) else np.zeros(0, dtype)


def counts_of(inputs: Ragged, known: Iterable[str]) -> dict[str, int]:
    """The count of each token."""
    names = list(known)
    counts = np.bincount(inputs.values, minlength=len(names))
    return {name: int(n) for name, n in zip(names, counts, strict=True) if n}


def renumbered(inputs: Ragged, known: Iterable[str], numbers: dict[str, int]) -> Ragged:
    """The rows with a vocabulary's indices."""
    names = list(known)
    table = np.fromiter(map(numbers.__getitem__, names), np.int32, len(names))
    return Ragged(table[inputs.values] if len(names) else inputs.values, inputs.starts)


def shortened(rows: Ragged, most: int | None, cut: str) -> Ragged:
    """Rows of at most `most` steps, cut at the "end" or at the "start"."""
    if most is None or not len(rows) or rows.lengths.max() <= most:
        return rows
    lengths = np.minimum(rows.lengths, most)
    begin = rows.starts[:-1] if cut == "end" else rows.starts[1:] - lengths
    starts = np.concatenate([[0], np.cumsum(lengths)])
    at = np.arange(starts[-1]) + np.repeat(begin - starts[:-1], lengths)
    return Ragged(rows.values[at], starts)


WHOLE_WORDS = ("words", "pieces", "spaces")  # levels whose tokens are words


def texts_of(part: Part) -> Texts:
    """The words by index, and the words of each row; characters and subwords are joined to
    words."""
    tokeniser, names = part.tokenisers.input, list(part.numbers.tokens)
    if tokeniser.name in WHOLE_WORDS:
        return Texts(names, part.inputs)
    cut, numbers = Tokeniser("words"), counting()
    values, starts = array("i"), array("q", [0])
    for row in range(len(part)):
        text = tokeniser.text_of([names[k] for k in part.inputs.row(row)])
        values.extend(map(numbers.__getitem__, cut(text)))
        starts.append(len(values))
    return Texts(list(numbers), Ragged(as_numpy(values, np.int32), as_numpy(starts, np.int64)))


def shared_texts(*parts: Part) -> list[Texts]:
    """The texts of several parts, with the same indices for the same words."""
    texts = [texts_of(part) for part in parts]
    if all(each.words == texts[0].words for each in texts):
        return texts
    numbers: dict[str, int] = {}
    tables = [[numbers.setdefault(word, len(numbers)) for word in each.words] for each in texts]
    words = list(numbers)
    return [
        Texts(words, Ragged(np.array(table, np.int32)[each.rows.values], each.rows.starts))
        for each, table in zip(texts, tables, strict=True)
    ]


def shown_of(part: Part) -> Callable[[int], tuple[str, str]]:
    """A function from a row to its name and the beginning of its text or of both texts; no text for
    vectors."""
    names = part.numbers.token_names
    sides: list[Ragged] = [part.inputs, *([] if part.second is None else [part.second])]

    def row_text(row: int) -> tuple[str, str]:
        if not part.texts:
            return part.names[row], ""
        texts = [preview([names[k] for k in side.row(row)]) for side in sides]
        return part.names[row], " | ".join(texts)

    return row_text
