"""Folders that are whole or not there, and known to be whole.

A folder is written beside its place as `.tmp-…`, synced and renamed. Its manifest holds the
size and sha256 of each file and of itself; one that differs in a single bit is not read.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from ensue.training.disk import disk_errors

MANIFEST, UNFINISHED = "manifest.json", ".tmp-"


class Damaged(Exception):
    """Why a folder is not what was written."""


def canonical(value: object) -> bytes:
    """The one way to write a value as JSON: keys in order, no NaN, floats that repeat exactly."""
    text = json.dumps(value, sort_keys=True, allow_nan=False, ensure_ascii=False, indent=1)
    return text.encode() + b"\n"


def digest(value: bytes) -> str:
    return sha256(value).hexdigest()


# --- writing -------------------------------------------------------------------------------


def with_manifest(files: Mapping[str, bytes], facts: Mapping[str, Any]) -> dict[str, bytes]:
    """The files, and the manifest that lists them beside the facts."""
    listed = {name: {"size": len(data), "sha256": digest(data)} for name, data in files.items()}
    manifest = {**facts, "files": listed}
    own = canonical({**manifest, "sha256": digest(canonical(manifest))})
    return {**files, MANIFEST: own}


def write_folder(place: Path, files: Mapping[str, bytes]) -> None:
    """Writes the files beside, then puts them in the place of what is there."""
    beside = place.parent / f"{UNFINISHED}{place.name}-{os.getpid()}"
    with disk_errors(place, sum(map(len, files.values())), beside):
        place.parent.mkdir(parents=True, exist_ok=True)
        beside.mkdir()
        for name, data in files.items():
            _write(beside / name, data)
        sync_folder(beside)
        if place.exists():
            remove(place)
        os.rename(beside, place)
        sync_folder(place.parent)


def _write(path: Path, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove(path: Path) -> None:
    """First under a name that nobody reads: a crash in between leaves none half removed."""
    gone = path.with_name(f"{UNFINISHED}{path.name}-{os.getpid()}-old")
    os.rename(path, gone)
    shutil.rmtree(gone)


# --- reading -------------------------------------------------------------------------------


def read_files(place: Path) -> dict[str, bytes]:
    """The bytes of every file, all of which are as the manifest says; else Damaged."""
    try:
        names = sorted(entry.name for entry in place.iterdir())
        manifest_bytes = (place / MANIFEST).read_bytes()
        listed: dict[str, Any] = manifest_of(manifest_bytes)["files"]
        if odd := sorted(set(names) ^ {*listed, MANIFEST}):
            known = "missing" if odd[0] in listed else "not in the manifest"
            raise Damaged(f"{odd[0]} is {known}")
        files = {name: _read(place / name, expected) for name, expected in listed.items()}
    except OSError as error:
        raise Damaged(f"{Path(error.filename or place).name}: {error.strerror}") from None
    return {**files, MANIFEST: manifest_bytes}


def _read(path: Path, expected: Mapping[str, Any]) -> bytes:
    """One file, of the size and the digest that the manifest has."""
    if path.is_symlink() or not path.is_file():
        raise Damaged(f"{path.name} is no plain file")
    data = path.read_bytes()
    if len(data) != expected["size"]:
        raise Damaged(f"{path.name} has {len(data):,} bytes, expected {expected['size']:,}")
    if digest(data) != expected["sha256"]:
        raise Damaged(f"{path.name} is not what was written: its sha256 differs")
    return data


def manifest_of(data: bytes) -> dict[str, Any]:
    """As written: canonical, with the right digest of itself."""
    try:
        manifest = json.loads(data)
        if canonical(manifest) != data:
            raise ValueError
        own = manifest.pop("sha256")
        if own != digest(canonical(manifest)):
            raise ValueError
    except (ValueError, KeyError, AttributeError, RecursionError):
        raise Damaged(f"{MANIFEST} is not what was written") from None
    return dict(manifest)
