"""What columns give away of the steps to come."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ensue.tasks.forecast.series import Series
from ensue.tasks.forecast.settings import ForecastSettings

ALIKE = 0.999  # a correlation from which on a covariate is a copy


def leaks(train: Series, settings: ForecastSettings) -> list[str]:
    """Warnings: what is said to be known ahead, but looks like a target, or like one of its next
    steps."""
    found = []
    targets = len(settings.targets)
    for at, name in enumerate(settings.known, len(settings.columns) - len(settings.known)):
        for k, target in enumerate(settings.targets):
            shift = _copied(train.values[:, at], train.values[:, k], settings.horizon)
            if shift is not None:
                when = "at the same step" if not shift else f"{abs(shift)} steps away"
                found.append(
                    f"{name} is said to be known ahead, and is nearly the target {target} itself "
                    f"({when}): the forecasts will be too good. Leave it out, unless you really "
                    "know it before"
                )
    for at, name in enumerate(settings.covariates, targets):
        for k, target in enumerate(settings.targets):
            shift = _copied(train.values[:, at], train.values[:, k], settings.horizon)
            if shift is not None and shift > 0:
                found.append(
                    f"{name} has {target} {shift} step{'s' * (shift > 1)} before it happens: a "
                    "column that was shifted? Leave it out"
                )
    return found


def _copied(covariate: NDArray[np.float64], target: NDArray[np.float64], most: int) -> int | None:
    """How many steps ahead of the target the covariate is, if it is a copy of it."""
    steps = len(target)
    for shift in sorted(range(-most, most + 1), key=abs):
        one = covariate[max(0, -shift) : steps - max(0, shift)]
        other = target[max(0, shift) : steps - max(0, -shift)]
        both = np.isfinite(one) & np.isfinite(other)
        one, other = one[both], other[both]
        if len(one) < 3 or one.std() == 0 or other.std() == 0:
            continue
        if abs(np.corrcoef(one, other)[0, 1]) > ALIKE:
            return shift
    return None
