"""Folders that are whole or not there, and known to be whole.

A folder is written beside its place as `.tmp-…`, synced and renamed. Its manifest holds the
size and sha256 of each file and of itself; one that differs in a single bit is not read.

Only an empty folder or one of ours is ever replaced: see `_ours`.
"""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import shutil
from collections.abc import Collection, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from ensue.errors import RunError
from ensue.files.disk import disk_errors

MANIFEST, UNFINISHED = "manifest.json", ".tmp-"
SHOWN = 3  # names of files that a message has


class Damaged(Exception):
    """Why a folder is not what was written."""


def canonical(value: object, *, sort: bool = True) -> bytes:
    """The one way to write a value as JSON: keys in order, no NaN, floats that repeat exactly.
    sort: False leaves the keys in the order that they have, which reading keeps."""
    text = json.dumps(value, sort_keys=sort, allow_nan=False, ensure_ascii=False, indent=1)
    return text.encode() + b"\n"


def finite(value: Any) -> Any:
    """The value with null for every number that JSON has not got: infinity and NaN."""
    if isinstance(value, Mapping):
        return {key: finite(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [finite(own) for own in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def digest(value: bytes) -> str:
    return sha256(value).hexdigest()


def sealed(value: Mapping[str, Any], *, sort: bool = True) -> bytes:
    """A value as JSON that carries the digest of itself."""
    own = digest(canonical(value, sort=sort))
    return canonical({**value, "sha256": own}, sort=sort)


def unsealed(data: bytes, name: str) -> dict[str, Any]:
    """The value that was sealed; Damaged where a single bit differs. name: of the file."""
    try:
        value = json.loads(data)
        if canonical(value, sort=False) != data:
            raise ValueError
        own = value.pop("sha256")
        if own != digest(canonical(value, sort=False)):
            raise ValueError
    except (ValueError, KeyError, AttributeError, RecursionError):
        raise Damaged(f"{name} is not what was written") from None
    return dict(value)


# --- writing -------------------------------------------------------------------------------


def with_manifest(files: Mapping[str, bytes], facts: Mapping[str, Any]) -> dict[str, bytes]:
    """The files, and the manifest that lists them beside the facts."""
    listed = {name: {"size": len(data), "sha256": digest(data)} for name, data in files.items()}
    return {**files, MANIFEST: sealed({**facts, "files": listed})}


def write_folder(place: Path, files: Mapping[str, bytes], *, stands: str = "") -> None:
    """Writes the files beside, then puts them in the place of what is there, which must be empty
    or ours. stands: a sentence on what is safe if the disk fails."""
    beside = _unfinished(place)
    with disk_errors(place, sum(map(len, files.values())), beside, stands=stands):
        there = os.path.lexists(place)
        if there and not _ours(place, files.keys()):
            raise RunError(
                f"{place}: not saved: {_described(place)} is there, and nothing of it was touched. "
                "Name a folder that does not exist yet, or move away what is there"
            )
        place.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(place)
        beside.mkdir()
        for name, data in files.items():
            _write(beside / name, data)
        sync_folder(beside)
        _put(beside, place, there)
        sync_folder(place.parent)


def _put(beside: Path, place: Path, there: bool) -> None:
    """The one in the place of the other, which goes only once it is replaced."""
    gone = beside.with_name(f"{beside.name}-old")
    if there:
        os.rename(place, gone)
    try:
        os.rename(beside, place)
    except OSError:
        if there:
            os.rename(gone, place)
        raise
    if there:
        shutil.rmtree(gone, ignore_errors=True)


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
    """First under a name that is never read: a crash in between leaves none half removed."""
    gone = _unfinished(path)
    os.rename(path, gone)
    shutil.rmtree(gone, ignore_errors=True)


def _unfinished(place: Path) -> Path:
    """A name beside the place that no process had before: numbers of processes come again."""
    return place.parent / f"{UNFINISHED}{place.name}-{os.getpid()}-{secrets.token_hex(4)}"


def _remove_leftovers(place: Path) -> None:
    """What processes that were killed left of this place."""
    name = re.compile(rf"{re.escape(UNFINISHED + place.name)}-(\d+)-[0-9a-f]{{8}}(-old)?")
    for path in place.parent.iterdir():
        match = name.fullmatch(path.name)
        if match and not _others(int(match[1])):
            shutil.rmtree(path, ignore_errors=True)


def _others(process: int) -> bool:
    """Whether another process of that number is alive, so that it may be writing."""
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # there is one, and it is not ours
    return True


# --- what may be replaced ------------------------------------------------------------------


def _ours(place: Path, names: Collection[str]) -> bool:
    """Whether a folder may be replaced: it is empty; or it has a manifest as we write it, and
    nothing but files that the manifest lists or that are about to be written. They may be
    damaged. A manifest that is no JSON any more is ours if some of those files are with it."""
    if place.is_symlink() or not place.is_dir():
        return False
    there = list(place.iterdir())
    found = {path.name for path in there if path.is_file() and not path.is_symlink()}
    if len(found) < len(there) or (there and MANIFEST not in found):
        return False
    if not there:
        return True
    listed = _listed((place / MANIFEST).read_bytes())
    if listed is None:
        return found <= {*names, MANIFEST} and len(found) > 1
    return bool(listed) and found <= {*listed, *names, MANIFEST}


def _listed(manifest: bytes) -> list[str] | None:
    """The files that a manifest lists, [] if it is not as ours; None if it is no JSON."""
    try:
        value = json.loads(manifest)
    except (ValueError, RecursionError):
        return None
    files = value.get("files") if isinstance(value, dict) else None
    if not isinstance(files, dict):
        return []
    entries = [own.keys() if isinstance(own, dict) else set() for own in files.values()]
    return list(files) if all(own == {"size", "sha256"} for own in entries) else []


def _described(place: Path) -> str:
    """
    >>> _described(Path(os.devnull))
    'a file'
    """
    if place.is_symlink():
        return f"a link to {os.readlink(place)}"
    if not place.is_dir():
        return "a file"
    names = sorted(path.name for path in place.iterdir())
    shown = ", ".join(names[:SHOWN]) + ", …" * (len(names) > SHOWN)
    return f"a folder with other files ({shown})"


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
    return unsealed(data, MANIFEST)
