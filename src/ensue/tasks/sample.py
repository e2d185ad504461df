"""The input of task recognition: the given files, their first rows, and the given options."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ensue.data.formats import format_named
from ensue.data.frames.origin import FILES, Origin
from ensue.data.options import ReadOptions
from ensue.data.parallel import parallel
from ensue.data.pictures.endings import is_image
from ensue.data.read import Gathered
from ensue.data.recognise.columns import (
    LONG,
    NEARLY_ALL,
    VALUES,
    Column,
    Kind,
    column_of,
    is_identifier_name,
    unnamed_columns,
)
from ensue.data.recognise.format import format_of
from ensue.data.recognise.marked_numbers import decimal_of, mark_of, plain_number
from ensue.data.roles import (
    TEXTS,
    Roles,
    columns_of,
    guess_roles,
    header_hint,
    header_is_data,
)
from ensue.data.rows import Place, Row
from ensue.data.series import between_thousands, decimal_comma, is_number
from ensue.data.settings import DataSettings
from ensue.errors import DataError

LOOKED_AT = 200  # rows
LOOKED_THROUGH = 100_000  # rows of a file, which may be sorted
MOST_CLASSES = 50  # maximum number of classes that are numbers
FEW_CLASSES = 20  # maximum number of different integers that are read as classes
FEW_DECIMALS = 10  # numbers with decimals that may be classes: 1, 1.5, 2, …
CLASS_DIGITS = 2  # maximum decimals of numbers that may be classes
CAPTION = "caption"  # name of a column that alone determines the task
FEWEST_BESIDE = 2  # minimum of other columns, next to a short text, for a table


class NumberKind(Enum):
    """The kinds of numbers in a label column."""

    CLASSES, QUANTITY, EITHER = "classes", "a number", "either"


@dataclass(frozen=True)
class Guess:
    """One reading of the data. why: the reason, for the user; data: inferred keys of [data];
    tables: keys of other tables; sure: whether nothing else is as plausible; others: equally
    plausible readings by the same task, among which the user must choose."""

    why: str
    data: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    sure: bool = True
    others: tuple[Guess, ...] = ()

    @property
    def readings(self) -> tuple[Guess, ...]:
        return (self, *self.others)


@dataclass(frozen=True)
class Sample:
    """The first rows of a file, with what the user gave. data: the given keys of [data]; settings:
    the other given tables; origin: what the rows are read from; notes: remarks on the file for the
    user."""

    data: DataSettings
    settings: Mapping[str, Any] = field(default_factory=dict)
    origin: Origin = FILES
    notes: tuple[str, ...] = ()

    @cached_property
    def rows(self) -> list[Row]:
        """The first valid rows, with all columns."""
        if isinstance(self._rows_or_error, DataError):
            raise self._rows_or_error
        return self._rows_or_error

    @property
    def has_rows(self) -> bool:
        """Whether there are readable rows."""
        return not isinstance(self._rows_or_error, DataError)

    @cached_property
    def _rows_or_error(self) -> list[Row] | DataError:
        """The rows, read once, even if there are no rows."""
        data = self.data
        named = [
            *data.texts,
            data.image,
            data.tree,
            data.second,
            data.label,
            data.group,
            data.sequence,
            *data.features,
        ]
        used = tuple(name for name in named if name)
        plain = dict.fromkeys(("text", "image", "tree", "second", "label", "group", "sequence"), "")
        alone = data.model_copy(update={**plain, "features": [], "columns": []})
        options = alone.read_options(others=True)
        options = replace(options, used=used)
        try:
            rows = first_rows(self.data.train, options, LOOKED_AT, self.origin)
        except DataError as problem:
            return problem
        return self._decimal_commas(rows) or rows

    def _decimal_commas(self, rows: Sequence[Row]) -> DataError | None:
        """Raises an error if columns have numbers with a decimal comma and no setting decides how
        to read them: as texts, each number would be a class or a category."""
        data = self.data
        if "decimal" in data.model_fields_set or data.separator == ",":
            return None
        texts = {*data.texts, data.second}
        columns = {
            name: value
            for name in columns_of(rows)
            if name not in texts
            and (value := decimal_comma(row.fields.get(name) for row in rows)) is not None
        }
        if not columns:
            return None
        listed = ", ".join(f"{name} ({value!r})" for name, value in columns.items())
        lines = [f"{rows[0].place}: {listed}: these look like numbers with a decimal comma"]
        if self.origin is FILES:
            lines.append("read them with --decimal , (if they are not numbers: --decimal .)")
        else:
            lines.append("write them with a point")
        if any(map(between_thousands, columns.values())):
            lines.append("where the commas stand between thousands, take them out")
        return DataError("; ".join(lines))

    def recognised_by(
        self, recognise: Callable[[Sample], Guess | DataError | None]
    ) -> Guess | DataError | None:
        """A task's reading of the data. None if the task needs rows and there are none: they may be
        pictures, which another task recognises."""
        try:
            return recognise(self)
        except DataError as problem:
            if problem is not vars(self).get("_rows_or_error"):
                raise
            return None

    @property
    def place(self) -> Place | str:
        """The beginning of a message about the columns."""
        return self.rows[0].place if self.origin.files else self.data.train[0]

    def word(self, role: str) -> str:
        """The option that names the column of a role: --label, or label=."""
        return self.origin.word(role)

    @property
    def columns(self) -> list[str]:
        return columns_of(self.rows)

    @cached_property
    def kinds(self) -> dict[str, Column]:
        """The kind of each column, by name."""
        return {name: column_of(self.rows, name) for name in self.columns}

    def values(self, column: str) -> list[Any]:
        return [row.fields.get(column) for row in self.rows]

    def numeric(self, column: str) -> bool:
        """Whether every value is a number."""
        return all(map(is_number, self.values(column)))

    def number_kind(self, column: str) -> NumberKind:
        """The kind of numbers in a target column: a few integers are classes; numbers that rarely
        repeat or have many decimals are a quantity."""
        kind = self.kinds[column]
        if not all(is_number(value) for value in self.values(column)):
            return NumberKind.CLASSES
        if kind.different > max(MOST_CLASSES, len(self.rows) // 2):
            return NumberKind.QUANTITY
        if kind.whole:
            return NumberKind.CLASSES if kind.different <= FEW_CLASSES else NumberKind.EITHER
        digits = max(len(str(value).partition(".")[2]) for value in self.values(column))
        many = kind.different > FEW_DECIMALS or digits > CLASS_DIGITS
        return NumberKind.QUANTITY if many else NumberKind.EITHER

    @cached_property
    def roles(self) -> Roles:
        """The text and the label, named or inferred. If one is unknown and the first line of the
        file may be a row, the error says so."""
        try:
            return guess_roles(self.rows, self.data.text_column or None, self.data.label or None)
        except DataError as error:
            raise DataError("\n".join([str(error), *self.header_lines()])) from None

    def table_instead(self, text: str) -> bool:
        """Whether a text column that no option names may be one column of a table among others: it
        is short, and there are several other columns to learn from."""
        column = self.kinds.get(text)
        if self.data.text_column or self.data.sequence or column is None or text in TEXTS:
            return False
        if column.kind not in (Kind.NAME, Kind.CATEGORY, Kind.TEXT) or column.words >= LONG:
            return False
        return len(self.features({text, *self.roles.labels[:1]})) >= FEWEST_BESIDE

    def features(self, used: Collection[str] = ()) -> list[str]:
        """The columns that a table can be learned from: numbers, and values that repeat. Numbers
        that only count the rows are used if there are no others."""
        left = [kind for kind in self.kinds.values() if kind.name not in {*used, self.data.group}]
        names = [column.name for column in left if column.kind in VALUES]
        counts = (column for column in left if column.kind is Kind.IDENTIFIER and column.whole)
        return names or [count.name for count in counts if not is_identifier_name(count.name)]

    def header_lines(self) -> list[str]:
        """A hint, if the first line may be a row instead of the names of columns."""
        are_data = self._names_in_first_line() and header_is_data(self.rows)
        return [header_hint(self.columns)] if are_data else []

    def _names_in_first_line(self) -> bool:
        """Whether the column names come from the first line of the file."""
        if parallel(self.data.train) or not self.origin.files or self.data.header:
            return False
        return format_named(format_of(Path(self.rows[0].place.file), self.data.format)).header

    def without_header(self) -> Sample:
        """The same data with generated column names and a note about them; unchanged if the first
        line holds the names, or `header` is set."""
        if "header" in self.data.model_fields_set or not self.has_rows:
            return self
        names = unnamed_columns(self.columns, self.rows) if self._names_in_first_line() else None
        data = self.data
        named = {
            *data.texts,
            data.image,
            data.tree,
            data.second,
            data.label,
            data.group,
            data.sequence,
            *data.columns,
        }
        if names is None or not named - {""} <= {*names.names}:
            return self
        message = (
            f"the first line is a row ({names.why}): columns named {', '.join(names.names)}; if it "
            "has their names, add --set data.header=[]"
        )
        return self._with({"header": names.names}, message)

    def without_marks(self) -> Sample:
        """The same data with values such as €12.50 or 1 234,5 read as numbers, and a note on each
        column; raises an error if a comma or point in them is ambiguous."""
        explicit = self.data.model_fields_set
        if "marked" in explicit or not self.origin.files or not self.has_rows:
            return self
        texts = {*self.data.texts, self.data.second}
        names = [name for name in self.columns if name not in texts]
        marks = {name: mark for name in names if (mark := mark_of(self.values(name))) is not None}
        if not marks:
            return self
        decimal = self.data.decimal if "decimal" in explicit else decimal_of(marks, self._numbers())
        notes = "; ".join(
            f"{name}: numbers, {mark.example!r} is {plain_number(mark.example, decimal)}"
            for name, mark in marks.items()
        )
        return self._with({"marked": list(marks), "decimal": decimal}, notes)

    def with_pictures(self) -> Sample:
        """The same data with the column that names pictures as its image, if the files exist and
        nothing else is plausible. If there is also a text, or numbers that make a table, a note
        says how to read the pictures."""
        data = self.data
        named = [*data.texts, data.image, data.tree, data.second, data.sequence, *data.features]
        if any(named) or not self.has_rows:
            return self
        names = [name for name in self.columns if name != data.label and self._names_files(name)]
        if len(names) != 1:
            return self
        image, others = names[0], [other for other in self.kinds.values() if other.name != names[0]]
        label = data.label or guess_roles(self.rows, image, None).label or ""
        texts = [other.name for other in others if other.kind is Kind.TEXT or other.name in TEXTS]
        if label in texts or CAPTION in self.columns:  # words to be written
            return self
        table = not data.columns and len(self.features({image, label})) >= FEWEST_BESIDE
        if table or texts:
            note = f"{image} names pictures; learn from them with {self.word('image')} {image}"
            return replace(self, notes=(*self.notes, note))
        table_of_data = data.model_dump(exclude_unset=True)
        return replace(self, data=DataSettings.of({**table_of_data, "image": image}, "data"))

    def _names_files(self, column: str) -> bool:
        """Whether nearly all cells of a column name existing pictures, next to the table."""
        cells = [
            (Path(row.place.file).parent, value.strip())
            for row in self.rows
            if isinstance(value := row.fields.get(column), str) and value.strip()
        ]
        if len(cells) < NEARLY_ALL * len(self.rows):
            return False
        pictures = sum(is_image(Path(name)) for _, name in cells)
        if not cells or pictures < NEARLY_ALL * len(cells):
            return False
        return sum((folder / name).is_file() for folder, name in cells) >= NEARLY_ALL * len(cells)

    def _numbers(self) -> dict[str, str]:
        """A value with a decimal point of each column of plain numbers that has one."""
        numbers = {}
        for name in self.columns:
            values = [text for text in self.values(name) if isinstance(text, str) and "." in text]
            if values and self.kinds[name].kind is Kind.NUMBER:
                numbers[name] = values[0]
        return numbers

    def _with(self, data: Mapping[str, Any], note: str) -> Sample:
        """The same sample with more keys of [data]."""
        dump = self.data.model_dump(exclude_unset=True)
        settings = DataSettings.of({**dump, **data}, "data")
        return replace(self, data=settings, notes=(*self.notes, note))

    def no_text(self) -> DataError:
        """The error if no column can be the text."""
        left = [kind.name for kind in self.kinds.values() if kind.name != self.data.label]
        return DataError(
            f"{self.place}: no column looks like a text among {', '.join(left) or 'none'}; name it "
            f"with {self.word('text')}"
            + ", or learn from all of them with --task table"
            * self.origin.files
        )

    def no_label(self) -> DataError:
        """The error if no column can be the label."""
        alone = len(self.columns) == 1
        message = (
            f"{self.place}: no column looks like a label among {', '.join(self.columns)}; "
            f"name it with {self.word('label')}"
            + ", or learn the text itself with --task language"
            * (alone and self.origin.files)
        )
        return DataError("\n".join([message, *self.header_lines()]))


def first_rows(
    paths: Sequence[str], options: ReadOptions, count: int, origin: Origin = FILES
) -> list[Row]:
    """The first valid rows; raises an error with the reason if a file has none."""
    rows = chain.from_iterable(
        iter(Gathered({path: partial(origin.read, path, options)}, skip_bad=True)) for path in paths
    )
    first = list(islice(rows, count))
    if not first:
        raise DataError("expected files to read, got none")
    if len(first) == count and _sorted(first):
        first += _spread(islice(rows, LOOKED_THROUGH), count)
    return first


def _sorted(rows: Sequence[Row]) -> bool:
    """Whether a column is constant in these rows, like the label of a sorted file."""
    first = rows[0].fields
    return any(all(row.fields.get(name) == value for row in rows)
               for name, value in first.items() if isinstance(value, str | int))  # fmt: skip


def _spread(rows: Iterable[Row], most: int) -> list[Row]:
    """At most `most` rows, evenly spread over all."""
    spread: list[Row] = []
    apart = 1
    for number, row in enumerate(rows):
        if number % apart == 0:
            spread.append(row)
        if len(spread) > most:
            spread, apart = spread[::2], 2 * apart
    return spread
