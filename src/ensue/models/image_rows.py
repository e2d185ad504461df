"""Pictures with their labels as arrays: bytes, as they were read."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ensue.data.idx import is_idx, read_idx_pictures
from ensue.data.images import (
    Picture,
    checked,
    conformed,
    image_row,
    read_image,
    read_image_folder,
)
from ensue.data.ragged import Ragged
from ensue.data.rows import Place, Row, Tell
from ensue.errors import DataError
from ensue.models.collect import Collected, Names, Numbers, label_texts, pairs_of
from ensue.models.image_settings import ImageSettings

Shape = tuple[int, int, int]


class PictureCollector:
    """Takes rows one by one. All are brought to `shape`, if it is given; else to the size and the
    channels of the settings, and what these leave open is the same in all."""

    def __init__(
        self, numbers: Numbers, settings: ImageSettings, shape: Shape | None = None
    ) -> None:
        self._numbers, self._settings, self._shape = numbers, settings, shape
        self._first = ""  # where the shape comes from
        self._bytes, self._labels, self._label_starts = bytearray(), array("i"), array("q", [0])
        self._files: dict[str, int] = {}
        self._file, self._line = array("i"), array("q")
        self._unlabelled = ""

    def add(self, row: Row) -> None:
        """One row {"image", "label"}; a label of None is not known."""
        picture = self._brought(row.fields["image"], row.place)
        self._bytes += picture.tobytes()
        label = row.fields["label"]
        if label is None:
            self._unlabelled = self._unlabelled or str(row.place)
        else:
            given = label_texts(label, str(row.place))
            self._labels.extend(map(self._numbers.labels.__getitem__, given))
        self._label_starts.append(len(self._labels))
        self._file.append(self._files.setdefault(row.place.file, len(self._files)))
        self._line.append(row.place.line)

    def _brought(self, picture: Picture, place: Place) -> Picture:
        if self._first or self._shape is None:
            picture = self._as_settings(picture)
        if self._shape is None:
            self._shape, self._first = _shape_of(picture), str(place)
        if self._first and picture.shape != self._shape:
            key = "size" if picture.shape[1:] != self._shape[1:] else "channels"
            example = "[28, 28]" if key == "size" else "grey (or colour)"
            raise DataError(
                f"{place}: expected a picture of {told(self._shape)}, as {self._first}, got "
                f"{told(_shape_of(picture))}; set model.{key} = {example} to bring all to one"
            )
        return conformed(picture, self._shape)

    def _as_settings(self, picture: Picture) -> Picture:
        own = self._settings
        height, width = own.size or picture.shape[1:]
        return conformed(picture, (own.wanted_channels or len(picture), height, width))

    def done(self) -> Collected:
        """inputs: values (rows, channels, height, width), each row by itself."""
        rows, shape = len(self._line), self._shape or (1, 1, 1)
        pixels = np.frombuffer(self._bytes, np.uint8).reshape(rows, *shape)
        names = Names(
            tuple(self._files), np.array(self._file, np.int32), np.array(self._line, np.int64)
        )
        labels = None
        if rows and not self._unlabelled:
            starts = np.array(self._label_starts, np.int64)
            labels = Ragged(np.array(self._labels, np.int32), starts)
        return Collected(Ragged(pixels, np.arange(rows + 1)), labels, names, self._unlabelled)


def _shape_of(picture: Picture) -> Shape:
    channels, height, width = picture.shape
    return channels, height, width


def told(shape: Shape) -> str:
    channels, height, width = shape
    return f"{height}×{width} pixels, {'grey' if channels == 1 else 'colour'}"


def collect_pictures(
    rows: Iterable[Row], numbers: Numbers, settings: ImageSettings, shape: Shape | None = None
) -> Collected:
    collector = PictureCollector(numbers, settings, shape)
    for row in rows:
        collector.add(row)
    return collector.done()


# --- where they come from ----------------------------------------------------------------------


def read_pictures(path: Path | str, tell: Tell, labelled: bool = True) -> Iterator[Row]:
    """The rows of a folder of classes, of an idx file, or of one picture. labelled: their labels
    are needed; else a folder of pictures will do."""
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
    """The pictures of a folder and of the folders in it, by name; what is hidden is passed over."""
    for file in sorted(own for own in path.rglob("*") if own.is_file()):
        if not any(name.startswith(".") for name in file.relative_to(path).parts):
            yield from image_row(file, None, tell)


def rows_of_pairs(pairs: Iterable[Any]) -> Iterator[Row]:
    """Pairs (picture, label) in memory; a picture is an array of bytes, or the name of a file."""
    for line, (picture, label) in enumerate(pairs_of(pairs), 1):
        yield Row(Place("row", line), {"image": loaded(picture, line), "label": label})


def loaded(picture: Any, line: int) -> Picture:
    if isinstance(picture, str | Path):
        return read_image(picture)
    if isinstance(picture, np.ndarray):
        return checked(picture, f"row:{line}")
    raise DataError(
        f"row:{line}: expected a picture as an array of bytes, or the name of a file, "
        f"got {type(picture).__name__}"
    )
