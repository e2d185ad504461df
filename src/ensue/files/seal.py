"""Seals: the configuration of a result cannot be changed unnoticed.

The folders model/ and learned/ contain a copy of the run's config.toml and data.json, which their
manifest covers. The files of the run are compared with these copies whenever they are used."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ensue.errors import RunError
from ensue.escape import in_shell
from ensue.files.atomic_folder import MANIFEST, Damaged, canonical, digest, manifest_of, read_listed
from ensue.files.opening import read_plain
from ensue.files.run_folder import RunFolder

CONFIG, DATA = "config.toml", "data.json"
FILES = (CONFIG, DATA)
MOST_LISTED = 10  # settings that were changed
Seal = Mapping[str, bytes]  # the copies by the name of the file


def seal_in(place: Path) -> Seal:
    """The copies in the folder of a model. Raises Damaged if they were changed."""
    try:
        listed = manifest_of(read_plain(place / MANIFEST))["files"]
        return {name: read_listed(place, listed, name) for name in FILES if name in listed}
    except OSError as error:
        raise Damaged(f"{Path(error.filename or place).name}: {error.strerror}") from None


def seal_folder(folder: RunFolder) -> Path | None:
    """The folder with the seal of a run: learned/ during training, afterwards its model."""
    return next((path for path in (folder.learned, folder.model) if path.is_dir()), None)


def content_digest(manifest: bytes) -> str:
    """The digest of a model's content, without the files that describe the run."""
    files: dict[str, Any] = json.loads(manifest)["files"]
    return digest(canonical({name: file for name, file in files.items() if name not in FILES}))


# --- differences -----------------------------------------------------------------------------


def changed_settings(was: bytes, now: bytes) -> dict[str, str]:
    """The settings, by key, that differ between two configurations; ValueError if one is not valid
    TOML."""
    before, after = _flat(was), _flat(now)
    return {
        key: f"was {before.get(key)!r}, now {after.get(key)!r}"
        for key in dict.fromkeys([*before, *after])
        if before.get(key) != after.get(key)
    }


def _flat(text: bytes) -> dict[str, Any]:
    """The settings of a configuration by `table.key`."""
    try:
        tables = tomllib.loads(text.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    values: dict[str, Any] = {}
    for name, table in tables.items():
        if isinstance(table, dict):
            values |= {f"{name}.{key}": value for key, value in table.items()}
        else:
            values[name] = table
    return values


def sealed_config(folder: RunFolder, place: Path, seal: Seal) -> tuple[bytes, str]:
    """The text of config.toml, and a remark on it or "". Raises RunError if a setting was changed
    after sealing. place: the folder with the seal."""
    text = read_plain(folder.config)
    if CONFIG not in seal:
        raise RunError(
            f"{folder.config}: {place.name}/ has no seal for it, so changes cannot be detected. "
            "Restore the folder that belongs to this file, or train another run"
        )
    if text == seal[CONFIG]:
        return text, ""
    back = f"restore it from {place / CONFIG}"
    try:
        changed = changed_settings(seal[CONFIG], text)
    except ValueError as error:
        raise RunError(
            f"{folder.config}: changed since the run began; this is not TOML: {error}. Next: {back}"
        ) from None
    if not changed:
        return text, f"{folder.config}: edited since the run began; no setting differs"
    raise RunError(
        f"{folder.config}: {_listed(changed)}\nNext: {back}, or train with the new settings: "
        f"`ensue train --run {in_shell(folder.path)} {_allowed(changed)}`, or in another run"
    )


def _listed(changed: Mapping[str, str]) -> str:
    lines = [f"{key}: {value}" for key, value in changed.items()]
    if len(lines) == 1:
        return f"changed since the run began: {lines[0]}"
    more = [f"… and {len(lines) - MOST_LISTED} more"] * (len(lines) > MOST_LISTED)
    message = f"{len(lines)} settings changed since the run began"
    return "\n  ".join([message, *lines[:MOST_LISTED], *more])


def _allowed(changed: Mapping[str, str]) -> str:
    known = " ".join(f"--allow {key}" for key in [*changed][:MOST_LISTED])
    return f"{known} …" if len(changed) > MOST_LISTED else known
