"""A label and a text on each line, with a space or a tab between: `DESC:manner How did it end?`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ensue.data.decode import filled
from ensue.data.formats.text import text_lines
from ensue.data.options import ReadOptions, require
from ensue.data.rows import Place, Problem, Row, Tell

ENDINGS = (".label",)
COLUMNS = ("text", "label")
LINE = re.compile(r"([^ \t]+)[ \t]+(.*[^ \t])[ \t]*")


def read(path: Path, options: ReadOptions, on_bad_row: Tell) -> Iterator[Row]:
    """{"text": what follows, "label": the first word}."""
    require(options.columns, COLUMNS, Place(str(path), 1))
    for number, line, fault in filled(text_lines(path, options)):
        place = Place(str(path), number)
        found = None if fault else LINE.fullmatch(line)
        if found:
            yield Row(place, {"text": found[2], "label": found[1]})
        else:
            on_bad_row(Problem(place, fault or _fault(line)))


def _fault(line: str) -> str:
    if line[0] in " \t":
        return "expected a label at the beginning of the line, got a space"
    return "expected a label and a text with a space or a tab between them, found one word"
