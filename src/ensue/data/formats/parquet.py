"""Parquet files, through pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from ensue.data.options import ReadOptions, needed_columns, require
from ensue.data.rows import Broken, Place, ProblemCallback, Row
from ensue.data.stream import open_file
from ensue.data.values import FieldReader
from ensue.errors import MissingExtra

ENDINGS = (".parquet",)
BATCH = 1024


def _rows(batch: Any) -> Iterator[dict[str, Any] | UnicodeDecodeError]:
    """The values of each row, or the fault of a row whose text is not UTF-8."""
    try:
        yield from batch.to_pylist()
    except UnicodeDecodeError:
        for k in range(len(batch)):
            try:
                (fields,) = batch.slice(k, 1).to_pylist()
                yield fields
            except UnicodeDecodeError as fault:
                yield fault


def _undecodable(fault: UnicodeDecodeError) -> str:
    bad = fault.object[fault.start : fault.end].hex(" ").upper()
    return f"a text with the bytes {bad} at its byte {fault.start}, which are not utf-8"


def read(path: Path, options: ReadOptions, on_bad_row: ProblemCallback) -> Iterator[Row]:
    """{column: value} of the columns that the options name (all, if none is named); lines are row
    numbers."""
    try:
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtra(
            f"{path}: reading Parquet needs pyarrow: pip install 'ensue[parquet]'"
        ) from None
    file, reader, number = str(path), FieldReader(options, on_bad_row, unit="in row"), 0
    with open_file(path) as source:
        try:
            table = parquet.ParquetFile(source)
            names = table.schema_arrow.names
            require(needed_columns(options), names, Place(file, 1))
            columns = [name for name in names if reader.names is None or name in reader.names]
            for batch in table.iter_batches(BATCH, columns=columns):
                for fields in _rows(batch):
                    number += 1
                    if isinstance(fields, UnicodeDecodeError):
                        reader.reject(Place(file, number), [_undecodable(fields)])
                    else:
                        yield from reader.row(Place(file, number), fields)
        except (pyarrow.ArrowException, UnicodeDecodeError, OSError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise Broken(
                Place(file, number + 1), f"not a readable Parquet file: {reason}"
            ) from None
