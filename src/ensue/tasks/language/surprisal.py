"""The answer of a language model: the surprisal of each token of a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from ensue.drawing.document import Piece, Words
from ensue.tasks.answers import Answer, Columns, tabbed

MOST_BITS = 16.0  # bits with the strongest colour


@dataclass(frozen=True)
class Scored(Answer):
    """A scored text: its tokens, ending with </s>, and −log₂ p of each.

    >>> Scored(("a", "dog", "</s>"), (1.0, 3.0, 0.5)).total
    4.5
    """

    unbounded: ClassVar[tuple[str, ...]] = ("bits",)  # a model may give a token probability 0

    tokens: tuple[str, ...]
    bits: tuple[float, ...]

    @property
    def total(self) -> float:
        return sum(self.bits)

    def as_row(self) -> dict[str, Any]:
        return {"tokens": list(self.tokens), "bits": list(self.bits), "total": self.total}

    def as_line(self, value: object) -> str:
        """Total bits, bits per token, and the most surprising token."""
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
        """The tokens coloured by surprisal, with bits as tooltips."""
        strengths = [0.75 * min(bits, MOST_BITS) / MOST_BITS for bits in self.bits]
        notes = (f"{bits:.1f} bits" for bits in self.bits)
        every = zip(self.tokens, strengths, notes, strict=True)
        return Words([Piece(token, strength, 1, note=note) for token, strength, note in every])
