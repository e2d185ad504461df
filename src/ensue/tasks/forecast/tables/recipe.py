"""Defaults that follow from the training part: look-back, calendar columns, length of training."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.data.time.axis import Spacing
from ensue.tasks.forecast.part import SeriesPart
from ensue.tasks.forecast.seasons import season_of_series
from ensue.tasks.forecast.series import Series
from ensue.tasks.forecast.settings import MIXED, TARGETS_ONLY, ForecastSettings
from ensue.tasks.task import Recipe

ALIKE = 0.999  # correlation from which a covariate counts as a copy


def leaks(train: Series, settings: ForecastSettings) -> list[str]:
    """Warnings on columns that are declared known ahead but look like a target, or like one of its
    later steps."""
    leaking = []
    targets = len(settings.targets)
    for at, name in enumerate(settings.known, len(settings.columns) - len(settings.known)):
        for k, target in enumerate(settings.targets):
            shift = _copied(train.values[:, at], train.values[:, k], settings.horizon)
            if shift is not None:
                when = "at the same step" if not shift else f"{abs(shift)} steps away"
                leaking.append(
                    f"{name} is declared known ahead, and is nearly the target {target} itself "
                    f"({when}): the forecasts will be too good. Leave it out, unless you really "
                    "know it before"
                )
    for at, name in enumerate(settings.covariates, targets):
        for k, target in enumerate(settings.targets):
            shift = _copied(train.values[:, at], train.values[:, k], settings.horizon)
            if shift is not None and shift > 0:
                leaking.append(
                    f"{name} has {target} {shift} step{'s' * (shift > 1)} before it happens: "
                    "is it a shifted copy? Leave it out"
                )
    return leaking


def _copied(covariate: NDArray[np.float64], target: NDArray[np.float64], most: int) -> int | None:
    """The number of steps by which a covariate is ahead of the target, if it is a copy of it."""
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


SEASONS = 2  # minimum steps of a window
LONGEST = 336  # default limit for the steps of a window
EPOCH_WINDOWS = 4096  # maximum windows of an epoch, times targets: more do not speed up learning
FEW_EPOCHS, LITTLE_PATIENCE = 20, 4  # with EPOCH_WINDOWS
LARGE_BATCH = 64  # windows of a batch, times targets, if there are many


def recipe_of(part: SeriesPart, settings: ForecastSettings, explicit: Collection[str]) -> Recipe:
    """The recipe of a training part. explicit: keys of the settings that the user gave."""
    series, targets = part.series, len(settings.targets)
    season = settings.season or season_of_series(series, targets)
    model: dict[str, Any] = {}
    look_back = _look_back(int(np.median(series.lengths)), settings, season)
    if look_back != settings.look_back:
        model["look_back"] = look_back
    if settings.family not in TARGETS_ONLY and series.spacing is not None:
        model["calendar"] = calendar_of(series.spacing, int(series.lengths.max()))
    windows = int(np.maximum(series.lengths - settings.horizon, 0).sum())
    train: dict[str, Any] = {}
    if settings.family in MIXED and windows * targets > EPOCH_WINDOWS:
        many = {"epoch_windows": EPOCH_WINDOWS, "batch_windows": LARGE_BATCH}
        model |= {name: max(1, count // targets) for name, count in many.items()}
        train |= {"epochs": FEW_EPOCHS, "patience": LITTLE_PATIENCE}
    new = {key: value for key, value in model.items() if key not in explicit}
    why = []
    if "look_back" in new:
        of = f"a season of {season} steps" if season > 1 else f"{settings.horizon} steps ahead"
        why.append(f"model.look_back: {look_back}, for {of}")
    if new.get("calendar"):
        why.append(f"model.calendar: {', '.join(new['calendar'])}, for steps of a {series.spacing}")
    tables = {"model": new, "train": train}
    return Recipe({name: table for name, table in tables.items() if table}, "\n".join(why))


def _look_back(steps: int, settings: ForecastSettings, season: int) -> int:
    """The look-back: two seasons, and at least the horizon, if the series is long enough; whole
    segments."""
    length = min(max(SEASONS * season, settings.horizon, 8), LONGEST)
    most = steps - settings.horizon - settings.difference
    if settings.family not in MIXED:
        most = (steps - settings.difference) // 2
    back = max(1, min(length, most))
    if settings.family == "segment":
        back = max(settings.segment, back // settings.segment * settings.segment)
    return back


def calendar_of(spacing: Spacing, steps: int) -> list[str]:
    """The calendar columns that vary between steps and occur at least twice."""
    seasons = spacing.seasons
    if spacing.months:
        return ["month"] if seasons and 2 * seasons[0] <= steps else []
    if not seasons:
        return []
    year = seasons[-1]
    features = []
    if not spacing.working and len(seasons) == 3 and 2 * seasons[0] <= steps:
        features.append("hour")
    if len(seasons) >= 2 and 2 * seasons[-2] <= steps:
        features.append("weekday")
    return [*features, *["yearday"] * (2 * year <= steps)]
