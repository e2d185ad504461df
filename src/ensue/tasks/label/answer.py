"""The answers of a labeller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from ensue.drawing.document import Piece, Words
from ensue.metrics.spans import OUTSIDE, Span
from ensue.tasks.answers import Answer, Columns, tabbed


@dataclass(frozen=True)
class Labelled(Answer):
    """One label per step, with its probability; and spans, if the labels are span tags.

    >>> Labelled(("3", "May"), ("DAY", "MONTH"), (0.9, 0.8), spans=None).as_line("3 May")
    '3/DAY May/MONTH'
    """

    tokens: tuple[str, ...]
    labels: tuple[str, ...]
    probabilities: tuple[float, ...]
    spans: tuple[Span, ...] | None

    def as_line(self, inputs: object) -> str:
        """token/LABEL for each step, or only the labels without tokens."""
        if not self.tokens:
            return tabbed(" ".join(self.labels))
        pairs = zip(self.tokens, self.labels, strict=True)
        return tabbed(" ".join(f"{token}/{label}" for token, label in pairs))

    def as_row(self) -> dict[str, Any]:
        spans = None if self.spans is None else [span._asdict() for span in self.spans]
        return {
            "tokens": list(self.tokens) or None,
            "labels": list(self.labels),
            "probabilities": list(self.probabilities),
            "spans": spans,
        }

    @classmethod
    def as_columns(cls, answers: Sequence[Self]) -> Columns:
        """The column of several answers; a label has the same colour in all of them."""
        known = sorted({span.type for answer in answers for span in answer._marked_spans()})
        return {"labels": [answer._marked(known) for answer in answers]}

    def shows_input(self) -> bool:
        return bool(self.tokens)

    def _marked_spans(self) -> Sequence[Span]:
        """The spans; if labels are not span tags, each step is one."""
        if self.spans is not None:
            return self.spans
        return [Span(k, k + 1, label) for k, label in enumerate(self.labels) if label != OUTSIDE]

    def _marked(self, known: Sequence[str]) -> Words:
        """The text with each span on the colour of its label, followed by the label."""
        words, at = self.tokens or ("·",) * len(self.labels), 0
        pieces: list[Piece] = []
        for begin, end, kind in self._marked_spans():
            pieces += map(Piece, words[at:begin])
            pieces.append(Piece(" ".join(words[begin:end]), 0.22, known.index(kind), kind))
            at = end
        return Words([*pieces, *map(Piece, words[at:])])
