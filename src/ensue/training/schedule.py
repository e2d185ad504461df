"""The learning rate as a function of the update's number."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ensue.training.settings import TrainSettings


@dataclass(frozen=True)
class Moment:
    """An update after the warm-up. t: from 0 to 1, the share of the updates since the warm-up
    that are done; factor: what plateaus have left of the rate."""

    update: int
    warmup: int
    t: float
    factor: float


# The share of `train.rate`, by the value of `train.schedule`: a new one is a row here, and nothing
# else.
SCHEDULES: dict[str, Callable[[Moment], float]] = {
    "constant": lambda at: 1.0,
    "linear": lambda at: 1 - at.t,
    "cosine": lambda at: (1 + math.cos(math.pi * at.t)) / 2,
    "inverse-sqrt": lambda at: _inverse_sqrt(at),
    "plateau": lambda at: at.factor,
    "slanted": lambda at: _slanted(at.t),
    "one-cycle": lambda at: _one_cycle(at.t),
}
RISE = 0.1  # share of the updates over which a slanted triangle rises
LOW = 1 / 32  # of the rate, at both ends of it
CYCLE_RISE = 0.3  # the same of a cycle
CYCLE_LOW = 1 / 25  # where it begins; it ends near zero


def _inverse_sqrt(at: Moment) -> float:
    """√(warmup / update)."""
    start = max(at.warmup, 1)
    return math.sqrt(start / max(at.update + 1, start))


def _slanted(t: float) -> float:
    """The slanted triangle: up in a straight line to 1 over the first tenth, then down."""
    height = t / RISE if t < RISE else (1 - t) / (1 - RISE)
    return LOW + (1 - LOW) * height


def _one_cycle(t: float) -> float:
    """Up to 1 over the first three tenths and down to nearly 0, both in half a cosine."""
    if t < CYCLE_RISE:
        return 1 - (1 - CYCLE_LOW) * (1 + math.cos(math.pi * t / CYCLE_RISE)) / 2
    return (1 + math.cos(math.pi * (t - CYCLE_RISE) / (1 - CYCLE_RISE))) / 2


def rate(settings: TrainSettings, update: int, updates: int, factor: float = 1.0) -> float:
    """The rate of an update (the first is 0) out of `updates`; `factor` is what plateaus have
    left.

    It grows in equal steps over `warmup` updates, then follows the schedule."""
    warmup = settings.warmup
    if update < warmup:
        return settings.rate * factor * (update + 1) / warmup
    t = min((update - warmup) / max(updates - warmup, 1), 1.0)
    return settings.rate * SCHEDULES[settings.schedule](Moment(update, warmup, t, factor))


def plateau(
    settings: TrainSettings, factor: float, waited: int, improved: bool
) -> tuple[float, int]:
    """The factor and the evaluations waited after one more: more than `decay_patience` in a row
    without a new best multiply the rate by `decay`, and the waiting begins anew."""
    waited = 0 if improved else waited + 1
    if settings.schedule == "plateau" and waited > settings.decay_patience:
        return factor * settings.decay, 0
    return factor, waited
