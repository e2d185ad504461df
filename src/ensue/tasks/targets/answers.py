"""Answers that several tasks give: a class, several labels, a number with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Readable(Protocol):
    """An input that is no text but can be shown as one, such as the row of a table."""

    def as_text(self) -> str: ...


def shown_text(shown: object) -> str:
    """What is shown of an input, on one line; several texts with tabs between; "" where it is
    neither a text nor readable."""
    if isinstance(shown, tuple):
        return "\t".join(shown_text(own) for own in shown)
    if isinstance(shown, Readable):
        shown = shown.as_text()
    return " ".join(shown.split()) if isinstance(shown, str) else ""


@dataclass(frozen=True)
class Classified:
    """label: the most probable class ("" where several labels may be there); labels: all that
    are there; probabilities: by class, the most probable first."""

    label: str
    labels: tuple[str, ...]
    probabilities: Mapping[str, float]

    def as_line(self, shown: object) -> str:
        """label, probability and input, with tabs between; the white space of the input is one
        space each, so that an answer is a line. Several labels stand with commas between, and
        the probability is that of the least probable of them."""
        chosen = ",".join(self.labels)
        sure = min((self.probabilities[label] for label in self.labels), default=None)
        probability = "" if sure is None else f"{sure:.4f}"
        return f"{chosen}\t{probability}\t{shown_text(shown)}".rstrip("\t")

    def as_row(self) -> dict[str, Any]:
        """label and probability; labels, where there may be several, with the probability of the
        least probable of them."""
        sure = min((self.probabilities[label] for label in self.labels), default=None)
        answer = {"label": self.label} if self.label else {"labels": list(self.labels)}
        return {**answer, "probability": sure}


@dataclass(frozen=True)
class Estimated:
    """A number: its expected value, and the interval that holds it with probability share."""

    value: float
    low: float
    high: float
    share: float

    def as_line(self, shown: object) -> str:
        """value, low, high and input, with tabs between."""
        numbers = f"{self.value:.6g}\t{self.low:.6g}\t{self.high:.6g}"
        return f"{numbers}\t{shown_text(shown)}".rstrip("\t")

    def as_row(self) -> dict[str, float]:
        return {"value": self.value, "low": self.low, "high": self.high}
