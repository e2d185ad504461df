"""Errors of forecasts, and the evaluation of a backtest: errors next to the errors of the
baselines, by step ahead, and the intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ensue.drawing.document import Block, Paragraph, Section, Table
from ensue.tasks.declarations import Axis, Range, Shape
from ensue.tasks.evaluation.bootstrap import RowSums, intervals
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.forecast.series import Id
from ensue.tasks.forecast.settings import ForecastSettings

Array = NDArray[np.float64]


class Units(NamedTuple):
    """The units of errors for each target: the spread in the training part, and the mean error of
    its seasonal naive forecast. For a panel, with a row for each series or window."""

    spread: Annotated[Array, Shape(Axis("scale.ids"), "settings.targets"), Range(above=0)]
    season: Annotated[Array, Shape(Axis("scale.ids"), "settings.targets"), Range(above=0)]

    def of_windows(self, rows: NDArray[np.int64]) -> Units:
        """The units of each window. rows: the series of each window, −1 for an unknown series,
        which gets typical units."""
        parts = []
        for window in self:
            if window.ndim == 1:
                parts.append(window)
                continue
            typical = np.concatenate([window, np.median(window, 0, keepdims=True)])
            parts.append(typical[rows])
        return Units(*parts)


def mean_of(values: Array, axis: int | tuple[int, ...] | None = None) -> Array:
    """Mean of the values that are not missing; NaN if all are."""
    known = np.isfinite(values)
    if known.all():
        return np.asarray(values.mean(axis))
    count = known.sum(axis)
    total = np.where(known, values, 0.0).sum(axis)
    return np.asarray(np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0))


def errors(truth: Array, point: Array, units: Units) -> dict[str, float]:
    """The errors of a forecast, by name.

    mae and rmse are in the units of the data, mape and smape in percent (mape only if no actual
    value is 0). mase is the mae of each target relative to the seasonal naive forecast of its
    training part. The scaled errors divide each target by its spread in the training part."""
    off = point - truth
    scores = {"mae": float(mean_of(np.abs(off))), "rmse": math.sqrt(float(mean_of(off**2)))}
    size = np.abs(truth)
    if np.nanmin(size) > 0:
        scores["mape"] = 100 * float(mean_of(np.abs(off) / size))
    both = size + np.abs(point)
    share = np.divide(2 * np.abs(off), both, out=np.zeros_like(off), where=both > 0)
    scores["smape"] = 100 * float(mean_of(np.where(np.isfinite(off), share, np.nan)))
    if units.season.min() > 0:
        scores["mase"] = float(mean_of(np.abs(off) / units.season))
    scaled = off / units.spread
    scores["scaled mae"] = float(mean_of(np.abs(scaled)))
    scores["scaled mse"] = float(mean_of(scaled**2))
    return scores


def inside(truth: Array, low: Array, high: Array) -> Array:
    """1 if an interval contains the actual value, else 0; NaN without an actual value."""
    covered = ((low <= truth) & (truth <= high)).astype(np.float64)
    return np.where(np.isfinite(truth), covered, np.nan)


class Ahead(NamedTuple):
    """Errors one step ahead, over all windows: scaled by the spread of each target if there are
    several."""

    step: int
    mae: float
    rmse: float
    coverage: float


def by_step(truth: Array, point: Array, low: Array, high: Array, unit: Array) -> list[Ahead]:
    off = (point - truth) / unit
    mae, rmse = mean_of(np.abs(off), (1, 2)), np.sqrt(mean_of(off**2, (1, 2)))
    covered = mean_of(inside(truth, low, high), (1, 2))
    return [
        Ahead(k + 1, float(mae[k]), float(rmse[k]), float(covered[k])) for k in range(len(truth))
    ]


class SeriesRow(NamedTuple):
    """One series of a panel: its id, number of windows, error (scaled if there are several
    targets), error of the best baseline, and coverage of the intervals."""

    id: str
    windows: int
    mae: float
    baseline: float
    coverage: float


# --- distributions -------------------------------------------------------------------------

LEVELS = tuple(round(0.05 * k, 2) for k in range(1, 20))  # levels of the quantiles of CRPS


def levels_asked(settings: ForecastSettings) -> tuple[float, ...]:
    """Quantile levels that a model is calibrated for: the levels of CRPS, and the levels in the
    settings."""
    return tuple(dict.fromkeys([*LEVELS, *settings.quantiles]))


def pinball(truth: Array, predicted: Array, level: float) -> Array:
    """max(τ·(y − q), (τ − 1)·(y − q)): the cost of a quantile."""
    off = truth - predicted
    return np.maximum(level * off, (level - 1) * off)


class QuantileSums:
    """Sums of the costs of quantiles, over groups of windows."""

    def __init__(self, levels: Sequence[float]) -> None:
        self.levels = tuple(levels)
        self._costs = np.zeros(len(self.levels))
        self._below = np.zeros(len(self.levels))
        self._count, self._size = 0.0, 0.0

    def add(self, truth: Array, quantiles: Array) -> None:
        """quantiles (levels, horizon, windows, targets)."""
        known = np.isfinite(truth)
        for k, level in enumerate(self.levels):
            self._costs[k] += pinball(truth, quantiles[k], level)[known].sum()
            self._below[k] += (truth <= quantiles[k])[known].sum()
        self._count += float(known.sum())
        self._size += float(np.abs(truth[known]).sum())

    def scores(self) -> dict[str, float]:
        """Scores of a distribution. crps: twice the quantile costs, averaged over levels and
        numbers, in the units of the data; weighted quantile loss: the same sum, divided by Σ
        |y|."""
        if not self._count:
            return {}
        total = 2 * float(self._costs.mean())
        by_name = {"crps": total / self._count}
        if self._size > 0:
            by_name["weighted quantile loss"] = total / self._size
        return by_name

    def rows(self, levels: Sequence[float]) -> list[QuantileRow]:
        return [
            QuantileRow(level, 2 * self._costs[k] / self._count, self._below[k] / self._count)
            for level in levels
            for k in [self.levels.index(level)]
        ]


class QuantileRow(NamedTuple):
    """A quantile of the forecasts: its cost, and the share of actual values not above it."""

    level: float
    cost: float
    share: float


MOST_STEPS = 12  # rows of the table by step
MOST_SERIES = 12  # rows of the table by series


@dataclass(frozen=True)
class Backtest:
    """Forecasts from many origins, each made without later values: (horizon, windows, targets), in
    the units of the data; NaN in truth if unknown. share: claimed coverage of the intervals. owner:
    the series of each window; ids: the ids of each series; known: the row of each series in the
    units of training; scores, quantiles: scores and quantiles of the whole distribution."""

    truth: Array
    point: Array
    low: Array
    high: Array
    baselines: Mapping[str, Array]
    share: float
    owner: NDArray[np.int64] | None = None
    ids: Sequence[Id] = ((),)
    known: NDArray[np.int64] | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    quantiles: Sequence[QuantileRow] = ()


@dataclass(frozen=True)
class ForecastEvaluation(Evaluation):
    """The evaluation of a forecaster; each row is an origin of the backtest. share: claimed
    coverage of the intervals; ahead: errors by step; series: errors by series of a panel;
    quantiles: scores of the requested levels."""

    share: float = 0.9
    ahead: Sequence[Ahead] = ()
    series: Sequence[SeriesRow] = ()
    quantiles: Sequence[QuantileRow] = ()

    tables: ClassVar[Mapping[str, type[Any]]] = {
        **Evaluation.tables,
        "ahead": Ahead,
        "series": SeriesRow,
        "quantiles": QuantileRow,
    }

    @classmethod
    def of_json(cls, facts: Mapping[str, Any]) -> Self:
        return super().of_json({"series": [], "quantiles": [], **facts})

    def sections(self) -> Sequence[Block]:
        rows = [
            [str(row.step), f"{row.mae:.4f}", f"{row.rmse:.4f}", _percent(row.coverage)]
            for row in self._steps_listed()
        ]
        legend = (
            "a row is an origin of the backtest; coverage and width belong to the "
            f"{100 * self.share:g} % intervals"
        )
        steps = Table(rows, ("steps ahead", "mae", "rmse", "in interval"), left=0)
        by_step = Section("by step ahead", [steps, Paragraph(legend, quiet=True)])
        return [*super().sections(), by_step, *self._series(), *self._quantiles()]

    def _steps_listed(self) -> list[Ahead]:
        """The listed steps, as many as fit on a screen."""
        every = -(-len(self.ahead) // MOST_STEPS)
        return [row for row in self.ahead if row.step % every == 0 or row.step == 1]

    def _series(self) -> list[Section]:
        """The table of the worst series, with the best baseline of each."""
        if not self.series:
            return []
        beaten = sum(row.mae < row.baseline for row in self.series)
        worst = ", the worst ones" * (len(self.series) > MOST_SERIES)
        rows = [
            [row.id, f"{row.windows:,}", f"{row.mae:.4g}", f"{row.baseline:.4g}",
             _percent(row.coverage)]
            for row in sorted(self.series, key=lambda row: -row.mae)
        ]  # fmt: skip
        title = f"{len(rows):,} series, better than the best baseline in {beaten:,}{worst}"
        head = ("series", "rows", "mae", "baseline", "in interval")
        return [Section(title, [Table(rows, head, most=MOST_SERIES)])]

    def _quantiles(self) -> list[Section]:
        if not self.quantiles:
            return []
        rows = [[f"{r.level:g}", f"{r.cost:.4f}", _percent(r.share)] for r in self.quantiles]
        return [Section("quantiles", [Table(rows, ("quantile", "loss", "not above it"), left=0)])]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def evaluation_of(backtest: Backtest, units: Units, seed: int) -> ForecastEvaluation:
    """The evaluation of a backtest. The main score is the mean absolute error; for several targets,
    of scaled numbers."""
    horizon, windows, targets = backtest.truth.shape
    if backtest.known is not None and backtest.owner is not None:
        units = units.of_windows(backtest.known[backtest.owner])
    unit = np.ones(1) if targets == 1 else units.spread
    names = ("mae", "rmse") if targets == 1 else ("scaled mae", "scaled mse")
    every = errors(backtest.truth, backtest.point, units)
    baselines = {
        name: errors(backtest.truth, other, units)[names[0]]
        for name, other in backtest.baselines.items()
    }
    sums = _sums((backtest.point - backtest.truth) / unit, names, backtest.owner)
    baseline_sums = {
        name: _sums((other - backtest.truth) / unit, names, backtest.owner)[names[0]]
        for name, other in backtest.baselines.items()
    }
    others = {name: value for name, value in every.items() if name not in sums}
    others |= backtest.scores
    others |= {
        "coverage": float(mean_of(inside(backtest.truth, backtest.low, backtest.high))),
        "width": float(((backtest.high - backtest.low) / unit).mean()),
    }
    return ForecastEvaluation(
        rows=windows,
        steps=windows * horizon,
        scores=intervals(sums, seed),
        others=others,
        baselines=baselines,
        baseline_sums=baseline_sums,
        classes=[],
        confusion=[],
        worst=[],
        higher_is_better=False,
        sums=sums,
        share=backtest.share,
        ahead=by_step(backtest.truth, backtest.point, backtest.low, backtest.high, unit),
        series=_by_series(backtest, unit),
        quantiles=backtest.quantiles,
    )


def _by_series(backtest: Backtest, unit: Array) -> list[SeriesRow]:
    """A row for each series of a panel that has windows."""
    if backtest.owner is None or len(backtest.ids) < 2:
        return []
    is_covered = mean_of(inside(backtest.truth, backtest.low, backtest.high), (0, 2))
    size = mean_of(np.abs(backtest.point - backtest.truth) / unit, (0, 2))
    others = [
        mean_of(np.abs(baseline - backtest.truth) / unit, (0, 2))
        for baseline in backtest.baselines.values()
    ]
    rows = []
    order = np.argsort(backtest.owner, kind="stable")
    ends = np.searchsorted(backtest.owner[order], np.arange(len(backtest.ids) + 1))
    for k, key in enumerate(backtest.ids):
        windows_of_series = order[ends[k] : ends[k + 1]]
        if not len(windows_of_series) or not np.isfinite(size[windows_of_series]).any():
            continue
        best = min(
            (float(mean_of(other[windows_of_series])) for other in others), default=float("nan")
        )
        covered = float(mean_of(is_covered[windows_of_series]))
        rows.append(
            SeriesRow(
                ", ".join(key),
                len(windows_of_series),
                float(mean_of(size[windows_of_series])),
                best,
                covered,
            )
        )
    return rows


def _sums(
    off: Array, names: tuple[str, str], owner: NDArray[np.int64] | None = None
) -> dict[str, RowSums]:
    """Sums of absolute and squared errors for the bootstrap. Windows overlap, so the windows of one
    horizon are drawn together as a block; in a panel, the windows of one series. If there is only
    one block, its steps are drawn."""
    horizon, windows, _ = off.shape
    known = np.isfinite(off)
    clean = np.where(known, off, 0.0)
    count = known.mean(-1)  # (horizon, windows): 1 if all targets have values
    size = np.stack([np.abs(clean).mean(-1), (clean**2).mean(-1)], -1)  # (horizon, windows, 2)
    block = np.arange(windows) // horizon
    if owner is not None and owner[-1] > owner[0]:
        block = np.unique(owner, return_inverse=True)[1]
    if block[-1] > 0:
        each = np.stack([np.bincount(block, size[..., k].sum(0)) for k in range(2)], 1)
        counts = np.bincount(block, count.sum(0))
    else:
        each, counts = size.sum(1), count.sum(1)
    present = counts > 0
    each, counts = each[present], counts[present]
    squared = "root_ratio" if names[1] == "rmse" else "ratio"
    return {
        names[0]: RowSums("ratio", np.stack([each[:, 0], counts], 1)),
        names[1]: RowSums(squared, np.stack([each[:, 1], counts], 1)),
    }
