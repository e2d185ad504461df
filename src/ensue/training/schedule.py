"""The learning rate as a function of the update's number."""

from __future__ import annotations

import math

from ensue.training.settings import TrainSettings


def rate(settings: TrainSettings, update: int, updates: int, factor: float = 1.0) -> float:
    """The rate of an update (the first is 0) out of so many; `factor` is what plateaus have left.

    It grows in equal steps over `warmup` updates, then with t = (update − warmup) / (updates −
    warmup): linear 1 − t, cosine (1 + cos πt) / 2, inverse-sqrt √(warmup / update)."""
    warmup = settings.warmup
    if update < warmup:
        return settings.rate * factor * (update + 1) / warmup
    t = min((update - warmup) / max(updates - warmup, 1), 1.0)
    match settings.schedule:
        case "linear":
            return settings.rate * (1 - t)
        case "cosine":
            return settings.rate * (1 + math.cos(math.pi * t)) / 2
        case "inverse-sqrt":
            start = max(warmup, 1)
            return settings.rate * math.sqrt(start / max(update + 1, start))
        case "plateau":
            return settings.rate * factor
    return settings.rate


def plateau(
    settings: TrainSettings, factor: float, waited: int, improved: bool
) -> tuple[float, int]:
    """The factor and the evaluations waited after one more: more than `decay_patience` in a row
    without a new best multiply the rate by `decay`, and the waiting begins anew."""
    waited = 0 if improved else waited + 1
    if settings.schedule == "plateau" and waited > settings.decay_patience:
        return factor * settings.decay, 0
    return factor, waited
