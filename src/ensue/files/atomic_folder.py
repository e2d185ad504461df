"""Folders that are either complete or absent, and verified.

A folder is written next to its place as `.tmp-…`, synced and renamed. Its manifest holds the size
and sha256 of each file and of itself; a folder that differs in a single bit is not read.

Only empty folders and folders written by Ensue are replaced: see `_ours`.
"""

from __future__ import annotations

import ctypes
import errno
import json
import math
import os
import shutil
import stat
from collections.abc import Collection, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from ensue.errors import RunError
from ensue.files.disk import OLD, disk_errors, leftovers, remove_leftovers, unfinished
from ensue.files.opening import read_plain

AT_FDCWD = -100
RENAME_EXCHANGE = 2
# Errors of systems without the call, or of file systems that do not support it.
CANNOT = (errno.ENOSYS, errno.EINVAL, errno.EPERM, errno.EOPNOTSUPP)


def exchanged(one: Path, other: Path) -> bool:
    """Swaps two paths in one step; False if the system cannot do this."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    names = os.fsencode(one), os.fsencode(other)
    if call(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in CANNOT:
        return False
    raise OSError(code, os.strerror(code), str(one))


MANIFEST = "manifest.json"
SHOWN = 3  # maximum file names in a message


class Damaged(Exception):
    """A folder differs from what was written; the message says how."""


def canonical(value: object, *, sort: bool = True) -> bytes:
    """A value as canonical JSON: sorted keys, no NaN, floats that round-trip exactly. sort: False
    keeps the order of the keys."""
    text = json.dumps(value, sort_keys=sort, allow_nan=False, ensure_ascii=False, indent=1)
    return text.encode() + b"\n"


def finite(value: Any) -> Any:
    """The value with null for infinity and NaN, which JSON does not have."""
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def or_infinite(value: float | None) -> float:
    """A number written by `finite`: null becomes infinity."""
    return math.inf if value is None else float(value)


def digest(value: bytes) -> str:
    return sha256(value).hexdigest()


def sealed(value: Mapping[str, Any], *, sort: bool = True) -> bytes:
    """A value as JSON that contains its own digest."""
    checksum = digest(canonical(value, sort=sort))
    return canonical({**value, "sha256": checksum}, sort=sort)


def unsealed(data: bytes, name: str) -> dict[str, Any]:
    """The value that was sealed; raises Damaged if a single bit differs. name: the name of the
    file."""
    try:
        value = json.loads(data)
        if canonical(value, sort=False) != data:
            raise ValueError
        checksum = value.pop("sha256")
        if checksum != digest(canonical(value, sort=False)):
            raise ValueError
    except (ValueError, KeyError, AttributeError, RecursionError):
        raise Damaged(f"{name} differs from what Ensue wrote") from None
    return dict(value)


# --- writing -------------------------------------------------------------------------------


def with_manifest(files: Mapping[str, bytes], facts: Mapping[str, Any]) -> dict[str, bytes]:
    """The files, and a manifest with the facts and the list of files."""
    listed = {name: {"size": len(data), "sha256": digest(data)} for name, data in files.items()}
    return {**files, MANIFEST: sealed({**facts, "files": listed})}


def write_folder(place: Path, files: Mapping[str, bytes], *, stands: str = "") -> None:
    """Writes the files to a temporary folder, then replaces `place`, which must be empty or written
    by Ensue. stands: a sentence for the error message that says what is safe if the disk fails."""
    beside = unfinished(place)
    with disk_errors(place, sum(map(len, files.values())), beside, stands=stands):
        recover(place)
        exists = os.path.lexists(place)
        if exists and not _ours(place, files.keys()):
            raise RunError(
                f"{place}: not saved: {_described(place)} already exists, and was left "
                "unchanged. Name a new folder, or move it away"
            )
        place.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(place)
        beside.mkdir()
        for name, data in files.items():
            _write(beside / name, data)
        sync_folder(beside)
        _put(beside, place, exists)
        sync_folder(place.parent)


def _put(beside: Path, place: Path, exists: bool) -> None:
    """Replaces `place` by `beside`, then deletes the old folder. The replacement takes one step if
    the system can swap, else two; `recover` undoes the first of two."""
    if not exists:
        os.rename(beside, place)
        return
    if exchanged(beside, place):
        shutil.rmtree(beside, ignore_errors=True)
        return
    gone = beside.with_name(f"{beside.name}{OLD}")
    os.rename(place, gone)
    try:
        os.rename(beside, place)
    except OSError:
        os.rename(gone, place)
        raise
    shutil.rmtree(gone, ignore_errors=True)


def recover(place: Path) -> None:
    """Restores a folder that a killed process had moved away in order to replace it."""
    if os.path.lexists(place):
        return
    for path in leftovers(place):
        if path.name.endswith(OLD) and not path.is_symlink():
            os.rename(path, place)
            sync_folder(place.parent)
            return


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
    """Renames the folder, then deletes it, so that a crash cannot leave a partly deleted folder
    under its name."""
    gone = unfinished(path)
    os.rename(path, gone)
    shutil.rmtree(gone, ignore_errors=True)


# --- what may be replaced ------------------------------------------------------------------


def _ours(place: Path, names: Collection[str]) -> bool:
    """Whether a folder may be replaced: it is empty, or it has a manifest of Ensue and only files
    that the manifest lists or that are about to be written. The files may be damaged. A manifest
    that is not valid JSON counts if some of those files are next to it."""
    if place.is_symlink() or not place.is_dir():
        return False
    children = list(place.iterdir())
    ours = {path.name for path in children if path.is_file() and not path.is_symlink()}
    if len(ours) < len(children) or (children and MANIFEST not in ours):
        return False
    if not children:
        return True
    listed = _listed(read_plain(place / MANIFEST))
    if listed is None:
        return ours <= {*names, MANIFEST} and len(ours) > 1
    return bool(listed) and ours <= {*listed, *names, MANIFEST}


def _listed(manifest: bytes) -> list[str] | None:
    """The files that a manifest lists; [] if it is not Ensue's, None if it is not JSON."""
    try:
        value = json.loads(manifest)
    except (ValueError, RecursionError):
        return None
    files = value.get("files") if isinstance(value, dict) else None
    if not isinstance(files, dict):
        return []
    entries = [file.keys() if isinstance(file, dict) else set() for file in files.values()]
    return list(files) if all(entry == {"size", "sha256"} for entry in entries) else []


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
    listed = ", ".join(names[:SHOWN]) + ", …" * (len(names) > SHOWN)
    return f"a folder with other files ({listed})"


# --- reading -------------------------------------------------------------------------------


def read_files(place: Path) -> dict[str, bytes]:
    """The bytes of every file; raises Damaged unless all match the manifest."""
    try:
        recover(place)
        names = sorted(entry.name for entry in place.iterdir())
        manifest_bytes = read_plain(place / MANIFEST)
        listed: dict[str, Any] = manifest_of(manifest_bytes)["files"]
        if odd := sorted(set(names) ^ {*listed, MANIFEST}):
            known = "missing" if odd[0] in listed else "not in the manifest"
            raise Damaged(f"{odd[0]} is {known}")
        files = {name: read_listed(place, listed, name) for name in listed}
    except OSError as error:
        raise Damaged(f"{Path(error.filename or place).name}: {error.strerror}") from None
    except RunError as error:
        raise Damaged(str(error)) from None
    return {**files, MANIFEST: manifest_bytes}


def read_listed(place: Path, listed: Mapping[str, Any], name: str) -> bytes:
    """Reads a file and checks its size and digest against the manifest; a file that is too large is
    not read."""
    path, expected = place / name, listed[name]
    size = path.lstat().st_size
    if stat.S_ISREG(path.lstat().st_mode) and size != expected["size"]:
        raise Damaged(f"{path.name} has {size:,} bytes, expected {expected['size']:,}")
    try:
        data = read_plain(path, expected["size"])
    except RunError:
        raise Damaged(f"{path.name} is not a regular file") from None
    if digest(data) != expected["sha256"]:
        raise Damaged(f"{path.name} differs from what Ensue wrote: its sha256 differs")
    return data


def manifest_of(data: bytes) -> dict[str, Any]:
    """The verified manifest: canonical JSON with its correct digest."""
    manifest = unsealed(data, MANIFEST)
    if not _lists_files(manifest.get("files")):
        raise Damaged(f"{MANIFEST} differs from what Ensue wrote")
    return manifest


def _lists_files(files: object) -> bool:
    """Whether a value is a valid list of files: a size and a digest for each."""
    return isinstance(files, dict) and all(
        isinstance(file, dict)
        and type(file.get("size")) is int
        and file["size"] >= 0
        and isinstance(file.get("sha256"), str)
        for file in files.values()
    )
