"""Forecasts from earlier origins: where series are cut, what is learned from, what is forecast, and
in which units errors are counted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.tasks.forecast.members.ground import Ground
from ensue.tasks.forecast.members.mixture import Mixture, fit_origins
from ensue.tasks.forecast.metrics import mean_of
from ensue.tasks.forecast.series import Series, Steps, ranges
from ensue.tasks.forecast.settings import ForecastSettings

Array = NDArray[np.float64]

CUTS, MOST_ORIGINS = 4, 240  # of a series or panel; origins after each cut
FIRST_CUT = 0.5  # share of the steps that the first candidates learn from


class Fold(NamedTuple):
    """What is before a cut, and origins after it."""

    before: Ground
    after: Ground
    fitting: Steps
    origins: Steps
    truth: Array


def folds_of(series: Series, settings: ForecastSettings, draft: Mixture) -> Iterator[Fold]:
    """Cuts at even distances, the last one a horizon before the end."""
    targets, horizon = len(settings.targets), settings.horizon
    first = np.maximum((FIRST_CUT * series.lengths).astype(np.int64), 2)
    last = series.lengths - horizon
    whole = draft.ground(series, settings)
    many = max(1, min(CUTS, int((last - first).max() // max(horizon // 2, 1)) + 1))
    for k in range(many):
        cut = first + (last - first) * k // max(many - 1, 1) if many > 1 else last
        until = first + (last - first) * (k + 1) // (many - 1) if k + 1 < many else last + 1
        begins, ends = series.bounds[:-1] + cut, series.bounds[:-1] + np.minimum(until, last + 1)
        good = (cut >= 2) & (ends > begins)
        origins = ranges(begins[good], ends[good])
        origins = origins[:: max(1, -(-len(origins) // MOST_ORIGINS))]
        if not len(origins):
            continue
        before = series.taken(series.bounds[:-1], series.bounds[:-1] + np.maximum(cut, 0))
        kept = [k for k in range(series.count) if before.lengths[k] > 1]
        before = before.among(kept)
        fitting = fit_origins(before, settings, draft.room)
        truth = series.values[origins[None] + np.arange(horizon)[:, None], :targets]
        yield Fold(draft.ground(before, settings), whole, fitting, origins, truth)


def blocks_of(folds: list[Fold]) -> int:
    """Windows that do not overlap, nearly: horizons that the origins of each series span."""
    found = 0
    for fold in folds:
        owner = fold.after.series.owner[fold.origins - 1]
        for k in np.unique(owner):
            own = fold.origins[owner == k]
            found += max(1, int(own[-1] - own[0] + 1) // len(fold.truth))
    return found


def unit_of(series: Series, targets: int) -> Array:
    """(series, targets): what errors are divided by, so that they can be added up: the mean change
    of each, of several targets their spread, as they are judged."""
    values = series.values[:, :targets]
    if targets == 1:
        change = np.full_like(values, np.nan)
        change[1:] = np.abs(np.diff(values, axis=0))
        change[series.bounds[:-1]] = np.nan
        each = [mean_of(change[a:b], 0) for a, b in pairwise(series.bounds)]
    else:
        pieces = [values[a:b] for a, b in pairwise(series.bounds)]
        each = [np.sqrt(mean_of((own - mean_of(own, 0)) ** 2, 0)) for own in pieces]
    unit = np.nan_to_num(np.stack(each))
    return np.where(unit > 0, unit, 1.0)
