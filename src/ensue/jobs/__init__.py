"""Lists of independent jobs, on processes of this machine or of a cluster, with the same
results."""

from collections.abc import Callable

from ensue.errors import unknown
from ensue.jobs.cluster import Ray
from ensue.jobs.job import (
    Job,
    JobResult,
    Machines,
    ProgressCallback,
    as_completed,
    in_order,
    stoppable,
    work,
)
from ensue.jobs.local import Local

__all__ = [
    "MACHINES",
    "Job",
    "JobResult",
    "Local",
    "Machines",
    "ProgressCallback",
    "Ray",
    "as_completed",
    "in_order",
    "machines",
    "stoppable",
    "work",
]

MACHINES: dict[str, Callable[..., Machines]] = {"local": Local, "ray": Ray}


def machines(name: str, workers: int, threads: int = 1) -> Machines:
    """Where jobs run, by name."""
    if name not in MACHINES:
        raise unknown("machines", name, MACHINES)
    return MACHINES[name](workers, threads)
