"""`Frame`: a data frame of any library, read like the rows of a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import partial
from importlib import import_module
from math import isnan
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ensue.data.options import ReadOptions, faults_of_names, needed_columns, require
from ensue.data.read import shaped
from ensue.data.rows import Place, Problem, ProblemCallback, Row
from ensue.data.values import Unfit
from ensue.data.values import kind_of as kind_of_value
from ensue.errors import DataError, MissingExtra, OptionError

MISSING = ("NAType", "NaTType")  # types of pandas' missing values
MIDNIGHT = time()
NUMBERS = "biuf"  # kinds of arrays that are vectors


def plain_values(values: Sequence[Any]) -> list[Any]:
    """The values of a column: texts, numbers, lists, arrays of numbers; None for missing values
    and NaN. Dates and times become texts.

    >>> plain_values([date(2024, 5, 1), None]), plain_values([1.5, float("nan")])
    (['2024-05-01', None], [1.5, None])
    """
    moments = [value for value in values if _is_moment(value)]
    if moments:
        write = _writer(moments)
        return [write(value) if _is_moment(value) else _plain(value) for value in values]
    return [_plain(value) for value in values]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return None if isnan(value) else value
    if type(value).__name__ in MISSING:
        return None
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, np.ndarray):
        return value if value.dtype.kind in NUMBERS else _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Decimal):
        return _plain(float(value))
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value) if type(value).__name__ == "Period" else value


# --- times ---------------------------------------------------------------------------------


def _is_moment(value: Any) -> bool:
    return isinstance(value, datetime) and type(value).__name__ not in MISSING


def _writer(moments: Sequence[datetime]) -> Callable[[datetime], str]:
    """A function that writes the moments of a column, as days if all are at midnight. With a time
    zone, moments at the same hour of the local clock (days, weeks, months) are written in local
    time, others in UTC, so that steps stay even when clocks change."""
    hours = {moment.time() for moment in moments}
    if hours == {MIDNIGHT}:
        return lambda moment: moment.date().isoformat()
    if len(hours) == 1 or moments[0].tzinfo is None:
        return lambda moment: moment.replace(tzinfo=None).isoformat(" ")
    return lambda moment: moment.astimezone(UTC).replace(tzinfo=None).isoformat(" ")


def values_like(texts: Sequence[str], column: Sequence[Any]) -> list[Any]:
    """Converts texts to the type of a column's values: the inverse of `plain_values` for numbers
    and times.

    >>> values_like(["2024-05-02"], [date(2024, 5, 1)]), values_like(["1961"], [1960])
    ([datetime.date(2024, 5, 2)], [1961])
    """
    known = [value for value in column if value is not None]
    if not known:
        return list(texts)
    first: Any = known[0]
    if _is_moment(first):
        return [_moment(text, known) for text in texts]
    kind = type(first.item() if isinstance(first, np.generic) else first)
    read = getattr(kind, "fromisoformat", kind if kind in (int, float) else str)
    return [read(text) for text in texts]


def _moment(text: str, known: Sequence[datetime]) -> datetime:
    first = known[0]
    parsed = type(first).fromisoformat(text)
    if first.tzinfo is None:
        return parsed
    if len({moment.time() for moment in known if _is_moment(moment)}) == 1:
        return parsed.replace(tzinfo=first.tzinfo)
    return parsed.replace(tzinfo=UTC).astimezone(first.tzinfo)


TYPES: dict[str, Callable[[str], Any]] = {
    "bool": lambda text: text == "true",
    "int": int,
    "float": float,
}


def type_of(values: Sequence[Any]) -> str:
    """The row of `TYPES` that all values of a column belong to; "" for texts and for mixed ones."""
    types = {type(value).__name__ for value in values if value is not None}
    return types.pop() if len(types) == 1 and types <= {*TYPES} else ""


Columns = Mapping[str, Sequence[Any]]


class Places(NamedTuple):
    """The names of a frame's rows in messages: word:number."""

    word: str
    numbers: Sequence[int]


def is_a(data: object, library: str, name: str) -> bool:
    """Whether a value is of a library's type, or of one that inherits from it."""
    return any(
        base.__name__ == name and base.__module__.partition(".")[0] == library
        for base in type(data).__mro__
    )


class FrameKind(ABC):
    """The frames of one library."""

    library: ClassVar[str]
    type_name: ClassVar[str]

    def is_one(self, data: object) -> bool:
        return is_a(data, self.library, self.type_name)

    def opened(self, data: Any) -> Any:
        """The data in the form that the other methods take."""
        return data

    @abstractmethod
    def names(self, frame: Any) -> list[str]:
        """The names of the columns."""

    @abstractmethod
    def values(self, frame: Any, name: str) -> list[Any]:
        """A column as Python values."""

    @abstractmethod
    def with_columns(self, frame: Any, columns: Columns) -> Any:
        """The frame with more columns, whose names it does not have."""

    @abstractmethod
    def new(self, frame: Any, columns: Columns, like: Collection[str]) -> Any:
        """Another frame of this kind. like: the columns of texts to convert to the types of the
        frame's columns, by name."""

    def places(self, frame: Any) -> Places:
        return Places("index", range(len(frame)))

    def time_index(self, frame: Any) -> str:
        """The name of an index of times, which counts as a column; "" if there is none."""
        return ""


class Pandas(FrameKind):
    library, type_name = "pandas", "DataFrame"

    def names(self, frame: Any) -> list[str]:
        return [str(name) for name in frame.columns]

    def values(self, frame: Any, name: str) -> list[Any]:
        names = self.names(frame)
        columns: list[Any] = (
            frame.iloc[:, names.index(name)] if name in names else frame.index
        ).tolist()
        return columns

    def with_columns(self, frame: Any, columns: Columns) -> Any:
        return frame.assign(**columns)

    def new(self, frame: Any, columns: Columns, like: Collection[str]) -> Any:
        table = import_module("pandas").DataFrame(dict(columns))
        for name in like:
            exists = name in self.names(frame)
            column = frame[name] if exists else frame.index
            table[name] = values_like(columns[name], column.tolist())
            table[name] = table[name].astype(column.dtype)
            if not exists:
                table = table.set_index(name).rename_axis(frame.index.name)
        return table

    def places(self, frame: Any) -> Places:
        """Places of the rows: the index if it has integers, else positions."""
        if frame.index.dtype.kind in "iu":
            return Places("index", frame.index.tolist())
        return Places("iloc", range(len(frame)))

    def time_index(self, frame: Any) -> str:
        if not any(is_a(frame.index, "pandas", f"{kind}Index") for kind in ("Datetime", "Period")):
            return ""
        return str(frame.index.name or "index")


class Polars(FrameKind):
    library, type_name = "polars", "DataFrame"

    def names(self, frame: Any) -> list[str]:
        return list(frame.columns)

    def values(self, frame: Any, name: str) -> list[Any]:
        listed: list[Any] = frame.get_column(name).to_list()
        return listed

    def with_columns(self, frame: Any, columns: Columns) -> Any:
        polars = import_module("polars")
        return frame.with_columns([polars.Series(name, column) for name, column in columns.items()])

    def new(self, frame: Any, columns: Columns, like: Collection[str]) -> Any:
        polars = import_module("polars")
        return polars.DataFrame(
            [
                polars.Series(
                    name, values_like(column, self.values(frame, name)), frame.schema[name]
                )
                if name in like
                else polars.Series(name, column)
                for name, column in columns.items()
            ]
        )


class ArrowTable(FrameKind):
    library, type_name = "pyarrow", "Table"

    def names(self, frame: Any) -> list[str]:
        return list(frame.column_names)

    def values(self, frame: Any, name: str) -> list[Any]:
        listed: list[Any] = frame.column(name).to_pylist()
        return listed

    def with_columns(self, frame: Any, columns: Columns) -> Any:
        array = import_module("pyarrow").array
        for name, column in columns.items():
            frame = frame.append_column(name, array(column))
        return frame

    def new(self, frame: Any, columns: Columns, like: Collection[str]) -> Any:
        arrow = import_module("pyarrow")
        return arrow.table(
            {
                name: arrow.array(
                    values_like(column, self.values(frame, name)), frame.schema.field(name).type
                )
                if name in like
                else arrow.array(column)
                for name, column in columns.items()
            }
        )


class HuggingFace(FrameKind):
    """Data sets of the library `datasets`. Class numbers are read as class names."""

    library, type_name = "datasets", "Dataset"

    def names(self, frame: Any) -> list[str]:
        return list(frame.column_names)

    def values(self, frame: Any, name: str) -> list[Any]:
        feature = frame.features[name]
        listed: list[Any] = frame.with_format(None)[name][:]
        classes = getattr(feature, "names", None) or getattr(
            getattr(feature, "feature", None), "names", None
        )
        return _class_names(listed, classes) if classes else listed

    def with_columns(self, frame: Any, columns: Columns) -> Any:
        for name, column in columns.items():
            frame = frame.add_column(name, list(column))
        return frame

    def new(self, frame: Any, columns: Columns, like: Collection[str]) -> Any:
        return import_module("datasets").Dataset.from_dict(
            {
                name: values_like(column, self.values(frame, name))
                if name in like
                else list(column)
                for name, column in columns.items()
            }
        )


def _class_names(value: Any, classes: Sequence[str]) -> Any:
    """The name of a class, or of each in a list; None for −1, which means no class."""
    if isinstance(value, list):
        return [_class_names(item, classes) for item in value]
    return None if value is None or value < 0 else classes[value]


class ArrowStream(ArrowTable):
    """Any other frame that can be read as Arrow; answers come as a table of pyarrow."""

    def is_one(self, data: object) -> bool:
        if not hasattr(data, "__arrow_c_stream__"):
            return False
        return any(hasattr(data, word) for word in ("columns", "column_names", "schema"))

    def opened(self, data: Any) -> Any:
        try:
            return import_module("pyarrow").table(data)
        except ImportError:
            kind = f"{type(data).__module__.partition('.')[0]} {type(data).__name__}"
            raise MissingExtra(
                f"{kind}: reading it needs pyarrow: pip install 'ensue[parquet]'"
            ) from None


KINDS: tuple[FrameKind, ...] = (Pandas(), Polars(), ArrowTable(), HuggingFace(), ArrowStream())

# Types that look like a frame or contain several, with the advice on what to pass instead.
REFUSED = {
    ("polars", "LazyFrame"): "its rows are not computed yet; pass frame.collect()",
    ("datasets", "DatasetDict"): 'it holds several data sets; give one, such as data["train"]',
    ("datasets", "IterableDataset"): "it can only be iterated over; give a Dataset, or a list of "
    "pairs (input, label)",
}


def kind_of(data: object) -> FrameKind | None:
    """The library of a data frame; None for other data."""
    for (library, name), reason in REFUSED.items():
        if is_a(data, library, name):
            raise OptionError(f"{library} {name}: {reason}")
    matching = next((kind for kind in KINDS if kind.is_one(data)), None)
    if matching is None and hasattr(data, "columns") and hasattr(data, "__getitem__"):
        raise OptionError(
            f"{type(data).__module__.partition('.')[0]} {type(data).__name__}: unsupported kind of "
            "data frame; pass a pandas or polars frame, an Arrow table, or a list of rows"
        )
    return matching


NAME = "the data frame"  # in messages
PREDICTED = "predicted"  # prefix of an answer's name if the frame has a column of that name


@dataclass(frozen=True)
class Frame:
    """A data frame. data: the frame in its library's own type."""

    data: Any
    kind: FrameKind

    @classmethod
    def of(cls, data: Any) -> Frame | None:
        """The frame, or None for other data."""
        kind = kind_of(data)
        if kind is None:
            return None
        opened = cls(kind.opened(data), kind)
        if faults := faults_of_names(opened.names):
            raise DataError(f"{NAME}: its columns cannot be told apart: {'; '.join(faults)}")
        return opened

    def __len__(self) -> int:
        return len(self.kind.places(self.data).numbers)

    @property
    def names(self) -> list[str]:
        return self.kind.names(self.data)

    @property
    def time_index(self) -> str:
        """The name of an index of times, which is read like a column; "" if there is none."""
        return self.kind.time_index(self.data)

    def column(self, name: str) -> list[Any]:
        """Texts, numbers, lists or arrays; None for missing values."""
        index = {self.time_index} - {""}
        require([name], [*self.names, *sorted(index)], NAME)
        return plain_values(self.kind.values(self.data, name))

    def type_of(self, name: str) -> str:
        """bool, int or float if all values of a column have this type; else ""."""
        return type_of(self.column(name))

    def read(self, path: str, options: ReadOptions, on_bad_row: ProblemCallback) -> Iterator[Row]:
        """The rows of the frame, in the form of a file's reader."""
        return shaped(partial(self._rows, options), options, on_bad_row)

    def _rows(self, options: ReadOptions, on_bad_row: ProblemCallback) -> Iterator[Row]:
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
        names, added = {*self.names}, dict[str, Sequence[Any]]()
        for name, values in columns.items():
            free = untaken(name, names)
            names.add(free)
            added[free] = values
        return self.kind.with_columns(self.data, added)

    def new(self, columns: Mapping[str, Sequence[Any]], like: Sequence[str] = ()) -> Any:
        """Another frame of the same library. like: columns of texts to convert to the types of this
        frame's columns, by name."""
        return self.kind.new(self.data, columns, [name for name in like if name in columns])


def untaken(name: str, names: Collection[str]) -> str:
    """The name, or predicted_… if a column has it.

    >>> untaken("label", ["text", "label"])
    'predicted_label'
    """
    free, number = name if name not in names else f"{PREDICTED}_{name}", 2
    while free in names:
        free, number = f"{PREDICTED}_{name}_{number}", number + 1
    return free


def _faults(fields: dict[str, Any], named: Collection[str]) -> list[str]:
    """The faults of values in the named columns. Valid values are converted to the form of a
    row."""
    faults = []
    for name, value in fields.items():
        if value is None or isinstance(value, np.ndarray):
            continue
        try:
            fields[name] = kind_of_value(value)[1]
        except Unfit as unfit:
            if name in named:
                faults.append(f"column {name!r}: {unfit}")
    return faults
