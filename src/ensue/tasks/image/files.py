"""Pictures of a run: folders of classes and idx files, read and split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from ensue.data.frames.origin import Origin
from ensue.data.pictures.idx import is_idx
from ensue.data.pictures.images import image_folder, is_image
from ensue.data.read import Gathered
from ensue.data.roles import guess_roles
from ensue.data.rows import Place, Row, Tell
from ensue.data.settings import DataSettings
from ensue.data.split import part_of
from ensue.errors import DataError, OptionError
from ensue.tasks.image.settings import ImageSettings
from ensue.tasks.pictures.named import NamedPictures
from ensue.tasks.pictures.part import PicturePart, Shape, collect_pictures
from ensue.tasks.pictures.reading import picture_examples, read_pictures
from ensue.tasks.rows.reading import Reading
from ensue.tasks.sample import Sample

COLUMNS = ("text", "second", "label", "separator", "sequence", "features", "group")
CONTENT = NamedPictures()  # of data frames, which name the file of each picture


class PictureFiles:
    """The parts of a run's files. shape: that of a fitted model, which all are brought to."""

    def __init__(
        self,
        data: DataSettings,
        settings: ImageSettings,
        shape: Shape | None = None,
        on_bad_row: Tell | None = None,
    ) -> None:
        self._data, self._settings, self._shape = data, settings, shape
        self._on_bad_row = on_bad_row
        self.rejected = 0

    def part(self, name: str, like: PicturePart | None = None) -> PicturePart:
        """All pictures of a part's own files, or those of the training files whose pixels fall
        into it."""
        shares = self._data.shares(name)
        gathered = gathered_pictures(self._data.files(name), self._data, self._on_bad_row)
        kept = (row for row in gathered if shares is None or self._part_of(row, shares) == name)
        shape = like.shape if like is not None and self._shape is None else self._shape
        numbers = None if like is None else like.numbers
        found = collect_pictures(picture_examples(kept), self._settings, numbers, shape)
        self.rejected = gathered.rejected
        return found

    def _part_of(self, row: Row, shares: Mapping[str, float]) -> str:
        return part_of(row.fields["image"].tobytes().hex(), shares, self._data.split_seed)


class NamedPictureParts:
    """The parts of a data frame that names the file of each picture. shape: that of a fitted model,
    which all are brought to."""

    rejected = 0  # none is left out

    def __init__(
        self, data: DataSettings, settings: ImageSettings, shape: Shape | None, origin: Origin
    ) -> None:
        self._reading = Reading(data, CONTENT, None, origin)
        self._settings, self._shape = settings, shape

    def part(self, name: str, like: PicturePart | None = None) -> PicturePart:
        shape = like.shape if like is not None and self._shape is None else self._shape
        numbers = None if like is None else like.numbers
        return collect_pictures(self._reading.rows(name), self._settings, numbers, shape)


def named_columns(sample: Sample) -> dict[str, str]:
    """As keys of [data], text and label: the columns that were named, the one that names pictures,
    and the one that looks like a label."""
    data = sample.data
    files = [name for name in sample.columns if _name_pictures(sample, name)]
    if not data.text and len(files) != 1:
        raise DataError(
            f"{sample.place}: expected one column with the names of pictures, got "
            f"{', '.join(files) or 'none'}; name it with {sample.word('text')}. "
            f"Columns: {', '.join(sample.columns)}"
        )
    text = data.text or files[0]
    label = data.label or guess_roles(sample.rows, text, None).label
    if label is None:
        raise sample.no_label()
    return {"text": text, "label": label}


def _name_pictures(sample: Sample, column: str) -> bool:
    values = sample.values(column)
    return all(isinstance(value, str) and is_image(Path(value)) for value in values)


def gathered_pictures(
    paths: Sequence[str], data: DataSettings, on_bad_row: Tell | None, labelled: bool = True
) -> Gathered:
    """labelled: their labels are needed."""
    sources = {path: partial(read_pictures, path, labelled=labelled) for path in paths}
    return Gathered(sources, data.skip_bad, on_bad_row)


def asked_pictures(
    paths: Sequence[str], data: DataSettings, on_bad_row: Tell | None
) -> Iterator[Row]:
    """The pictures of files, of folders, of idx files; labels are not needed."""
    yield from gathered_pictures(paths, data, on_bad_row, labelled=False)


def picture_name(place: Place) -> str:
    """The file of a picture; in an idx file also its number."""
    return str(place) if is_idx(Path(place.file)) else place.file


def are_pictures(paths: Iterable[str]) -> bool:
    """Whether files and folders look like pictures."""
    found = [Path(path) for path in paths]
    return all(
        image_folder(path) if path.is_dir() else is_idx(path) or is_image(path) for path in found
    )


def refuse_columns(data: DataSettings) -> None:
    given = [f"--{name}" for name in COLUMNS if getattr(data, name)]
    if given:
        raise OptionError(
            f"{', '.join(given)}: pictures have no columns: a picture's class is its folder, or "
            "stands in the file of labels beside an idx file. Leave the option out"
        )
