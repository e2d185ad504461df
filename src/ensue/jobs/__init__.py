"""Lists of independent jobs, on processes of this machine or on others, with the same results."""

from ensue.jobs.job import Job, JobResult, Tell, work
from ensue.jobs.local import Local
from ensue.jobs.run import Machines, as_completed, in_order, stoppable

__all__ = [
    "Job",
    "JobResult",
    "Local",
    "Machines",
    "Tell",
    "as_completed",
    "in_order",
    "stoppable",
    "work",
]
