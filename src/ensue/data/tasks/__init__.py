"""Tasks with generated data, for tests of memory, demonstrations and learning."""

from ensue.data.tasks.dates import DATE_TAGS, FORMATS, Date, dates
from ensue.data.tasks.memory import TASKS
from ensue.data.tasks.shapes import Scene, shapes
from ensue.data.tasks.task import BuiltInTask, TaskBatch

__all__ = [
    "DATE_TAGS",
    "FORMATS",
    "TASKS",
    "BuiltInTask",
    "Date",
    "Scene",
    "TaskBatch",
    "dates",
    "shapes",
]
