"""The learning-rate finder: a short training at ever higher rates, on weights that are put back."""

from __future__ import annotations

from dataclasses import dataclass

from ensue.errors import OptionError, TrainingError
from ensue.training.averaging import in_place
from ensue.training.loop import Updates
from ensue.training.progress import Progress
from ensue.training.settings import TrainSettings
from ensue.training.trainee import Source, Trainee

SMOOTH = 0.9
TOO_HIGH = 2.0  # times the lowest cost: the search ends
SHARE = 10.0  # the suggestion is the rate at which the cost is lowest, divided by this


@dataclass(frozen=True)
class RateCurve:
    """rates tried, the cost of each update, the same smoothed, and the rate to take."""

    rates: list[float]
    costs: list[float]
    smoothed: list[float]
    suggestion: float


def find_rate(
    trainee: Trainee,
    source: Source,
    settings: TrainSettings,
    low: float = 1e-6,
    high: float = 1.0,
    updates: int = 100,
) -> RateCurve:
    """Rates low·(high/low)^(k/(updates−1)), an update each, until the smoothed cost is twice its
    lowest. Suggests a tenth of the rate at which it is lowest: beyond, the cost rises."""
    if not 0 < low < high or updates < 2:
        raise OptionError(
            f"rates: expected 0 < low < high and updates ≥ 2, got low {low:g}, high {high:g}, "
            f"updates {updates}"
        )
    rates: list[float] = []
    costs: list[float] = []
    smoothed: list[float] = []
    with in_place(trainee, dict(trainee.state_dict())):
        at = Progress.begin(trainee, settings)
        steps, mean = Updates(trainee, source, settings), 0.0
        for k in range(updates):
            rate = low * (high / low) ** (k / (updates - 1))
            try:
                cost = steps.make(at, rate).cost
            except TrainingError:
                if not rates:
                    raise
                break
            mean = SMOOTH * mean + (1 - SMOOTH) * cost
            rates.append(rate)
            costs.append(cost)
            smoothed.append(mean / (1 - SMOOTH ** (k + 1)))
            if smoothed[-1] > TOO_HIGH * min(smoothed):
                break
    best = smoothed.index(min(smoothed))
    for _, parameter in trainee.named_parameters():
        parameter.grad = None
    return RateCurve(rates, costs, smoothed, rates[best] / SHARE)
