"""Libraries of data frames, each a row of `KINDS`. None is imported before one of its frames is
there: they are known by the names of their types."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

from ensue.data.frames.values import values_like
from ensue.errors import MissingExtra, OptionError

Columns = Mapping[str, Sequence[Any]]


class Places(NamedTuple):
    """How the rows of a frame are named in messages: word:number."""

    word: str
    numbers: Sequence[int]


def is_a(data: object, library: str, name: str) -> bool:
    """Whether a value is of a library's type, or of one that inherits from it."""
    return any(
        own.__name__ == name and own.__module__.partition(".")[0] == library
        for own in type(data).__mro__
    )


class FrameKind(ABC):
    """The frames of one library."""

    library: ClassVar[str]
    type_name: ClassVar[str]

    def is_one(self, data: object) -> bool:
        return is_a(data, self.library, self.type_name)

    def opened(self, data: Any) -> Any:
        """What the other methods take."""
        return data

    @abstractmethod
    def names(self, frame: Any) -> list[str]:
        """Those of the columns."""

    @abstractmethod
    def values(self, frame: Any, name: str) -> list[Any]:
        """A column as Python values."""

    @abstractmethod
    def with_columns(self, frame: Any, columns: Columns) -> Any:
        """The frame with more columns, whose names it does not have."""

    @abstractmethod
    def new(self, frame: Any, columns: Columns, like: Collection[str]) -> Any:
        """Another frame of this kind. like: the columns of texts that become values such as the
        frame has under that name."""

    def places(self, frame: Any) -> Places:
        return Places("index", range(len(frame)))

    def time_index(self, frame: Any) -> str:
        """The name of an index of times, which counts as a column; "" where there is none."""
        return ""


class Pandas(FrameKind):
    library, type_name = "pandas", "DataFrame"

    def names(self, frame: Any) -> list[str]:
        return [str(name) for name in frame.columns]

    def values(self, frame: Any, name: str) -> list[Any]:
        names = self.names(frame)
        found: list[Any] = (
            frame.iloc[:, names.index(name)] if name in names else frame.index
        ).tolist()
        return found

    def with_columns(self, frame: Any, columns: Columns) -> Any:
        return frame.assign(**columns)

    def new(self, frame: Any, columns: Columns, like: Collection[str]) -> Any:
        found = import_module("pandas").DataFrame(dict(columns))
        for name in like:
            there = name in self.names(frame)
            column = frame[name] if there else frame.index
            found[name] = values_like(columns[name], column.tolist())
            found[name] = found[name].astype(column.dtype)
            if not there:
                found = found.set_index(name).rename_axis(frame.index.name)
        return found

    def places(self, frame: Any) -> Places:
        """By the index where it has whole numbers, else by position."""
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
        found: list[Any] = frame.get_column(name).to_list()
        return found

    def with_columns(self, frame: Any, columns: Columns) -> Any:
        polars = import_module("polars")
        return frame.with_columns([polars.Series(name, own) for name, own in columns.items()])

    def new(self, frame: Any, columns: Columns, like: Collection[str]) -> Any:
        polars = import_module("polars")
        return polars.DataFrame(
            [
                polars.Series(name, values_like(own, self.values(frame, name)), frame.schema[name])
                if name in like
                else polars.Series(name, own)
                for name, own in columns.items()
            ]
        )


class ArrowTable(FrameKind):
    library, type_name = "pyarrow", "Table"

    def names(self, frame: Any) -> list[str]:
        return list(frame.column_names)

    def values(self, frame: Any, name: str) -> list[Any]:
        found: list[Any] = frame.column(name).to_pylist()
        return found

    def with_columns(self, frame: Any, columns: Columns) -> Any:
        array = import_module("pyarrow").array
        for name, own in columns.items():
            frame = frame.append_column(name, array(own))
        return frame

    def new(self, frame: Any, columns: Columns, like: Collection[str]) -> Any:
        arrow = import_module("pyarrow")
        return arrow.table(
            {
                name: arrow.array(
                    values_like(own, self.values(frame, name)), frame.schema.field(name).type
                )
                if name in like
                else arrow.array(own)
                for name, own in columns.items()
            }
        )


class HuggingFace(FrameKind):
    """Data sets of the library `datasets`. Numbers that stand for classes are read as the names of
    these."""

    library, type_name = "datasets", "Dataset"

    def names(self, frame: Any) -> list[str]:
        return list(frame.column_names)

    def values(self, frame: Any, name: str) -> list[Any]:
        feature = frame.features[name]
        found: list[Any] = frame.with_format(None)[name][:]
        classes = getattr(feature, "names", None) or getattr(
            getattr(feature, "feature", None), "names", None
        )
        return _class_names(found, classes) if classes else found

    def with_columns(self, frame: Any, columns: Columns) -> Any:
        for name, own in columns.items():
            frame = frame.add_column(name, list(own))
        return frame

    def new(self, frame: Any, columns: Columns, like: Collection[str]) -> Any:
        return import_module("datasets").Dataset.from_dict(
            {
                name: values_like(own, self.values(frame, name)) if name in like else list(own)
                for name, own in columns.items()
            }
        )


def _class_names(value: Any, classes: Sequence[str]) -> Any:
    """The name of a class, or of each in a list; None for −1, which stands for no class."""
    if isinstance(value, list):
        return [_class_names(own, classes) for own in value]
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

# What looks like a frame, or holds several, and what to give instead.
REFUSED = {
    ("polars", "LazyFrame"): "nothing of it is computed yet; give frame.collect()",
    ("datasets", "DatasetDict"): 'it holds several data sets; give one, such as data["train"]',
    ("datasets", "IterableDataset"): "it can be gone through only; give a Dataset, or a list of "
    "pairs (input, label)",
}


def kind_of(data: object) -> FrameKind | None:
    """The library that a data frame is of; None for what is no frame."""
    for (library, name), reason in REFUSED.items():
        if is_a(data, library, name):
            raise OptionError(f"{library} {name}: {reason}")
    found = next((kind for kind in KINDS if kind.is_one(data)), None)
    if found is None and hasattr(data, "columns") and hasattr(data, "__getitem__"):
        raise OptionError(
            f"{type(data).__module__.partition('.')[0]} {type(data).__name__}: this kind of data "
            "frame is not known; give one of pandas or polars, an Arrow table, or rows in a list"
        )
    return found
