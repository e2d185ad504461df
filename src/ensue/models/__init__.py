"""Models for tasks: what takes data, is fitted, evaluated, used, saved and loaded."""

from ensue.models.classifier import Classified, Classifier
from ensue.models.estimator import Estimator
from ensue.models.evaluation import Evaluation
from ensue.models.labeller import Labelled, Labeller
from ensue.models.settings import (
    ClassifierSettings,
    LabellerSettings,
    NetworkSettings,
    TextSettings,
)
from ensue.models.spans import Span

__all__ = [
    "Classified",
    "Classifier",
    "ClassifierSettings",
    "Estimator",
    "Evaluation",
    "Labelled",
    "Labeller",
    "LabellerSettings",
    "NetworkSettings",
    "Span",
    "TextSettings",
]
