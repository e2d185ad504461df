"""`Local`: jobs on processes of this machine.

A worker is a new Python process, not a fork, so it has its own torch threads. A socket connects it
with this process, and each ends when the other does. A killed worker is replaced, and its jobs are
started again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait

from ensue.errors import JobError, OptionError
from ensue.jobs.job import Job, JobResult, Machines, OnProgress, of_json, problem_of

START = "import sys; sys.path[:] = sys.argv[2:]; from ensue.jobs.worker import main; main()"
RESTARTS = 5  # restarts of a job whose process was killed
PATIENCE = 60.0  # seconds for a worker to write its checkpoint after a signal
# Environment variables with the number of threads of libraries, and those set by torchrun.
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
OF_TORCHRUN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class Local:
    """Jobs in processes of this machine. workers: number of processes; threads: number of threads
    of each process (the last bits of results may depend on it); restarts: maximum restarts of a job
    whose process was killed."""

    workers: int = 2
    threads: int = 1
    restarts: int = RESTARTS

    def __post_init__(self) -> None:
        check_counts(self)

    @contextmanager
    def pool(self, on_progress: OnProgress, queued: int) -> Iterator[LocalPool]:
        worker_pool = LocalPool(self, on_progress, queued)
        try:
            yield worker_pool
        finally:
            worker_pool.close()


def check_counts(on: Machines) -> None:
    for name in ("workers", "threads"):
        if getattr(on, name) < 1:
            raise OptionError(f"{name}: expected at least 1, got {getattr(on, name)}")


@dataclass
class Begun:
    """A job of a worker, and how often it was started before."""

    number: int
    job: Job
    restarts: int = 0


class Worker:
    """A worker process and its jobs, the current one first."""

    def __init__(self, threads: int) -> None:
        ours, its = Pipe()
        with its:
            environment = {k: v for k, v in os.environ.items() if k not in OF_TORCHRUN}
            environment |= dict.fromkeys(THREADS, str(threads))
            path = [os.path.abspath(folder) for folder in sys.path]
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", START, str(its.fileno()), *path],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=sys.__stderr__.fileno() if sys.__stderr__ else subprocess.DEVNULL,
                pass_fds=[its.fileno()],
            )
        self.connection: Connection[bytes, bytes] = ours
        self.jobs: list[Begun] = []

    def take(self, begun: Begun) -> None:
        self.jobs.append(begun)
        with suppress(OSError):  # it has ended: `wait` notices
            self.connection.send_bytes(begun.job.as_message())

    def stop(self) -> None:
        """Stops the worker: at its next checkpoint, or at once without a job."""
        self.connection.close()

    def gone(self, until: float) -> None:
        """Waits for the end of the process; kills it at `until`."""
        try:
            self.process.wait(max(0.0, until - time.monotonic()))
        except BaseException as problem:
            self.process.kill()
            self.process.wait()
            if not isinstance(problem, subprocess.TimeoutExpired):
                raise

    def how_it_ended(self) -> str:
        code = self.process.wait()
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


class LocalPool:
    """The pool of local workers; each is started when there is a job for it."""

    def __init__(self, on: Local, on_progress: OnProgress, queued: int) -> None:
        self._on, self._on_progress, self._at_once = on, on_progress, 1 + queued
        self._workers: list[Worker] = []

    def room(self) -> int:
        busy = sum(len(worker.jobs) for worker in self._workers)
        return self._on.workers * self._at_once - busy

    def begin(self, number: int, job: Job) -> None:
        self._give(Begun(number, job))

    def _give(self, begun: Begun) -> None:
        """Gives a job to the worker with the fewest jobs; starts a new worker if all have jobs and
        more are allowed."""
        free = min(self._workers, key=lambda worker: len(worker.jobs), default=None)
        if free is None or (free.jobs and len(self._workers) < self._on.workers):
            free = Worker(self._on.threads)
            self._workers.append(free)
        free.take(begun)

    def wait(self) -> list[tuple[int, JobResult]]:
        results: list[tuple[int, JobResult]] = []
        while not results:
            by_connection = {worker.connection: worker for worker in self._workers if worker.jobs}
            if not by_connection:
                raise JobError("a job was lost: no worker has one, and not every result has come")
            for ready in wait(list(by_connection)):
                worker = by_connection[ready]  # type: ignore[index]
                try:
                    message = worker.connection.recv_bytes()
                except (EOFError, OSError):
                    results += self._replaced(worker)
                else:
                    results += self._heard(worker, of_json(message))
        return results

    def _heard(self, worker: Worker, message: dict[str, object]) -> list[tuple[int, JobResult]]:
        begun = worker.jobs[0]
        if "progress" in message:
            self._on_progress(begun.job, message["progress"])
            return []
        worker.jobs.pop(0)
        error = problem_of(begun.job, message["error"]) if "error" in message else None  # type: ignore[arg-type]
        result = JobResult(begun.job, message.get("value"), error, begun.restarts)
        return [(begun.number, result)]

    def _replaced(self, worker: Worker) -> list[tuple[int, JobResult]]:
        """Gives the jobs of a dead worker to others. Only its first job can be the cause: the rest
        had not begun."""
        self._workers.remove(worker)
        worker.connection.close()
        ended = worker.how_it_ended()
        first, *rest = worker.jobs
        first.restarts += 1
        failed: list[tuple[int, JobResult]] = []
        if first.restarts > self._on.restarts:
            error = JobError(
                f"{first.job.name}: its process was {ended}, {first.restarts} times. Next: "
                "check that there is enough memory for all processes, or use fewer workers"
            )
            failed.append((first.number, JobResult(first.job, None, error, first.restarts - 1)))
        else:
            rest.insert(0, first)
        for begun in rest:
            self._give(begun)
        return failed

    def close(self) -> None:
        """Stops all running jobs at their next checkpoint."""
        until = time.monotonic() + PATIENCE
        for worker in self._workers:
            worker.stop()
        while self._workers:
            self._workers.pop().gone(until)
