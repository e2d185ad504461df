"""Parallel files: line k of one belongs to line k of the other. Their names are joined by a
comma."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ensue.data.options import ReadOptions
from ensue.data.read import read, read_parallel
from ensue.data.recognise.format import TEXT, format_of
from ensue.data.rows import ProblemCallback, Row
from ensue.data.stream import open_file
from ensue.errors import DataError

BETWEEN = ","  # train.en,train.de
PAIR = ("source", "target")  # a source text and its target


def sides_of(path: Path | str) -> tuple[str, ...]:
    """The two files of "train.en,train.de"; for any other name, or an existing file with this very
    name, one file."""
    sides = tuple(part.strip() for part in str(path).split(BETWEEN))
    if len(sides) == 1 or Path(path).exists():
        return (str(path),)
    if len(sides) != 2 or not all(sides):
        raise DataError(
            f"{path}: expected one file, or two with a comma between them, source{BETWEEN}target, "
            f"got {len(sides)}"
        )
    return sides


def parallel(paths: Iterable[str]) -> bool:
    """Whether any of the paths names two files."""
    return any(len(sides_of(path)) > 1 for path in paths)


def read_any(path: str, options: ReadOptions, on_bad_row: ProblemCallback) -> Iterator[Row]:
    """The valid rows of a file, or of two parallel files."""
    sides = sides_of(path)
    if len(sides) == 1:
        return read(path, options, on_bad_row)
    source, target = sides
    for side in sides:
        open_file(Path(side)).close()  # a missing file is an error now, not at the first row
        format_of(Path(side), TEXT)  # as is a file of another program
    return read_parallel(source, target, options, on_bad_row)
