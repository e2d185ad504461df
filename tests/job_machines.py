"""Jobs without processes: their order is the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ensue.jobs import Job, JobResult
from ensue.jobs.job import OnProgress, called, problem_of


class Here:
    """Jobs of this process that are finished in an order of the test's own. last_first: of those
    that have begun the last one is finished first."""

    def __init__(self, workers: int, last_first: bool) -> None:
        self.workers, self._last_first = workers, last_first
        self._begun: list[tuple[int, Job]] = []
        self.most, self.left = 0, False

    @contextmanager
    def pool(self, on_progress: OnProgress, queued: int) -> Iterator[Here]:
        try:
            yield self
        finally:
            self.left = True

    def room(self) -> int:
        return self.workers - len(self._begun)

    def begin(self, number: int, job: Job) -> None:
        self._begun.append((number, job))
        self.most = max(self.most, number)

    def wait(self) -> list[tuple[int, JobResult]]:
        number, job = self._begun.pop(-1 if self._last_first else 0)
        answer = called(job.as_message(), lambda progress: None)
        problem = problem_of(job, answer["error"]) if "error" in answer else None
        return [(number, JobResult(job, answer.get("value"), problem))]
