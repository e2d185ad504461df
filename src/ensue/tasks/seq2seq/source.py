"""Sources: how sources are read, and what is learned from sources and texts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ensue.data.ragged import Ragged
from ensue.data.tokenise import Tokeniser
from ensue.errors import DataError
from ensue.tasks.abilities import Explanation
from ensue.tasks.any_model import AnyModel
from ensue.tasks.codec import Packed, packed, unpacked
from ensue.tasks.exported import Input, Step
from ensue.tasks.reader import P
from ensue.tasks.rows.part import Tokenisers
from ensue.tasks.rows.reader import RowReader
from ensue.tasks.saved import Saved
from ensue.tasks.seq2seq.answer import Best
from ensue.tasks.seq2seq.pairs import PairNetwork
from ensue.tasks.seq2seq.target import LearnedTarget, targets_of


class SourceReader(RowReader[P]):
    """Reads sources with their texts. rows, row, text: names of all sources, one source and its
    text in messages."""

    new_labels = True
    rows: ClassVar[str]
    row: ClassVar[str]
    text: ClassVar[str]

    def check(self, part: Any, name: str) -> None:
        """Raises an error unless every row has a non-empty text."""
        if not len(part) or part.labels is None:
            first = f", the first without a {self.text} is {part.unlabelled}"
            raise DataError(
                f"the {name} part: expected {self.rows}, got {len(part)} rows"
                f"{first if part.unlabelled else ''}"
            )
        self.check_side(part, name, self.text, part.labels)

    def check_side(self, part: Any, name: str, side: str, values: Ragged) -> None:
        """Raises an error if a row of this side is empty."""
        empty = np.flatnonzero(values.lengths == 0)
        if len(empty):
            many = f"1 {self.row} has" if len(empty) == 1 else f"{len(empty):,} {self.row}s have"
            raise DataError(
                f"the {name} part: {many} an empty {side}, the first of them "
                f"{part.names[int(empty[0])]}: nothing can be learned from it; leave it out"
            )

    def remarks(self, train: Any, validation: Any) -> list[str]:
        long = self.long_rows(train)
        if not len(long):
            return []
        return [
            f"{len(long):,} of {len(train):,} pairs left out, longer than text.max_length, "
            f"{self.model.text.max_length} tokens, the first of them {train.names[int(long[0])]}"
        ]

    def short(self, part: P) -> P:
        """The rows without those whose texts are longer than the settings allow."""
        long = self.long_rows(part)
        if not len(long):
            return part
        if len(long) == len(part):
            raise DataError(
                f"all {len(part):,} pairs are longer than text.max_length, "
                f"{self.model.text.max_length} tokens: raise it, or leave it out"
            )
        return part.take(np.delete(np.arange(len(part)), long))

    def long_rows(self, part: P) -> NDArray[np.int64]:
        most = self.model.text.max_length
        return np.flatnonzero(self.token_counts(part) > (np.inf if most is None else most))

    def token_counts(self, part: Any) -> NDArray[np.int64]:
        """The tokens of the longest text of each row."""
        return targets_of(part).lengths


class SourceQuestion(NamedTuple):
    """How an exported graph reads a source: its inputs, the steps from a question to their values,
    and a function from all inputs to source and lengths. positions: number of attended positions, 0
    if it differs between sources; length: the length of a source in steps, a number or the name of
    a value."""

    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    read: Callable[..., tuple[Tensor, Tensor]]
    positions: int
    length: str | int


class LearnedSource(ABC):
    """The learned part of sources: vocabulary, scale, shape. tokeniser: the tokeniser of texts,
    None for other sources; copied: whether a source could be its own answer."""

    tokeniser: Tokeniser | None
    copied: bool

    @abstractmethod
    def encode(self, part: Any) -> Ragged:
        """The encoded sources of a part."""

    @abstractmethod
    def source_texts(self, part: Any) -> tuple[list[str], NDArray[np.int64]]:
        """The source of each row as a text, and its length in tokens for grouping scores."""

    @abstractmethod
    def positions(self, part: Any) -> Sequence[tuple[str, ...]]:
        """Names of the positions of each row to which an answer can attend; () if positions have
        no names."""

    @abstractmethod
    def explanation(
        self, best: Best, probabilities: tuple[float, ...], inputs: Any, model: AnyModel
    ) -> Explanation:
        """The best answer to a source with the probability of each word, the end last, and its
        attention. inputs: the source."""

    @abstractmethod
    def question(self, networks: Sequence[PairNetwork]) -> SourceQuestion:
        """The question in an export."""

    @abstractmethod
    def facts(self, target: LearnedTarget, networks: Sequence[PairNetwork]) -> list[str]:
        """Lines on both sides of a fitted model."""


@dataclass(frozen=True)
class LearnedPairs(ABC):
    """The learned part of both sides: a `LearnedSource`, and the target. Each kind of source
    declares how it is stored."""

    source: Any
    target: LearnedTarget

    @classmethod
    @abstractmethod
    def learn(cls, train: Any, model: AnyModel) -> Self:
        """Learns from the training part only."""

    @property
    def tokenisers(self) -> Tokenisers:
        cut = self.target.tokeniser
        return Tokenisers(self.source.tokeniser or cut, cut)

    def pack(self) -> Packed:
        return packed(self)

    @classmethod
    def unpack(cls, saved: Saved, settings: Any) -> Self:
        return unpacked(cls, saved, settings=settings)
