"""Answers as a table in a file: a header, and a row for each answer with its input."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ensue.data.frames.frame import untaken
from ensue.data.parallel import parallel, sides_of
from ensue.data.read import read
from ensue.data.rows import Row
from ensue.data.settings import DataSettings
from ensue.errors import OptionError
from ensue.escape import in_shell, is_formula
from ensue.files.atomic_folder import finite
from ensue.files.disk import disk_errors, refuse_target, replacing
from ensue.runs.predict import Reply, plain
from ensue.tasks.rows.reader import plain_text, together

ROW = "row"  # the column with the file and line of an answer
EVERY = "all"  # the value of --keep for every column
IN_GROUP = 50_000  # rows of a Parquet file in one group
DIGITS = 6  # of numbers as text

Values = dict[str, Any]  # a row of the table, by column
Rows = Iterable[Values]


# --- rows ----------------------------------------------------------------------------------------


class CopiedColumns:
    """Columns of the input files to repeat in the table. columns: their names, or `all`; by default
    the columns that are named like an id."""

    def __init__(self, paths: Sequence[str], data: DataSettings, columns: Sequence[str]) -> None:
        self._data = data
        self._paths = [path for path in paths if _has_columns(path, data)]
        first = next(self._rows(), None)
        names = [] if first is None else [*first.fields]
        missing = [name for name in columns if name not in names and name != EVERY]
        if missing:
            message = f"the files have {', '.join(names)}" if names else "the files have no columns"
            raise OptionError(f"--keep: no column {missing[0]!r}: {message}")
        named = names if EVERY in columns else list(columns)
        self.names = named or [name for name in names if _is_id(name)]

    def _rows(self) -> Iterator[Row]:
        for path in self._paths:
            options = replace(self._data.for_questions([path], False).read_options(), others=True)
            yield from read(path, options, lambda problem: None)  # the form of the questions

    def beside(self, answers: Iterable[Reply]) -> Iterator[tuple[Values, Reply]]:
        """The kept values of the row of each answer; rows without an answer are skipped."""
        rows = self._rows() if self.names else iter(())
        for answered in answers:
            values: Values = {}
            if self.names:
                row = next(row for row in rows if str(row.place) == answered.row)
                values = {name: plain(row.fields.get(name)) for name in self.names}
            yield values, answered


def _has_columns(path: str, data: DataSettings) -> bool:
    table = len(sides_of(path)) == 1 and Path(path).is_file()
    return table and not parallel(data.train) and not plain_text(path, data.format)


def _is_id(name: str) -> bool:
    """
    >>> [_is_id(name) for name in ("id", "ticket_id", "ticketId", "paid")]
    [True, True, True, False]
    """
    return name.lower() == "id" or name.lower().endswith("_id") or name.endswith(("Id", "ID"))


def table_rows(answers: Iterable[Reply], columns: CopiedColumns) -> Iterator[Values]:
    """The rows of a table of answers: the kept columns (or the file and line of the row), then the
    fields of the answer, renamed if a kept column has the same name."""
    for values, answered in columns.beside(answers):
        begin = values if values or not answered.row else {ROW: answered.row}
        table = dict(begin)
        for name, value in answered.value.items():
            table[untaken(name, begin)] = value
        yield table


# --- files ---------------------------------------------------------------------------------------


def _as_csv(rows: Rows, file: BinaryIO, delimiter: str = ",") -> None:
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    plain_rows = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    quoted = csv.writer(text, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL)

    def write(cells: Iterable[Any]) -> None:
        cells = [*cells]
        returns = any(isinstance(cell, str) and "\r" in cell for cell in cells)
        (quoted if returns else plain_rows).writerow(cells)  # csv quotes \n alone

    for number, row in enumerate(rows):
        if not number:
            write(row)
        write(map(_cell, row.values()))
    text.detach()


class Formulas:
    """Prefixes texts and names of columns that a spreadsheet would compute. count: of texts."""

    def __init__(self) -> None:
        self.count = 0

    def inert(self, rows: Rows) -> Iterator[Values]:
        for row in rows:
            table: Values = {}
            for name, value in row.items():
                table[untaken(f"'{name}", table) if is_formula(name) else name] = self._cell(value)
            yield table

    def _cell(self, value: Any) -> Any:
        if not isinstance(value, str) or not is_formula(value):
            return value
        self.count += 1
        return f"'{value}"


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.{DIGITS}g}"
    if isinstance(value, str | int | None):
        return value
    return json.dumps(value, ensure_ascii=False)


def _as_tsv(rows: Rows, file: BinaryIO) -> None:
    _as_csv(rows, file, "\t")


def _as_jsonl(rows: Rows, file: BinaryIO) -> None:
    for row in rows:
        value = finite(row)
        file.write(json.dumps(value, ensure_ascii=False, allow_nan=False).encode() + b"\n")


def _as_parquet(rows: Rows, file: BinaryIO) -> None:
    """Writes rows as Parquet. The type of a column depends on all its values, so groups of rows
    wait in a temporary file; memory holds a single group."""
    pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    groups, schema = _groups_of(rows, pyarrow), None
    with tempfile.TemporaryFile(dir=Path(file.name).parent) as beside:
        for group in groups:
            same = [group.schema] if schema is None else [schema, group.schema]
            schema = pyarrow.unify_schemas(same, promote_options="permissive")
            with pyarrow.ipc.new_stream(beside, group.schema) as stream:
                stream.write_table(group)
        end = beside.seek(0, os.SEEK_END)
        beside.seek(0)
        with parquet.ParquetWriter(file, schema or pyarrow.schema([])) as table:
            while beside.tell() < end:
                with pyarrow.ipc.open_stream(beside) as stream:
                    table.write_table(stream.read_all().cast(schema))


def _groups_of(rows: Rows, pyarrow: Any) -> Iterator[Any]:
    """Tables of groups of rows, all with the columns of the first row."""
    names: list[str] | None = None
    for some in together(rows, IN_GROUP):
        names = names or [*some[0]]
        yield pyarrow.table({name: [row.get(name) for row in some] for name in names})


SPREADSHEETS = (".csv", ".tsv")  # open in programs that compute text cells
WRITERS: dict[str, Callable[[Rows, BinaryIO], None]] = {
    ".csv": _as_csv,
    ".tsv": _as_tsv,
    ".jsonl": _as_jsonl,
    ".parquet": _as_parquet,
}


def check_table_file(path: Path) -> None:
    """Raises OptionError if no table can be written there; for use before a long computation."""
    if path.suffix not in WRITERS:
        raise OptionError(
            f"--out: expected a file that ends in {', '.join(WRITERS)}, got {path}; use "
            f"--out {in_shell(path.with_suffix('.csv'))}"
        )
    refuse_target(path)
    if path.suffix == ".parquet":
        try:
            import_module("pyarrow.parquet")
        except ImportError:
            raise OptionError(
                f"{path}: writing Parquet needs pyarrow: pip install 'ensue[parquet]'"
            ) from None


def refuse_read_files(path: Path, read: Iterable[str]) -> None:
    """Raises OptionError if the table would overwrite an input file, or a file that the model was
    trained on: texts and labels would be lost."""
    if not path.exists():
        return
    for source in (side for files in read for side in sides_of(files)):
        if Path(source).exists() and path.samefile(source):
            beside = path.with_name(f"{path.stem}-answers{path.suffix}")
            raise OptionError(
                f"--out: {path} is a file that is read, and would be lost; use "
                f"--out {in_shell(beside)}"
            )


class Written(NamedTuple):
    """rows: of a table; formulas: cells that were prefixed."""

    rows: int
    formulas: int


def write_table(path: Path, rows: Rows, raw: bool = False) -> Written:
    """Writes the table. After an error the old file is unchanged. raw: cells that a spreadsheet
    would compute are written to .csv and .tsv as they are."""
    count, formulas = 0, Formulas()

    def counted() -> Iterator[Values]:
        nonlocal count
        for row in rows:
            count += 1
            yield row

    with disk_errors(path, 0), replacing(path) as file:
        inert = path.suffix in SPREADSHEETS and not raw
        WRITERS[path.suffix](formulas.inert(counted()) if inert else counted(), file)
    return Written(count, formulas.count)
