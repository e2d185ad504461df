"""Trees in brackets, `(3 (2 It) (4 is good))`, each on a line, or on several of which those after
the first are indented."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ensue.data.decode import lines
from ensue.data.options import ReadOptions, needed_columns, require
from ensue.data.rows import Place, Problem, Row, Tell
from ensue.data.trees.tree import balance, looks_like_trees, read_tree
from ensue.data.values import Unfit

ENDINGS = (".trees", ".tree", ".mrg", ".ptb")
COLUMNS = ("tree", "text", "label")
LONGEST = 1 << 20  # characters of a tree


def recognised(first: Sequence[str]) -> bool:
    """Most lines are trees, or, where trees go over several lines, the first begins one."""
    filled = [line for line in first if line.strip()]
    if looks_like_trees(filled):
        return True
    whole = " ".join(filled)
    inside = [line for line in filled if line.lstrip().startswith("(") or line[:1].isspace()]
    return whole.count("(") > 2 and len(inside) == len(filled) and balance(whole) >= 0


def read(path: Path, options: ReadOptions, on_bad_row: Tell) -> Iterator[Row]:
    """{"tree": in brackets, on one line; "text": its words; "label": that of its root}, each at
    the line where it begins."""
    name = str(path)
    require(needed_columns(options), COLUMNS, Place(name, 1))
    begun, text, torn = 1, "", False
    for number, line, fault in lines(path, options):
        if fault:
            on_bad_row(Problem(Place(name, number), fault, rejects=int(not torn)))
            torn = True
        if text and (line.startswith("(") or not line.strip()):  # the next one: this one is over
            yield from _row(Place(name, begun), text, torn and not fault, on_bad_row)
            text, torn = "", bool(fault)
        if not text:
            begun = number
        text = f"{text} {line.strip()}".strip()
        if balance(text) <= 0 or len(text) > LONGEST:
            yield from _row(Place(name, begun), text, torn, on_bad_row)
            text, torn = "", False
    yield from _row(Place(name, begun), text, torn, on_bad_row)


def _row(place: Place, text: str, torn: bool, on_bad_row: Tell) -> Iterator[Row]:
    """torn: a fault of one of its lines was told."""
    if not text or torn:
        return
    try:
        tree = read_tree(text)
    except Unfit as unfit:
        on_bad_row(Problem(place, str(unfit)))
        return
    fields = dict(zip(COLUMNS, (tree.as_text(), " ".join(tree.words), tree.label), strict=True))
    yield Row(place, {name: own for name, own in fields.items() if own or name != "label"})
