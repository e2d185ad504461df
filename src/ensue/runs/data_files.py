"""The files that a run was trained on, and whether they have changed."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from ensue.data.fingerprint import digest_of
from ensue.data.parallel import BETWEEN, sides_of
from ensue.data.settings import DataSettings
from ensue.errors import DataError, RunError
from ensue.files.atomic_folder import Damaged, sealed, unsealed
from ensue.files.format import FORMAT, check_format
from ensue.files.opening import read_plain
from ensue.files.seal import DATA, seal_in
from ensue.runs.config import RunConfig, portable
from ensue.training import RunFolder


def data_facts(folder: RunFolder, config: RunConfig) -> bytes:
    """data.json: digests of the files of a run, computed before they are read."""
    digests = {key_of(path, folder): _digest(path) for path in _files(config.data)}
    return sealed({"format": FORMAT, "files": digests})


def refuse_changed_files(folder: RunFolder, config: RunConfig, allow: Collection[str]) -> None:
    """Raises an error if the files of a run that has ended were changed."""
    changed = _changed(folder, _files(config.data))
    if changed and not {"data", "validation"} & set(allow):
        raise RunError(
            f"{_change_message(folder, changed)}\nNext: name another run for the new data, "
            "restore the old data, or add --allow data"
        )


def split_still_holds(folder: RunFolder, config: RunConfig) -> str:
    """Checks a part that is split off training files which have changed: a warning, or an error if
    it may now contain rows of the training part."""
    changed = _changed(folder, config.data.train)
    if not changed:
        return ""
    message = _change_message(folder, changed)
    if config.description.split.moves_with_files(config.data):
        raise DataError(
            f"{message}: parts are split by position, so rows that were trained on may now be "
            "in the test part. Restore the file, give others with --test, or train another run"
        )
    return f"{message}: rows keep their parts, but the files no longer have the same rows"


def _change_message(folder: RunFolder, changed: Sequence[str]) -> str:
    them = "it" if len(changed) == 1 else "them"
    return f"{', '.join(changed)}: changed since {folder.path} was trained on {them}"


def key_of(path: str, folder: RunFolder) -> str:
    """The path as stored in the run's configuration."""
    return BETWEEN.join(portable(side, folder.path) for side in sides_of(path))


def _digest(path: str) -> str:
    """The digest of a file; "" if the file cannot be read (reading its rows reports that)."""
    try:
        return digest_of([path])
    except (OSError, DataError):
        return ""


def _files(data: DataSettings) -> list[str]:
    return [*data.train, *data.validation, *data.unlabelled]


def _changed(folder: RunFolder, paths: Sequence[str]) -> list[str]:
    """The files that have changed; none for a run that has not ended."""
    known = _known(folder)
    by_name = {_name(path): digest for path, digest in known.items()}
    return [path for path in paths if _differs(path, folder, known, by_name)]


def _known(folder: RunFolder) -> Mapping[str, str]:
    """The digests of the files that the model was trained on, by path."""
    place = folder.data
    try:
        content = read_plain(place) if os.path.lexists(place) else None
    except OSError as error:
        raise RunError(f"{place}: cannot be read ({error.strerror})") from None
    facts = _sealed_facts(folder)
    if facts is not None and content is not None and content != facts:
        raise RunError(
            f"{place}: changed since it was written. Next: remove it; {folder.model / DATA} holds "
            "the original content"
        )
    data = content if facts is None else facts
    return {} if data is None else _digests_in(data, place)


def _sealed_facts(folder: RunFolder) -> bytes | None:
    try:
        seal = seal_in(folder.model) if folder.model.is_dir() else None
    except Damaged:
        return None  # loading the model reports it
    return None if seal is None else seal.get(DATA)


def _digests_in(data: bytes, place: Path) -> dict[str, str]:
    try:
        facts = unsealed(data, place.name)
        check_format(facts.get("format"), place)
        return {str(path): str(digest) for path, digest in facts["files"].items()}
    except (KeyError, AttributeError, Damaged):
        raise RunError(f"{place}: this is not what Ensue wrote; remove it") from None


def _differs(
    path: str, folder: RunFolder, known: Mapping[str, str], by_name: Mapping[str, str]
) -> bool:
    """Whether a file has changed; a moved file is recognised by its name."""
    before = known.get(key_of(path, folder)) or known.get(path) or by_name.get(_name(path))
    return before is not None and _digest(path) not in ("", before)


def _name(path: str) -> str:
    return BETWEEN.join(Path(side).name for side in path.split(BETWEEN))
