"""What every answer in words has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ensue.tasks.answers import Columns, tabbed

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
        return "\n".join(tabbed(f"{other.score:.4f}", other.text) for other in alternatives)
    if weights is None:
        return tabbed(text)
    looked = [max(range(len(row)), key=row.__getitem__) for row in weights]
    return tabbed(text, " ".join(f"{i}-{j}" for j, i in enumerate(looked)))


class Said(Protocol):
    """An answer in words."""

    @property
    def text(self) -> str: ...
    @property
    def score(self) -> float: ...
    @property
    def alternatives(self) -> Sequence[Alternative]: ...


def said_columns(answers: Sequence[Said], head: str) -> Columns:
    """The texts with their log p, and the other ones where they were asked for."""
    columns: Columns = {
        head: [answer.text for answer in answers],
        "log p": [answer.score for answer in answers],
    }
    if not any(answer.alternatives for answer in answers):
        return columns
    others = [
        "; ".join(f"{other.text} ({other.score:.2f})" for other in answer.alternatives[1:])
        for answer in answers
    ]
    return {**columns, "other answers": others}
