"""Training of every model: the loop, optimisers, checkpoints."""

from ensue.files.run_folder import RunFolder
from ensue.signals import Stopped
from ensue.training.display import Display
from ensue.training.facts import RunSettings
from ensue.training.loop import RateCurve, find_rate, train
from ensue.training.optimiser import ALL_LEARN, LayerGroup, LayerRates
from ensue.training.progress import Progress
from ensue.training.rows import (
    Began,
    CheckpointSaved,
    Finished,
    Notice,
    Row,
    Update,
    Validated,
    Watcher,
)
from ensue.training.run import Outcome, fit
from ensue.training.settings import TrainSettings
from ensue.training.trainee import Carried, Fingerprinted, Sampled, Source, Trainee, Validation

__all__ = [
    "ALL_LEARN",
    "Began",
    "Carried",
    "CheckpointSaved",
    "Display",
    "Fingerprinted",
    "Finished",
    "LayerGroup",
    "LayerRates",
    "Notice",
    "Outcome",
    "Progress",
    "RateCurve",
    "Row",
    "RunFolder",
    "RunSettings",
    "Sampled",
    "Source",
    "Stopped",
    "TrainSettings",
    "Trainee",
    "Update",
    "Validated",
    "Validation",
    "Watcher",
    "find_rate",
    "fit",
    "train",
]
