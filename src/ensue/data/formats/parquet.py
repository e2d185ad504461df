"""Parquet files, through pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from ensue.data.options import ReadOptions, needed_columns, require
from ensue.data.rows import Broken, Place, Problem, Row, Tell
from ensue.data.stream import open_file
from ensue.data.values import Kinds
from ensue.errors import MissingExtra

ENDINGS = (".parquet",)
BATCH = 1024


def read(path: Path, options: ReadOptions, on_bad_row: Tell) -> Iterator[Row]:
    """{column: value} of the needed columns (all, if none is named); lines are row numbers."""
    try:
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtra(
            f"{path}: reading Parquet needs pyarrow: pip install 'ensue[parquet]'"
        ) from None
    file, kinds, number = str(path), Kinds(), 0
    with open_file(path) as source:
        try:
            table = parquet.ParquetFile(source)
            require(needed_columns(options), table.schema_arrow.names, Place(file, 1))
            columns = list(dict.fromkeys(needed_columns(options))) or None
            for batch in table.iter_batches(BATCH, columns=columns):
                for fields in batch.to_pylist():
                    number += 1
                    yield from _row(Place(file, number), fields, kinds, on_bad_row)
        except (pyarrow.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise Broken(
                Place(file, number + 1), f"not a readable Parquet file: {reason}"
            ) from None


def _row(place: Place, fields: dict[str, Any], kinds: Kinds, on_bad_row: Tell) -> Iterator[Row]:
    faults = kinds.faults(fields, place.line)
    for k, reason in enumerate(faults):
        on_bad_row(Problem(place, reason, rejects=int(k == 0)))
    if not faults:
        yield Row(place, fields)
