"""The time and the memory that a case may take."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

PAGE = resource.getpagesize()


class Hangs(BaseException):
    """Raised in the middle of what takes too long; no `except Exception` catches it."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise Hangs


@contextmanager
def processor_seconds(most: float) -> Iterator[None]:
    """Hangs where more processor time is spent inside; other processes do not count."""
    before = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, most)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def limit_memory(more: int) -> None:
    """From now on this process may take at most this many bytes more than it has."""
    resident = int(Path("/proc/self/statm").read_text().split()[0]) * PAGE
    resource.setrlimit(resource.RLIMIT_AS, (resident + more, resource.RLIM_INFINITY))
