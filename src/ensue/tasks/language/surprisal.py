"""The answer of a language model: how much each token of a text surprised it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from ensue.drawing.document import Piece, Words
from ensue.tasks.answers import Answer, Columns, tabbed

MOST_BITS = 16.0  # drawn as strongly as can be


@dataclass(frozen=True)
class Scored(Answer):
    """A text as the model sees it: −log₂ p of each token in its turn, the end's last.

    >>> Scored(("a", "dog", "</s>"), (1.0, 3.0, 0.5)).total
    4.5
    """

    unbounded: ClassVar[tuple[str, ...]] = ("bits",)  # a model may hold a token to be impossible

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
        worst_token = f"{self.tokens[worst]} ({self.bits[worst]:.1f})"
        text = " ".join(str(value).split())
        return tabbed(f"{self.total:.2f}", f"{mean:.2f}", worst_token, text)

    def shows_input(self) -> bool:
        return True

    @classmethod
    def as_columns(cls, answers: Sequence[Self]) -> Columns:
        return {
            "text, stronger where it surprised": [answer._coloured() for answer in answers],
            "bits": [answer.total for answer in answers],
            "bits a token": [answer.total / len(answer.bits) for answer in answers],
        }

    def _coloured(self) -> Words:
        """Each token on its surprise, with the bits under the pointer."""
        strengths = [0.75 * min(bits, MOST_BITS) / MOST_BITS for bits in self.bits]
        notes = (f"{bits:.1f} bits" for bits in self.bits)
        every = zip(self.tokens, strengths, notes, strict=True)
        return Words([Piece(token, strength, 1, note=note) for token, strength, note in every])
