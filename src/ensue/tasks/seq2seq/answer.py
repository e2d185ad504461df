"""Answers in words, and their attention."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

from ensue.drawing.document import Cell, HeatMap
from ensue.tasks.answers import Answer, Columns, tabbed

Weights = tuple[tuple[float, ...], ...]  # for each generated token, the weights of source positions


@dataclass(frozen=True)
class Alternative:
    text: str
    score: float  # log p


class Best(NamedTuple):
    """The best answer of a search. source: names of positions, () if they have none; weights:
    attention to each position for each token, None if not requested."""

    text: str
    score: float
    tokens: tuple[str, ...]
    alternatives: tuple[Alternative, ...]
    source: tuple[str, ...]
    weights: Weights | None


class Words(Answer):
    """An answer in words. text: the best answer, made of these tokens; score: its log p, including
    the end; alternatives: the n best answers, best first, if more than one is requested. head: the
    head of the column of texts."""

    head: ClassVar[str]
    text: str
    score: float
    tokens: tuple[str, ...]
    alternatives: tuple[Alternative, ...]

    @classmethod
    @abstractmethod
    def of(cls, best: Best) -> Self:
        """The answer of this class from the best one of a search."""

    @property
    @abstractmethod
    def weights(self) -> Weights | None:
        """The attention to each position of the source for each token; None if not requested."""

    def positions(self) -> Sequence[str]:
        """Names of the weighted positions: numbers from 1."""
        return [str(k) for k in range(1, len(self.weights[0]) + 1)] if self.weights else []

    def as_line(self, inputs: object) -> str:
        """The text; or a line for each alternative with its log p; or, after a tab, pairs i-j:
        token j, from 0, attended most to position i of the source."""
        if self.alternatives:
            return "\n".join(tabbed(f"{one.score:.4f}", one.text) for one in self.alternatives)
        if self.weights is None:
            return tabbed(self.text)
        looked = [max(range(len(row)), key=row.__getitem__) for row in self.weights]
        return tabbed(self.text, " ".join(f"{i}-{j}" for j, i in enumerate(looked)))

    def as_row(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "score": self.score,
            "alternatives": [one.text for one in self.alternatives] or None,
            "alignment": None if self.weights is None else [list(row) for row in self.weights],
        }

    @classmethod
    def as_columns(cls, answers: Sequence[Self]) -> Columns:
        columns: dict[str, Sequence[Cell]] = {
            cls.head: [answer.text for answer in answers],
            "log p": [answer.score for answer in answers],
        }
        if any(answer.alternatives for answer in answers):
            columns["other answers"] = [answer._other_answers() for answer in answers]
        if any(answer.weights is not None for answer in answers):
            columns["where each word looked"] = [answer._aligned() for answer in answers]
        return columns

    def _other_answers(self) -> str:
        return "; ".join(f"{one.text} ({one.score:.2f})" for one in self.alternatives[1:])

    def _aligned(self) -> Cell:
        return HeatMap(self.tokens, self.positions(), self.weights) if self.weights else ""


@dataclass(frozen=True)
class Translated(Words):
    """A translation. text: the best translation, made of these tokens; score: its log p, including
    the end; alternatives: the n best, best first, if more than one is requested; alignment: the
    attention to each source token for each generated token, if requested.

    >>> Translated("a dog", -0.2, ("a", "dog"), ("un", "chien")).as_line("un chien")
    'a dog'
    """

    head = "translation"
    text: str
    score: float
    tokens: tuple[str, ...]
    source: tuple[str, ...]
    alternatives: tuple[Alternative, ...] = ()
    alignment: Weights | None = None

    @classmethod
    def of(cls, best: Best) -> Self:
        text, score, tokens, alternatives, source, weights = best
        return cls(text, score, tokens, source, alternatives, weights)

    @property
    def weights(self) -> Weights | None:
        return self.alignment

    def positions(self) -> Sequence[str]:
        return self.source


@dataclass(frozen=True)
class Captioned(Words):
    """A caption. text: the best caption, made of these tokens; score: its log p, including the end;
    alternatives: the n best, best first, if more than one is requested; attention: the attention of
    each token to each region, row by row from the top left, if requested.

    >>> Captioned("a red circle", -0.4, ("a", "red", "circle")).as_line("1.png")
    'a red circle'
    """

    head = "caption"
    text: str
    score: float
    tokens: tuple[str, ...]
    alternatives: tuple[Alternative, ...] = ()
    attention: Weights | None = None

    @classmethod
    def of(cls, best: Best) -> Self:
        text, score, tokens, alternatives, _, weights = best
        return cls(text, score, tokens, alternatives, weights)

    @property
    def weights(self) -> Weights | None:
        return self.attention


@dataclass(frozen=True)
class Explained:
    """A translation word by word, the end last: the probability of each word given the previous
    ones, and its attention.

    >>> weights = (0.9, 0.1), (0.2, 0.8)
    >>> found = Explained(("un", "chien"), ("a", "dog"), (0.9, 0.8), weights, "a dog")
    >>> found.tokens[1], found.alignment[1]
    ('dog', (0.2, 0.8))
    """

    source: tuple[str, ...]
    tokens: tuple[str, ...]
    probabilities: tuple[float, ...]
    alignment: Weights
    text: str


@dataclass(frozen=True)
class Gaze:
    """A caption word by word, the end last: the probability of each word given the previous ones,
    and its attention. grid: number of rows and columns of regions.

    >>> found = Gaze("red", ("red",), (0.9,), grid=(1, 2), attention=((0.2, 0.8),))
    >>> found.attention[0]  # of the word "red", by region
    (0.2, 0.8)
    """

    text: str
    tokens: tuple[str, ...]
    probabilities: tuple[float, ...]
    grid: tuple[int, int]
    attention: Weights
