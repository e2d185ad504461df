"""`Job`: a function by its name, with arguments as JSON, and its result, also as JSON.

Nothing else passes between processes: no pickled objects, no code. A worker imports the module that
a job names and calls a function in it that `work` has marked.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol, cast

from ensue import errors
from ensue.errors import EnsueError, JobError
from ensue.signals import Interrupted, Signals, Stopped

ProgressCallback = Callable[[Any], None]  # takes progress, as JSON
MARK = "__job__"


class Work(Protocol):
    """The function that a worker calls. Its first argument is a callback for progress; its other
    arguments, passed by name, and its result are JSON."""

    __module__: str
    __qualname__: str

    def __call__(self, *positional: Any, **arguments: Any) -> Any: ...


def work(function: Work) -> Work:
    """Marks a function of a module that a worker may call.

    @work
    def squared(tell, number):
        return number**2
    """
    setattr(function, MARK, True)
    return function


@dataclass(frozen=True)
class Job:
    """A job. name: its name in messages; function: a function marked by `work`; arguments: JSON
    values."""

    name: str
    function: Work
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def as_message(self) -> bytes:
        function = f"{self.function.__module__}:{self.function.__qualname__}"
        return as_json({"function": function, "arguments": dict(self.arguments)})


@dataclass(frozen=True)
class JobResult:
    """The result of a job. value: the function's result; error: the exception, if it failed;
    restarts: how often the job was restarted because its process was killed."""

    job: Job
    value: Any = None
    error: EnsueError | None = None
    restarts: int = 0

    def get(self) -> Any:
        """The value; raises the error."""
        if self.error is not None:
            raise self.error
        return self.value


# --- on the wire -----------------------------------------------------------------------------


def as_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def of_json(data: bytes) -> Any:
    return json.loads(data.decode("utf-8", "surrogatepass"))


def called(message: bytes, tell: ProgressCallback) -> dict[str, Any]:
    """Runs the job of a message: {"value": …} or {"error": …}. Raises Stopped where a signal has
    ended it at a checkpoint."""
    message_facts = of_json(message)
    try:
        return {"value": _function(message_facts["function"])(tell, **message_facts["arguments"])}
    except Stopped:
        raise
    except Exception as problem:
        return {"error": _described(problem)}


def _function(reference: str) -> Work:
    module, _, name = reference.partition(":")
    function = getattr(import_module(module), name, None)
    if not getattr(function, MARK, False):
        raise JobError(f"{reference}: expected a function that is marked as work, got {function!r}")
    return cast(Work, function)


def _described(problem: Exception) -> dict[str, Any]:
    """An exception as JSON. ours: the class of an error that users can fix; "" for a bug in
    Ensue."""
    ours = next((base.__name__ for base in type(problem).__mro__ if _is_ours(base)), "")
    return {
        "ours": ours,
        "message": str(problem) if ours else f"{type(problem).__name__}: {problem}",
        "notes": list(getattr(problem, "__notes__", [])),
        "trace": "" if ours else "".join(traceback.format_exception(problem)),
    }


def _is_ours(kind: type) -> bool:
    return issubclass(kind, EnsueError) and getattr(errors, kind.__name__, None) is kind


def problem_of(job: Job, described: Mapping[str, Any]) -> EnsueError:
    """The error of a job as if it had been raised here; one that is not ours is a JobError with
    the job's name and the traceback."""
    message = described["message"]
    if described["ours"]:
        kind: type[EnsueError] = getattr(errors, described["ours"])
        error = kind.__new__(kind)
        EnsueError.__init__(error, message)
    else:
        error = JobError(f"{job.name}: {message}")
    for note in (*described["notes"], described["trace"].rstrip()):
        if note:
            error.add_note(note)
    return error


AHEAD = 4  # finished jobs per worker that may wait for an earlier one

OnProgress = Callable[[Job, Any], None]


def _nobody(job: Job, progress: Any) -> None:
    """A progress callback that does nothing."""


class Pool(Protocol):
    """Workers that are ready for jobs."""

    def room(self) -> int:
        """How many more jobs the pool can take now."""

    def begin(self, number: int, job: Job) -> None:
        """Starts or queues a job."""

    def wait(self) -> list[tuple[int, JobResult]]:
        """Waits until some jobs have succeeded or failed."""


class Machines(Protocol):
    """Where jobs run. Leaving the pool stops running jobs at their next checkpoint.

    workers: number of jobs that run at once; queued: number of further jobs that each worker takes
    in advance, to avoid waiting. Neither changes a result."""

    @property
    def workers(self) -> int: ...

    def pool(self, on_progress: OnProgress, queued: int) -> AbstractContextManager[Pool]: ...


class _Feed:
    """The jobs that have not begun. An error while listing them is raised after the jobs before it
    are finished."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._jobs, self.begun, self.ended = iter(jobs), 0, False
        self.problem: Exception | None = None

    def fill(self, pool: Pool, most: int | None) -> None:
        """Starts jobs while there is room. most: maximum number of jobs begun in total; None: no
        limit."""
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
    """Yields the results of jobs as they finish. The next job is requested when a worker is free:
    the iterable may depend on earlier results."""
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
    """Yields the results in the order of the jobs. Few jobs are requested in advance: the iterable
    may be endless. queued: see Machines; 1 for jobs of less than a second."""
    feed, results, passed = _Feed(jobs), dict[int, JobResult](), 0
    ahead = (AHEAD + queued) * on.workers
    with on.pool(on_progress, queued) as pool:
        while True:
            feed.fill(pool, passed + ahead)
            if passed == feed.begun:
                break
            results.update(pool.wait())
            while passed in results:
                yield results.pop(passed)
                passed += 1
                feed.fill(pool, passed + ahead)
    if feed.problem is not None:
        raise feed.problem


@contextmanager
def stoppable() -> Iterator[None]:
    """Inside the block, SIGTERM, Ctrl-C and SIGHUP end the running jobs, each with a checkpoint,
    then raise Stopped."""
    with Signals() as signals:
        try:
            with signals.harmless():
                yield
        except Interrupted:
            raise Stopped(signals.number) from None
