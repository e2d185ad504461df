"""Captions as runs: a table names the file of each picture, and what is to be said of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ensue.data.images import Picture, image_row, is_image, picture_of
from ensue.data.read import Gathered
from ensue.data.rows import Place, Row, Tell
from ensue.data.values import Unfit
from ensue.errors import DataError
from ensue.models.captioner import Captioner
from ensue.models.collect import Collected, Numbers
from ensue.models.image_rows import Shape
from ensue.models.task_model import TaskModel
from ensue.runs.config import DataSettings
from ensue.runs.parts import Example, Reading

CAPTION = "caption"  # how the column is called that tells a task by itself


class Captions:
    """The pictures and captions of a run, as its model takes them."""

    def __init__(self, data: DataSettings, model: Captioner) -> None:
        self.model = model
        self._reading = Reading(data, steps=False, pairs=True, seen=picture_beside)

    @property
    def rejected(self) -> int:
        """Rows of the last part that were left out."""
        return self._reading.rejected

    def collect(self, part: str, numbers: Numbers, shape: Shape | None = None) -> Collected:
        """shape: what the pictures are brought to; None as the settings say."""
        if part == "train":
            self.model.prepare(own.label for own in self._reading.rows(part))
        rows = (
            Row(own.place, {"image": own.value, "label": own.label})
            for own in self._reading.rows(part)
        )
        return self.model.collected(rows, numbers, shape)


def picture_beside(place: Place, name: Any) -> Picture:
    """The picture of a file, whose path is told from the folder of the table."""
    if not isinstance(name, str) or not name.strip():
        raise Unfit("expected the name of a picture's file, got nothing")
    try:
        return picture_of(Path(place.file).parent / name.strip())
    except DataError as error:
        raise Unfit(str(error)) from None


def run_captions(data: DataSettings, model: TaskModel) -> Captions | None:
    """Those of a run that learns to speak of pictures."""
    return Captions(data, model) if isinstance(model, Captioner) else None


def rows_to_describe(paths: Sequence[str], data: DataSettings, tell: Tell | None) -> Iterator[Row]:
    """Pictures, and those that tables name; captions are not needed."""
    for path in paths:
        if is_image(Path(path)):
            yield from Gathered({path: partial(image_row, Path(path), None)}, data.skip_bad, tell)
            continue
        own = {"label": "", "group": "", "train": [path], "validation": [path]}
        reading = Reading(data.model_copy(update=own), steps=False, tell=tell, seen=picture_beside)
        for row in reading.rows("train"):
            yield Row(row.place, {"image": row.value, "label": None})


def describe(model: Captioner, rows: Iterable[Row]) -> Iterator[tuple[Example, Any]]:
    """(name of the picture, answer) for each."""
    given, numbers = list(rows), Numbers()
    part = model.collected(given, numbers, model.shape)
    for row, answer in zip(given, model.answers(part, numbers), strict=True):
        name = row.place.file if is_image(Path(row.place.file)) else str(row.place)
        yield Example(name, None, row.place), answer


def are_captions(rows: Sequence[Row]) -> bool:
    """Whether one column names pictures and another is called "caption"."""
    names = [name for name in rows[0].fields if name != CAPTION]
    return CAPTION in rows[0].fields and any(
        all(is_image(Path(str(row.fields.get(name)))) for row in rows) for name in names
    )
