"""Statistics of one part of the data, collected row by row without storing texts."""

from __future__ import annotations

import heapq
import re
from array import array
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from ensue.data.roles import Roles
from ensue.data.rows import Place, Row

WORDS = re.compile(r"\w+|[^\w\s]")
MOST_LABELS = 1000  # more labels than this are not classes
MOST_EXAMPLES = 3
MOST_OUTLIERS = 5
# A row is an outlier if it is both longer than OUTLIER times the median and longer than LONG.
OUTLIER, LONG = 20, 5_000


class Pairs:
    """The number of pairs of places, and the first few pairs."""

    def __init__(self) -> None:
        self.count = 0
        self.examples: list[tuple[Place, Place]] = []

    def add(self, one: Place, other: Place) -> None:
        self.count += 1
        if len(self.examples) < MOST_EXAMPLES:
            self.examples.append((one, other))

    def named(self) -> tuple[str, ...]:
        """The examples in words, with … if there are more."""
        columns = [
            f"{one} = {f'line {other.line}' if one.file == other.file else other}"
            for one, other in self.examples
        ]
        return (*columns, "…") if self.count > len(columns) else tuple(columns)


def digest(content: bytes) -> int:
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little")


def normal(text: str) -> str:
    """The text without differences in case and white space."""
    return " ".join(text.casefold().split())


class Survey:
    """Statistics of one part of the data (train, test, …)."""

    def __init__(self, name: str, roles: Roles, vocabulary: set[str], learn: bool) -> None:
        self.name, self.roles = name, roles
        self._vocabulary, self._learn = vocabulary, learn  # words of the training part
        self.rejected = self.empty = self.replaced = 0
        self.words = self.unseen = 0
        self.lengths = array("Q")  # in words, tokens or steps
        self._sizes = array("Q")  # in units: finds long rows without spaces, too
        self.unit = "characters"
        self._longest: list[tuple[int, int, Place]] = []
        self.labels: Counter[str] = Counter()
        self.duplicates, self.conflicts = Pairs(), Pairs()
        self.leaks: dict[str, Pairs] = {}
        self._files: list[str] = []
        self._rows: dict[int, int] = {}  # digest of a text → the row that had it first
        self._row_file, self._row_line, self._row_label = array("I"), array("Q"), array("Q")

    @property
    def rows(self) -> int:
        return len(self.lengths)

    def add(self, row: Row, others: Sequence[Survey]) -> None:
        if self.roles.inputs:
            value: Any = "\n".join(str(row.fields.get(name, "")) for name in self.roles.inputs)
        elif self.roles.text:
            value = row.fields.get(self.roles.text, "")
        else:  # a series, whose rows are steps, or a table
            self._lengthen(row.place, 1, 1)
            self._label(row)
            return
        label = self._label(row)
        content = self._measure(row.place, value)
        if not content:
            self.empty += 1
            return
        key = digest(content)
        known = self.place_of(key)
        if known is None:
            self._remember(key, row.place, label)
        elif self._row_label[self._rows[key]] == label:
            self.duplicates.add(row.place, known)
        else:
            self.conflicts.add(row.place, known)
        for other in others:
            place = other.place_of(key)
            if place is not None:
                self.leaks.setdefault(other.name, Pairs()).add(row.place, place)

    def place_of(self, key: int) -> Place | None:
        """The first place of the text with this digest."""
        row = self._rows.get(key)
        if row is None:
            return None
        return Place(self._files[self._row_file[row]], self._row_line[row])

    def _remember(self, key: int, place: Place, label: int) -> None:
        if not self._files or self._files[-1] != place.file:
            self._files.append(place.file)
        self._rows[key] = len(self._row_line)
        self._row_file.append(len(self._files) - 1)
        self._row_line.append(place.line)
        self._row_label.append(label)

    def _label(self, row: Row) -> int:
        """Counts the row's label, or the labels of its tokens; returns a digest of them."""
        if self.roles.label is None:
            return 0
        value = row.fields.get(self.roles.label, "")
        several = isinstance(value, list | np.ndarray)
        labels = [str(one) for one in value] if several else [str(value)]
        if len(self.labels) <= MOST_LABELS:
            self.labels.update(labels)
        return digest("\0".join(labels).encode())

    def _measure(self, place: Place, value: Any) -> bytes:
        """Counts the words; returns a digest by which equal texts are recognised, b"" for an empty
        one."""
        if isinstance(value, np.ndarray):
            self.unit = "steps"
            self._lengthen(place, len(value), len(value))
            return value.tobytes()
        if isinstance(value, list):
            text, tokens = " ".join(value), [token.lower() for token in value]
        else:
            text = str(value)
            tokens = WORDS.findall(text.lower())
        if self._learn:
            self._vocabulary.update(tokens)
        else:
            self.unseen += len(tokens) - sum(map(self._vocabulary.__contains__, tokens))
        self.words += len(tokens)
        self.replaced += "\ufffd" in text
        self._lengthen(place, len(tokens), len(text))
        return normal(text).encode()

    def _lengthen(self, place: Place, length: int, size: int) -> None:
        self.lengths.append(length)
        self._sizes.append(size)
        entry = size, -self.rows, place
        if len(self._longest) < MOST_OUTLIERS:
            heapq.heappush(self._longest, entry)
        else:
            heapq.heappushpop(self._longest, entry)

    def length_shares(self) -> tuple[int, int, int]:
        """Median, 95 % and longest, in words."""
        if not self.lengths:
            return 0, 0, 0
        lengths = np.sort(np.frombuffer(self.lengths, np.uint64))
        return (
            int(lengths[(len(lengths) - 1) // 2]),
            int(lengths[(len(lengths) - 1) * 95 // 100]),
            int(lengths[-1]),
        )

    def outliers(self) -> tuple[int, list[tuple[Place, int]]]:
        """The number of rows that are far longer than the others, and the longest with their
        sizes."""
        if not self._sizes:
            return 0, []
        sizes = np.frombuffer(self._sizes, np.uint64)
        limit = max(LONG, OUTLIER * float(np.median(sizes)))
        longest = sorted(self._longest, reverse=True)
        return int((sizes > limit).sum()), [(p, size) for size, _, p in longest if size > limit]
