"""Models of pictures as runs: folders and idx files read, split and collected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ensue.data.idx import is_idx
from ensue.data.images import image_folder, is_image
from ensue.data.read import Gathered
from ensue.data.rows import Row, Tell
from ensue.data.split import part_of
from ensue.errors import OptionError
from ensue.models.collect import Collected, Numbers
from ensue.models.image_model import ImageModel
from ensue.models.image_rows import Shape, collect_pictures, read_pictures
from ensue.models.image_settings import ImageSettings
from ensue.runs.config import DataSettings, RunConfig
from ensue.runs.parts import Example, Reading

COLUMNS = ("text", "label", "separator", "sequence", "features", "group")


@dataclass
class Pictures:
    """The pictures of a run. tell: who hears of bad ones."""

    data: DataSettings
    settings: ImageSettings
    tell: Tell | None = None
    rejected: int = field(default=0, init=False)  # of the last part, left out

    def collect(self, part: str, numbers: Numbers, shape: Shape | None = None) -> Collected:
        """train, validation or test: all of its own files, or those of the training files whose
        pixels fall into it. shape: what all are brought to."""
        own = {"train": self.data.train, "validation": self.data.validation, "test": self.data.test}
        shares = Reading(self.data, steps=False).shares()
        split = shares if part == "train" or not own[part] else None
        gathered = _gathered(own[part] or self.data.train, self.data, self.tell)
        kept = (row for row in gathered if split is None or self._part(row, split) == part)
        found = collect_pictures(kept, numbers, self.settings, shape)
        self.rejected = gathered.rejected
        return found

    def _part(self, row: Row, shares: dict[str, float]) -> str:
        return part_of(row.fields["image"].tobytes().hex(), shares, self.data.split_seed)


def _gathered(
    paths: Sequence[str], data: DataSettings, tell: Tell | None, labelled: bool = True
) -> Gathered:
    sources = {path: partial(read_pictures, path, labelled=labelled) for path in paths}
    return Gathered(sources, data.skip_bad, tell)


def run_pictures(config: RunConfig) -> Pictures | None:
    """The pictures of a run that learns from them."""
    if not isinstance(config.model, ImageSettings):
        return None
    return Pictures(config.data, config.model)


def predict_pictures(
    model: ImageModel, rows: Iterable[Row], numbers: Numbers
) -> Iterator[tuple[Example, Any]]:
    """(name of the picture, answer) for each."""
    given = list(rows)
    part = collect_pictures(given, numbers, model.model, model.shape)
    for row, answer in zip(given, model.answers(part, numbers), strict=True):
        name = str(row.place) if is_idx(Path(row.place.file)) else row.place.file
        yield Example(name, None, row.place), answer


def rows_to_predict(paths: Sequence[str], data: DataSettings, tell: Tell | None) -> Iterable[Row]:
    """The pictures of files, of folders of classes, of idx files; labels are not needed."""
    return _gathered(paths, data, tell, labelled=False)


# --- what nobody said --------------------------------------------------------------------------


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
