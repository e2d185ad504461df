"""`Sources`: what becomes a text, be it words, vectors or a picture; the text is written once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ensue.data.frames.origin import Origin
from ensue.data.ragged import Ragged
from ensue.data.rows import Tell
from ensue.data.settings import DataSettings
from ensue.data.tokenise import Tokeniser
from ensue.errors import DataError
from ensue.tasks.abilities import Explanation
from ensue.tasks.codec import Packed, packed, unpacked
from ensue.tasks.exported import Input, Step
from ensue.tasks.rows.collect import Content, Example, in_memory, pairs_of
from ensue.tasks.rows.part import Tokenisers
from ensue.tasks.rows.task import Rows, RowTask
from ensue.tasks.saved import Saved
from ensue.tasks.search.ranges import Space
from ensue.tasks.seq2seq.answer import Best
from ensue.tasks.seq2seq.network import PairNetwork
from ensue.tasks.seq2seq.target import LearnedTarget, targets_of
from ensue.tasks.task import Asked

if TYPE_CHECKING:
    from ensue.tasks.model import Model
    from ensue.tasks.seq2seq.task import Seq2Seq

    PairModel = Model[Any, Any, "LearnedPairs"]


class SourceQuestion(NamedTuple):
    """How an exported graph reads a source: its inputs, the steps from a question to their values,
    and source and lengths of all inputs. positions: that answers look at, 0 where each source has
    its number of them; steps: of a source, a number or the name of a value."""

    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    read: Callable[..., tuple[Tensor, Tensor]]
    positions: int
    length: str | int


class LearnedSource(ABC):
    """What was learned of sources: vocabulary, scale, shape. tokeniser: of texts; None of others.
    copied: whether a source could be its own answer."""

    tokeniser: Tokeniser | None
    copied: bool

    @abstractmethod
    def encode(self, part: Any) -> Ragged:
        """The sources of a part as the networks read them, step by step."""

    @abstractmethod
    def shown(self, part: Any) -> tuple[list[str], NDArray[np.int64]]:
        """Of each row: its source as a text, and the length in tokens that scores are shown by."""

    @abstractmethod
    def positions(self, part: Any) -> Sequence[tuple[str, ...]]:
        """Of each row: names of what an answer can look at; () where they have none."""

    @abstractmethod
    def question(self, networks: Sequence[PairNetwork]) -> SourceQuestion:
        """How an export asks for it."""

    @abstractmethod
    def facts(self, target: LearnedTarget, networks: Sequence[PairNetwork]) -> list[str]:
        """Lines on both sides of a fitted model."""


@dataclass(frozen=True)
class LearnedPairs:
    """What was learned of both sides. A kind of source says where files have it."""

    source: Any  # a `LearnedSource`
    target: LearnedTarget

    @property
    def tokenisers(self) -> Tokenisers:
        cut = self.target.tokeniser
        return Tokenisers(self.source.tokeniser or cut, cut)

    def pack(self) -> Packed:
        return packed(self)

    @classmethod
    def unpack(cls, saved: Saved, settings: Any) -> Self:
        return unpacked(cls, saved, settings=settings)


class Sources(ABC):
    """How sources of one kind are read, learned, encoded, shown, explained and exported.

    layout: where files have what was learned; pairs, unit, target: as messages call the rows, one
    of them, and what it becomes."""

    content: Content
    layout: type[LearnedPairs]
    pairs: ClassVar[str]
    unit: ClassVar[str]
    target: ClassVar[str]

    # ------------------------------------------------------------- rows
    def examples(self, rows: Any) -> Iterable[Example]:
        """Rows in memory: pairs of a source and its text."""
        return in_memory(pairs_of(rows))

    def questions(self, inputs: Iterable[Any]) -> Iterable[Example]:
        """Sources in memory."""
        return in_memory((value, None) for value in inputs)

    def asked(self, task: Seq2Seq[Any], inputs: Any, model: PairModel, asked: Asked) -> Any:
        """Sources in memory, as a part."""
        return RowTask.asked(task, inputs, model, asked)

    def asked_rows(
        self,
        task: Seq2Seq[Any],
        paths: Sequence[str],
        data: DataSettings,
        model: PairModel,
        on_bad_row: Tell | None,
        origin: Origin,
    ) -> Iterator[list[Example]]:
        """The sources of files that are answered together."""
        return RowTask.asked_rows(task, paths, data, model, on_bad_row, origin)

    def collected(self, task: Seq2Seq[Any], rows: Rows, model: PairModel, like: Any) -> Any:
        """Rows as a part; like: the part whose tokenisers and numbers they share."""
        return RowTask.collected(task, rows, model, like)

    @abstractmethod
    def tokenisers(self, rows: Rows, model: PairModel) -> Tokenisers:
        """For both sides of training rows."""

    def shown_input(self, example: Example) -> Any:
        """What of a row is shown next to its answer."""
        return example.value

    def check(self, part: Any, name: str) -> None:
        """An error unless every row has a target, and none is empty."""
        if not len(part) or part.labels is None:
            first = f", the first without a {self.target} is {part.unlabelled}"
            raise DataError(
                f"the {name} part: expected {self.pairs}, got {len(part)} rows"
                f"{first if part.unlabelled else ''}"
            )
        self.check_filled(part, name, self.target, part.labels)

    def check_filled(self, part: Any, name: str, side: str, rows: Ragged) -> None:
        """An error unless every row of this side has tokens or steps."""
        empty = np.flatnonzero(rows.lengths == 0)
        if len(empty):
            many = f"1 {self.unit} has" if len(empty) == 1 else f"{len(empty):,} {self.unit}s have"
            raise DataError(
                f"the {name} part: {many} an empty {side}, the first of them "
                f"{part.names[int(empty[0])]}: nothing can be learned from it; leave it out"
            )

    # ------------------------------------------------------------- learned
    @abstractmethod
    def learn(self, train: Any, model: PairModel) -> LearnedPairs:
        """Of the training part alone."""

    def token_lengths(self, part: Any) -> NDArray[np.int64]:
        """Of each row: tokens of its longest text, which may be too long to learn from."""
        return targets_of(part).lengths

    def space(self, space: Space, train: Any) -> Space:
        """What `select` searches, but for what a training part like this one has no use for."""
        return space

    # ------------------------------------------------------------- explained
    @abstractmethod
    def row(self, given: Any) -> Any:
        """A source to explain, as `asked` takes it."""

    @abstractmethod
    def explanation(
        self, best: Best, probabilities: tuple[float, ...], row: Any, model: PairModel
    ) -> Explanation:
        """A best answer with the probability of each word, the end last, and where it looked."""
