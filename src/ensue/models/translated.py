"""What a translator answers."""

from __future__ import annotations

from dataclasses import dataclass

Weights = tuple[tuple[float, ...], ...]  # for each token said, those of the source's tokens


@dataclass(frozen=True)
class Alternative:
    text: str
    score: float  # log p


@dataclass(frozen=True)
class Translated:
    """text: the best translation found, of these tokens; score: its log p, the end included;
    alternatives: the n best where more than one was asked for, the best one first; alignment:
    how much each token of the source counted for each token said, where that was asked for."""

    text: str
    score: float
    tokens: tuple[str, ...]
    source: tuple[str, ...]
    alternatives: tuple[Alternative, ...] = ()
    alignment: Weights | None = None

    def as_line(self, value: object) -> str:
        """The text alone; or a line for each alternative with its log p; behind a tab, pairs i-j:
        token j, from 0 on, looked most at token i of the source."""
        if self.alternatives:
            return "\n".join(f"{own.score:.4f}\t{own.text}" for own in self.alternatives)
        if self.alignment is None:
            return self.text
        looked = [max(range(len(row)), key=row.__getitem__) for row in self.alignment]
        return f"{self.text}\t{' '.join(f'{i}-{j}' for j, i in enumerate(looked))}"


@dataclass(frozen=True)
class Explained:
    """A translation word by word, the end last: the probability of each given those before it,
    and where it looked."""

    source: tuple[str, ...]
    tokens: tuple[str, ...]
    probabilities: tuple[float, ...]
    alignment: Weights
    text: str
