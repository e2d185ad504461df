"""A backtest evaluated: errors beside those of the baselines, by step ahead, and the intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ensue.tasks.evaluation.bootstrap import RowSums, intervals
from ensue.tasks.evaluation.report import Evaluation, OwnTable
from ensue.tasks.forecast.metrics import Ahead, Units, by_step, errors, inside

Array = NDArray[np.float64]

MOST_STEPS = 12  # of the table by step


@dataclass(frozen=True)
class Backtest:
    """Forecasts from many origins, each without a look at what came: (horizon, windows, targets),
    in the units of the data. share: of the numbers that the intervals promise to hold."""

    truth: Array
    point: Array
    low: Array
    high: Array
    baselines: Mapping[str, Array]
    share: float


@dataclass(frozen=True)
class ForecastEvaluation(Evaluation):
    """A row is an origin of the backtest. share: what intervals promise; ahead: errors by step."""

    share: float = 0.9
    ahead: Sequence[Ahead] = ()

    tables: ClassVar[Mapping[str, type[Any]]] = {**Evaluation.tables, "ahead": Ahead}

    def own_tables(self) -> list[OwnTable]:
        rows = [[row.step, row.mae, row.rmse, f"{row.coverage:.1%}"] for row in self._shown()]
        head = ("steps ahead", "mae", "rmse", "in interval")
        return [OwnTable("by step ahead", head, rows, self._legend())]

    def _legend(self) -> str:
        return (
            "a row is an origin of the backtest; coverage and width are those of "
            f"{100 * self.share:g} % intervals"
        )

    def _shown(self) -> list[Ahead]:
        """Not more steps than a screen has room for."""
        every = -(-len(self.ahead) // MOST_STEPS)
        return [row for row in self.ahead if row.step % every == 0 or row.step == 1]

    def sections(self) -> list[str]:
        lines = [
            self._legend(),
            "",
            "steps ahead       mae      rmse   in interval",
        ]
        lines += [
            f"{row.step:11}{row.mae:10.4f}{row.rmse:10.4f}{100 * row.coverage:12.1f} %"
            for row in self._shown()
        ]
        return [*super().sections(), "\n".join(lines)]


def evaluation_of(found: Backtest, units: Units, seed: int) -> ForecastEvaluation:
    """The score of one target is its mean absolute error, that of several the mean absolute error
    of their scaled numbers."""
    horizon, windows, targets = found.truth.shape
    unit = np.ones(1) if targets == 1 else units.spread
    names = ("mae", "rmse") if targets == 1 else ("scaled mae", "scaled mse")
    every = errors(found.truth, found.point, units)
    baselines = {
        name: errors(found.truth, other, units)[names[0]] for name, other in found.baselines.items()
    }
    held = inside(found.truth, found.low, found.high)
    sums = _sums((found.point - found.truth) / unit, names)
    others = {name: value for name, value in every.items() if name not in sums}
    others |= {
        "coverage": float(held.mean()),
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
    )


def _sums(off: Array, names: tuple[str, str]) -> dict[str, RowSums]:
    """Of absolute and squared errors. Windows overlap: those of one horizon stand or fall
    together, and where there is only one such block, its steps are drawn."""
    horizon, windows, _ = off.shape
    size = np.stack([np.abs(off).mean(-1), (off**2).mean(-1)], -1)  # (horizon, windows, 2)
    block = np.arange(windows) // horizon
    if block[-1] > 0:
        each = np.stack([size[:, block == k].sum((0, 1)) for k in range(block[-1] + 1)])
        counts = np.bincount(block) * float(horizon)
    else:
        each, counts = size.sum(1), np.full(horizon, float(windows))
    squared = "root_ratio" if names[1] == "rmse" else "ratio"
    return {
        names[0]: RowSums("ratio", np.stack([each[:, 0], counts], 1)),
        names[1]: RowSums(squared, np.stack([each[:, 1], counts], 1)),
    }
