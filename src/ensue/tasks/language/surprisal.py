"""The answer of a language model: how much each token of a text surprised it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Scored:
    """A text as the model sees it: −log₂ p of each token in its turn, the end's last."""

    tokens: tuple[str, ...]
    bits: tuple[float, ...]

    @property
    def total(self) -> float:
        return sum(self.bits)

    def as_row(self) -> dict[str, Any]:
        return {"tokens": list(self.tokens), "bits": list(self.bits), "total": self.total}

    def as_line(self, value: object) -> str:
        """Bits in all, bits a token, and the token that surprised most."""
        worst = max(range(len(self.bits)), key=self.bits.__getitem__)
        mean = self.total / len(self.bits)
        told = f"{self.tokens[worst]} ({self.bits[worst]:.1f})"
        return f"{self.total:.2f}\t{mean:.2f}\t{told}\t{' '.join(str(value).split())}"
