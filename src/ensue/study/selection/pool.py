"""Where trials run: in this process, one after another, or on workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from ensue.study.selection.entries import Entry
from ensue.study.selection.job import TrialJob
from ensue.training import Watcher


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


@contextmanager
def pool_of(workers: int) -> Iterator[TrialPool]:
    """One worker is this process."""
    assert workers == 1
    yield Here()
