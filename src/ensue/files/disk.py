"""The disk: free space, messages when it fails, and temporary names for files that are being
written."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import BinaryIO

from ensue.errors import OptionError, RunError
from ensue.files.opening import KINDS

UNFINISHED = ".tmp-"
OLD = "-old"  # suffix of the old version during its replacement
# the path's name and the process number
NAME = re.compile(rf"{re.escape(UNFINISHED)}(.+)-(\d{{1,18}})-[0-9a-f]{{8}}(?:{OLD})?", re.DOTALL)


# --- names next to a place -------------------------------------------------------------------


def unfinished(place: Path) -> Path:
    """A temporary name next to the place, never used before: process numbers are reused."""
    return place.parent / f"{UNFINISHED}{place.name}-{os.getpid()}-{secrets.token_hex(4)}"


def free_name(place: Path) -> Path:
    """A free name next to the place: run-2, run-3, …"""
    named = place if place.name not in ("", "..") else Path(os.path.abspath(place))
    names = (named.with_name(f"{named.name}-{k}") for k in count(2))
    return next(path for path in names if not path.exists())


def leftovers(place: Path) -> Iterator[Path]:
    """Temporary files of this path left by processes that have ended."""
    for path, name in _left_in(place.parent):
        if name == place.name:
            yield path


def remove_leftovers(place: Path) -> None:
    for path in leftovers(place):
        _remove(path)


def sweep(folder: Path) -> list[str]:
    """Removes the temporary files that ended processes left in a folder, and returns their names.
    Keeps an old version whose replacement is missing."""
    removed = []
    for path, name in sorted(_left_in(folder)):
        if not path.name.endswith(OLD) or os.path.lexists(folder / name):
            _remove(path)
            removed.append(path.name)
    return removed


def _left_in(folder: Path) -> Iterator[tuple[Path, str]]:
    """The files that ended processes left, each with the name of its target."""
    for path in folder.iterdir() if folder.is_dir() else ():
        match = NAME.fullmatch(path.name)
        if match and not is_another_process(int(match[2])):
            yield path, match[1]


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def is_another_process(number: int) -> bool:
    """Whether another process with this number is alive and may be writing."""
    if number == os.getpid():
        return False
    try:
        os.kill(number, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # it exists and belongs to another user
    return True


_ADVICE = {
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room within the quota",
    errno.EROFS: "name a folder that can be written to",
    errno.EACCES: "name a folder that can be written to",
    errno.ENOTDIR: "name another folder",
    errno.EEXIST: "name another folder",
}
_UNWRITABLE = {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT}
CHECKPOINTS_STAND = "Earlier checkpoints are untouched. "


def free_bytes(folder: Path) -> int:
    """Free bytes on the disk of a folder, which need not exist yet."""
    while not os.path.exists(folder) and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free


def advice(error: OSError) -> str:
    """The first thing to do about a system error."""
    return _ADVICE.get(error.errno or 0, "check the disk")


@contextmanager
def disk_errors(
    place: Path, needed: int, leftover: Path | None = None, *, stands: str = ""
) -> Iterator[None]:
    """Turns an error of the system into one with advice, and deletes `leftover`. needed: bytes to
    write, 0 if unknown; stands: a sentence on what is safe."""
    try:
        yield
    except OSError as error:
        if leftover is not None:
            shutil.rmtree(leftover, ignore_errors=True)
        room = f"; needed {needed:,} bytes, free {free_bytes(place.parent):,}" if needed else ""
        raise RunError(
            f"{place}: not saved: {os.strerror(error.errno or 0)}{room}. {stands}"
            f"Next: {advice(error)}, then run the same command again"
        ) from error


OPENINGS = "test-openings.jsonl"  # next to runs: the number of evaluations of their test parts
RUN_MARKS, MODEL_MARKS = ("config.toml", "data.json"), ("manifest.json", "model.json")
RUN_FILES = frozenset(
    {
        *RUN_MARKS,
        "history.jsonl",
        "timing.jsonl",
        "training.json",
        "evaluation.json",
        "failure.json",
        "selection.json",
        "card.md",
        "lock",
    }
)


def refuse_target(path: Path) -> None:
    """Raises OptionError if no file can be written at this path: its folder is missing or not
    writable, the path is not a file, or the file belongs to a run or model."""
    if not path.parent.is_dir():
        raise OptionError(f"{path} cannot be written: {path.parent} is not a folder")
    _refuse_unwritable(path)
    _refuse_strange(path)
    place = path.parent.resolve()
    inside = any(_has(parent, RUN_MARKS) for parent in place.parents) or _has(place, MODEL_MARKS)
    is_of_run = path.name in RUN_FILES and _has(place, RUN_MARKS)
    if inside or is_of_run or (path.name == OPENINGS and path.exists()):
        raise OptionError(
            f"{path} cannot be written: files of a run or a model are never overwritten; name "
            "one in another folder"
        )


def _refuse_unwritable(path: Path) -> None:
    """Tries to write a temporary file: permissions do not reveal /proc and similar folders."""
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        if error.errno in _UNWRITABLE:
            raise OptionError(
                f"{path} cannot be written: the folder {path.parent} cannot be written to "
                f"({os.strerror(error.errno)}); name one in another folder"
            ) from error


def _has(folder: Path, names: Iterable[str]) -> bool:
    return all((folder / name).is_file() for name in names)


def _refuse_strange(path: Path) -> None:
    try:
        kind = stat.S_IFMT(path.lstat().st_mode)
    except OSError:
        return
    if kind not in (stat.S_IFREG, stat.S_IFLNK):
        raise OptionError(f"{path} cannot be written: it is {KINDS[kind]}")


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yields a file that replaces `path` after the block succeeds; after an error the old file
    stays. Temporary files of killed processes are deleted."""
    _refuse_strange(path)
    beside = unfinished(path)
    try:
        remove_leftovers(path)
        with open(beside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def write_together(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes files that belong together, by name: all of them next to the old ones first, then each
    in its place. If the disk fails, the old files stay; raises RunError."""
    with disk_errors(folder, sum(map(len, files.values()))), ExitStack() as stack:
        for name, data in files.items():  # each replaces its file when the stack is left
            file = stack.enter_context(replacing(folder / name))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file completely or not at all; raises RunError if the disk fails."""
    with disk_errors(path, len(data)), replacing(path) as file:
        file.write(data)
