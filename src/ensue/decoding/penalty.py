"""What a hypothesis' log-probability is divided by, so that long ones are not at a loss."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from ensue.errors import OptionError, unknown

# Functions of the number of words and α; each is 1 for α = 0 and never falls as words are added.
PENALTIES: dict[str, Callable[[Tensor, float], Tensor]] = {
    "wu": lambda words, alpha: ((5.0 + words.double()) / 6.0) ** alpha,
    "length": lambda words, alpha: words.double() ** alpha,
}


def penalty(name: str, alpha: float) -> Callable[[Tensor], Tensor]:
    """lp(n): "wu" ((5 + n) / 6)^α of Wu et al. (2016), "length" n^α, the mean for α = 1."""
    if name not in PENALTIES:
        raise unknown("length_penalty", name, PENALTIES)
    if not 0 <= alpha < float("inf"):
        raise OptionError(
            f"alpha: expected a number ≥ 0, got {alpha}; 0 ranks by log-probability, and the "
            "greater it is, the longer what is found"
        )
    of = PENALTIES[name]
    return lambda words: of(words, alpha)
