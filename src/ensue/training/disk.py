"""The disk: how much room it has, and what to say when it fails."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ensue.errors import RunError

_ADVICE = {
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room within the quota",
    errno.EROFS: "name a folder that can be written to",
    errno.EACCES: "name a folder that can be written to",
}


def free_bytes(folder: Path) -> int:
    """On the disk that holds the folder, or will."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free


@contextmanager
def disk_errors(place: Path, needed: int, leftover: Path | None = None) -> Iterator[None]:
    """Turns the system's error into one that says what to do; what was half written goes."""
    try:
        yield
    except OSError as error:
        if leftover is not None:
            shutil.rmtree(leftover, ignore_errors=True)
        number = error.errno or 0
        raise RunError(
            f"{place}: not saved: {os.strerror(number)}; needed {needed:,} bytes, free "
            f"{free_bytes(place.parent):,}. Earlier checkpoints are untouched. "
            f"Next: {_ADVICE.get(number, 'check the disk')}, then run the same command again"
        ) from error
