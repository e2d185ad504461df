"""`Input`: one kind of thing that is read, whatever is predicted from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ensue.settings import Expected, Rate, Table
from ensue.tasks.any_model import AnyModel, ModelView
from ensue.tasks.codec import unpacked
from ensue.tasks.reader import P
from ensue.tasks.rows.labels import known_rows, learned_labels
from ensue.tasks.rows.reader import RowReader, unlabelled_rows_error
from ensue.tasks.saved import Saved
from ensue.tasks.supervised.learned import LearnedInput, Linear, Share
from ensue.tasks.supervised.network import Budget
from ensue.tasks.targets.kinds import TARGETS
from ensue.tasks.targets.target import Target

if TYPE_CHECKING:
    from ensue.tasks.supervised.task import Supervised


class ShareSettings(Table):
    """The linear model that may answer with the network."""

    linear_share: Annotated[
        Literal["fitted"] | Rate, Expected('"fitted", or a number ≥ 0 and < 1')
    ] = Field(
        0.0,
        description="Weight of the linear model in an ensemble with the network; fitted: on "
        "the validation part.",
    )


class InputReader(RowReader[P]):
    """Reads the rows of one input, or of several together, with the labels of any target."""

    @property
    def supervised(self) -> Supervised[Any]:
        """The task of its model."""
        return cast("Supervised[Any]", self.model.task)

    def answerable(self, train: Any, validation: Any) -> NDArray[np.int64] | None:
        """A number can be any; a class must be one of training."""
        target = TARGETS[self.supervised.target_kind(train, self.model.settings)]
        return None if target.numeric else known_rows(validation, train)

    def check(self, part: Any, name: str) -> None:
        self.check_labels(part, name)
        if self.supervised.classes and name == "training":
            learned_labels(part)

    def check_labels(self, part: Any, name: str) -> None:
        if not len(part) or part.labels is None:
            raise unlabelled_rows_error(part, name)

    def remarks(self, train: Any, validation: Any) -> list[str]:
        learned = self.model.learned
        lines: list[str] = learned.input.remarks(train, learned.target, self.model)
        return lines

    def is_label(self, text: str) -> bool:
        label: bool = self.model.learned.target.is_label(text)
        return label


class Input(ABC):
    """How rows of one kind are read, learned, encoded and shown.

    name: in messages and files; exact: whether answers are computed in float64, where the digits
    of float32 would depend on which rows are asked together."""

    name: ClassVar[str]
    reader_class: ClassVar[type[InputReader[Any]]] = InputReader
    learned_class: ClassVar[type[LearnedInput]]
    exact: ClassVar[bool] = False

    def reader(self, model: AnyModel) -> InputReader[Any]:
        """How its rows are read."""
        return self.reader_class(model)

    # ------------------------------------------------------------- learned
    @abstractmethod
    def learn(self, train: Any, model: ModelView) -> LearnedInput:
        """Vocabulary, scale, shape: of the training part alone."""

    def unpack(self, saved: Saved, model: ModelView) -> LearnedInput:
        """The inverse of `LearnedInput.pack`."""
        return unpacked(self.learned_class, saved, settings=model.settings)

    def unpack_linear(
        self, saved: Saved, learned: Any, target: Target, model: ModelView
    ) -> Linear | None:
        """The inverse of `Linear.pack`; None where the input has no linear model."""
        return None

    def share(self, settings: Any, target: Target) -> Share:
        """What the linear model counts for in the answer."""
        return None

    def budget(self, settings: Any) -> Budget:
        """Of a batch in training."""
        return Budget(settings.batch_tokens, settings.batch_rows)

    def answer_budget(self, settings: Any) -> int:
        """Tokens of a batch of questions."""
        return 2 * self.budget(settings).tokens

    # ------------------------------------------------------------- looked at
    @abstractmethod
    def describe(self, settings: Any) -> str:
        """The network that reads it, in a few words."""
