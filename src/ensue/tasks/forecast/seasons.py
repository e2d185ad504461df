"""Seasons: their lengths, and forecasts that repeat them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ensue.tasks.forecast.series import Series, Steps

Array = NDArray[np.float64]

LEAST_PEAK, SURELY = 0.2, 4.0  # minimum autocorrelation, absolute and in standard errors
NEAR = 0.85  # share of the highest peak: the first such peak is the season, not a multiple of it
ROUNDS, LONGEST = 3, 1000  # minimum seasons in the series; maximum steps of a season
MOST_LOOKED_AT = 100  # series of a panel


def season_of(values: Array) -> int:
    """Steps of a season of values (steps, targets): the first high peak of the autocorrelation of
    their differences, taken as a mean over the targets; 1 without a peak.

    >>> season_of(np.sin(2 * np.pi * np.arange(60) / 12)[:, None])
    12
    """
    changes = np.diff(values, axis=0)
    changes = changes - changes.mean(0)
    spread = changes.std(0)
    changes = changes[:, spread > 0] / spread[spread > 0]
    most = min(len(values) // ROUNDS, LONGEST)
    if most < 2 or not changes.shape[1]:
        return 1
    size = 2 * len(changes)
    power = np.abs(np.fft.rfft(changes, size, axis=0)) ** 2
    correlation = np.fft.irfft(power, size, axis=0)[: most + 2].mean(1)
    correlation = (
        correlation / correlation[0]
    )  # not by the steps of each lag: long lags are unreliable
    lags = np.arange(2, min(most + 1, len(correlation) - 1))
    peaks = lags[
        (correlation[lags] > correlation[lags - 1]) & (correlation[lags] >= correlation[lags + 1])
    ]
    peaks = peaks[correlation[peaks] > max(LEAST_PEAK, SURELY / len(changes) ** 0.5)]
    if not len(peaks):
        return 1
    return int(peaks[correlation[peaks] >= NEAR * correlation[peaks].max()][0])


def season_of_series(series: Series, targets: int) -> int:
    """Season length in steps of one series, or of the longest series of a panel. A calendar season
    also counts, if changes a season apart are correlated."""
    order = np.argsort(-series.lengths, kind="stable")[:MOST_LOOKED_AT]
    values = [
        _whole(series.values[series.bounds[k] : series.bounds[k + 1], :targets]) for k in order
    ]
    length = int(np.median([len(series_values) for series_values in values]))
    alike = [series_values[-length:] for series_values in values if len(series_values) >= length]
    length_of_season = season_of(np.concatenate(alike, 1))
    if length_of_season > 1 or series.spacing is None:
        return length_of_season
    for season in (round(season) for season in series.spacing.seasons):
        if season * ROUNDS <= length and _alike(np.concatenate(alike, 1), season):
            return season
    return 1


def _whole(values: Array) -> Array:
    """Values with missing ones interpolated linearly; only for detecting seasons."""
    whole = values.copy()
    steps = np.arange(len(values))
    for column in whole.T:
        known = np.isfinite(column)
        column[~known] = np.interp(steps[~known], steps[known], column[known]) if known.any() else 0
    return whole


def _alike(values: Array, season: int) -> bool:
    """Whether changes a season apart are significantly correlated, in the median over columns."""
    changes = np.diff(values, axis=0)
    one, two = changes[season:], changes[:-season]
    spread = one.std(0) * two.std(0)
    varied = spread > 0
    if not varied.any():
        return False
    both = ((one - one.mean(0)) * (two - two.mean(0))).mean(0)[varied] / spread[varied]
    return bool(np.median(both) > max(LEAST_PEAK, SURELY / len(one) ** 0.5))


def seasonally_filled(series: Series, targets: int, season: int) -> Array:
    """The targets with each missing value replaced by the value a season before, else by the last
    one, else by 0. No step reads a later one."""
    filled = series.values[:, :targets].copy()
    starts = series.starts
    for step, k in np.argwhere(~np.isfinite(filled)):
        back = step - season
        if back >= starts[step]:
            filled[step, k] = filled[back, k]
        else:
            filled[step, k] = filled[step - 1, k] if step > starts[step] else 0.0
    return filled


def repeated(
    values: Array, origins: Steps, horizon: int, season: int, starts: Steps | None = None
) -> Array:
    """Forecasts that repeat the last season, (horizon, windows, targets); with a season of 1, or
    before the first complete season, the last value. starts: where the series of each window
    begins."""
    back = season - np.arange(horizon) % season
    at = origins[None, :] - back[:, None]
    if starts is not None:
        at = np.where(at < starts, origins - 1, at)
    return np.asarray(values[at])


def season_errors(series: Series, targets: int, season: int) -> Array:
    """Mean |y_t − y_{t−season}| of each target, the unit of MASE, of every series of a panel:
    (series, targets); missing values do not count."""
    values = series.values[:, :targets]
    off = np.full_like(values, np.nan)
    off[season:] = np.abs(values[season:] - values[:-season])
    off[np.arange(len(values)) - series.starts < season] = np.nan
    known = np.isfinite(off)
    sums, counts = (
        np.stack([np.bincount(series.owner, values[:, k], series.count) for k in range(targets)], 1)
        for values in (np.where(known, off, 0.0), known.astype(float))
    )
    typical = np.where(known, off, 0.0).sum(0) / np.maximum(known.sum(0), 1)
    errors = np.where(counts > 0, sums / np.maximum(counts, 1), typical)
    return np.where(errors > 0, errors, np.where(typical > 0, typical, 1.0))
