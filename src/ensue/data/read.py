"""Reads the rows of a file or folder: one at a time, or all valid rows at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ensue.data.formats import format_named
from ensue.data.formats.text import read_parallel
from ensue.data.options import ALL, ReadOptions
from ensue.data.recognise.format import format_of
from ensue.data.recognise.marked_numbers import without_marks
from ensue.data.rows import Broken, Place, Problem, ProblemCallback, Row, Tally, watched_rows
from ensue.data.series import Steps, sequences, with_numbers
from ensue.data.stream import open_file
from ensue.errors import DataError

__all__ = ["Gathered", "gather", "gather_parallel", "read", "read_parallel", "read_series"]


def read(path: Path | str, options: ReadOptions, on_bad_row: ProblemCallback) -> Iterator[Row]:
    """The valid rows of a file, one at a time; on_bad_row is called for every fault.

    Memory does not grow with the file, except for a JSON list. A file without rows is also a
    problem."""
    path = Path(path)
    if not path.is_dir():
        open_file(path).close()  # a missing file is an error now, not at the first row
    options = replace(options, format=format_of(path, options.format))
    return _read(path, options, on_bad_row)


def _read(path: Path, options: ReadOptions, on_bad_row: ProblemCallback) -> Iterator[Row]:
    faults = 0

    def count_fault(problem: Problem) -> None:
        nonlocal faults
        faults += 1
        on_bad_row(problem)

    steps: Steps = partial(format_named(options.format).read, path, options)
    if options.marked:
        steps = without_marks(steps, options.marked, options.decimal)
    count = 0
    try:
        for row in shaped(steps, options, count_fault):
            yield row
            count += 1
    except Broken as broken:
        count_fault(broken.problem)
    if not count and not faults:
        reason = "the file has no rows" if _has_bytes(path) else "the file is empty"
        on_bad_row(Problem(Place(str(path), 1), reason, rejects=0))


def shaped(steps: Steps, options: ReadOptions, on_bad_row: ProblemCallback) -> Iterator[Row]:
    """Rows in the form of the options: sequences of a long table, steps of a series, or
    unchanged."""
    if options.sequence is not None:
        return sequences(steps, options, on_bad_row)
    if options.numbers or options.time is not None:
        return with_numbers(steps, options, on_bad_row)
    return steps(on_bad_row)


def _has_bytes(path: Path) -> bool:
    return path.is_dir() or path.stat().st_size > 0


def read_series(
    path: Path | str,
    on_bad_row: ProblemCallback,
    columns: Sequence[str] = (),
    time: str | None = None,
    options: ReadOptions | None = None,
) -> Iterator[Row]:
    """A table of numbers, one time step for each row: {column: float, time: text}. Without
    `columns`, all columns except the time are numbers.

    >>> from pathlib import Path
    >>> _ = Path("sales.csv").write_text("day,sales\\n2026-01-01,3\\n2026-01-02,5\\n")
    >>> [row.fields["sales"] for row in read_series("sales.csv", print, time="day")]
    [3.0, 5.0]
    """
    numbers = tuple(columns) or ALL
    return read(path, replace(options or ReadOptions(), numbers=numbers, time=time), on_bad_row)


# --- all that are sound --------------------------------------------------------------------

MEND_LINES = "Fix the lines, or use --skip-bad to leave them out."


class Gathered:
    """Valid rows, to iterate over once, and the problems of the others.

    Strict: after the last row, `DataError` lists the problems of all files, with advice. With
    `skip_bad`, faulty rows are counted and reported. At the end, kept + rejected is the number of
    rows."""

    def __init__(
        self,
        sources: Mapping[str, Callable[[ProblemCallback], Iterator[Row]]],
        skip_bad: bool = False,
        on_bad_row: ProblemCallback | None = None,
        mend: str = MEND_LINES,
    ) -> None:
        self._sources, self._skip_bad, self._on_bad_row = sources, skip_bad, on_bad_row
        self._mend = mend
        self.accepted, self.rejected = 0, 0
        self._problems = Tally()

    @property
    def count(self) -> int:
        """Number of problems."""
        return self._problems.count

    def __iter__(self) -> Iterator[Row]:
        for name, source in self._sources.items():
            for row in watched_rows(source(self._add), name):
                self.accepted += 1
                yield row
        if not self.accepted and not self.count:
            raise DataError(f"{', '.join(self._sources)}: expected rows, got none")
        if not self.accepted and self.count > 1 and (same := self._problems.same):
            raise DataError(f"{same}; so it is in all {self.count:,} rows")
        if self.count and not self._skip_bad and (self.accepted or self.rejected):
            raise DataError(self._message(self._mend))
        if not self.accepted:
            raise DataError(self._message("No valid row is left."))

    def _add(self, problem: Problem) -> None:
        self._problems.add(problem)
        self.rejected += problem.rejects
        if self._on_bad_row:
            self._on_bad_row(problem)

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
    on_bad_row: ProblemCallback | None = None,
) -> Gathered:
    """The rows of these files, one file after another.

    >>> from pathlib import Path
    >>> _ = Path("news.tsv").write_text("text\\tlabel\\na fine film\\tgood\\n")
    >>> [row.fields for row in gather(["news.tsv"], ReadOptions())]
    [{'text': 'a fine film', 'label': 'good'}]
    """
    sources = {str(path): partial(read, path, options) for path in paths}
    return Gathered(sources, skip_bad, on_bad_row)


def gather_parallel(
    source: Path | str,
    target: Path | str,
    options: ReadOptions,
    *,
    skip_bad: bool = False,
    on_bad_row: ProblemCallback | None = None,
) -> Gathered:
    """The pairs of two files."""
    pairs = partial(read_parallel, source, target, options)
    return Gathered({f"{source} and {target}": pairs}, skip_bad, on_bad_row)
