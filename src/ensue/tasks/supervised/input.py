"""`Input`: one kind of input, for any target."""

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
    """The linear model that may contribute to answers."""

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
        """The validation rows that can be answered: any number, but only classes of training."""
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

    name: the input's name in messages and files; exact: whether answers are computed in float64,
    because in float32 they would depend on the rows of a batch."""

    name: ClassVar[str]
    reader_class: ClassVar[type[InputReader[Any]]] = InputReader
    learned_class: ClassVar[type[LearnedInput]]
    exact: ClassVar[bool] = False

    def reader(self, model: AnyModel) -> InputReader[Any]:
        """The reader of its rows."""
        return self.reader_class(model)

    # ------------------------------------------------------------- learned
    @abstractmethod
    def learn(self, train: Any, model: ModelView) -> LearnedInput:
        """Learns vocabulary, scale or shape from the training part only."""

    def unpack(self, saved: Saved, model: ModelView) -> LearnedInput:
        """The inverse of `LearnedInput.pack`."""
        return unpacked(self.learned_class, saved, settings=model.settings)

    def unpack_linear(
        self, saved: Saved, learned: Any, target: Target, model: ModelView
    ) -> Linear | None:
        """The inverse of `Linear.pack`; None if the input has no linear model."""
        return None

    def share(self, settings: Any, target: Target) -> Share:
        """The settings for the share of the linear model in answers."""
        return None

    def budget(self, settings: Any) -> Budget:
        """The budget of a batch in training."""
        return Budget(settings.batch_tokens, settings.batch_rows)

    def answer_budget(self, settings: Any) -> int:
        """Tokens of a batch of questions."""
        return 2 * self.budget(settings).tokens

    # ------------------------------------------------------------- looked at
    @abstractmethod
    def describe(self, settings: Any) -> str:
        """A short description of the network that reads the input."""
