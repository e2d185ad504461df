"""Abilities that some tasks have: saying where an answer comes from, drawing answers, having them
given by several processes, averaging those of several models, and learning from inputs without
labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ensue.data.rows import Tell
from ensue.data.settings import DataSettings
from ensue.tasks.options import Option

if TYPE_CHECKING:
    from ensue.tasks.evaluation.report import Evaluation
    from ensue.tasks.task import Questions

Asked = Mapping[str, Any]  # what a question says beside its inputs: beam, n_best, future, …
NOTHING: Asked = {}


class Explains(Protocol):
    """Where an answer comes from: an ability of some tasks."""

    option: Option  # how the command line is given what is to be explained

    def explain(self, model: Any, given: Any, asked: Asked = NOTHING) -> Explanation:
        """asked: the task's further words of `explain`."""
        ...


class Explanation(Protocol):
    """found: a dataclass, the answer with its reasons."""

    @property
    def found(self) -> Any: ...

    def as_text(self, width: int, colour: bool) -> str: ...

    def as_svg(self) -> str: ...


class Draws(Protocol):
    """Answers as a picture: an ability of some tasks."""

    def answers(self, model: Any, part: Any, asked: Asked) -> str:
        """What was asked for, as SVG."""
        ...

    def evaluated(self, model: Any, part: Any) -> str:
        """The end of a part beside what came, as SVG."""
        ...


class Deals(Protocol):
    """Rows of files that can be answered apart from each other, in other processes: an ability of
    some tasks. A share is some rows, as JSON."""

    def shares(
        self, model: Any, paths: Sequence[str], data: DataSettings, on_bad_row: Tell | None = None
    ) -> Iterator[list[Any]]: ...

    def questions(self, model: Any, share: Sequence[Any]) -> Questions[Any]: ...

    def names(self, share: Sequence[Any]) -> list[str]:
        """The file and line of each."""
        ...


Outputs = Sequence[NDArray[np.floating[Any]]]  # of each network, what its answers are made of


class Averages(Protocol):
    """Answers of several networks as one, the mean of theirs, be they of one model or of several:
    an ability of some tasks. Models of the same training part have outputs of the same shape,
    whatever they read of it; `model` may be any of them."""

    def alone(self, model: Any) -> bool:
        """Whether one network answers, and nothing beside it."""
        ...

    def outputs(self, part: Any, model: Any) -> Outputs:
        """Of each network of a model, with the linear model where that answers too."""
        ...

    def gold_outputs(self, part: Any, model: Any) -> Outputs:
        """The same of a part with gold labels, to evaluate."""
        ...

    def held(self, validation: Any, model: Any) -> Outputs:
        """The same of the validation part, as training ends: by linear models that had not
        learned from it, as far as it needs them for `scores`."""
        ...

    def scores(self, outputs: Outputs, validation: Any, model: Any) -> dict[str, float]:
        """Of their mean, the metrics that validation reports."""
        ...

    def answers(self, outputs: Outputs, part: Any, model: Any, asked: Asked) -> Sequence[Any]:
        """One a row, of all together."""
        ...

    def evaluate(self, outputs: Outputs, part: Any, model: Any, asked: Asked) -> Evaluation:
        """Evaluation of all together against gold labels."""
        ...


class Unlabelled(Protocol):
    """Learning from inputs whose labels nobody knows: an ability of some tasks."""

    def refused(self, model: Any) -> str:
        """Why a model with these settings cannot; "" where it can."""
        ...

    def learned(self, unlabelled: Any, train: Any, validation: Any, model: Any) -> tuple[Any, str]:
        """What a trained model has learned with these rows as well, and a line that says what they
        were worth."""
        ...
