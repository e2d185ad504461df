"""Where pictures come from: folders of classes, idx files, single files, memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ensue.data.pictures.idx import is_idx, read_idx_pictures
from ensue.data.pictures.images import Picture, checked, image_row, read_image, read_image_folder
from ensue.data.rows import Place, Row, Tell
from ensue.errors import DataError
from ensue.tasks.rows.collect import IN_MEMORY, Example, pairs_of


def read_pictures(path: Path | str, tell: Tell, labelled: bool = True) -> Iterator[Row]:
    """Rows {"image", "label"} of a folder of classes, of an idx file, or of one picture. labelled:
    their labels are needed; else a folder of pictures will do."""
    path = Path(path)
    if path.is_dir():
        return read_image_folder(path, tell) if labelled else _inside(path, tell)
    if is_idx(path):
        return read_idx_pictures(path, labelled)
    if labelled:
        raise DataError(
            f"{path}: expected a folder with a folder of pictures for each class, or an idx file "
            "(…-images-idx3-ubyte) with its labels beside"
        )
    return image_row(path, None, tell)


def _inside(path: Path, tell: Tell) -> Iterator[Row]:
    """The pictures of a folder and of the folders in it, by name; hidden files are passed over."""
    for file in sorted(found for found in path.rglob("*") if found.is_file()):
        if not any(name.startswith(".") for name in file.relative_to(path).parts):
            yield from image_row(file, None, tell)


def picture_examples(rows: Iterable[Row]) -> Iterator[Example]:
    """Rows {"image", "label"} as examples."""
    for row in rows:
        yield Example(row.fields["image"], row.fields["label"], row.place)


def pictures_in_memory(pairs: Iterable[Any]) -> Iterator[Example]:
    """Pairs (picture, label); a picture is an array of bytes, or the name of a file."""
    for line, (picture, label) in enumerate(pairs_of(pairs), 1):
        place = Place(IN_MEMORY, line)
        yield Example(picture_from(picture, place), label, place)


def pictures_asked(pictures: Iterable[Any]) -> Iterator[Example]:
    """Pictures in memory without labels."""
    return pictures_in_memory((picture, None) for picture in pictures)


def picture_from(given: Any, place: Place) -> Picture:
    """The picture of an array, or of a file by its name."""
    if isinstance(given, str | Path):
        return read_image(given)
    if isinstance(given, np.ndarray):
        return checked(given, str(place))
    raise DataError(
        f"{place}: expected a picture as an array of bytes, or the name of a file, "
        f"got {type(given).__name__}"
    )
