"""`PictureReader`: reads pictures, as arrays of bytes or files, with their labels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from ensue.data.pictures.endings import is_image
from ensue.data.pictures.images import (
    Picture,
    checked,
    image_folder,
    image_row,
    is_idx,
    picture_of,
    read_idx_pictures,
    read_image,
    read_image_folder,
)
from ensue.data.read import Gathered
from ensue.data.roles import guess_roles
from ensue.data.rows import Place, ProblemCallback, Row
from ensue.data.settings import DataSettings
from ensue.data.split import part_of
from ensue.data.values import Unfit
from ensue.errors import DataError, OptionError
from ensue.tasks.abilities import NOTHING, RequestOptions
from ensue.tasks.pictures.part import PicturePart, Shape, collect_pictures
from ensue.tasks.pictures.settings import PictureSettings
from ensue.tasks.reader import QuestionFiles
from ensue.tasks.rows.collect import IN_MEMORY, Content, Example, pairs_of
from ensue.tasks.rows.part import Tokenisers
from ensue.tasks.rows.reader import AT_ONCE, RowReader, Rows, asked_rows, together
from ensue.tasks.sample import Sample


class NamedPictures(Content):
    """The name of a picture's file, and its class."""

    def looked_up(self, example: Example, data: DataSettings) -> Example:
        return with_picture(example, data.text_column)


def with_picture(example: Example, column: str) -> Example:
    """The example with its picture instead of the name of its file."""
    try:
        return example._replace(value=picture_beside(example.place, example.value))
    except Unfit as unfit:
        raise Unfit(f"{column}: {unfit}") from None


def picture_beside(place: Place, name: Any) -> Picture:
    """The picture of a file, with a path relative to the folder of the table."""
    if not isinstance(name, str):
        raise Unfit(f"expected the name of a picture's file, got {name!r}")
    try:
        return picture_of(Path(place.file).parent / name.strip())
    except DataError as error:
        raise Unfit(str(error)) from None


def read_pictures(path: Path | str, tell: ProblemCallback, labelled: bool = True) -> Iterator[Row]:
    """Rows {"image", "label"} of a folder of classes, an idx file, or one picture. labelled: labels
    are required; else a folder of pictures is accepted."""
    path = Path(path)
    if path.is_dir():
        return read_image_folder(path, tell) if labelled else _inside(path, tell)
    if is_idx(path):
        return read_idx_pictures(path, labelled)
    if labelled:
        raise DataError(
            f"{path}: expected a folder with a folder of pictures for each class, or an idx file "
            "(…-images-idx3-ubyte) with its labels file next to it; a table that names pictures is "
            "read with --image COLUMN --label COLUMN without --task image"
        )
    return image_row(path, None, tell)


def _inside(path: Path, tell: ProblemCallback) -> Iterator[Row]:
    """The pictures of a folder and of its subfolders, by name; hidden files are skipped."""
    for file in sorted(child for child in path.rglob("*") if child.is_file()):
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


def picture_from(value: Any, place: Place) -> Picture:
    """The picture of an array, or of a file by its name."""
    if isinstance(value, str | Path):
        return read_image(value)
    if isinstance(value, np.ndarray):
        return checked(value, str(place))
    raise DataError(
        f"{place}: expected a picture as an array of bytes, or the name of a file, "
        f"got {type(value).__name__}"
    )


COLUMNS = ("text", "second", "label", "separator", "sequence", "features", "group")


class PictureFiles:
    """The parts of a run's files. shape: the shape of a fitted model, to which all pictures are
    converted."""

    def __init__(
        self,
        data: DataSettings,
        settings: PictureSettings,
        shape: Shape | None = None,
        on_bad_row: ProblemCallback | None = None,
    ) -> None:
        self._data, self._settings, self._shape = data, settings, shape
        self._on_bad_row = on_bad_row
        self.rejected = 0

    def part(self, name: str, like: PicturePart | None = None) -> PicturePart:
        """All pictures of a part's own files, or the pictures of the training files that the hash
        of their pixels assigns to it."""
        shares = self._data.shares(name)
        gathered = gathered_pictures(self._data.files(name), self._data, self._on_bad_row)
        chosen = (row for row in gathered if shares is None or self._part_of(row, shares) == name)
        shape = like.shape if like is not None and self._shape is None else self._shape
        numbers = None if like is None else like.numbers
        pictures = collect_pictures(picture_examples(chosen), self._settings, numbers, shape)
        self.rejected = gathered.rejected
        return pictures

    def _part_of(self, row: Row, shares: Mapping[str, float]) -> str:
        return part_of(row.fields["image"].tobytes().hex(), shares, self._data.split_seed)


def named_columns(sample: Sample) -> dict[str, str]:
    """The keys of [data] for text and label: named columns, or the column that names pictures and
    the column that looks like a label."""
    data = sample.data
    files = [name for name in sample.columns if _name_pictures(sample, name)]
    if not data.text_column and len(files) != 1:
        raise DataError(
            f"{sample.place}: expected one column with the names of pictures, got "
            f"{', '.join(files) or 'none'}; name it with {sample.word('text')}. "
            f"Columns: {', '.join(sample.columns)}"
        )
    text = data.text_column or files[0]
    label = data.label or guess_roles(sample.rows, text, None).label
    if label is None:
        raise sample.no_label()
    return {"text": text, "label": label}


def _name_pictures(sample: Sample, column: str) -> bool:
    values = sample.values(column)
    return all(isinstance(value, str) and is_image(Path(value)) for value in values)


def gathered_pictures(
    paths: Sequence[str],
    data: DataSettings,
    on_bad_row: ProblemCallback | None,
    labelled: bool = True,
) -> Gathered:
    """The rows of files with pictures. labelled: labels are required."""
    sources = {path: partial(read_pictures, path, labelled=labelled) for path in paths}
    return Gathered(sources, data.skip_bad, on_bad_row)


def asked_pictures(files: QuestionFiles) -> Iterator[Row]:
    """The pictures of files, folders and idx files to answer; labels are not needed."""
    yield from gathered_pictures(files.paths, files.data, files.on_bad_row, labelled=False)


def are_pictures(paths: Iterable[str]) -> bool:
    """Whether files and folders look like pictures."""
    places = [Path(path) for path in paths]
    return all(
        image_folder(path) if path.is_dir() else is_idx(path) or is_image(path) for path in places
    )


def refuse_columns(data: DataSettings) -> None:
    flags = [f"--{name}" for name in COLUMNS if getattr(data, name)]
    if flags:
        raise OptionError(
            f"{', '.join(flags)}: pictures have no columns: a picture's class is its folder, or "
            "is in the labels file next to an idx file. Leave the option out; a table that "
            "names pictures, with any label, is read with --image COLUMN --label COLUMN without "
            "--task image"
        )


class PictureReader(RowReader[PicturePart]):
    """Reads pictures; data frames name the file of each picture."""

    content = NamedPictures()

    @abstractmethod
    def learned_shape(self) -> Shape:
        """The shape of the pictures of a fitted model."""

    def cut(self, rows: Rows, like: PicturePart | None) -> Tokenisers | None:
        """The tokenisers of labels that are texts; None for other labels."""
        return None

    def is_picture(self, path: str) -> bool:
        """Whether a file or folder contains pictures itself; else it is a table that names them."""
        return True

    def examples(self, rows: Any) -> Iterable[Example]:
        """Pairs of a picture and its label."""
        return pictures_in_memory(rows)

    def unlabelled_examples(self, inputs: Iterable[Any]) -> Iterable[Example]:
        return pictures_asked(inputs)

    def collected(self, rows: Rows, like: PicturePart | None = None) -> PicturePart:
        """Pictures in the shape of a fitted model or of the part `like`; else in the settings'
        shape."""
        shape, numbers = (None, None) if like is None else (like.shape, like.numbers)
        if self.model.fitted:
            shape = self.learned_shape()
        return collect_pictures(rows(), self.model.settings, numbers, shape, self.cut(rows, like))

    def questions(self, inputs: Any, options: RequestOptions = NOTHING) -> PicturePart:
        """Questions from arrays of bytes, or names of files."""
        if isinstance(inputs, str | Path):
            raise OptionError("predict: expected a list of pictures, got one; write [picture]")
        return super().questions(inputs, options)

    def question_rows(self, files: QuestionFiles) -> Iterator[list[Example]]:
        def rows() -> Iterator[Example]:
            for pictures, some in groupby(files.paths, self.is_picture):
                batch = replace(files, paths=[*some])
                if files.origin.files and pictures:
                    yield from picture_examples(asked_pictures(batch))
                else:
                    yield from asked_rows(self.content, batch)

        return together(rows(), AT_ONCE)

    def shown_input(self, example: Example) -> str:
        """The name of a picture: its file, or the row of the table; in an idx file its index."""
        place = example.place
        return place.file if is_image(Path(place.file)) else str(place)
