"""What a labeller answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ensue.metrics.spans import Span


@dataclass(frozen=True)
class Labelled:
    """One label a step, with its probability; spans where the labels are span tags."""

    tokens: tuple[str, ...]
    labels: tuple[str, ...]
    probabilities: tuple[float, ...]
    spans: tuple[Span, ...] | None

    def as_line(self, shown: object) -> str:
        """token/LABEL for each step, or the labels alone where there are no tokens."""
        if not self.tokens:
            return " ".join(self.labels)
        pairs = zip(self.tokens, self.labels, strict=True)
        return " ".join(f"{token}/{label}" for token, label in pairs)

    def as_row(self) -> dict[str, Any]:
        spans = None if self.spans is None else [span._asdict() for span in self.spans]
        return {
            "tokens": list(self.tokens) or None,
            "labels": list(self.labels),
            "probabilities": list(self.probabilities),
            "spans": spans,
        }
