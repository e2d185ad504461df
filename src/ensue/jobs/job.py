"""`Job`: a function by its name and arguments as JSON; and what comes back of it, as JSON too.

Nothing else passes between processes: no object is pickled, no code is sent. A worker imports the
module that a job names and calls a function there that `work` has marked.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol, cast

from ensue import errors
from ensue.errors import EnsueError, JobError
from ensue.signals import Stopped

Tell = Callable[[Any], None]  # takes progress, as JSON
MARK = "__job__"


class Work(Protocol):
    """What a worker calls: the first argument is a callback for progress; the others, by name, and
    what is returned are JSON."""

    __module__: str
    __qualname__: str

    def __call__(self, *given: Any, **arguments: Any) -> Any: ...


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
    """name: what it is called in messages; function: marked by `work`; arguments: JSON."""

    name: str
    function: Work
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def as_message(self) -> bytes:
        function = f"{self.function.__module__}:{self.function.__qualname__}"
        return as_json({"function": function, "arguments": dict(self.arguments)})


@dataclass(frozen=True)
class JobResult:
    """value: what the function returned; error: what it failed with, then there is no value;
    restarts: how often it was started again because its process was killed."""

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


def called(message: bytes, tell: Tell) -> dict[str, Any]:
    """Runs the job of a message: {"value": …} or {"error": …}. Raises Stopped where a signal has
    ended it at a checkpoint."""
    wanted = of_json(message)
    try:
        return {"value": _function(wanted["function"])(tell, **wanted["arguments"])}
    except Stopped:
        raise
    except Exception as problem:
        return {"error": _described(problem)}


def _function(reference: str) -> Work:
    module, _, name = reference.partition(":")
    found = getattr(import_module(module), name, None)
    if not getattr(found, MARK, False):
        raise JobError(f"{reference}: expected a function that is marked as work, got {found!r}")
    return cast(Work, found)


def _described(problem: Exception) -> dict[str, Any]:
    """ours: the class of an error that a person can put right; "" for a mistake of Ensue's own."""
    ours = next((own.__name__ for own in type(problem).__mro__ if _is_ours(own)), "")
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
        found = kind.__new__(kind)
        EnsueError.__init__(found, message)
    else:
        found = JobError(f"{job.name}: {message}")
    for note in (*described["notes"], described["trace"].rstrip()):
        if note:
            found.add_note(note)
    return found
