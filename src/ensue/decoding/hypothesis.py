"""What a search finds."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True)
class Hypothesis:
    """A sequence that is over.

    tokens: its words, the end included where there is one (ended). log_probability: log p of
    them all. score: what it was ranked by. watched (words, …): what `watch` gave at
    each of them, None where nothing was watched.

    >>> Hypothesis((0, 1, 2), log_probability=-3.5, score=-3.5, ended=True).content
    (0, 1)
    """

    tokens: tuple[int, ...]
    log_probability: float
    score: float
    ended: bool
    watched: Tensor | None = field(default=None, compare=False)

    @property
    def content(self) -> tuple[int, ...]:
        """The words without the end."""
        return self.tokens[:-1] if self.ended else self.tokens
