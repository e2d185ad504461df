"""Folders of texts: `folder/<label>/<name>.txt`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ensue.data.formats import endings
from ensue.data.formats.text import whole_text
from ensue.data.options import ReadOptions, require
from ensue.data.pictures.endings import is_image
from ensue.data.rows import Broken, Place, Problem, ProblemCallback, Row
from ensue.errors import DataError

ENDINGS = ()  # recognised because it is a folder
TEXTS = (".txt", ".txt.gz")
PICTURE = ", got a picture: a folder holds .txt files alone, or pictures alone"


def read(path: Path, options: ReadOptions, on_bad_row: ProblemCallback) -> Iterator[Row]:
    """{"text": the file, "label": its folder}, by label and name. Names that begin with a dot
    are skipped, and so are files next to the label folders."""
    require(options.columns, ("text", "label"), Place(str(path), 1))
    labels = [child for child in _inside(path) if child.is_dir()]
    files = [child for label in labels for child in _inside(label)]
    if labels and files and not any(map(_is_text, files)):
        raise DataError(
            f"{path}: expected a folder for each label, with .txt files inside or with pictures "
            f"inside (for --task image), got folders without .txt files: {files[0]}"
        )
    if not labels:
        tables = [child for child in _inside(path) if child.suffix in endings()]
        instead = f"; to read a file in it, name the file: {tables[0]}" if tables else ""
        raise DataError(
            f"{path}: expected a folder for each label with .txt files inside "
            f"({path / 'positive' / '1.txt'}), found no folder{instead}"
        )
    for label in labels:
        texts = _inside(label)
        if not texts:
            on_bad_row(
                Problem(Place(str(label), 1), "the folder of this label is empty", rejects=0)
            )
        for file in texts:
            yield from _row(file, options, on_bad_row)


def _inside(folder: Path) -> list[Path]:
    """The content of a folder, by name; names that begin with a dot are skipped."""
    try:
        return sorted(child for child in folder.iterdir() if not child.name.startswith("."))
    except OSError as error:
        raise DataError(f"{folder}: cannot be read ({error.strerror})") from error


def _is_text(file: Path) -> bool:
    return file.name.endswith(TEXTS) and not file.is_dir()


def _row(file: Path, options: ReadOptions, on_bad_row: ProblemCallback) -> Iterator[Row]:
    place = Place(str(file), 1)
    if not _is_text(file):
        on_bad_row(Problem(place, f"expected a .txt file{PICTURE if is_image(file) else ''}"))
        return
    try:
        text = whole_text(file, options, on_bad_row)
    except Broken as broken:
        on_bad_row(broken.problem._replace(rejects=1))
        return
    if text is not None:
        yield Row(place, {"text": text, "label": file.parent.name})
