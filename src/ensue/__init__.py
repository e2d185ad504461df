"""Ensue: neural sequence models whose cells are plain equations.

Everything here is loaded when it is first asked for: `import ensue` does not load torch.
"""

from importlib import import_module
from typing import Any

__version__ = "0.2.0.dev0"

# Where each public name is defined.
_PUBLIC = {
    "Captioned": "tasks.caption.answer",
    "Captioner": "tasks.caption.task",
    "CaptionSettings": "tasks.caption.settings",
    "Classified": "tasks.targets.answers",
    "Classifier": "tasks.classify.task",
    "ClassifierSettings": "tasks.classify.settings",
    "Estimated": "tasks.targets.answers",
    "Evaluation": "tasks.evaluation.report",
    "Explained": "tasks.translate.answer",
    "Forecaster": "tasks.forecast.task",
    "ForecastSettings": "tasks.forecast.settings",
    "Gaze": "tasks.caption.answer",
    "ImageModel": "tasks.image.task",
    "ImageSettings": "tasks.image.settings",
    "Labelled": "tasks.label.answer",
    "Labeller": "tasks.label.task",
    "LabellerSettings": "tasks.label.settings",
    "LanguageModel": "tasks.language.task",
    "LanguageSettings": "tasks.language.settings",
    "Model": "tasks.model",
    "NetworkSettings": "tasks.settings",
    "PairSettings": "tasks.translate.settings",
    "Matcher": "tasks.match.task",
    "MatcherSettings": "tasks.match.settings",
    "Regressor": "tasks.regress.task",
    "RegressorSettings": "tasks.regress.settings",
    "Run": "runs.run",
    "Scored": "tasks.language.surprisal",
    "Span": "metrics.spans",
    "TableModel": "tasks.table.task",
    "TableSettings": "tasks.table.settings",
    "TextSettings": "tasks.settings",
    "Translated": "tasks.translate.answer",
    "load": "runs.load",
    "Translator": "tasks.translate.task",
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"ensue.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
