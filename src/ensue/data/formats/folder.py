"""Folders of texts: `folder/<label>/<name>.txt`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ensue.data.formats import endings
from ensue.data.formats.text import whole_text
from ensue.data.options import ReadOptions, require
from ensue.data.pictures.images import is_image
from ensue.data.rows import Broken, Place, Problem, Row, Tell
from ensue.errors import DataError

ENDINGS = ()  # a folder is known by being one
TEXTS = (".txt", ".txt.gz")
PICTURE = ", got a picture: folders of pictures are checked by `ensue train`, which reads them"


def read(path: Path, options: ReadOptions, on_bad_row: Tell) -> Iterator[Row]:
    """{"text": the file, "label": its folder}, by label and name. Names that begin with a dot
    are passed over, and so are files beside the label folders."""
    require(options.columns, ("text", "label"), Place(str(path), 1))
    labels = sorted(p for p in path.iterdir() if p.is_dir() and not p.name.startswith("."))
    if not labels:
        tables = sorted(own for own in path.iterdir() if own.suffix in endings())
        instead = f"; to read a file in it, name the file: {tables[0]}" if tables else ""
        raise DataError(
            f"{path}: expected a folder for each label with .txt files inside "
            f"({path / 'positive' / '1.txt'}), found no folder{instead}"
        )
    for label in labels:
        texts = sorted(p for p in label.iterdir() if not p.name.startswith("."))
        if not texts:
            on_bad_row(
                Problem(Place(str(label), 1), "the folder of this label is empty", rejects=0)
            )
        for file in texts:
            yield from _row(file, options, on_bad_row)


def _row(file: Path, options: ReadOptions, on_bad_row: Tell) -> Iterator[Row]:
    place = Place(str(file), 1)
    if file.is_dir() or not file.name.endswith(TEXTS):
        on_bad_row(Problem(place, f"expected a .txt file{PICTURE if is_image(file) else ''}"))
        return
    try:
        text = whole_text(file, options, on_bad_row)
    except Broken as broken:
        on_bad_row(broken.problem._replace(rejects=1))
        return
    if text is not None:
        yield Row(place, {"text": text, "label": file.parent.name})
