"""Answers that several tasks give: a class, several labels, a number with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

from ensue.drawing.html import between, block, table
from ensue.drawing.inline import bar, span
from ensue.tasks.answers import Answer, Columns, tabbed


@runtime_checkable
class Readable(Protocol):
    """An input that is no text but can be shown as one, such as the row of a table."""

    def as_text(self) -> str: ...


def shown_texts(shown: object) -> list[str]:
    """What is shown of an input, each of its texts on one line; "" where it is neither a text nor
    readable."""
    if isinstance(shown, str):
        return [" ".join(shown.split())]
    if isinstance(shown, tuple):
        return [text for own in shown for text in shown_texts(own)]
    return shown_texts(shown.as_text()) if isinstance(shown, Readable) else [""]


@dataclass(frozen=True)
class Classified(Answer):
    """label: the most probable class ("" where several labels may be there); labels: all that
    are there; probabilities: by class, the most probable first.

    >>> Classified("good", ("good",), {"good": 0.75, "bad": 0.25}).as_line("a fine film")
    'good\\t0.7500\\ta fine film'
    """

    label: str
    labels: tuple[str, ...]
    probabilities: Mapping[str, float]

    def as_line(self, shown: object) -> str:
        """label, probability and input, with tabs between; the white space of the input is one
        space each, so that an answer is a line. Several labels stand with commas between, and
        the probability is that of the least probable of them."""
        chosen = ",".join(self.labels)
        probability = f"{self.probability:.4f}" if self.labels else ""
        return tabbed(chosen, probability, *shown_texts(shown)).rstrip("\t")

    def as_row(self) -> dict[str, Any]:
        """label and probability; labels, where there may be several, with the probability of the
        least probable of them."""
        answer = {"label": self.label} if self.label else {"labels": list(self.labels)}
        return {**answer, "probability": self.probability if self.labels else None}

    @property
    def probability(self) -> float:
        """Of the label; of several, that of the least probable that is there; 0 where none is."""
        return min((self.probabilities[label] for label in self.labels), default=0.0)

    @classmethod
    def as_columns(cls, answers: Sequence[Self]) -> Columns:
        return {
            "label": [", ".join(answer.labels) for answer in answers],
            "probability": [answer.probability for answer in answers],
            "": [bar(answer.probability, 1.0) for answer in answers],
        }

    def _repr_html_(self) -> str:
        """Every class with its probability."""
        rows = [(name, p, bar(p, 1.0)) for name, p in self.probabilities.items()]
        return block(
            ", ".join(self.labels) or "no label", table(rows, ("class", "probability", ""))
        )


@dataclass(frozen=True)
class Abstained(Classified):
    """No class is probable enough to be answered; the probability is that of the likeliest.

    >>> Abstained("", (), {"good": 0.55, "bad": 0.45}).as_line("a film")
    '\\t0.5500\\ta film'
    """

    def as_line(self, shown: object) -> str:
        return tabbed("", f"{self.probability:.4f}", *shown_texts(shown)).rstrip("\t")

    def as_row(self) -> dict[str, Any]:
        return {"label": None, "probability": self.probability}

    @property
    def probability(self) -> float:
        return next(iter(self.probabilities.values()))


@dataclass(frozen=True)
class Estimated(Answer):
    """A number: its expected value, and the interval that holds it with probability share.

    >>> Estimated(7.5, low=6.0, high=9.0, share=0.9).as_line("a fine film")
    '7.5\\t6\\t9\\ta fine film'
    """

    value: float
    low: float
    high: float
    share: float

    def as_line(self, shown: object) -> str:
        """value, low, high and input, with tabs between."""
        numbers = (f"{number:.6g}" for number in (self.value, self.low, self.high))
        return tabbed(*numbers, *shown_texts(shown)).rstrip("\t")

    def as_row(self) -> dict[str, float]:
        return {"value": self.value, "low": self.low, "high": self.high}

    @classmethod
    def as_columns(cls, answers: Sequence[Self]) -> Columns:
        """The intervals stand on one scale."""
        scale = min(own.low for own in answers), max(own.high for own in answers)
        shares = {f"{own.share:.0%} " for own in answers}
        return {
            "value": [own.value for own in answers],
            "": [span(own.value, own.low, own.high, scale) for own in answers],
            f"{shares.pop() if len(shares) == 1 else ''}interval": [
                between(own.low, own.high) for own in answers
            ],
        }
