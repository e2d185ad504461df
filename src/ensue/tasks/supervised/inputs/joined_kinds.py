"""The kinds of several inputs: their settings, how they are read from columns and collected."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ensue.data.pictures.images import checked, picture_of
from ensue.data.rows import Place, Row
from ensue.data.tokenise import Tokeniser
from ensue.data.trees.tree import read_tree
from ensue.data.values import Unfit
from ensue.errors import DataError
from ensue.settings import OFF, Size, Table
from ensue.tasks.columns.cells import BETWEEN, cells_of
from ensue.tasks.pictures.part import PictureCollector
from ensue.tasks.rows.collect import (
    Collector,
    Example,
    sequence,
    value_text,
    written,
)
from ensue.tasks.rows.part import Numbers, Tokenisers
from ensue.tasks.rows.reader import AUTO, level_of, tokeniser_of
from ensue.tasks.settings import LinearSettings, SequenceSettings, TextSettings
from ensue.tasks.supervised.input import Input
from ensue.tasks.supervised.inputs.columns import AT_ONCE as ROWS_AT_ONCE
from ensue.tasks.supervised.inputs.columns import CELLS, Columns, ColumnsReaderSettings
from ensue.tasks.supervised.inputs.joined_learned import (
    InputView,
)
from ensue.tasks.supervised.inputs.picture import AT_ONCE as PICTURES_AT_ONCE
from ensue.tasks.supervised.inputs.picture import Picture, PictureReaderSettings
from ensue.tasks.supervised.inputs.text import PooledSettings, Text
from ensue.tasks.supervised.inputs.tree import Tree
from ensue.tasks.supervised.inputs.tree_network import TreeReaderSettings
from ensue.tasks.trees.content import tokens_of, tree_of

TEXT_KEYS = tuple(TextSettings.model_fields)
SPACES = Tokenisers(Tokeniser("spaces"))  # for trees: brackets are tokens already


# --- settings ------------------------------------------------------------------------------------


class TextTable(PooledSettings, SequenceSettings, TextSettings):
    """One text among several inputs: its tokens and its network."""

    kind: Literal["text"] = Field("text", description="Kind of the input.")


class TextViewSettings(TextTable, LinearSettings):
    """`TextTable` with the settings of the linear model of all inputs."""


class ColumnsTable(ColumnsReaderSettings):
    """The columns among several inputs: how they are read, and their layers."""

    kind: Literal["columns"] = Field("columns", description="Kind of the input.")


class PictureTable(PictureReaderSettings):
    """The picture among several inputs: its convolutions, and the layers on top of them."""

    kind: Literal["picture"] = Field("picture", description="Kind of the input.")


class TreeTable(TreeReaderSettings):
    """The tree among several inputs: its words, and the cell that goes up the tree."""

    kind: Literal["tree"] = Field("tree", description="Kind of the input.")
    lower: bool = Field(False, description="Convert texts to lower case.")
    min_count: Size = Field(
        1, description="Minimum count of a word in the training part; rarer words are unknown."
    )
    max_words: Annotated[Size | None, OFF] = Field(
        None, description="Maximum size of the vocabulary, by frequency; off: no limit."
    )


# --- kinds ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PictureFile:
    """A picture by the name of its file, or as an array; pixels: None until it is read."""

    name: str
    pixels: NDArray[np.uint8] | None = None


class Kind(ABC):
    """A kind of input among several, and how it is read from its columns.

    role: its option on the command line; at_once: rows of an answer batch, None if limited by
    steps; shared: keys of [text] and [model] that it takes over unless its own table sets them."""

    table: ClassVar[type[Table]]
    role: ClassVar[str]
    defaults: ClassVar[Mapping[str, Any]] = {}
    input: Input
    at_once: ClassVar[int | None] = None
    shared: ClassVar[Sequence[str]] = ()

    @abstractmethod
    def value(self, row: Row, columns: Sequence[str]) -> Any:
        """The value of a row; raises `Unfit` if it is missing."""

    @abstractmethod
    def as_text(self, value: Any) -> str:
        """The text whose hash decides the part of a row."""

    @abstractmethod
    def as_fields(self, value: Any, columns: Sequence[str]) -> Mapping[str, Any]:
        """The value by column, as shown next to an answer."""

    @abstractmethod
    def collector(
        self, values: Callable[[], Iterable[Any]], numbers: Numbers, view: InputView, like: Any
    ) -> Any:
        """A collector for the examples of this input. values: the values of all rows, for learning
        tokenisers; like: an earlier part of this input, whose tokenisers and shape are used."""

    def looked_up(self, value: Any, place: Place, columns: Sequence[str], in_files: bool) -> Any:
        """The resolved value, such as a picture for its file name. in_files: whether the row comes
        from a file."""
        return value

    def settings(self, table: Any, linear: str) -> Table:
        """The settings that the input reads as its [model]."""
        parsed: Table = table
        return parsed

    def text(self, table: Any) -> TextSettings:
        return TextSettings.of({}, "text")


def _field(row: Row, columns: Sequence[str]) -> Any:
    if columns[0] not in row.fields:
        raise Unfit("expected a column of this name, got none")
    return row.fields[columns[0]]


class TextKind(Kind):
    """A text, tokens, or vectors."""

    table = TextTable
    role = "text"
    defaults: ClassVar[Mapping[str, Any]] = {"max_length": 20_000, "level": AUTO}
    shared = tuple(TextTable.model_fields)
    input = Text()

    def value(self, row: Row, columns: Sequence[str]) -> Any:
        return sequence(_field(row, columns))

    def as_text(self, value: Any) -> str:
        return written(value)

    def as_fields(self, value: Any, columns: Sequence[str]) -> Mapping[str, Any]:
        return {columns[0]: value}

    def collector(
        self, values: Callable[[], Iterable[Any]], numbers: Numbers, view: InputView, like: Any
    ) -> Collector:
        if view.fitted:
            return Collector(numbers, view.learned.tokenisers)
        if like is not None:
            return Collector(numbers, like.tokenisers)
        text = view.text
        if text.level == AUTO:
            text = text.model_copy(update={"level": level_of(values()).name})
        return Collector(numbers, Tokenisers(tokeniser_of(text, values())))

    def settings(self, table: Any, linear: str) -> Table:
        return TextViewSettings.of({**table.table(), "linear": linear}, "inputs")

    def text(self, table: Any) -> TextSettings:
        return TextSettings.of({key: getattr(table, key) for key in TEXT_KEYS}, "text")


class ColumnsKind(Kind):
    """Numbers and categories."""

    table = ColumnsTable
    role = "columns"
    shared = ("numeric", "categorical")
    input = Columns()
    at_once = ROWS_AT_ONCE

    def value(self, row: Row, columns: Sequence[str]) -> list[str]:
        if missing := [name for name in columns if name not in row.fields]:
            raise Unfit(f"expected a column {missing[0]!r}, got none")
        try:
            return cells_of({name: row.fields[name] for name in columns}, "")
        except DataError as error:
            raise Unfit(str(error).removeprefix(": ")) from None

    def as_text(self, value: Any) -> str:
        return "\n".join(value)

    def as_fields(self, value: Any, columns: Sequence[str]) -> Mapping[str, Any]:
        return {cell.partition(BETWEEN)[0]: cell.partition(BETWEEN)[2] for cell in value}

    def collector(
        self, values: Callable[[], Iterable[Any]], numbers: Numbers, view: InputView, like: Any
    ) -> Collector:
        return Collector(numbers, CELLS)


class PictureKind(Kind):
    """A picture, by the name of its file."""

    table = PictureTable
    role = "image"
    input = Picture()
    at_once = PICTURES_AT_ONCE

    def value(self, row: Row, columns: Sequence[str]) -> PictureFile:
        field = _field(row, columns)
        if isinstance(field, np.ndarray):
            return PictureFile("", checked(field, columns[0]))
        if not isinstance(field, str | Path) or not str(field).strip():
            raise Unfit(f"expected the name of a picture's file, got {value_text(field)}")
        return PictureFile(str(field).strip())

    def as_text(self, value: PictureFile) -> str:
        return value.name if value.pixels is None else value.pixels.tobytes().hex()

    def as_fields(self, value: PictureFile, columns: Sequence[str]) -> Mapping[str, Any]:
        return {columns[0]: value.name or value.pixels}

    def looked_up(
        self, value: PictureFile, place: Place, columns: Sequence[str], in_files: bool
    ) -> PictureFile:
        if value.pixels is not None:
            return value
        path = picture_path(value.name, place) if in_files else Path(value.name)
        try:
            return PictureFile(str(path), picture_of(path))
        except (DataError, Unfit) as error:
            message = str(error)
            raise Unfit(message if str(path) in message else f"{path}: {message}") from None

    def collector(
        self, values: Callable[[], Iterable[Any]], numbers: Numbers, view: InputView, like: Any
    ) -> _Pictures:
        shape = None if like is None else like.shape
        if view.fitted:
            shape = view.learned.input.shape
        return _Pictures(PictureCollector(view.settings, numbers, shape))  # type: ignore[arg-type]


def picture_path(name: str, place: Place) -> Path:
    """The path of a picture named in a row, inside the folder of the row's file."""
    folder = Path(place.file).parent
    path = folder / name
    plain = not Path(name).is_absolute() and ".." not in Path(name).parts
    if not plain or not path.resolve().is_relative_to(folder.resolve()):
        raise Unfit(
            f"expected the name of a picture inside {folder}, got {name!r}, which is outside"
        )
    return path


@dataclass(frozen=True)
class _Pictures:
    """Collects pictures that are already read."""

    inner: PictureCollector

    def add(self, example: Example) -> None:
        self.inner.add(example._replace(value=example.value.pixels))

    def done(self) -> Any:
        return self.inner.done()


class TreeKind(Kind):
    """A tree in brackets, whose inner labels are inputs."""

    table = TreeTable
    role = "tree"
    input = Tree()

    def value(self, row: Row, columns: Sequence[str]) -> list[str]:
        field = _field(row, columns)
        if not isinstance(field, str):
            raise Unfit(f"expected a tree in brackets, (…), got {value_text(field)}")
        return tokens_of(read_tree(field), True)

    def as_text(self, value: Any) -> str:
        return " ".join(value)

    def as_fields(self, value: Any, columns: Sequence[str]) -> Mapping[str, Any]:
        return {columns[0]: tree_of(value).as_text()}

    def collector(
        self, values: Callable[[], Iterable[Any]], numbers: Numbers, view: InputView, like: Any
    ) -> Collector:
        return Collector(numbers, SPACES)

    def text(self, table: Any) -> TextSettings:
        values = {key: getattr(table, key) for key in ("lower", "min_count", "max_words")}
        return TextSettings.of({"level": "spaces", **values}, "text")


KINDS: Mapping[str, Kind] = {
    "text": TextKind(),
    "columns": ColumnsKind(),
    "picture": PictureKind(),
    "tree": TreeKind(),
}
