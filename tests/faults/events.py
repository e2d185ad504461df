"""The moments at which a process changes something on the disk: counted, or its last."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.truncate"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def _hear(changed: Callable[[], None]) -> None:
    """Calls `changed` just before a file is opened to be written, moved, removed or synced."""

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        opened = event == "open" and not isinstance(arguments[0], int) and arguments[2] & WRITING
        if opened or event in CHANGES:
            changed()

    real = os.fsync

    def synced(handle: int) -> None:
        changed()
        real(handle)
        changed()

    sys.addaudithook(hear)
    os.fsync = synced


def kill_at_event(number: int) -> None:
    """This process ends by SIGKILL when it is about to change something for the so-many-th time."""
    left = [number]

    def changed() -> None:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    _hear(changed)


def count_events(place: Path) -> None:
    """The number of changes until now stands in a file."""
    handle, count = os.open(place, os.O_WRONLY | os.O_CREAT, 0o600), [0]

    def changed() -> None:
        count[0] += 1
        os.pwrite(handle, str(count[0]).encode(), 0)

    changed()
    _hear(changed)
