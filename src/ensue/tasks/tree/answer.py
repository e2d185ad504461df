"""The answer of a classifier of trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from ensue.drawing.inline import bar
from ensue.tasks.answers import Answer, Columns, tabbed


@dataclass(frozen=True)
class TreeAnswer(Answer):
    """label, probability: of the whole tree; tree: in brackets, with the answered label at each
    node; labels, node_probabilities: of the nodes, each before those below it, "" at words without
    brackets of their own; empty where only whole trees are learned. probabilities: of the whole
    tree by class, the most probable first.

    >>> TreeAnswer("4", 0.75, "(4 good)", ("4",), (0.75,), {"4": 0.75, "3": 0.25}).as_line("")
    '4\\t0.7500\\t(4 good)'
    """

    label: str
    probability: float
    tree: str
    labels: tuple[str, ...]
    node_probabilities: tuple[float, ...]
    probabilities: Mapping[str, float]

    def as_line(self, shown: object) -> str:
        return tabbed(self.label, f"{self.probability:.4f}", self.tree)

    def as_row(self) -> dict[str, Any]:
        return {"label": self.label, "probability": self.probability, "tree": self.tree}

    def shows_input(self) -> bool:
        return True

    @classmethod
    def as_columns(cls, answers: Sequence[Self]) -> Columns:
        return {
            "tree": [own.tree for own in answers],
            "label": [own.label for own in answers],
            "probability": [own.probability for own in answers],
            "": [bar(own.probability, 1.0) for own in answers],
        }
