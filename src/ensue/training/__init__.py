"""The loop, its optimisers, its checkpoints: what every model is trained by."""

from ensue.training.finder import RateCurve, find_rate
from ensue.training.folder import RunFolder
from ensue.training.loop import train
from ensue.training.progress import Display
from ensue.training.rows import (
    Began,
    Evaluation,
    Finished,
    Row,
    Said,
    Saved,
    Update,
    Watcher,
)
from ensue.training.run import Outcome, fit
from ensue.training.settings import TrainSettings
from ensue.training.signals import Stopped
from ensue.training.standing import Progress
from ensue.training.trainee import Carried, Fingerprinted, Sampled, Source, Trainee, Validation

__all__ = [
    "Began",
    "Carried",
    "Display",
    "Evaluation",
    "Fingerprinted",
    "Finished",
    "Outcome",
    "Progress",
    "RateCurve",
    "Row",
    "RunFolder",
    "Said",
    "Sampled",
    "Saved",
    "Source",
    "Stopped",
    "TrainSettings",
    "Trainee",
    "Update",
    "Validation",
    "Watcher",
    "find_rate",
    "fit",
    "train",
]
