"""A backtest evaluated: errors beside those of the baselines, by step ahead, and the intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ensue.drawing.document import Block, Paragraph, Section, Table
from ensue.tasks.evaluation.bootstrap import RowSums, intervals
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.forecast.metrics import (
    Ahead,
    QuantileRow,
    SeriesRow,
    Units,
    by_step,
    errors,
    inside,
    mean_of,
)
from ensue.tasks.forecast.series import Id

Array = NDArray[np.float64]

MOST_STEPS = 12  # of the table by step
MOST_SERIES = 12  # of the table by series


@dataclass(frozen=True)
class Backtest:
    """Forecasts from many origins, each without a look at what came: (horizon, windows, targets),
    in the units of the data; NaN in truth where nothing is known. share: of the numbers that the
    intervals promise to hold. owner: the series of each window; ids: of each series; known: of
    each series its row in the units of training; scores, quantiles: of the whole distribution."""

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
    """A row is an origin of the backtest. share: what intervals promise; ahead: errors by step;
    series: of each series of a panel; quantiles: of those that were asked for."""

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
            for row in self._shown()
        ]
        legend = (
            "a row is an origin of the backtest; coverage and width are those of "
            f"{100 * self.share:g} % intervals"
        )
        steps = Table(rows, ("steps ahead", "mae", "rmse", "in interval"), left=0)
        by_step = Section("by step ahead", [steps, Paragraph(legend, quiet=True)])
        return [*super().sections(), by_step, *self._series(), *self._quantiles()]

    def _shown(self) -> list[Ahead]:
        """Not more steps than a screen has room for."""
        every = -(-len(self.ahead) // MOST_STEPS)
        return [row for row in self.ahead if row.step % every == 0 or row.step == 1]

    def _series(self) -> list[Section]:
        """The worst series, beside the best baseline of each."""
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


def evaluation_of(found: Backtest, units: Units, seed: int) -> ForecastEvaluation:
    """The score of one target is its mean absolute error, that of several the mean absolute error
    of their scaled numbers."""
    horizon, windows, targets = found.truth.shape
    if found.known is not None and found.owner is not None:
        units = units.of_windows(found.known[found.owner])
    unit = np.ones(1) if targets == 1 else units.spread
    names = ("mae", "rmse") if targets == 1 else ("scaled mae", "scaled mse")
    every = errors(found.truth, found.point, units)
    baselines = {
        name: errors(found.truth, other, units)[names[0]] for name, other in found.baselines.items()
    }
    sums = _sums((found.point - found.truth) / unit, names, found.owner)
    others = {name: value for name, value in every.items() if name not in sums}
    others |= found.scores
    others |= {
        "coverage": float(mean_of(inside(found.truth, found.low, found.high))),
        "width": float(((found.high - found.low) / unit).mean()),
    }
    return ForecastEvaluation(
        rows=windows,
        steps=windows * horizon,
        scores=intervals(sums, seed),
        others=others,
        baselines=baselines,
        classes=[],
        confusion=[],
        worst=[],
        higher_is_better=False,
        sums=sums,
        share=found.share,
        ahead=by_step(found.truth, found.point, found.low, found.high, unit),
        series=_by_series(found, unit),
        quantiles=found.quantiles,
    )


def _by_series(found: Backtest, unit: Array) -> list[SeriesRow]:
    """Of each series of a panel that has windows."""
    if found.owner is None or len(found.ids) < 2:
        return []
    held = mean_of(inside(found.truth, found.low, found.high), (0, 2))
    size = mean_of(np.abs(found.point - found.truth) / unit, (0, 2))
    others = [mean_of(np.abs(own - found.truth) / unit, (0, 2)) for own in found.baselines.values()]
    rows = []
    order = np.argsort(found.owner, kind="stable")
    ends = np.searchsorted(found.owner[order], np.arange(len(found.ids) + 1))
    for k, key in enumerate(found.ids):
        own = order[ends[k] : ends[k + 1]]
        if not len(own) or not np.isfinite(size[own]).any():
            continue
        best = min((float(mean_of(other[own])) for other in others), default=float("nan"))
        covered = float(mean_of(held[own]))
        rows.append(SeriesRow(", ".join(key), len(own), float(mean_of(size[own])), best, covered))
    return rows


def _sums(
    off: Array, names: tuple[str, str], owner: NDArray[np.int64] | None = None
) -> dict[str, RowSums]:
    """Of absolute and squared errors. Windows overlap: those of one horizon stand or fall
    together, in a panel all of one series, and where there is only one such block, its steps are
    drawn."""
    horizon, windows, _ = off.shape
    there = np.isfinite(off)
    clean = np.where(there, off, 0.0)
    count = there.mean(-1)  # (horizon, windows): 1 where all targets are there
    size = np.stack([np.abs(clean).mean(-1), (clean**2).mean(-1)], -1)  # (horizon, windows, 2)
    block = np.arange(windows) // horizon
    if owner is not None and owner[-1] > owner[0]:
        block = np.unique(owner, return_inverse=True)[1]
    if block[-1] > 0:
        each = np.stack([np.bincount(block, size[..., k].sum(0)) for k in range(2)], 1)
        counts = np.bincount(block, count.sum(0))
    else:
        each, counts = size.sum(1), count.sum(1)
    kept = counts > 0
    each, counts = each[kept], counts[kept]
    squared = "root_ratio" if names[1] == "rmse" else "ratio"
    return {
        names[0]: RowSums("ratio", np.stack([each[:, 0], counts], 1)),
        names[1]: RowSums(squared, np.stack([each[:, 1], counts], 1)),
    }
