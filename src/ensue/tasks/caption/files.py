"""Pictures with captions as files: a table names the file of each picture, and what it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from ensue.data.frames.origin import FILES, Origin
from ensue.data.pictures.images import image_row, is_image
from ensue.data.read import Gathered
from ensue.data.rows import Place, Tell
from ensue.data.settings import DataSettings
from ensue.tasks.pictures.files import picture_examples, with_picture
from ensue.tasks.pictures.part import PicturePart
from ensue.tasks.rows.collect import Example, PairContent
from ensue.tasks.rows.reading import Reading, asked_rows

Rows = Callable[[], Iterable[Example]]  # can be gone through more than once


class CaptionContent(PairContent):
    """The name of a picture's file, and a caption; neither is empty."""

    def looked_up(self, example: Example, data: DataSettings) -> Example:
        return with_picture(example, data.text_column)


CONTENT = CaptionContent()


class CaptionFiles:
    """The parts of a run's files. collect: makes a part of rows, like another one."""

    def __init__(
        self,
        data: DataSettings,
        collect: Callable[[Rows, PicturePart | None], PicturePart],
        on_bad_row: Tell | None,
        origin: Origin = FILES,
    ) -> None:
        self._reading, self._collect = Reading(data, CONTENT, on_bad_row, origin), collect

    @property
    def rejected(self) -> int:
        return self._reading.rejected

    def part(self, name: str, like: PicturePart | None = None) -> PicturePart:
        return self._collect(lambda: self._reading.rows(name), like)


def asked_pictures(
    paths: Sequence[str], data: DataSettings, on_bad_row: Tell | None, origin: Origin = FILES
) -> Iterator[Example]:
    """Pictures, and those that tables name; captions are not needed."""
    for path in paths:
        if is_image(Path(path)):
            read = partial(image_row, Path(path), None)
            yield from picture_examples(Gathered({path: read}, data.skip_bad, on_bad_row))
        else:
            yield from asked_rows(CONTENT, data, [path], on_bad_row, origin)


def picture_name(place: Place) -> str:
    """What is shown of a picture: its file, or the row of the table that names it."""
    return place.file if is_image(Path(place.file)) else str(place)
