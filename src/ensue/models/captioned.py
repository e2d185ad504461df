"""What a captioner answers."""

from __future__ import annotations

from dataclasses import dataclass

from ensue.models.translated import Alternative, Weights


@dataclass(frozen=True)
class Captioned:
    """text: the best caption found, of these tokens; score: its log p, the end included;
    alternatives: the n best where more than one was asked for, the best one first; attention: how
    much each region, row by row from the top left, counted for each token, where that was asked
    for."""

    text: str
    score: float
    tokens: tuple[str, ...]
    alternatives: tuple[Alternative, ...] = ()
    attention: Weights | None = None

    def as_line(self, value: object) -> str:
        """The text alone; or a line for each alternative with its log p; behind a tab, pairs i-j:
        token j, from 0 on, looked most at region i."""
        if self.alternatives:
            return "\n".join(f"{own.score:.4f}\t{own.text}" for own in self.alternatives)
        if self.attention is None:
            return self.text
        looked = [max(range(len(row)), key=row.__getitem__) for row in self.attention]
        return f"{self.text}\t{' '.join(f'{i}-{j}' for j, i in enumerate(looked))}"


@dataclass(frozen=True)
class Gaze:
    """A caption word by word, the end last: the probability of each given those before it, and
    where it looked. grid: how many regions lie below and beside each other."""

    text: str
    tokens: tuple[str, ...]
    probabilities: tuple[float, ...]
    grid: tuple[int, int]
    attention: Weights
