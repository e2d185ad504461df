"""Functions that workers call in tests."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from ensue.errors import DataError, Undecided
from ensue.jobs import ProgressCallback, work
from ensue.signals import Signals, Stopped


@work
def squared(tell: ProgressCallback, number: int) -> int:
    tell({"seen": number})
    return number**2


@work
def surroundings(tell: ProgressCallback, value: Any) -> Any:
    """What came, and where."""
    threads = os.environ["OMP_NUM_THREADS"]
    return {"value": value, "pid": os.getpid(), "threads": threads, "rank": os.environ.get("RANK")}


@work
def refused(tell: ProgressCallback, place: str) -> None:
    problem = DataError(f"{place}: expected a number, got 'x'")
    problem.add_note("Look at it.")
    raise problem


@work
def undecided(tell: ProgressCallback) -> None:
    raise Undecided("which of them?", {"a table": "--task table"})


@work
def mistaken(tell: ProgressCallback) -> float:
    return 1 / 0


@work
def killed(tell: ProgressCallback, place: str, times: int) -> int:
    """Its process is killed the first times; counts the starts in a file."""
    starts = Path(place)
    number = int(starts.read_text()) + 1 if starts.exists() else 1
    starts.write_text(str(number))
    if number <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@work
def stopped_in_time(tell: ProgressCallback, place: str) -> None:
    """Works until a stop is requested, and notes the stop in a file."""
    with Signals() as signals:
        Path(place).write_text(f"began {os.getpid()}")
        while not signals.number:
            time.sleep(0.01)
    Path(place).write_text("stopped")
    raise Stopped(signals.number, 1)


def unmarked(tell: ProgressCallback) -> None:
    """Nothing that a worker calls."""
