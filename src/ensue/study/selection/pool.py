"""Trials, each trained in a run folder until it ends or is stopped, and the workers that train
them."""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any, Protocol

import torch

from ensue.cells.permission import CellPermission
from ensue.errors import EnsueError
from ensue.files.atomic_folder import finite
from ensue.jobs import Job, Machines, ProgressCallback, machines, stoppable, work
from ensue.jobs.job import Pool
from ensue.metrics.table import METRICS
from ensue.runs.config import RunConfig
from ensue.runs.messages import MessageCallback, nobody
from ensue.runs.run import seconds_trained
from ensue.runs.train import Trained, attempted, train_run
from ensue.study.selection.budget import SLACK
from ensue.study.selection.entries import Entry, Pace, entry_of, failure_of
from ensue.study.selection.halving import Dropped, Halving, TrialJob, best_of
from ensue.study.selection.outputs import write_outputs
from ensue.training import Began, Row, RunFolder, Stopped, Update, Validated, Watcher

ENDED = "train.most_updates"  # differences of a training that ended because of the time
OUT_OF_TIME = "out of time"
PATIENCE, PAUSE = 90.0, 0.1  # seconds for another process to leave a folder, and between checks


class TrainingSpan:
    """A watcher that records the times of updates, and stops the training when its time is over,
    after the update and with a checkpoint as on a signal. It reserves the time between two updates;
    for a possible winner also the time before the first one, which closing repeats."""

    def __init__(self, job: TrialJob) -> None:
        self._job, self._until = job, job.until
        self.over, self.update = False, 0
        self._scores: list[float] = []
        self._begun = self._first = self._last = time.monotonic()
        self._longest = 0.0  # seconds between two rows

    def __call__(self, row: Row) -> None:
        before, self._last = self._last, time.monotonic()
        if isinstance(row, Began):
            self._first = self._last
            self._prepared(self._first - self._begun)
        elif isinstance(row, Update | Validated):
            self._longest = max(self._longest, self._last - before)
        if isinstance(row, Validated):
            self._scores.append(row.scores[self._job.measure])
        elif isinstance(row, Update):
            self.update = row.update
            until = self._until if self._may_win() else self._job.last
            if until is not None and time.time() + self._longest > until and not self.over:
                self.over = True
                signal.raise_signal(signal.SIGTERM)

    def _prepared(self, seconds: float) -> None:
        """Reserves at least half of the remaining time for updates, however long preparation
        took."""
        if self._until is not None and self._job.last is not None:
            now, last = time.time(), self._job.last
            closing = min(SLACK * seconds, (last - now) / 2)
            self._until = min(self._until, last - closing)

    def _may_win(self) -> bool:
        """Whether the best weights of this trial so far may be better than those of all other
        trials."""
        better, best = METRICS[self._job.measure].better, self._job.best
        return (
            best is None or not self._scores or any(better(score, best) for score in self._scores)
        )

    @property
    def after(self) -> float:
        """Seconds since the last row of a training."""
        return time.monotonic() - self._last

    @property
    def seconds(self) -> float:
        """Seconds from the first row of a training to the last."""
        return self._last - self._first


def run_trial(
    job: TrialJob, say: MessageCallback = nobody, watchers: Sequence[Watcher] = ()
) -> Entry:
    """Trains, or continues from the folder's newest checkpoint. The same job has the same result,
    bit for bit except for times, however often it was interrupted."""
    folder, pace, span = RunFolder(job.folder), Pace(), TrainingSpan(job)
    halving = Halving(folder.history, job.bars, job.measure)
    earlier, began = seconds_trained(folder.path), time.monotonic()
    entry = job.entry()
    try:
        trained = _trained(job, folder, [*watchers, pace, span, halving], say)
        entry = entry_of(entry, trained, folder, job.measure)
        outputs = write_outputs(folder, trained.model.answered.outputs)
        entry = replace(entry, after=span.after, outputs=outputs)
    except Stopped as stopped:
        if not isinstance(stopped, Dropped) and not span.over:
            raise
        message = f"{OUT_OF_TIME} after {span.update} of {halving.planned} updates"
        message = str(stopped) if isinstance(stopped, Dropped) else message
        score, updates = best_of(folder.history, job.measure), span.update * span.over
        entry = replace(entry, stopped=message, score=score, updates=updates)
    except EnsueError as error:
        entry = replace(entry, failure=failure_of(error, job.name))
    now = time.monotonic() - began
    entry = replace(entry, seconds=earlier + now, around=now - span.seconds, speed=pace.speed)
    return replace(entry, rungs=halving.rungs())


def _trained(
    job: TrialJob, folder: RunFolder, watchers: Sequence[Watcher], say: MessageCallback
) -> Trained:
    config, allow = RunConfig.of(job.config, CellPermission(**job.cells)), list[str]()
    if job.updates is not None:
        config, allow = config.changed({"train": {"most_updates": job.updates}}), [ENDED]
    _wait_for(folder)
    with computing_with(job.threads), attempted(folder):
        return train_run(config, folder, watchers, say, allow, outputs=True)


def _wait_for(folder: RunFolder) -> None:
    """Waits until an abandoned worker has written its checkpoint."""
    until = time.monotonic() + PATIENCE
    while folder.holder() and time.monotonic() < until:
        time.sleep(PAUSE)


@contextmanager
def computing_with(threads: int) -> Iterator[None]:
    """Sets the number of threads inside the block: sums are then the same to the last bit."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


HERE = "local"


class TrialPool(Protocol):
    """A pool of trials, which returns their entries as they finish."""

    workers: int

    def begin(self, number: int, job: TrialJob) -> None: ...

    def wait(self) -> list[tuple[int, Entry]]:
        """Waits for finished trials; returns none if no trial is running."""
        ...


class Here:
    """Trains trials one after another, in this process. watch: the watchers of a trial."""

    workers = 1

    def __init__(self, watch: Callable[[TrialJob], Sequence[Watcher]] = lambda job: ()) -> None:
        self._watch, self._jobs = watch, deque[tuple[int, TrialJob]]()

    def begin(self, number: int, job: TrialJob) -> None:
        self._jobs.append((number, job))

    def wait(self) -> list[tuple[int, Entry]]:
        if not self._jobs:
            return []
        from ensue.study.selection.pool import run_trial

        number, job = self._jobs.popleft()
        return [(number, run_trial(job, watchers=self._watch(job)))]


class OnMachines:
    """Trains trials as jobs, in processes or on a cluster."""

    def __init__(self, on: Machines, pool: Pool) -> None:
        self.workers, self._pool = on.workers, pool
        self._waiting: deque[tuple[int, TrialJob]] = deque()
        self._running = 0

    def begin(self, number: int, job: TrialJob) -> None:
        self._waiting.append((number, job))
        self._fill()

    def _fill(self) -> None:
        while self._waiting and self._pool.room():
            number, job = self._waiting.popleft()
            self._pool.begin(number, Job(job.name, trial_work, {"job": finite(asdict(job))}))
            self._running += 1

    def wait(self) -> list[tuple[int, Entry]]:
        if not self._running:
            return []
        finished = [(number, Entry(**result.get())) for number, result in self._pool.wait()]
        self._running -= len(finished)
        self._fill()
        return finished


@work
def trial_work(tell: ProgressCallback, job: Mapping[str, Any]) -> dict[str, Any]:
    """Runs a trial in a worker's process."""
    from ensue.study.selection.pool import run_trial

    return dict(finite(asdict(run_trial(TrialJob(**job)))))


@contextmanager
def pool_of(workers: int, on: str = HERE) -> Iterator[TrialPool]:
    """The pool of workers: this process for one; for several, separate or remote processes with one
    thread each."""
    if workers == 1 and on == HERE:
        yield Here()
        return
    where = machines(on, workers)
    with stoppable(), where.pool(lambda job, progress: None, 0) as pool:
        yield OnMachines(where, pool)
