"""Where trials run: in this process, one after another, or on workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Protocol

from ensue.files.atomic_folder import finite
from ensue.jobs import Job, Machines, Tell, machines, stoppable, work
from ensue.jobs.job import Pool
from ensue.study.selection.entries import Entry
from ensue.study.selection.halving import TrialJob
from ensue.training import Watcher

HERE = "local"


class TrialPool(Protocol):
    """Trials go in, entries come out, each when it is there."""

    workers: int

    def begin(self, number: int, job: TrialJob) -> None: ...

    def wait(self) -> list[tuple[int, Entry]]:
        """Waits until some are there; none where no trial is running."""
        ...


class Here:
    """One after another, in this process. watch: the watchers of a trial."""

    workers = 1

    def __init__(self, watch: Callable[[TrialJob], Sequence[Watcher]] = lambda job: ()) -> None:
        self._watch, self._jobs = watch, deque[tuple[int, TrialJob]]()

    def begin(self, number: int, job: TrialJob) -> None:
        self._jobs.append((number, job))

    def wait(self) -> list[tuple[int, Entry]]:
        if not self._jobs:
            return []
        from ensue.study.selection.trial import run_trial

        number, job = self._jobs.popleft()
        return [(number, run_trial(job, watchers=self._watch(job)))]


class OnMachines:
    """As jobs of processes, or wherever else jobs run."""

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
def trial_work(tell: Tell, job: Mapping[str, Any]) -> dict[str, Any]:
    """A trial by the process of a worker."""
    from ensue.study.selection.trial import run_trial

    return dict(finite(asdict(run_trial(TrialJob(**job)))))


@contextmanager
def pool_of(workers: int, on: str = HERE) -> Iterator[TrialPool]:
    """One worker is this process; several are processes of their own, or of a cluster, each with
    one thread."""
    if workers == 1 and on == HERE:
        yield Here()
        return
    where = machines(on, workers)
    with stoppable(), where.pool(lambda job, progress: None, 0) as pool:
        yield OnMachines(where, pool)
