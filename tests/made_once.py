"""Folders that take long to make, made by one process and then used by all."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def made_once(place: Path) -> Iterator[Path | None]:
    """A folder to fill, which is then put in its place; None where it is there already. One
    process at a time makes it."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(place.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if place.is_dir():
            yield None
            return
        half = place.with_suffix(".half")
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir()
        yield half
        half.rename(place)
