"""What a captioner answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from ensue.tasks.answers import Answer, Columns
from ensue.tasks.seq2seq.answer import Alternative, Weights, answer_line, answer_row, said_columns


@dataclass(frozen=True)
class Captioned(Answer):
    """text: the best caption found, of these tokens; score: its log p, the end included;
    alternatives: the n best where more than one was asked for, the best one first; attention: how
    much each region, row by row from the top left, counted for each token, where that was asked
    for.

    >>> Captioned("a red circle", -0.4, ("a", "red", "circle")).as_line("1.png")
    'a red circle'
    """

    text: str
    score: float
    tokens: tuple[str, ...]
    alternatives: tuple[Alternative, ...] = ()
    attention: Weights | None = None

    def as_line(self, shown: object) -> str:
        return answer_line(self.text, self.alternatives, self.attention)

    def as_row(self) -> dict[str, Any]:
        return answer_row(self.text, self.score, self.alternatives, self.attention)

    @classmethod
    def as_columns(cls, answers: Sequence[Self]) -> Columns:
        return said_columns(answers, "caption")


@dataclass(frozen=True)
class Gaze:
    """A caption word by word, the end last: the probability of each given those before it, and
    where it looked. grid: how many regions lie below and beside each other.

    >>> found = Gaze("red", ("red",), (0.9,), grid=(1, 2), attention=((0.2, 0.8),))
    >>> found.attention[0]  # of the word "red", by region
    (0.2, 0.8)
    """

    text: str
    tokens: tuple[str, ...]
    probabilities: tuple[float, ...]
    grid: tuple[int, int]
    attention: Weights
