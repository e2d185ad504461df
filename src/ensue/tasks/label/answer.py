"""What a labeller answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Self

from ensue.drawing.html import HUES, Markup, tint
from ensue.drawing.svg import escape
from ensue.metrics.spans import OUTSIDE, Span
from ensue.tasks.answers import Answer, Columns, tabbed


@dataclass(frozen=True)
class Labelled(Answer):
    """One label a step, with its probability; spans where the labels are span tags.

    >>> Labelled(("3", "May"), ("DAY", "MONTH"), (0.9, 0.8), spans=None).as_line("3 May")
    '3/DAY May/MONTH'
    """

    tokens: tuple[str, ...]
    labels: tuple[str, ...]
    probabilities: tuple[float, ...]
    spans: tuple[Span, ...] | None

    def as_line(self, shown: object) -> str:
        """token/LABEL for each step, or the labels alone where there are no tokens."""
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
        """Each label has the same colour in all of them."""
        known = sorted({span.type for answer in answers for span in answer._marked_spans()})
        hues = dict(zip(known, cycle(HUES), strict=False))
        return {"labels": [answer._marked(hues) for answer in answers]}

    def shows_input(self) -> bool:
        return bool(self.tokens)

    def _marked_spans(self) -> Sequence[Span]:
        """The spans; where labels are none, each step is one."""
        if self.spans is not None:
            return self.spans
        return [Span(k, k + 1, label) for k, label in enumerate(self.labels) if label != OUTSIDE]

    def _marked(self, hues: Mapping[str, str]) -> Markup:
        words, at = self.tokens or ("·",) * len(self.labels), 0
        pieces: list[str] = []
        for begin, end, kind in self._marked_spans():
            pieces += map(escape, words[at:begin])
            pieces.append(_marked(" ".join(words[begin:end]), kind, hues[kind]))
            at = end
        return Markup(" ".join([*pieces, *map(escape, words[at:])]))


def _marked(words: str, label: str, hue: str) -> str:
    """Words on the colour of their label, which stands beside them."""
    style = f"background:{tint(hue, 0.22)};border-radius:.3em;padding:.1em .35em;line-height:2"
    name = f'<small style="opacity:.75;font-weight:600;margin-left:.35em">{escape(label)}</small>'
    return f'<span style="{style}">{escape(words)}{name}</span>'
