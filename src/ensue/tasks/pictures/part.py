"""`PicturePart`: pictures with their labels as arrays, all of one shape."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ensue.data.pictures.images import GREY, Picture, conformed
from ensue.data.ragged import Ragged
from ensue.data.rows import Place
from ensue.errors import DataError
from ensue.files.opening import PICTURE_PIXELS, PICTURE_SIDE
from ensue.tasks.declarations import Check, Range, Unfit
from ensue.tasks.exported import Step
from ensue.tasks.pictures.settings import PictureSettings
from ensue.tasks.rows.collect import Example, label_texts
from ensue.tasks.rows.part import NameCollector, Names, Numbers, Tokenisers, as_numpy

Shape = tuple[int, int, int]  # channels, height, width


def _check_pixels(shape: Shape) -> None:
    if math.prod(shape) > PICTURE_PIXELS:
        raise Unfit(f"expected at most {PICTURE_PIXELS:,} pixels, got more")


Side = Annotated[int, Range(low=1, high=PICTURE_SIDE)]
# The shape as stored in a model.
SavedShape = Annotated[tuple[Side, Side, Side], Check(_check_pixels)]


@dataclass(frozen=True)
class PicturePart:
    """Pictures to learn from or to answer.

    pixels: (rows, channels, height, width), bytes; labels: one index per row, or the tokens of a
    caption; None if unknown. names: the origin of each picture; unlabelled: the name of the first
    without label. numbers: indices of labels, shared by all parts of a data set; tokenisers: of
    captions."""

    pixels: NDArray[np.uint8]
    labels: Ragged | None
    names: Names
    numbers: Numbers
    tokenisers: Tokenisers | None = None
    unlabelled: str = ""

    def __len__(self) -> int:
        return len(self.pixels)

    def take(self, rows: NDArray[np.int64]) -> PicturePart:
        """The pictures with these indices."""
        return replace(
            self,
            pixels=self.pixels[rows],
            labels=None if self.labels is None else self.labels.take(rows),
            names=self.names.take(rows),
        )

    @property
    def shape(self) -> Shape:
        _, channels, height, width = self.pixels.shape
        return channels, height, width


class PictureCollector:
    """Collects pictures one by one. All are converted to `shape`, if given; else to the size and
    channels of the settings. Anything that the settings leave open must be the same in all
    pictures."""

    def __init__(
        self,
        settings: PictureSettings,
        numbers: Numbers,
        shape: Shape | None = None,
        tokenisers: Tokenisers | None = None,
    ) -> None:
        self._settings, self._numbers, self._shape = settings, numbers, shape
        self._tokenisers = tokenisers
        self._first = ""  # the picture that determines the shape
        self._bytes, self._labels, self._label_starts = bytearray(), array("i"), array("q", [0])
        self._names = NameCollector()
        self._rows = 0
        self._unlabelled = ""

    def add(self, example: Example) -> None:
        """Adds an example, whose value is a picture. A label of None is unknown."""
        self._bytes += self._brought(example.value, example.place).tobytes()
        self._add_label(example.label, example.place)
        self._names.add(*example.place)
        self._rows += 1

    def _add_label(self, label: Any, place: Place) -> None:
        if label is None:
            self._unlabelled = self._unlabelled or str(place)
        else:
            cut = None if self._tokenisers is None else self._tokenisers.label
            if cut is not None and isinstance(label, str):
                label = cut(label)
            texts = label_texts(label, str(place))
            self._labels.extend(map(self._numbers.labels.__getitem__, texts))
        self._label_starts.append(len(self._labels))

    def _brought(self, picture: Picture, place: Place) -> Picture:
        if self._first or self._shape is None:
            picture = self._as_settings(picture)
        if self._shape is None:
            self._shape, self._first = shape_of(picture), str(place)
        if self._first and picture.shape != self._shape:
            key = "size" if picture.shape[1:] != self._shape[1:] else "channels"
            example = "[28, 28]" if key == "size" else "grey (or colour)"
            raise DataError(
                f"{place}: expected a picture of {shape_text(self._shape)}, as {self._first}, got "
                f"{shape_text(shape_of(picture))}; set model.{key} = {example} to convert all "
                "pictures"
            )
        return conformed(picture, self._shape)

    def _as_settings(self, picture: Picture) -> Picture:
        settings = self._settings
        height, width = settings.size or picture.shape[1:]
        return conformed(picture, (settings.wanted_channels or len(picture), height, width))

    def done(self) -> PicturePart:
        shape = self._shape or (1, 1, 1)
        pixels = np.frombuffer(self._bytes, np.uint8).reshape(self._rows, *shape)
        labels = None
        if self._rows and not self._unlabelled:
            starts = as_numpy(self._label_starts, np.int64)
            labels = Ragged(as_numpy(self._labels, np.int32), starts)
        names = self._names.done()
        return PicturePart(pixels, labels, names, self._numbers, self._tokenisers, self._unlabelled)


def collect_pictures(
    examples: Iterable[Example],
    settings: PictureSettings,
    numbers: Numbers | None = None,
    shape: Shape | None = None,
    tokenisers: Tokenisers | None = None,
) -> PicturePart:
    """Collects pictures to a part. numbers: label indices of the other parts of the data set, None
    for new indices; shape: target shape of all pictures, None for the shape in the settings."""
    known = Numbers() if numbers is None else numbers
    collector = PictureCollector(settings, known, shape, tokenisers)
    for example in examples:
        collector.add(example)
    return collector.done()


def shape_of(picture: Picture) -> Shape:
    channels, height, width = picture.shape
    return channels, height, width


def shape_text(shape: Shape) -> str:
    """(1, 28, 28) is "28×28 pixels, grey"."""
    channels, height, width = shape
    return f"{height}×{width} pixels, {'grey' if channels == 1 else 'colour'}"


def picture_step(shape: Shape) -> Step:
    """The step that converts bytes (channels, height, width) or (height, width) to the shape of
    training."""
    return {
        "step": "picture",
        "from": "question",
        "to": "pictures",
        "shape": list(shape),
        "grey": [float(share) for share in GREY],
    }
