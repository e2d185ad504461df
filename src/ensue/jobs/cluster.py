"""`Ray`: jobs on the machines of a Ray cluster.

A task gets the same as a local worker: the name of a function and its arguments as JSON. It returns
JSON. Ray restarts a task if its process or machine dies.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ensue.errors import JobError, MissingExtra, OptionError
from ensue.jobs.job import Job, JobResult, OnProgress, as_json, called, of_json, problem_of
from ensue.jobs.local import PATIENCE, RESTARTS, THREADS, check_counts

ADDRESS = "RAY_ADDRESS"
GLANCE = 0.5  # seconds between two reads of progress


@dataclass(frozen=True)
class Ray:
    """Jobs on a Ray cluster. workers: number of jobs at a time; threads: number of threads of each
    job, which takes as many processors; restarts: maximum restarts of a job whose process or
    machine died. The cluster is the one in RAY_ADDRESS, or the cluster of this machine."""

    workers: int = 2
    threads: int = 1
    restarts: int = RESTARTS

    def __post_init__(self) -> None:
        check_counts(self)

    @contextmanager
    def pool(self, on_progress: OnProgress, queued: int) -> Iterator[RayPool]:
        ray_pool = RayPool(_connected(), self, on_progress, queued)
        try:
            yield ray_pool
        finally:
            ray_pool.close()


def _connected() -> Any:
    """The module ray, connected for the rest of this process."""
    try:
        ray = import_module("ray")
    except ImportError:
        raise MissingExtra("a Ray cluster needs ray: pip install 'ensue[ray]'") from None
    if not ray.is_initialized():
        try:
            ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, RuntimeError, ValueError) as problem:
            address = os.environ.get(ADDRESS)
            named = f"{ADDRESS}={address}" if address else "this machine has none"
            why = str(problem).partition("\n")[0].rstrip(".")
            raise OptionError(
                f"ray: expected a cluster, {named}: {why}. Start one with `ray start --head`, or "
                f"name one: {ADDRESS}=HOST:6379"
            ) from None
    return ray


class Mailbox:
    """Keeps the progress of jobs until the caller reads it; lives on the cluster."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, Any]] = []

    def put(self, number: int, progress: Any) -> None:
        self._waiting.append((number, progress))

    def take(self) -> list[tuple[int, Any]]:
        results, self._waiting = self._waiting, []
        return results


def work_on(message: bytes, number: int, mailbox: Any, folder: str) -> bytes:
    """The function that runs on a machine of the cluster, in the folder of the command."""
    with chdir(folder):
        return as_json(called(message, lambda progress: mailbox.put.remote(number, progress)))


class RayPool:
    """The tasks of a cluster."""

    def __init__(self, ray: Any, on: Ray, on_progress: OnProgress, queued: int) -> None:
        self._ray, self._on, self._on_progress = ray, on, on_progress
        self._most = on.workers * (1 + queued)
        self._begun: dict[Any, tuple[int, Job]] = {}
        self._mailbox = ray.remote(num_cpus=0, max_restarts=-1)(Mailbox).remote()
        self._task = ray.remote(
            num_cpus=on.threads,
            max_retries=on.restarts,
            runtime_env={"env_vars": dict.fromkeys(THREADS, str(on.threads))},
        )(work_on)

    def room(self) -> int:
        return self._most - len(self._begun)

    def begin(self, number: int, job: Job) -> None:
        task = self._task.remote(job.as_message(), number, self._mailbox, os.getcwd())
        self._begun[task] = number, job

    def wait(self) -> list[tuple[int, JobResult]]:
        while True:
            ready, _ = self._ray.wait([*self._begun], timeout=GLANCE)
            self._tell()
            if ready:
                return [self._result(task) for task in ready]

    def _tell(self) -> None:
        """Reports the progress of running jobs; messages on a dead machine are lost."""
        jobs = dict(self._begun.values())
        with suppress(self._ray.exceptions.RayError):
            for number, progress in self._ray.get(self._mailbox.take.remote(), timeout=GLANCE):
                if number in jobs:
                    self._on_progress(jobs[number], progress)

    def _result(self, task: Any) -> tuple[int, JobResult]:
        number, job = self._begun.pop(task)
        try:
            message = of_json(self._ray.get(task))
        except self._ray.exceptions.RayError as problem:
            why = str(problem).partition("\n")[0].rstrip(".")
            error = JobError(
                f"{job.name}: Ray gave up after {self._on.restarts} restarts: {why}. Next: "
                "check the memory of the machines with `ray status`"
            )
            return number, JobResult(job, None, error, self._on.restarts)
        failed = problem_of(job, message["error"]) if "error" in message else None
        return number, JobResult(job, message.get("value"), failed)

    def close(self) -> None:
        """Interrupts all running jobs, which stop at their next checkpoint."""
        tasks, until = [*self._begun], time.monotonic() + PATIENCE
        for task in tasks:
            self._ray.cancel(task)
        if tasks:
            self._ray.wait(tasks, num_returns=len(tasks), timeout=until - time.monotonic())
        self._ray.kill(self._mailbox)
