"""The verbs of a run as tests call them: what is evaluated and predicted, in few words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ensue.data.settings import DataSettings
from ensue.runs import evaluate
from ensue.runs.config import RunConfig
from ensue.runs.evaluate import EvaluationRequest, Opened
from ensue.runs.messages import Message
from ensue.runs.predict import Prediction
from ensue.tasks.label.task import StepContent
from ensue.tasks.model import Model
from ensue.tasks.rows.collect import Content
from ensue.tasks.rows.reader import Reading
from ensue.training import RunFolder


def evaluate_run(
    folder: RunFolder,
    test: Sequence[str],
    part: str = "test",
    say: Callable[[str], None] = lambda line: None,
) -> Opened:
    return evaluate.evaluate_run(folder, EvaluationRequest(part, test), texts_to(say))


def texts_to(say: Callable[[str], None]) -> Callable[[Message], None]:
    """What takes messages and hands their texts on."""
    return lambda message: say(message.text)


def predict_files(
    model: Model[Any, Any, Any], config: RunConfig, paths: Sequence[str]
) -> list[tuple[Any, Any]]:
    """(what is shown of a row, answer) for each row."""
    return [(file.shown_input, file.answer) for file in Prediction(model).files(paths, config.data)]


def reading(data: DataSettings, by_step: bool = False) -> Reading:
    """Rows with a label each, or with one for each step."""
    return Reading(data, StepContent() if by_step else Content())
