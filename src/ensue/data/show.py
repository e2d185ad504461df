"""The first rows of a file as the reader sees them, and as tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ensue.data.options import ReadOptions, needed_columns
from ensue.data.read import Gathered, read
from ensue.data.recognise.format import format_of
from ensue.data.roles import columns_of, guess_roles
from ensue.data.rows import Problem, Row
from ensue.data.series import number_of
from ensue.data.tokenise import Tokeniser
from ensue.drawing.layout import aligned, cut, width_of
from ensue.escape import printable, short_line

MOST_FIELDS = 100
SEPARATOR = "·"  # of tokens
LEAST = 8  # minimum width of a column


@dataclass(frozen=True)
class Preview:
    """The first valid rows of a file, and the problems of the rows before them."""

    path: str
    options: ReadOptions
    count: int
    rows: list[Row]
    problems: list[Problem]

    @classmethod
    def of(cls, path: Path | str, options: ReadOptions, count: int = 5) -> Preview:
        problems: list[Problem] = []
        options = replace(options, format=format_of(Path(path), options.format))
        rows = list(islice(read(path, options, problems.append), count))
        return cls(str(path), options, count, rows, problems)

    def as_text(self, width: int = 80) -> str:
        """Fields with their kinds, a preview of the rows within the width, and the problems."""
        rows, problems = self.rows, self.problems
        blocks = [[f"{self.path}: {self.options.format}, {_read_so_far(len(rows))}"]]
        if rows:
            names = columns_of(rows)
            kinds = [[name, _kind(rows, name)] for name in names[:MOST_FIELDS]]
            listed = [cut(line, width) for line in aligned([["field", "kind"], *kinds], left=2)]
            more = len(names) - len(kinds)
            blocks.append([*listed, *([f"and {more:,} more"] if more else [])])
            blocks.append(_preview(rows, names, width))
        if problems:
            problem_lines = [f"  {short_line(str(problem))}" for problem in problems[: self.count]]
            blocks.append([f"problems: {len(problems)}", *problem_lines])
        return "\n\n".join("\n".join(map(printable, block)) for block in blocks)

    def tokens(self, text: str = "", width: int = 80) -> str:
        """The tokens of each row, on one line. text: the column, "" for the likeliest one. Raises
        DataError if there is no valid row or no such column."""
        rows = self._with(text)
        name = guess_roles(rows, text or None, None).text
        tokeniser = Tokeniser("words", lower=True, breaks="space")
        lines = [f"as tokens ({name}, level words; {SEPARATOR} separates them)"]
        for row in rows:
            value = row.fields.get(name, "")
            if not isinstance(value, str | list):
                return (
                    f"{name}: sequences of numbers are read directly, scaled by the training part"
                )
            tokens = tokeniser(value) if isinstance(value, str) else value
            line = f"  {len(tokens):>5}  {SEPARATOR.join(map(str, tokens))}"
            lines.append(line if len(line) <= width else line[: width - 1] + "…")
        return "\n".join(map(printable, lines))

    def _with(self, text: str) -> list[Row]:
        """The rows that are valid in this column, with all their columns."""
        if self.rows and not text and not needed_columns(self.options):
            return self.rows
        how = replace(self.options, used=(text,) if text else (), others=True)
        source = {self.path: partial(read, self.path, how)}
        return list(islice(iter(Gathered(source, skip_bad=True)), self.count))


def _read_so_far(count: int) -> str:
    if not count:
        return "no valid row"
    return "the first row" if count == 1 else f"the first {count} rows"


def _kind(rows: list[Row], name: str) -> str:
    """The kind of a field, and its size in these rows."""
    values = [value for row in rows if (value := row.fields.get(name)) is not None]
    if not values:
        return "nothing"
    first = values[0]
    values = [value for value in values if type(value) is type(first)]
    if isinstance(first, np.ndarray) and first.ndim == 2:
        return f"vectors of {first.shape[1]} numbers, {_span(values, 'step')}"
    if isinstance(first, np.ndarray):
        return _span(values, "number")
    if isinstance(first, list):
        return _span(values, "token")
    if isinstance(first, str):
        numbers = all(number_of(value) is not None for value in values)
        return "a number, as text" if numbers else f"text, {_span(values, 'character')}"
    return "true or false" if isinstance(first, bool) else "a number"


def _span(values: list[Any], unit: str) -> str:
    lengths = [len(value) for value in values]
    low, high = min(lengths), max(lengths)
    span = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"{span} {unit}{'s' * (high != 1)}"


def _preview(rows: list[Row], names: list[str], width: int) -> list[str]:
    """A table of the rows: short columns are complete, long ones share the remaining width."""
    names = names[: max(1, (width - 6) // (LEAST + 2))]  # further ones are in the list above
    table = [["line", *map(printable, names)]]
    for row in rows:
        cells = [_cell(row.fields.get(name)) for name in names]
        table.append([str(row.place.line), *cells])
    widths = _shared([max(map(width_of, column)) for column in zip(*table, strict=True)], width)
    return aligned(
        [[cut(cell, w) for cell, w in zip(row, widths, strict=True)] for row in table],
        left=len(widths),
    )


def _shared(widths: list[int], room: int) -> list[int]:
    """Widths that fit the available space with two spaces between columns: the widest are cut to
    equal width."""
    room -= 2 * (len(widths) - 1)
    for measure in range(max(widths), LEAST, -1):
        if sum(min(width, measure) for width in widths) <= room:
            return [min(width, measure) for width in widths]
    return [min(width, LEAST) for width in widths]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return printable(" ".join(map(str, value[:200])))
    if isinstance(value, np.ndarray):
        numbers = ", ".join(f"{number:g}" for number in value.reshape(-1)[:20])
        return f"{'×'.join(map(str, value.shape))}: {numbers}"
    return printable(str(value)[:1000])
