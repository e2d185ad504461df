"""Tables that name the file of each picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ensue.data.pictures.images import Picture, picture_of
from ensue.data.rows import Place
from ensue.data.settings import DataSettings
from ensue.data.values import Unfit
from ensue.errors import DataError
from ensue.tasks.rows.collect import Example
from ensue.tasks.rows.content import Content


class NamedPictures(Content):
    """The name of a picture's file, and its class."""

    def looked_up(self, example: Example, data: DataSettings) -> Example:
        return with_picture(example, data.text)


def with_picture(example: Example, column: str) -> Example:
    """The picture in place of the name of its file."""
    try:
        return example._replace(value=picture_beside(example.place, example.value))
    except Unfit as unfit:
        raise Unfit(f"{column}: {unfit}") from None


def picture_beside(place: Place, name: Any) -> Picture:
    """The picture of a file, whose path is told from the folder of the table."""
    if not isinstance(name, str):
        raise Unfit(f"expected the name of a picture's file, got {name!r}")
    try:
        return picture_of(Path(place.file).parent / name.strip())
    except DataError as error:
        raise Unfit(str(error)) from None
