"""`Input`: one kind of thing that is read, whatever is predicted from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from ensue.data.frames.origin import Origin
from ensue.data.rows import Tell
from ensue.data.settings import DataSettings
from ensue.errors import DataError
from ensue.settings import Expected, Rate, Table
from ensue.tasks.explaining.options import EXPLAINED
from ensue.tasks.options import Option
from ensue.tasks.rows.collect import Content, Example, in_memory, pairs_of
from ensue.tasks.rows.part import Tokenisers
from ensue.tasks.rows.task import Rows, RowTask
from ensue.tasks.saved import Saved
from ensue.tasks.supervised.learned import LearnedInput, Linear, Share
from ensue.tasks.supervised.network import Budget
from ensue.tasks.targets.target import Target
from ensue.tasks.task import Asked, PartFiles, Questions

if TYPE_CHECKING:
    from ensue.tasks.explaining.rows import RowExplainer
    from ensue.tasks.model import Model
    from ensue.tasks.supervised.task import Supervised


class ShareSettings(Table):
    """The linear model that may answer with the network."""

    linear_share: Annotated[
        Literal["fitted"] | Rate, Expected('"fitted", or a number ≥ 0 and < 1')
    ] = Field(
        0.0,
        description="Weight of a linear model of the inputs in the answer, next to the network; "
        "fitted: to the validation part.",
    )


AnyTask = "Supervised[Any]"


class Input(ABC):
    """How rows of one kind are read, learned, encoded and shown.

    name: in messages and files; exact: whether answers are computed in float64, where the digits
    of float32 would depend on which rows are asked together; answered_at_once: tokens of a batch
    of questions, in units of those in training; explained: how `explain` is given a row."""

    name: ClassVar[str]
    content: Content = Content()
    exact: ClassVar[bool] = False
    explained: ClassVar[Option] = EXPLAINED

    # ------------------------------------------------------------- rows
    def files(
        self,
        task: Supervised[Any],
        data: DataSettings,
        model: Model[Any, Any, Any],
        on_bad_row: Tell | None,
        origin: Origin,
    ) -> PartFiles[Any]:
        """The parts of a run's files."""
        return RowTask.files(task, data, model, on_bad_row, origin)

    def given(
        self,
        task: Supervised[Any],
        rows: Any,
        model: Model[Any, Any, Any],
        columns: Mapping[str, str],
        before: Any,
    ) -> Any:
        """Labelled rows in memory, as a part."""
        return RowTask.given(task, rows, model, columns, before)

    def asked(
        self, task: Supervised[Any], inputs: Any, model: Model[Any, Any, Any], asked: Asked
    ) -> Any:
        """Rows in memory that answers are wanted for, as a part."""
        return RowTask.asked(task, inputs, model, asked)

    def asked_files(
        self,
        task: Supervised[Any],
        paths: Sequence[str],
        data: DataSettings,
        model: Model[Any, Any, Any],
        on_bad_row: Tell | None,
        origin: Origin,
    ) -> Iterator[Questions[Any]]:
        """The rows of files that answers are wanted for, some at a time."""
        return RowTask.asked_files(task, paths, data, model, {}, on_bad_row, origin)

    def collected(
        self, task: Supervised[Any], rows: Rows, model: Model[Any, Any, Any], like: Any
    ) -> Any:
        """Rows as a part; like: the part whose tokenisers and numbers they share."""
        return RowTask.collected(task, rows, model, like)

    def asked_lines(
        self, task: Supervised[Any], lines: Sequence[str], model: Model[Any, Any, Any]
    ) -> Any:
        """Lines of the standard input, as a part."""
        return RowTask.asked_lines(task, lines, model)

    def asked_content(self, data: DataSettings, model: Model[Any, Any, Any]) -> Content:
        """What of a row is asked about."""
        return self.content

    def examples(self, rows: Any) -> Iterable[Example]:
        """Rows in memory: pairs of input and label."""
        return in_memory(pairs_of(rows))

    def questions(self, inputs: Iterable[Any]) -> Iterable[Example]:
        """Inputs in memory, without labels."""
        return in_memory((value, None) for value in inputs)

    def tokenisers(
        self, task: Supervised[Any], rows: Rows, model: Model[Any, Any, Any]
    ) -> Tokenisers:
        """For the texts of training rows."""
        return RowTask.tokenisers(task, rows, model)

    def question_keys(self, origin: Origin) -> tuple[str, ...]:
        """The keys of [data] whose columns a question needs."""
        return ("text",)

    def shown_input(self, example: Example) -> Any:
        """What of a row is shown next to its answer."""
        return example.value

    def shown_line(self, line: str) -> Any:
        """What of a line of the standard input is shown next to its answer."""
        return line

    def check(self, part: Any, name: str) -> None:
        """An error where a part cannot be learned from or evaluated. name: of the part."""
        if not len(part) or part.labels is None:
            where = f", the first of them {part.unlabelled}" if part.unlabelled else ""
            raise DataError(
                f"the {name} part: expected rows with labels, got {len(part)} rows"
                + (" with some or all of them missing" + where) * bool(len(part))
            )

    # ------------------------------------------------------------- learned
    @abstractmethod
    def learn(self, train: Any, model: Model[Any, Any, Any]) -> LearnedInput:
        """Vocabulary, scale, shape: of the training part alone."""

    @abstractmethod
    def unpack(self, saved: Saved, model: Model[Any, Any, Any]) -> LearnedInput:
        """The inverse of `LearnedInput.pack`."""

    def unpack_linear(
        self, saved: Saved, learned: Any, target: Target, model: Model[Any, Any, Any]
    ) -> Linear | None:
        """The inverse of `Linear.pack`; None where the input has no linear model."""
        return None

    def share(self, settings: Any, target: Target) -> Share:
        """What the linear model counts for in the answer."""
        return None

    @abstractmethod
    def budget(self, settings: Any) -> Budget:
        """Of a batch in training."""

    def answer_budget(self, settings: Any) -> int:
        """Tokens of a batch of questions."""
        return 2 * self.budget(settings).tokens

    # ------------------------------------------------------------- looked at
    @abstractmethod
    def describe(self, settings: Any) -> str:
        """The network that reads it, in a few words."""

    def explainer(
        self, model: Model[Any, Any, Any], part: Any, asked: Asked
    ) -> RowExplainer | None:
        """What takes the only row of a part apart; None where nothing does."""
        return None

    def question(self, given: Any, asked: Asked) -> Any:
        """A row to explain, as `asked` takes it."""
        return given
