"""What an evaluation of translations found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ensue.models.evaluation import Evaluation


class Bucket(NamedTuple):
    """Rows whose sources are of like length, and the score that counts on them alone."""

    name: str
    rows: int
    score: float


@dataclass(frozen=True)
class PairEvaluation(Evaluation):
    """buckets: rows by the tokens of their source. Texts are long, so that an error is written over
    several lines."""

    buckets: Sequence[Bucket] = ()

    def as_json(self) -> dict[str, Any]:
        return {**super().as_json(), "buckets": [own._asdict() for own in self.buckets]}

    def as_text(self) -> str:
        parts = [self._head(), self._lengths(), self._worst()]
        return "\n\n".join(part for part in parts if part)

    def _lengths(self) -> str:
        width = max([len("tokens"), *(len(own.name) for own in self.buckets)])
        lines = [f"{'tokens':>{width}}    rows{self.main:>10}"]
        lines += [f"{own.name:>{width}}{own.rows:8,}{own.score:10.4f}" for own in self.buckets]
        return "\n".join(lines)

    def _worst(self) -> str:
        if not self.worst:
            return ""
        lines = ["furthest from what was expected"]
        for own in self.worst:
            lines += [f"  {own.place}  ({own.probability:.2f})", f"    source    {own.text}"]
            lines += [f"    expected  {own.gold}", f"    got       {own.predicted}"]
        return "\n".join(lines)
