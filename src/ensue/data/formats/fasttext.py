"""Lines as fastText reads them: `__label__sports __label__news the text of the row`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ensue.data.decode import filled
from ensue.data.formats.text import text_lines
from ensue.data.options import ReadOptions, require
from ensue.data.rows import Place, Problem, ProblemCallback, Row

ENDINGS = ()  # recognised by the beginnings of lines
COLUMNS = ("text", "label")
PREFIX = "__label__"
LABEL = re.compile(rf"(?<![^ \t]){PREFIX}([^ \t]*)[ \t]*")


def recognised(first: Sequence[str]) -> bool:
    """Whether most lines begin with a label; the others are reported as faults."""
    filled = [line for line in first if line]
    return 2 * sum(line.startswith(PREFIX) for line in filled) > len(filled)


def read(path: Path, options: ReadOptions, on_bad_row: ProblemCallback) -> Iterator[Row]:
    """{"text": …, "label": its label, or a list of several}; labels may be anywhere in the line.
    Lines need a label only if the options name it."""
    require(options.columns, COLUMNS, Place(str(path), 1))
    labelled = not options.columns or "label" in options.columns
    for number, line, fault in filled(text_lines(path, options)):
        place = Place(str(path), number)
        labels = LABEL.findall(line)
        text = LABEL.sub("", line).strip(" \t")
        fault = fault or _fault(text, labels, labelled)
        if fault:
            on_bad_row(Problem(place, fault))
        else:
            label_fields = {"label": labels[0] if len(labels) == 1 else labels} if labels else {}
            yield Row(place, {"text": text, **label_fields})


def _fault(text: str, labels: Sequence[str], labelled: bool) -> str:
    if labelled and not labels:
        return f"expected a label, {PREFIX} and its name, got none"
    if "" in labels:
        return f"expected the name of a label after {PREFIX}, got none"
    return "" if text else "expected a text after the labels, got none"
