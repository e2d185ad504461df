"""Models for tasks: what takes data, is fitted, evaluated, used, saved and loaded."""

from ensue.models.caption_settings import CaptionSettings
from ensue.models.captioned import Captioned, Gaze
from ensue.models.captioner import Captioner
from ensue.models.classifier import Classified, Classifier
from ensue.models.estimator import Estimator
from ensue.models.evaluation import Evaluation
from ensue.models.forecast_settings import ForecastSettings
from ensue.models.forecaster import Forecaster
from ensue.models.image_model import ImageModel
from ensue.models.image_settings import ImageSettings
from ensue.models.labeller import Labelled, Labeller
from ensue.models.language import LanguageModel
from ensue.models.pair_settings import PairSettings
from ensue.models.scored_text import Scored
from ensue.models.settings import (
    ClassifierSettings,
    LabellerSettings,
    LanguageSettings,
    NetworkSettings,
    TextSettings,
)
from ensue.models.spans import Span
from ensue.models.table_model import TableModel
from ensue.models.table_settings import TableSettings
from ensue.models.translated import Explained, Translated
from ensue.models.translator import Translator

__all__ = [
    "CaptionSettings",
    "Captioned",
    "Captioner",
    "Classified",
    "Classifier",
    "ClassifierSettings",
    "Estimator",
    "Evaluation",
    "Explained",
    "ForecastSettings",
    "Forecaster",
    "Gaze",
    "ImageModel",
    "ImageSettings",
    "Labelled",
    "Labeller",
    "LabellerSettings",
    "LanguageModel",
    "LanguageSettings",
    "NetworkSettings",
    "PairSettings",
    "Scored",
    "Span",
    "TableModel",
    "TableSettings",
    "TextSettings",
    "Translated",
    "Translator",
]
