"""Successive halving: stops trials that score worse than others at some share of their training.

A rung is the first evaluation after a share of the planned updates; its score is the best so far. A
trial continues if it is in the best third of the trials that reached the rung before. Scores are
read from history.jsonl, which is reproducible byte for byte, so an interruption does not change how
a trial is judged."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ensue.files.opening import HISTORY_FILE, read_plain
from ensue.metrics.table import METRICS
from ensue.study.selection.entries import Entry
from ensue.training import Began, Finished, Row, Stopped, Validated


@dataclass(frozen=True)
class TrialJob:
    """A trial as a job. name, folder: name and folder of the trial; config: its tables; measure:
    the score for ranking; bars: scores that it must reach to continue; threads: for its
    computation, independent of the number of workers; until: the time when it is stopped if it may
    be the best, that is if its network is better than `best`; last: the time when it is stopped in
    any case; updates: ends the training after its current updates; cells: the files of
    `CellPermission`."""

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
    cells: Mapping[str, Any] = field(default_factory=dict)

    def entry(self) -> Entry:
        """The entry of a trial that has not begun."""
        return Entry(self.name, Path(self.folder).name, settings=self.settings)


RUNGS = ("1/9", "1/3")  # of the planned updates
KEPT = 3  # one in three continues
FEWEST = 3  # minimum trials at a rung for a comparison
Bars = Mapping[str, float]  # the required score, by rung


def share_of(rung: str) -> float:
    """
    >>> share_of("1/4")
    0.25
    """
    above, _, below = rung.partition("/")
    return int(above) / int(below)


def bars_of(entries: Sequence[Entry], measure: str) -> dict[str, float]:
    """The bars for a new trial: at each rung the score of the last one in the best third."""
    bars: dict[str, float] = {}
    for rung in RUNGS:
        scores = [entry.rungs[rung] for entry in entries if rung in entry.rungs]
        if len(scores) >= FEWEST:
            ranked = sorted(scores, reverse=METRICS[measure].higher_is_better)
            bars[rung] = ranked[math.ceil(len(ranked) / KEPT) - 1]
    return bars


def rungs_of(history: Path, planned: int, measure: str) -> dict[str, float]:
    """The best score at each rung that a training has reached."""
    scores: dict[str, float] = {}
    metric, best = METRICS[measure], None
    for update, score in _evaluations(history, measure):
        if metric.better(score, best):
            best = score
        assert best is not None
        for rung in RUNGS:
            if rung not in scores and update >= planned * share_of(rung):
                scores[rung] = best
    return scores


def best_of(history: Path, measure: str) -> float | None:
    """The best score of all evaluations so far."""
    metric, best = METRICS[measure], None
    for _, score in _evaluations(history, measure):
        best = score if metric.better(score, best) else best
    return best


def _evaluations(history: Path, measure: str) -> list[tuple[int, float]]:
    """Update and score of each evaluation; an incomplete last line is ignored."""
    if not history.exists():
        return []
    lines = read_plain(history, HISTORY_FILE).split(b"\n")[:-1]
    rows = [json.loads(line) for line in lines if b'"evaluation"' in line]
    return [(row["update"], row["scores"][measure]) for row in rows]


class Dropped(Stopped):
    """A trial was stopped because others were better; `ensue train` can continue it."""

    def __init__(self, update: int, message: str) -> None:
        Exception.__init__(self, message)
        self.signal, self.update, self.code = 0, update, 0


class Halving:
    """A watcher that stops a trial if it does not reach a bar. For an ensemble, the first network
    is judged."""

    def __init__(self, history: Path, bars: Bars, measure: str) -> None:
        self.history, self.bars, self.measure = history, bars, measure
        self.planned, self.updates, self._over = 0, 0, False

    def __call__(self, row: Row) -> None:
        if isinstance(row, Began) and not self._over:
            self.planned = row.updates
        elif isinstance(row, Finished):
            self._over = True
        elif isinstance(row, Validated) and not self._over:
            self.updates = row.update
            self._judge(row.update)

    def rungs(self) -> dict[str, float]:
        return rungs_of(self.history, self.planned, self.measure) if self.planned else {}

    def _judge(self, update: int) -> None:
        reached = self.rungs()
        for rung, bar in self.bars.items():
            reached_bar = reached.get(rung)
            if (
                reached_bar is not None
                and reached_bar != bar
                and not METRICS[self.measure].better(reached_bar, bar)
            ):
                done = f"after {update} of {self.planned} updates"
                raise Dropped(
                    update,
                    f"{done}: {self.measure} {reached_bar:.4g} at {rung} of all updates, "
                    f"needed {bar:.4g}",
                )
