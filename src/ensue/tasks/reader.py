"""`DatasetReader`: reads the rows of a model into parts, for learning and answering."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ensue.data.frames.origin import FILES, Origin
from ensue.data.rows import ProblemCallback
from ensue.data.settings import DataSettings
from ensue.data.split import by_share
from ensue.tasks.abilities import NOTHING, RequestOptions

if TYPE_CHECKING:
    from ensue.tasks.any_model import AnyModel

HELD_OUT = 0.1  # share of validation rows, if no validation part is named
NO_COLUMNS: Mapping[str, str] = {}


class RowNames(Protocol):
    """The origin of each row."""

    def __getitem__(self, row: int) -> str: ...


class AnyPart(Protocol):
    """A part: rows as arrays, which a task reads, learns from and answers."""

    @property
    def names(self) -> RowNames: ...

    def __len__(self) -> int: ...

    def take(self, rows: NDArray[np.int64]) -> Self: ...


P = TypeVar("P", bound=AnyPart)
P_co = TypeVar("P_co", bound=AnyPart, covariant=True)


class PartFiles(Protocol[P_co]):
    """The parts of a run's files."""

    @property
    def rejected(self) -> int:
        """Rejected rows of the last part."""
        ...

    def part(self, name: str, like: Any = None) -> P_co:
        """Reads a part: train, validation or test. like: the training part, whose tokenisers,
        vocabularies or shape the others share; for a fitted model, the model's own are used."""
        ...


@dataclass(frozen=True)
class QuestionFiles:
    """Files with rows to answer. data: reading options; on_bad_row: callback for rejected rows;
    origin: the data frame, if the rows are read from one instead of files."""

    paths: Sequence[str]
    data: DataSettings
    on_bad_row: ProblemCallback | None = None
    origin: Origin = FILES


@dataclass(frozen=True)
class Questions(Generic[P]):
    """Rows to answer. shown_inputs: each row as shown next to its answer; None if answers do not
    belong to rows."""

    part: P
    shown_inputs: Sequence[Any] | None = None


class DatasetReader(ABC, Generic[P]):
    """Reads the rows of one model, from files, data frames, memory or lines, into parts."""

    def __init__(self, model: AnyModel) -> None:
        self.model = model

    # ------------------------------------------------------------- to learn from
    @abstractmethod
    def files(
        self, data: DataSettings, on_bad_row: ProblemCallback | None = None, origin: Origin = FILES
    ) -> PartFiles[P]:
        """The parts of files. on_bad_row: callback for rejected rows; origin: what the rows are
        read from, a data frame instead of files."""

    @abstractmethod
    def labelled(
        self, rows: Any, columns: Mapping[str, str] = NO_COLUMNS, before: P | None = None
    ) -> P:
        """Labelled rows in memory. columns: roles by name; before: the earlier part, whose
        tokenisers and vocabularies these rows share."""

    def hold_out(self, part: P) -> tuple[P, P]:
        """Splits a part into a training part and a validation part, a tenth of the rows."""
        shares = {"train": 1 - HELD_OUT, "validation": HELD_OUT}
        split = by_share(len(part), shares, self.model.train.seed)
        return part.take(split["train"]), part.take(split["validation"])

    def answerable(self, train: P, validation: P) -> NDArray[np.int64] | None:
        """The validation rows that can be answered with what the training part has; None: all."""
        return None

    def check(self, part: P, name: str) -> None:
        """Raises an error if a part cannot be learned from or evaluated. name: the name of the
        part."""

    def remarks(self, train: P, validation: P) -> list[str]:
        """Remarks on the training part for the user, after learning."""
        return []

    # ------------------------------------------------------------- to answer
    @abstractmethod
    def questions(self, inputs: Any, options: RequestOptions = NOTHING) -> P:
        """Inputs in memory."""

    @abstractmethod
    def question_files(
        self, files: QuestionFiles, options: RequestOptions = NOTHING
    ) -> Iterator[Questions[P]]:
        """The rows of files in batches."""

    def question_lines(self, lines: Sequence[str]) -> P:
        """Lines of the standard input."""
        return self.questions(list(lines))

    def question_keys(self, origin: Origin) -> tuple[str, ...]:
        """The keys of [data] whose columns a question needs."""
        return ("text",)

    def named_row(self, role: str, value: str) -> Any:
        """The row of several inputs from an option of `explain`, --image photo.png; None if inputs
        are not named. role: the role that the option names."""
        return None

    def shown_line(self, line: str) -> Any:
        """A line of the standard input, as shown next to its answer."""
        return line
