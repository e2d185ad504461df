"""Running a list of jobs: in their order, or as they are completed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from ensue.jobs.job import Job, JobResult
from ensue.signals import Interrupted, Signals, Stopped

AHEAD = 4  # jobs for each worker that may be finished before one that comes first

OnProgress = Callable[[Job, Any], None]


def _nobody(job: Job, progress: Any) -> None:
    """Hears of no progress."""


class Pool(Protocol):
    """Workers that stand ready."""

    def room(self) -> int:
        """How many more jobs it takes at this moment."""

    def begin(self, number: int, job: Job) -> None:
        """Takes a job."""

    def wait(self) -> list[tuple[int, JobResult]]:
        """Waits until some jobs are finished, for good or with an error."""


class Machines(Protocol):
    """Where jobs run. Leaving the pool stops what still runs, at its next checkpoint.

    workers: how many jobs run at once; queued: how many more each worker takes, so that it need
    not wait for the next one. Neither changes a result."""

    @property
    def workers(self) -> int: ...

    def pool(self, on_progress: OnProgress, queued: int) -> AbstractContextManager[Pool]: ...


class _Feed:
    """The jobs that have not begun. An error of whoever lists them is told when those that came
    before it are finished."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._jobs, self.begun, self.ended = iter(jobs), 0, False
        self.problem: Exception | None = None

    def fill(self, pool: Pool, most: int | None) -> None:
        """most: the number of jobs that may have begun in all; None any."""
        while not self.ended and pool.room() and (most is None or self.begun < most):
            try:
                job = next(self._jobs)
            except StopIteration:
                self.ended = True
            except Exception as problem:
                self.ended, self.problem = True, problem
            else:
                pool.begin(self.begun, job)
                self.begun += 1


def as_completed(
    jobs: Iterable[Job], on: Machines, on_progress: OnProgress = _nobody
) -> Iterator[JobResult]:
    """The results of jobs, each as soon as it is there. The next job is asked for when a worker is
    free, so that a list may depend on the results before."""
    feed, finished = _Feed(jobs), 0
    with on.pool(on_progress, 0) as pool:
        feed.fill(pool, None)
        while finished < feed.begun:
            for _, result in pool.wait():
                finished += 1
                yield result
            feed.fill(pool, None)
    if feed.problem is not None:
        raise feed.problem


def in_order(
    jobs: Iterable[Job], on: Machines, on_progress: OnProgress = _nobody, queued: int = 0
) -> Iterator[JobResult]:
    """The results of jobs in the order of the jobs. Few are asked for ahead of the one whose
    result comes next, so that the list may be endless. queued: see Machines; 1 for jobs that take
    less than a second."""
    feed, found, passed = _Feed(jobs), dict[int, JobResult](), 0
    ahead = (AHEAD + queued) * on.workers
    with on.pool(on_progress, queued) as pool:
        while True:
            feed.fill(pool, passed + ahead)
            if passed == feed.begun:
                break
            found.update(pool.wait())
            while passed in found:
                yield found.pop(passed)
                passed += 1
                feed.fill(pool, passed + ahead)
    if feed.problem is not None:
        raise feed.problem


@contextmanager
def stoppable() -> Iterator[None]:
    """Inside of it SIGTERM, Ctrl-C and SIGHUP end the jobs that run, each with a checkpoint, then
    raise Stopped."""
    with Signals() as signals:
        try:
            with signals.harmless():
                yield
        except Interrupted:
            raise Stopped(signals.number) from None
