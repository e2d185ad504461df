"""Which files a run was trained on, and whether they are still the same."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from ensue.errors import DataError, RunError
from ensue.runs.config import DataSettings, RunConfig
from ensue.runs.parts import digest_of, plain_text, runs_on
from ensue.training import RunFolder
from ensue.training.disk import write_whole

NAME = "data.json"


def remember_files(folder: RunFolder, config: RunConfig) -> None:
    """Writes down what the files of a run that has ended hold."""
    found = {path: digest_of([path]) for path in _files(config.data)}
    write_whole(folder.path / NAME, json.dumps({"sha256": found}, indent=1).encode())


def refuse_changed_files(folder: RunFolder, config: RunConfig, allow: Collection[str]) -> None:
    """A run that has ended is not trained again on other files."""
    changed = _changed(folder, _files(config.data))
    if changed and not {"data", "validation"} & set(allow):
        raise RunError(
            f"{_told(folder, changed)}\n"
            "Next: name another run for the new data, put the old back, or say --allow data"
        )


def split_still_holds(folder: RunFolder, config: RunConfig) -> str:
    """A warning where the part to be opened is split off training files that have changed; an
    error where rows of the training part may now be in it."""
    changed = _changed(folder, config.data.train)
    if not changed:
        return ""
    told = _told(folder, changed)
    by_place = runs_on(config.data) and any(
        plain_text(path, config.data.format) for path in config.data.train
    )
    if by_place or config.forecasts:
        raise DataError(
            f"{told}: parts are split by place, so that rows that were trained on may now be among "
            "those to test on. Put the file back, give others with --test, or train another run"
        )
    return f"{told}: rows keep their parts, but these are not all the rows of that time"


def _told(folder: RunFolder, changed: Sequence[str]) -> str:
    them = "it" if len(changed) == 1 else "them"
    return f"{', '.join(changed)}: changed since {folder.path} was trained on {them}"


def _digest(path: str) -> str:
    """ "" of what cannot be read: whoever reads the rows says so."""
    try:
        return digest_of([path])
    except OSError:
        return ""


def _files(data: DataSettings) -> list[str]:
    return [*data.train, *data.validation]


def _changed(folder: RunFolder, paths: Sequence[str]) -> list[str]:
    """Those of the files that are not as they were; none for a run that has not ended."""
    place = folder.path / NAME
    if not place.exists():
        return []
    try:
        known = json.loads(place.read_text("utf-8"))["sha256"]
        return [path for path in paths if path in known and _digest(path) not in ("", known[path])]
    except (ValueError, KeyError, TypeError):
        raise RunError(f"{place}: this is not what Ensue wrote; remove it") from None
