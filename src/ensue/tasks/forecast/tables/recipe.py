"""Defaults that follow from the training part: how far to look back, what of the calendar to read,
how long to train."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from ensue.data.time.spacing import Spacing
from ensue.tasks.forecast.part import SeriesPart
from ensue.tasks.forecast.seasons import season_of_series
from ensue.tasks.forecast.settings import MIXED, TARGETS_ONLY, ForecastSettings
from ensue.tasks.task import Recipe

SEASONS = 2  # that a window has at least
LONGEST = 336  # steps of a window that nobody chose
EPOCH_WINDOWS = 4096  # of an epoch, times targets: more learn no quicker
FEW_EPOCHS, LITTLE_PATIENCE = 20, 4  # of so many windows
LARGE_BATCH = 64  # windows of a batch, times targets, where there are many


def recipe_of(part: SeriesPart, settings: ForecastSettings, told: Collection[str]) -> Recipe:
    """told: keys of the settings that a person gave."""
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
    new = {key: value for key, value in model.items() if key not in told}
    why = []
    if "look_back" in new:
        of = f"a season of {season} steps" if season > 1 else f"{settings.horizon} steps ahead"
        why.append(f"model.look_back: {look_back}, for {of}")
    if new.get("calendar"):
        why.append(f"model.calendar: {', '.join(new['calendar'])}, for steps of a {series.spacing}")
    tables = {"model": new, "train": train}
    return Recipe({name: own for name, own in tables.items() if own}, "\n".join(why))


def _look_back(steps: int, settings: ForecastSettings, season: int) -> int:
    """Two seasons, and as far as the horizon, if the series is long enough; whole segments."""
    wanted = min(max(SEASONS * season, settings.horizon, 8), LONGEST)
    most = steps - settings.horizon - settings.difference
    if settings.family not in MIXED:
        most = (steps - settings.difference) // 2
    found = max(1, min(wanted, most))
    if settings.family == "segment":
        found = max(settings.segment, found // settings.segment * settings.segment)
    return found


def calendar_of(spacing: Spacing, steps: int) -> list[str]:
    """What of the calendar changes from step to step, and was seen twice."""
    seasons = spacing.seasons
    if spacing.months:
        return ["month"] if seasons and 2 * seasons[0] <= steps else []
    if not seasons:
        return []
    year = seasons[-1]
    found = []
    if not spacing.working and len(seasons) == 3 and 2 * seasons[0] <= steps:
        found.append("hour")
    if len(seasons) >= 2 and 2 * seasons[-2] <= steps:
        found.append("weekday")
    return [*found, *["yearday"] * (2 * year <= steps)]
