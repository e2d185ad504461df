"""A label and a text on each line, with a space or a tab between: `DESC:manner How did it end?`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ensue.data.decode import filled
from ensue.data.formats.text import text_lines
from ensue.data.options import ReadOptions, require
from ensue.data.rows import Place, Problem, ProblemCallback, Row

ENDINGS = (".label",)
COLUMNS = ("text", "label")
LINE = re.compile(r"([^ \t]+)[ \t]+(.*[^ \t])[ \t]*")


# Labels at the beginning of a line that are unlikely to be words: DESC:manner, __pos__, POS, 1.
NO_WORD = re.compile(r"\w+:\w*|_+\w+_*|[A-Z][A-Z0-9_]+|-?\d{1,2}")
FEWEST = 20  # lines that tell
REPEATS = 4  # lines of each label, on average


def recognised(first: Sequence[str]) -> bool:
    """Whether every line is a label and a text: labels do not look like words, and they repeat."""
    lines = [line for line in first if line.strip()]
    labels = [match[1] for line in lines if (match := LINE.fullmatch(line))]
    if len(lines) < FEWEST or len(labels) < len(lines):
        return False
    kinds = {*labels}
    return 1 < len(kinds) <= len(lines) // REPEATS and all(map(NO_WORD.fullmatch, kinds))


def read(path: Path, options: ReadOptions, on_bad_row: ProblemCallback) -> Iterator[Row]:
    """{"text": the rest of the line, "label": its first word}."""
    require(options.columns, COLUMNS, Place(str(path), 1))
    for number, line, fault in filled(text_lines(path, options)):
        place = Place(str(path), number)
        match = None if fault else LINE.fullmatch(line)
        if match:
            yield Row(place, {"text": match[2], "label": match[1]})
        else:
            on_bad_row(Problem(place, fault or _fault(line)))


def _fault(line: str) -> str:
    if line[0] in " \t":
        return "expected a label at the beginning of the line, got a space"
    return "expected a label and a text with a space or a tab between them, found one word"
