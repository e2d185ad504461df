"""Folders of texts: `folder/<label>/<name>.txt`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ensue.data.options import ReadOptions, require
from ensue.data.plain import whole_text
from ensue.data.rows import Broken, Place, Problem, Row, Tell
from ensue.errors import DataError

ENDINGS = (".txt", ".txt.gz")


def read_folder(path: Path, options: ReadOptions, tell: Tell) -> Iterator[Row]:
    """{"text": the file, "label": its folder}, by label and name. Names that begin with a dot
    are passed over, and so are files beside the label folders."""
    require(options.columns, ("text", "label"), Place(str(path), 1))
    labels = sorted(p for p in path.iterdir() if p.is_dir() and not p.name.startswith("."))
    if not labels:
        raise DataError(
            f"{path}: expected a folder for each label with .txt files inside "
            f"({path / 'positive' / '1.txt'}), found no folder"
        )
    for label in labels:
        texts = sorted(p for p in label.iterdir() if not p.name.startswith("."))
        if not texts:
            tell(Problem(Place(str(label), 1), "the folder of this label is empty", rejects=0))
        for file in texts:
            yield from _row(file, options, tell)


def _row(file: Path, options: ReadOptions, tell: Tell) -> Iterator[Row]:
    place = Place(str(file), 1)
    if file.is_dir() or not file.name.endswith(ENDINGS):
        tell(Problem(place, "expected a .txt file"))
        return
    try:
        text = whole_text(file, options, tell)
    except Broken as broken:
        tell(broken.problem._replace(rejects=1))
        return
    if text is not None:
        yield Row(place, {"text": text, "label": file.parent.name})
