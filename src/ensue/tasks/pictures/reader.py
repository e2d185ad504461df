"""`PictureReader`: reads pictures, arrays of bytes or files, with what is learned of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from ensue.data.frames.origin import FILES, Origin
from ensue.data.pictures.endings import is_image
from ensue.data.rows import Tell
from ensue.data.settings import DataSettings
from ensue.errors import OptionError
from ensue.tasks.abilities import NOTHING, Asked
from ensue.tasks.pictures.files import (
    NamedPictures,
    asked_pictures,
    picture_examples,
    pictures_asked,
    pictures_in_memory,
)
from ensue.tasks.pictures.part import PicturePart, Shape, collect_pictures
from ensue.tasks.rows.collect import Example
from ensue.tasks.rows.part import Tokenisers
from ensue.tasks.rows.reader import RowReader, Rows
from ensue.tasks.rows.reading import AT_ONCE, asked_rows, together


class PictureReader(RowReader[PicturePart]):
    """Data frames name the file of each picture."""

    content = NamedPictures()

    @abstractmethod
    def learned_shape(self) -> Shape:
        """Of the pictures of a fitted model."""

    def cut(self, rows: Rows, like: PicturePart | None) -> Tokenisers | None:
        """What labels that are texts are cut by; None where they are not."""
        return None

    def is_picture(self, path: str) -> bool:
        """Whether a file or folder to answer holds pictures; else it is a table that names them."""
        return True

    def examples(self, rows: Any) -> Iterable[Example]:
        """Pairs of a picture and its label."""
        return pictures_in_memory(rows)

    def unlabelled_examples(self, inputs: Iterable[Any]) -> Iterable[Example]:
        return pictures_asked(inputs)

    def collected(self, rows: Rows, like: PicturePart | None = None) -> PicturePart:
        """Pictures of the shape of a fitted model, or of the part that they are like; else as the
        settings say."""
        shape, numbers = (None, None) if like is None else (like.shape, like.numbers)
        if self.model.fitted:
            shape = self.learned_shape()
        return collect_pictures(rows(), self.model.model, numbers, shape, self.cut(rows, like))

    def questions(self, inputs: Any, options: Asked = NOTHING) -> PicturePart:
        """inputs: arrays of bytes, or names of files."""
        if isinstance(inputs, str | Path):
            raise OptionError("predict: expected a list of pictures, got one; write [picture]")
        return super().questions(inputs, options)

    def question_rows(
        self,
        paths: Sequence[str],
        data: DataSettings,
        on_bad_row: Tell | None = None,
        origin: Origin = FILES,
    ) -> Iterator[list[Example]]:
        def rows() -> Iterator[Example]:
            for pictures, some in groupby(paths, self.is_picture):
                if origin.files and pictures:
                    yield from picture_examples(asked_pictures([*some], data, on_bad_row))
                else:
                    yield from asked_rows(self.content, data, [*some], on_bad_row, origin)

        return together(rows(), AT_ONCE)

    def shown_input(self, example: Example) -> str:
        """Its file, or the row of the table that names it; in an idx file its number."""
        place = example.place
        return place.file if is_image(Path(place.file)) else str(place)
