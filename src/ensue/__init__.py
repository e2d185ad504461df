"""Ensue: neural sequence models whose cells are plain equations.

Everything here is loaded at first use: `import ensue` does not load torch.

A cell is its equations, `ensue.LSTM()`. A layer of cells is a torch module,
`ensue.Recurrent(ensue.LSTM(), 8, 16)`. The drop-ins for torch.nn's layers have the same names as in
torch.nn, in a separate namespace: `ensue.layers.LSTM(8, 16)`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.3.0.dev0"

if TYPE_CHECKING:  # for editors and type checkers, the same names as in _DEFINED
    from ensue import cells as cells
    from ensue import data as data
    from ensue import diagnose as diagnose
    from ensue import drawing as drawing
    from ensue import equations as equations
    from ensue import errors as errors
    from ensue import export as export
    from ensue import layers as layers
    from ensue import sklearn as sklearn
    from ensue import tasks as tasks
    from ensue.cells import GRU as GRU
    from ensue.cells import LSTM as LSTM
    from ensue.cells import LSTM1997 as LSTM1997
    from ensue.cells import MGU as MGU
    from ensue.cells import QRNN as QRNN
    from ensue.cells import SRU as SRU
    from ensue.cells import Cell as Cell
    from ensue.cells import CoupledLSTM as CoupledLSTM
    from ensue.cells import GRUGateThroughReset as GRUGateThroughReset
    from ensue.cells import GRUResetBefore as GRUResetBefore
    from ensue.cells import LayerNormLSTM as LayerNormLSTM
    from ensue.cells import LeakyRNN as LeakyRNN
    from ensue.cells import MinGRU as MinGRU
    from ensue.cells import MinimalGated as MinimalGated
    from ensue.cells import MinLSTM as MinLSTM
    from ensue.cells import OutputLayer as OutputLayer
    from ensue.cells import PeepholeLSTM as PeepholeLSTM
    from ensue.cells import RecurrentDropout as RecurrentDropout
    from ensue.cells import RecurrentPerceptron as RecurrentPerceptron
    from ensue.cells import Residual as Residual
    from ensue.cells import SimpleRNN as SimpleRNN
    from ensue.cells import Zoneout as Zoneout
    from ensue.equations import Mask as Mask
    from ensue.equations import Matrix as Matrix
    from ensue.equations import Vector as Vector
    from ensue.equations import exp as exp
    from ensue.equations import linear as linear
    from ensue.equations import log as log
    from ensue.equations import maximum as maximum
    from ensue.equations import mean as mean
    from ensue.equations import minimum as minimum
    from ensue.equations import prelu as prelu
    from ensue.equations import relu as relu
    from ensue.equations import sigmoid as sigmoid
    from ensue.equations import softplus as softplus
    from ensue.equations import sqrt as sqrt
    from ensue.equations import tanh as tanh
    from ensue.equations import total as total
    from ensue.layers import Recurrent as Recurrent
    from ensue.metrics.spans import Span as Span
    from ensue.runs.load import load as load
    from ensue.runs.run import Run as Run
    from ensue.study.selection.python import select as select
    from ensue.tasks.caption import Captioner as Captioner
    from ensue.tasks.classify import Classifier as Classifier
    from ensue.tasks.classify import ClassifierSettings as ClassifierSettings
    from ensue.tasks.estimator import Estimator
    from ensue.tasks.evaluation.report import Evaluation as Evaluation
    from ensue.tasks.forecast.answer import ForecastStep as ForecastStep
    from ensue.tasks.forecast.settings import ForecastSettings as ForecastSettings
    from ensue.tasks.forecast.task import Forecaster as Forecaster
    from ensue.tasks.image import ImageModel as ImageModel
    from ensue.tasks.image import ImageSettings as ImageSettings
    from ensue.tasks.label.answer import Labelled as Labelled
    from ensue.tasks.label.settings import LabellerSettings as LabellerSettings
    from ensue.tasks.label.task import Labeller as Labeller
    from ensue.tasks.language.settings import LanguageSettings as LanguageSettings
    from ensue.tasks.language.surprisal import Scored as Scored
    from ensue.tasks.language.task import LanguageModel as LanguageModel
    from ensue.tasks.match import Matcher as Matcher
    from ensue.tasks.match import MatcherSettings as MatcherSettings
    from ensue.tasks.model import Model as Model
    from ensue.tasks.regress import Regressor as Regressor
    from ensue.tasks.regress import RegressorSettings as RegressorSettings
    from ensue.tasks.seq2seq.answer import Captioned as Captioned
    from ensue.tasks.seq2seq.answer import Explained as Explained
    from ensue.tasks.seq2seq.answer import Gaze as Gaze
    from ensue.tasks.seq2seq.answer import Translated as Translated
    from ensue.tasks.seq2seq.settings import CaptionSettings as CaptionSettings
    from ensue.tasks.seq2seq.settings import PairSettings as PairSettings
    from ensue.tasks.settings import NetworkSettings as NetworkSettings
    from ensue.tasks.settings import TextSettings as TextSettings
    from ensue.tasks.table import TableModel as TableModel
    from ensue.tasks.table import TableSettings as TableSettings
    from ensue.tasks.targets.target import Classified as Classified
    from ensue.tasks.targets.target import Estimated as Estimated
    from ensue.tasks.translate import Translator as Translator
    from ensue.tasks.tree import TreeClassifier as TreeClassifier
    from ensue.tasks.tree import TreeSettings as TreeSettings
    from ensue.tasks.trees.content import TreeAnswer as TreeAnswer
    from ensue.training import TrainSettings as TrainSettings

    # The tasks as estimators, by their kind of answers.
    ESTIMATORS: tuple[
        type[Estimator[Captioned]],
        type[Estimator[Classified]],
        type[Estimator[ForecastStep]],
        type[Estimator[Classified | Estimated]],
        type[Estimator[Labelled]],
        type[Estimator[Scored]],
        type[Estimator[Classified | Estimated]],
        type[Estimator[Estimated]],
        type[Estimator[Classified | Estimated]],
        type[Estimator[Translated]],
        type[Estimator[TreeAnswer | Classified | Estimated]],
    ] = (
        Captioner,
        Classifier,
        Forecaster,
        ImageModel,
        Labeller,
        LanguageModel,
        Matcher,
        Regressor,
        TableModel,
        Translator,
        TreeClassifier,
    )

# Where each public name is defined.
_DEFINED = {
    "cells": (
        "Cell",
        "SimpleRNN",
        "RecurrentPerceptron",
        "LeakyRNN",
        "MinimalGated",
        "MGU",
        "GRU",
        "GRUResetBefore",
        "GRUGateThroughReset",
        "LSTM",
        "LSTM1997",
        "PeepholeLSTM",
        "CoupledLSTM",
        "LayerNormLSTM",
        "QRNN",
        "SRU",
        "MinGRU",
        "MinLSTM",
        "RecurrentDropout",
        "Residual",
        "OutputLayer",
        "Zoneout",
    ),
    "equations": (
        "Matrix",
        "Vector",
        "Mask",
        "sigmoid",
        "tanh",
        "relu",
        "prelu",
        "softplus",
        "exp",
        "log",
        "sqrt",
        "maximum",
        "minimum",
        "mean",
        "total",
        "linear",
    ),
    "layers": ("Recurrent",),
    "metrics.spans": ("Span",),
    "runs.load": ("load",),
    "runs.run": ("Run",),
    "study.selection.python": ("select",),
    "tasks.caption": ("Captioner",),
    "tasks.classify": ("Classifier", "ClassifierSettings"),
    "tasks.evaluation.report": ("Evaluation",),
    "tasks.forecast.answer": ("ForecastStep",),
    "tasks.forecast.settings": ("ForecastSettings",),
    "tasks.forecast.task": ("Forecaster",),
    "tasks.image": ("ImageSettings", "ImageModel"),
    "tasks.label.answer": ("Labelled",),
    "tasks.label.settings": ("LabellerSettings",),
    "tasks.label.task": ("Labeller",),
    "tasks.language.settings": ("LanguageSettings",),
    "tasks.language.surprisal": ("Scored",),
    "tasks.language.task": ("LanguageModel",),
    "tasks.match": ("Matcher", "MatcherSettings"),
    "tasks.model": ("Model",),
    "tasks.regress": ("Regressor", "RegressorSettings"),
    "tasks.settings": ("NetworkSettings", "TextSettings"),
    "tasks.table": ("TableSettings", "TableModel"),
    "tasks.targets.target": ("Classified", "Estimated"),
    "tasks.seq2seq.answer": ("Captioned", "Explained", "Gaze", "Translated"),
    "tasks.seq2seq.settings": ("CaptionSettings", "PairSettings"),
    "tasks.translate": ("Translator",),
    "tasks.tree": ("TreeSettings", "TreeClassifier"),
    "tasks.trees.content": ("TreeAnswer",),
    "training": ("TrainSettings",),
}
_PUBLIC = {name: module for module, names in _DEFINED.items() for name in names}
NAMESPACES = (
    "cells",
    "data",
    "diagnose",
    "drawing",
    "equations",
    "errors",
    "export",
    "layers",
    "sklearn",
    "tasks",
)

__all__ = ["__version__", *_PUBLIC]

if not TYPE_CHECKING:  # a type checker would accept every name

    def __getattr__(name: str) -> Any:
        if name in _PUBLIC:
            return getattr(import_module(f"ensue.{_PUBLIC[name]}"), name)
        if name in NAMESPACES:
            return import_module(f"ensue.{name}")
        hint = "; the drop-in for torch.nn's is ensue.layers.RNN" if name == "RNN" else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted([*__all__, *NAMESPACES])
