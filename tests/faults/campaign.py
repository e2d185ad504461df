"""What a campaign is, and what may become of one of its cases."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

FINE, SILENT, TRACEBACK, HANG, ABORT = "fine", "silent", "traceback", "hang", "abort"
OUTSIDE, REFUSED, RAN = "outside", "refused", "ran"
# The columns of the summary: all but the first break a promise.
KINDS = {
    FINE: "fine",
    SILENT: "silent",
    REFUSED: "refused",
    TRACEBACK: "tracebacks",
    HANG: "hangs",
    ABORT: "aborts",
    OUTSIDE: "outside touched",
    RAN: "code run",
}


class Outcome(NamedTuple):
    """kind: of KINDS; silent is a result that differs without a word, refused a command that
    should have ended well and did not. what: the case in a line; faults: how many there were."""

    kind: str
    what: str
    faults: int = 1


Case = Callable[[random.Random], Outcome]


@dataclass(frozen=True)
class Campaign:
    """cases: of `make faults-full`; seconds: the longest that a case may take, by the clock;
    begin: makes what tries a case, in the process that tries it, from the folder where the work
    is done and another that is this process's alone."""

    name: str
    cases: int
    seconds: float
    begin: Callable[[Path, Path], Case]

    def draw(self, seed: int, number: int) -> random.Random:
        return random.Random(f"{seed} {self.name} {number}")
