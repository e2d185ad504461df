"""What every answer in words has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Weights = tuple[tuple[float, ...], ...]  # for each token said, those of the source's positions


@dataclass(frozen=True)
class Alternative:
    text: str
    score: float  # log p


def answer_row(
    text: str, score: float, alternatives: Sequence[Alternative], weights: Weights | None
) -> dict[str, Any]:
    """Text and log p; where they were asked for, the texts of alternatives, and the weights."""
    return {
        "text": text,
        "score": score,
        "alternatives": [other.text for other in alternatives] or None,
        "alignment": None if weights is None else [list(row) for row in weights],
    }


def answer_line(text: str, alternatives: Sequence[Alternative], weights: Weights | None) -> str:
    """The text alone; or a line for each alternative with its log p; or, after a tab, pairs i-j:
    token j, from 0 on, looked most at position i of the source."""
    if alternatives:
        return "\n".join(f"{other.score:.4f}\t{other.text}" for other in alternatives)
    if weights is None:
        return text
    looked = [max(range(len(row)), key=row.__getitem__) for row in weights]
    return f"{text}\t{' '.join(f'{i}-{j}' for j, i in enumerate(looked))}"
