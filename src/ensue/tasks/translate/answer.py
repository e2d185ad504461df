"""What a translator answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from ensue.drawing.document import Cell, HeatMap
from ensue.tasks.answers import Answer, Columns
from ensue.tasks.seq2seq.answer import Alternative, Weights, answer_line, answer_row, said_columns


@dataclass(frozen=True)
class Translated(Answer):
    """text: the best translation found, of these tokens; score: its log p, the end included;
    alternatives: the n best where more than one was asked for, the best one first; alignment:
    how much each token of the source counted for each token said, where that was asked for.

    >>> Translated("a dog", -0.2, ("a", "dog"), ("un", "chien")).as_line("un chien")
    'a dog'
    """

    text: str
    score: float
    tokens: tuple[str, ...]
    source: tuple[str, ...]
    alternatives: tuple[Alternative, ...] = ()
    alignment: Weights | None = None

    def as_line(self, shown: object) -> str:
        return answer_line(self.text, self.alternatives, self.alignment)

    def as_row(self) -> dict[str, Any]:
        return answer_row(self.text, self.score, self.alternatives, self.alignment)

    @classmethod
    def as_columns(cls, answers: Sequence[Self]) -> Columns:
        columns = said_columns(answers, "translation")
        if all(answer.alignment is None for answer in answers):
            return columns
        return {**columns, "where each word looked": [answer._aligned() for answer in answers]}

    def _aligned(self) -> Cell:
        return HeatMap(self.tokens, self.source, self.alignment) if self.alignment else ""


@dataclass(frozen=True)
class Explained:
    """A translation word by word, the end last: the probability of each given those before it,
    and where it looked.

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
