"""`Frame`: a data frame of any library, read as the rows of a file are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ensue.data.frames.kinds import FrameKind, kind_of
from ensue.data.frames.values import plain_values, type_of
from ensue.data.options import ReadOptions, faults_of_names, needed_columns, require
from ensue.data.read import shaped
from ensue.data.rows import Place, Problem, Row, Tell
from ensue.data.values import Unfit
from ensue.data.values import kind_of as kind_of_value
from ensue.errors import DataError

NAME = "the data frame"  # in messages
PREDICTED = "predicted"  # begins the name of an answer where the frame has a column of that name


@dataclass(frozen=True)
class Frame:
    """data: what the library's own functions take."""

    data: Any
    kind: FrameKind

    @classmethod
    def of(cls, data: Any) -> Frame | None:
        """None for what is no data frame."""
        kind = kind_of(data)
        if kind is None:
            return None
        found = cls(kind.opened(data), kind)
        if faults := faults_of_names(found.names):
            raise DataError(f"{NAME}: its columns cannot be told apart: {'; '.join(faults)}")
        return found

    def __len__(self) -> int:
        return len(self.kind.places(self.data).numbers)

    @property
    def names(self) -> list[str]:
        return self.kind.names(self.data)

    @property
    def time_index(self) -> str:
        """The name of an index of times, which is read like a column; "" where there is none."""
        return self.kind.time_index(self.data)

    def column(self, name: str) -> list[Any]:
        """Texts, numbers, lists or arrays; None where there is nothing."""
        index = {self.time_index} - {""}
        require([name], [*self.names, *sorted(index)], NAME)
        return plain_values(self.kind.values(self.data, name))

    def type_of(self, name: str) -> str:
        """bool, int or float where all values of a column are; else ""."""
        return type_of(self.column(name))

    def read(self, path: str, options: ReadOptions, on_bad_row: Tell) -> Iterator[Row]:
        """Its rows, as a file's reader gives them."""
        return shaped(partial(self._rows, options), options, on_bad_row)

    def _rows(self, options: ReadOptions, on_bad_row: Tell) -> Iterator[Row]:
        named = list(dict.fromkeys(needed_columns(options)))
        names = list(dict.fromkeys([*named, *self.names])) if options.others or not named else named
        if not names:
            raise DataError(f"{NAME}: expected columns, got none")
        columns = {name: self.column(name) for name in names}
        word, numbers = self.kind.places(self.data)
        for number, cells in zip(numbers, zip(*columns.values(), strict=True), strict=True):
            place, fields = Place(word, int(number)), dict(zip(names, cells, strict=True))
            faults = _faults(fields, named)
            for k, fault in enumerate(faults):
                on_bad_row(Problem(place, fault, rejects=int(k == 0)))
            if not faults:
                yield Row(place, fields)

    # ------------------------------------------------------------- answers
    def with_columns(self, columns: Mapping[str, Sequence[Any]]) -> Any:
        """A copy with more columns; one whose name is taken is called predicted_…."""
        taken, added = {*self.names}, dict[str, Sequence[Any]]()
        for name, values in columns.items():
            free = untaken(name, taken)
            taken.add(free)
            added[free] = values
        return self.kind.with_columns(self.data, added)

    def new(self, columns: Mapping[str, Sequence[Any]], like: Sequence[str] = ()) -> Any:
        """Another frame of the same library. like: columns of texts that become values such as
        this frame has under that name."""
        return self.kind.new(self.data, columns, [name for name in like if name in columns])


def untaken(name: str, taken: Collection[str]) -> str:
    """The name, or predicted_… where a column has it.

    >>> untaken("label", ["text", "label"])
    'predicted_label'
    """
    free, number = name if name not in taken else f"{PREDICTED}_{name}", 2
    while free in taken:
        free, number = f"{PREDICTED}_{name}_{number}", number + 1
    return free


def _faults(fields: dict[str, Any], named: Collection[str]) -> list[str]:
    """What is wrong with the values of the columns that are named. Sound values are replaced by
    what a row holds."""
    found = []
    for name, value in fields.items():
        if value is None or isinstance(value, np.ndarray):
            continue
        try:
            fields[name] = kind_of_value(value)[1]
        except Unfit as unfit:
            if name in named:
                found.append(f"column {name!r}: {unfit}")
    return found
