"""What a trial is told: all that its result follows from, as JSON has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ensue.study.selection.entries import Entry


@dataclass(frozen=True)
class TrialJob:
    """name, folder: of the trial; config: its tables; measure: what it is ranked by; bars: what it
    must reach to go on; threads: that it computes with, whatever the number of workers; until: the
    time (of the clock) when it is stopped, if it may be the best: if its network is better than
    best; last: when it is stopped in any case; updates: ends it after as many as it has made."""

    name: str
    folder: str
    config: Mapping[str, Any]
    measure: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    bars: Mapping[str, float] = field(default_factory=dict)
    threads: int = 1
    until: float | None = None
    last: float | None = None
    best: float | None = None
    updates: int | None = None

    def entry(self) -> Entry:
        """Of a trial that has not begun."""
        return Entry(self.name, Path(self.folder).name, settings=self.settings)
