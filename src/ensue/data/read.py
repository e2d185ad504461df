"""From a file or folder to rows: the formats by name, one at a time or all that are sound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ensue.data.conll import read_conll, read_conllu
from ensue.data.folders import read_folder
from ensue.data.jsonl import read_jsonl
from ensue.data.options import ALL, EXTENSIONS, FORMATS, ReadOptions
from ensue.data.parquet import read_parquet
from ensue.data.plain import read_parallel, read_text, read_whole
from ensue.data.rows import Broken, Place, Problem, Row, Tally, Tell
from ensue.data.series import sequences, with_numbers
from ensue.data.stream import open_file
from ensue.data.tables import read_table
from ensue.errors import DataError

__all__ = ["Gathered", "gather", "gather_parallel", "read", "read_parallel", "read_series"]

Reader = Callable[[Path, ReadOptions, Tell], Iterator[Row]]
READERS: Mapping[str, Reader] = {
    "csv": read_table,
    "tsv": read_table,
    "jsonl": read_jsonl,
    "conll": read_conll,
    "conllu": read_conllu,
    "text": read_text,
    "whole": read_whole,
    "folder": read_folder,
    "parquet": read_parquet,
}


def format_of(path: Path) -> str:
    """The format that a file's name tells; a folder is a folder of texts."""
    if path.is_dir():
        return "folder"
    name = path.name.lower().removesuffix(".gz")
    found = EXTENSIONS.get(Path(name).suffix)
    if found is None:
        raise DataError(
            f"{path}: the name does not tell the format (known: {', '.join(EXTENSIONS)}, "
            f"each also with .gz); use --format with one of {', '.join(FORMATS)}"
        )
    return found


def read(path: Path | str, options: ReadOptions, tell: Tell) -> Iterator[Row]:
    """The sound rows of a file, one at a time; `tell` hears of everything else.

    Memory does not grow with the file. A file without any row is a problem, too."""
    path = Path(path)
    if not path.is_dir():
        open_file(path).close()  # a missing file is told now, not at the first row
    if options.format == "auto":
        options = replace(options, format=format_of(path))
    return _read(path, options, tell)


def _read(path: Path, options: ReadOptions, tell: Tell) -> Iterator[Row]:
    heard = 0

    def hear(problem: Problem) -> None:
        nonlocal heard
        heard += 1
        tell(problem)

    steps = partial(READERS[options.format], path, options)
    kept = 0
    try:
        if options.sequence is not None:
            rows = sequences(steps, options, hear)
        elif options.numbers or options.time is not None:
            rows = with_numbers(steps, options, hear)
        else:
            rows = steps(hear)
        for row in rows:
            yield row
            kept += 1
    except Broken as broken:
        hear(broken.problem)
    if not kept and not heard:
        reason = "the file has no rows" if _has_bytes(path) else "the file is empty"
        tell(Problem(Place(str(path), 1), reason, rejects=0))


def _has_bytes(path: Path) -> bool:
    return path.is_dir() or path.stat().st_size > 0


def read_series(
    path: Path | str,
    tell: Tell,
    columns: Sequence[str] = (),
    time: str | None = None,
    options: ReadOptions | None = None,
) -> Iterator[Row]:
    """A table of numbers, one time step for each row: {column: float, time: text}. Without
    `columns`, all but the time are numbers."""
    numbers = tuple(columns) or ALL
    return read(path, replace(options or ReadOptions(), numbers=numbers, time=time), tell)


# --- all that are sound --------------------------------------------------------------------


class Gathered:
    """Rows to go through once, and what became of the others.

    Strict: behind the last row, `DataError` lists the problems of all files. With `skip_bad`
    faulty rows are counted and told. At the end kept + rejected is the number of rows."""

    def __init__(
        self,
        sources: Mapping[str, Callable[[Tell], Iterator[Row]]],
        skip_bad: bool = False,
        tell: Tell | None = None,
    ) -> None:
        self._sources, self._skip_bad, self._tell = sources, skip_bad, tell
        self.kept, self.rejected = 0, 0
        self._problems = Tally()

    @property
    def count(self) -> int:
        """Of all problems."""
        return self._problems.count

    def __iter__(self) -> Iterator[Row]:
        for source in self._sources.values():
            for row in source(self._hear):
                self.kept += 1
                yield row
        if self.count and not self._skip_bad and (self.kept or self.rejected):
            raise DataError(self._message("Fix the lines, or use --skip-bad to leave them out."))
        if not self.kept:
            raise DataError(self._message("No sound row is left to work with."))

    def _hear(self, problem: Problem) -> None:
        self._problems.add(problem)
        self.rejected += problem.rejects
        if self._tell:
            self._tell(problem)

    def _message(self, ending: str) -> str:
        return "\n".join(
            [
                f"{self.count} problem{'s' * (self.count != 1)} in {', '.join(self._sources)}",
                *(f"  {line}" for line in self._problems.lines()),
                ending,
            ]
        )


def gather(
    paths: Sequence[Path | str],
    options: ReadOptions,
    *,
    skip_bad: bool = False,
    tell: Tell | None = None,
) -> Gathered:
    """The rows of these files, behind one another."""
    sources = {str(path): partial(read, path, options) for path in paths}
    return Gathered(sources, skip_bad, tell)


def gather_parallel(
    source: Path | str,
    target: Path | str,
    options: ReadOptions,
    *,
    skip_bad: bool = False,
    tell: Tell | None = None,
) -> Gathered:
    """The pairs of two files."""
    pairs = partial(read_parallel, source, target, options)
    return Gathered({f"{source} and {target}": pairs}, skip_bad, tell)
