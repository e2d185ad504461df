"""Models for tasks: what takes data, is fitted, evaluated, used, saved and loaded."""

from ensue.models.classifier import Classified, Classifier
from ensue.models.estimator import Estimator
from ensue.models.evaluation import Evaluation
from ensue.models.labeller import Labelled, Labeller
from ensue.models.language import LanguageModel, Scored
from ensue.models.settings import (
    ClassifierSettings,
    LabellerSettings,
    LanguageSettings,
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
    "LanguageModel",
    "LanguageSettings",
    "NetworkSettings",
    "Scored",
    "Span",
    "TextSettings",
]
