"""Plain text: a row for each line, one row for a whole file, or two files line by line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from ensue.data.decode import Line, lines
from ensue.data.options import ReadOptions, require
from ensue.data.rows import Broken, Place, Problem, ProblemCallback, Row

ENDINGS = (".txt",)
INNER_CR = "a carriage return inside the line (mixed line ends?)"


def text_lines(path: Path, options: ReadOptions) -> Iterator[Line]:
    """Lines in which a CR that is not part of the line end is a fault."""
    for number, text, fault in lines(path, options):
        yield number, text, fault or (INNER_CR if "\r" in text else "")


def read(path: Path, options: ReadOptions, on_bad_row: ProblemCallback) -> Iterator[Row]:
    """{"text": line}; empty lines are rows as well."""
    name = str(path)
    require(options.columns, ("text",), Place(name, 1))
    for number, text, fault in text_lines(path, options):
        if fault:
            on_bad_row(Problem(Place(name, number), fault))
        else:
            yield Row(Place(name, number), {"text": text})


def read_whole(path: Path, options: ReadOptions, on_bad_row: ProblemCallback) -> Iterator[Row]:
    """{"text": the file}, one row."""
    place = Place(str(path), 1)
    require(options.columns, ("text",), place)
    text = whole_text(path, options, on_bad_row)
    if text is not None:
        yield Row(place, {"text": text})


def whole_text(path: Path, options: ReadOptions, on_bad_row: ProblemCallback) -> str | None:
    """The text of a file without its last line end; None if a line of it is faulty."""
    lines: list[str] = []
    faults = 0
    for number, text, fault in text_lines(path, options):
        if fault:
            on_bad_row(Problem(Place(str(path), number), fault, rejects=int(faults == 0)))
            faults += 1
        lines.append(text)
    return None if faults else "\n".join(lines)


def read_parallel(
    source: Path | str, target: Path | str, options: ReadOptions, on_bad_row: ProblemCallback
) -> Iterator[Row]:
    """{"source": line, "target": line}; line k of one file belongs to line k of the other."""
    names = str(source), str(target)
    counts = [0, 0]
    surplus: Place | None = None
    try:
        files = [text_lines(Path(name), options) for name in names]
        for pair in zip_longest(files[0], files[1]):
            for k, line in enumerate(pair):
                counts[k] += line is not None
            if None in pair:
                longer = 0 if pair[0] is not None else 1
                surplus = surplus or Place(names[longer], counts[longer])
            else:
                yield from _pair(names, pair, on_bad_row)
    except Broken as broken:
        on_bad_row(broken.problem)
        return
    if surplus:
        on_bad_row(
            Problem(
                surplus,
                f"no line of the other file belongs to this one: {names[0]} has {counts[0]} "
                f"lines, {names[1]} has {counts[1]}",
                rejects=abs(counts[0] - counts[1]),
            )
        )


def _pair(
    names: tuple[str, str], pair: tuple[Line, Line], on_bad_row: ProblemCallback
) -> Iterator[Row]:
    """The row of two lines, or its problems."""
    texts = [text for _, text, _ in pair]
    faults = [(Place(names[k], n), fault) for k, (n, _, fault) in enumerate(pair) if fault]
    if not faults and bool(texts[0].strip()) != bool(texts[1].strip()):
        empty = 1 if texts[0].strip() else 0
        other = Place(names[1 - empty], pair[1 - empty][0])
        faults = [(Place(names[empty], pair[empty][0]), f"the line is empty, {other} is not")]
    for k, (place, fault) in enumerate(faults):
        on_bad_row(Problem(place, fault, rejects=int(k == 0)))
    if not faults:
        yield Row(Place(names[0], pair[0][0]), {"source": texts[0], "target": texts[1]})
