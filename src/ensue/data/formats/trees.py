"""Trees in brackets, `(3 (2 It) (4 is good))`, each on a line, or on several of which those after
the first are indented."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ensue.data.decode import lines
from ensue.data.options import ReadOptions, needed_columns, require
from ensue.data.rows import Place, Problem, ProblemCallback, Row
from ensue.data.trees.tree import balance, looks_like_trees, read_tree, too_long
from ensue.data.values import Unfit
from ensue.files.opening import TREE_LENGTH

ENDINGS = (".trees", ".tree", ".mrg", ".ptb")
COLUMNS = ("tree", "text", "label")


def recognised(first: Sequence[str]) -> bool:
    """Whether most lines are trees or, if trees have several lines, the first line begins one."""
    filled = [line for line in first if line.strip()]
    if looks_like_trees(filled):
        return True
    whole = " ".join(filled)
    inside = [line for line in filled if line.lstrip().startswith("(") or line[:1].isspace()]
    return whole.count("(") > 2 and len(inside) == len(filled) and balance(whole) >= 0


def read(path: Path, options: ReadOptions, on_bad_row: ProblemCallback) -> Iterator[Row]:
    """{"tree": in brackets, on one line; "text": its words; "label": that of its root}, each at
    the line where it begins."""
    name = str(path)
    require(needed_columns(options), COLUMNS, Place(name, 1))
    tree = _Lines(Place(name, 1))
    for number, line, fault in lines(path, options):
        begins = line.startswith("(") or not line.strip()
        if tree.length and begins:  # the next tree begins: this one is complete
            yield from tree.row(on_bad_row)
            tree = _Lines(Place(name, number))
        if not tree.length:
            tree.place = Place(name, number)
        if fault:
            on_bad_row(Problem(Place(name, number), fault, rejects=int(not tree.torn)))
        tree.add(line.strip(), bool(fault))
        if tree.open <= 0:
            yield from tree.row(on_bad_row)
            tree = _Lines(Place(name, number))
    yield from tree.row(on_bad_row)


class _Lines:
    """The lines of one tree, and the place where it begins. length: number of its characters (those
    beyond the limit are dropped but counted); open: number of open brackets; torn: whether a fault
    of one of its lines was reported."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.lines: list[str] = []
        self.length = self.open = 0
        self.torn = False

    def add(self, line: str, torn: bool) -> None:
        self.length += len(line) + (self.length > 0)  # with a space between
        self.open += balance(line)
        self.torn |= torn
        if self.length <= TREE_LENGTH:
            self.lines.append(line)

    def row(self, on_bad_row: ProblemCallback) -> Iterator[Row]:
        if not self.length or self.torn:
            return
        try:
            if self.length > TREE_LENGTH:
                raise too_long(self.length)
            tree = read_tree(" ".join(self.lines))
        except Unfit as unfit:
            on_bad_row(Problem(self.place, str(unfit)))
            return
        values = (tree.as_text(), " ".join(tree.words), tree.label)
        fields = dict(zip(COLUMNS, values, strict=True))
        yield Row(
            self.place, {name: field for name, field in fields.items() if field or name != "label"}
        )
