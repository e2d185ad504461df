"""`ensue train FILE` without settings against statsmodels and a linear model, on series.

    pip install --no-deps --target peers statsmodels patsy
    ENSUE_DATA=… PYTHONPATH=peers python benchmarks/default_series.py [NAME …]

Files are cut before their last part, so that choices are made at earlier origins; the default
splits what is left by itself, and every contender forecasts from all origins of its test part.
Holt–Winters learns again at each origin; SARIMA, AR and the linear model learn once, from all that
is before the test part. Printed: the mean absolute error (of several targets, each over the spread
of its training part) of the default, of its parts alone and of each peer; the difference to the
best peer with its paired 95 % bootstrap interval over blocks of a horizon; processor seconds. With
fewer than five blocks the interval is over single origins: these overlap, and it is too narrow. For
the default also: the share of the truth that its 90 % intervals hold, and squared errors.
"""

from __future__ import annotations

import csv
import io
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from default_runs import (
    DATA,
    Default,
    Peer,
    clocked,
    evaluated,
    mean,
    opened,
    report,
    scratch,
    trained,
)

Array = np.ndarray  # of forecasts and truth (origins, horizon, targets)
Forecast = Callable[["Split"], Array]
FEW = 5  # blocks of a horizon that are drawn from


@dataclass
class Split:
    """values (steps, targets): all of a file; origins: of the test part."""

    values: Array
    begin: int  # of the test part
    horizon: int
    season: int
    year: float = 0.0  # steps of a period that AR has harmonics of

    @property
    def origins(self) -> range:
        return range(self.begin, len(self.values) - self.horizon + 1)

    @property
    def truth(self) -> Array:
        return np.stack([self.values[k : k + self.horizon] for k in self.origins])


# --- peers ---------------------------------------------------------------------------------------


def _each(split: Split, one: Callable[[Array, Split], Array]) -> Array:
    """Target by target. one: forecasts (origins, horizon) of a series."""
    return np.stack([one(split.values[:, k], split) for k in range(split.values.shape[1])], -1)


def seasonal_naive(split: Split) -> Array:
    back = split.season - np.arange(split.horizon) % split.season
    return np.stack([split.values[k - back] for k in split.origins])


def holt_winters(form: str) -> Forecast:
    def one(series: Array, split: Split) -> Array:
        from statsmodels.tsa.holtwinters import ExponentialSmoothing

        forecasts = []
        for origin in split.origins:
            model = ExponentialSmoothing(
                series[:origin], trend="add", seasonal=form, seasonal_periods=split.season
            )
            forecasts.append(model.fit().forecast(split.horizon))
        return np.stack(forecasts)

    return lambda split: _each(split, one)


def sarima(order: Sequence[int], seasonal: Sequence[int], log: bool) -> Forecast:
    def one(series: Array, split: Split) -> Array:
        from statsmodels.tsa.statespace.sarimax import SARIMAX

        y = np.log(series) if log else series
        parts = {"order": order, "seasonal_order": (*seasonal, split.season)}
        model = SARIMAX(y[: split.begin], **parts).fit(disp=False)
        forecasts = [model.apply(y[:k]).forecast(split.horizon) for k in split.origins]
        return np.exp(np.stack(forecasts)) if log else np.stack(forecasts)

    return lambda split: _each(split, one)


def autoregression(lags: int) -> Forecast:
    """AR with two pairs of harmonics of the year, by least squares; forecasts step by step."""

    def one(series: Array, split: Split) -> Array:
        steps = np.arange(len(series) + split.horizon)
        turns = [2 * np.pi * k * steps / split.year for k in (1, 2)] if split.year else []
        waves = np.stack([np.ones_like(steps), *(f(t) for t in turns for f in (np.sin, np.cos))], 1)
        rows = np.stack([series[k - lags : k][::-1] for k in range(lags, split.begin)])
        x = np.concatenate([rows, waves[lags : split.begin]], 1)
        w = np.linalg.lstsq(x, series[lags : split.begin], rcond=None)[0]
        windows = []
        for origin in split.origins:
            window = list(series[origin - lags : origin])
            for h in range(split.horizon):
                inputs = [*window[: -lags - 1 : -1], *waves[origin + h]]
                window.append(float(np.dot(inputs, w)))
            windows.append(window[lags:])
        return np.array(windows)

    return lambda split: _each(split, one)


def linear(look_back: int, ridge: float = 1e-3) -> Forecast:
    """All steps at once from those before, off the last one; all targets share their weights."""

    def forecast(split: Split) -> Array:
        middle, spread = split.values[: split.begin].mean(0), split.values[: split.begin].std(0)
        z = (split.values - middle) / spread
        last = range(look_back, split.begin - split.horizon + 1)
        x = np.concatenate([_windows(z, last, -look_back, 0)], 0)
        y = _windows(z, last, 0, split.horizon)
        off = x[:, -1:]
        x, y = x[:, :-1] - off, y - off
        normal = x.T @ x + ridge * len(x) * np.eye(x.shape[1])
        w = np.linalg.solve(normal, x.T @ y)
        ask = _windows(z, split.origins, -look_back, 0)
        out = (ask[:, :-1] - ask[:, -1:]) @ w + ask[:, -1:]
        each = out.reshape(z.shape[1], len(split.origins), split.horizon).transpose(1, 2, 0)
        return each * spread + middle

    return forecast


def _windows(z: Array, origins: range, begin: int, end: int) -> Array:
    """(targets and origins, steps)."""
    at = np.array(origins)[:, None] + np.arange(begin, end)
    return np.concatenate([z[at, k] for k in range(z.shape[1])])


# --- data ----------------------------------------------------------------------------------------


@dataclass
class Table:
    """A file as a user has it, the options on the command line, and the peers."""

    header: Sequence[str]
    rows: list[list[str]]
    words: Sequence[object]
    targets: Sequence[str]
    season: int
    peers: Mapping[str, Forecast]
    year: float = 0.0
    scaled: int | None = None  # first steps whose spread several targets are divided by


def _table(path: str) -> tuple[list[str], list[list[str]]]:
    rows = list(csv.reader(io.StringIO("\n".join(opened(DATA / path)))))
    rows = [row for row in rows if row]
    return rows[0], rows[1:]


MONTHLY = {
    "seasonal naive": seasonal_naive,
    "Holt–Winters, season added": holt_winters("add"),
    "Holt–Winters, season multiplied": holt_winters("mul"),
    "SARIMA (0,1,1)(0,1,1) of log": sarima((0, 1, 1), (0, 1, 1), log=True),
    "SARIMA (1,1,1)(0,1,1)": sarima((1, 1, 1), (0, 1, 1), log=False),
}


def passengers(steps: int) -> Callable[[], Table]:
    def made() -> Table:
        header, rows = _table("timeseries-small/airline-passengers.csv")
        return Table(header, rows[:steps], (), ["Passengers"], 12, MONTHLY)

    return made


def sunspots() -> Table:
    header, rows = _table("timeseries-small/monthly-sunspots.csv")
    peers = {"naive": seasonal_naive, "AR(24)": autoregression(24), "linear, 132": linear(132)}
    return Table(header, rows[:2300], ("--horizon", 12), ["Sunspots"], 1, peers)


def _pollution() -> tuple[list[str], list[list[str]]]:
    return _table("timeseries-small/pollution.csv.gz")


def temperatures(steps: int, column: str = "TEMP") -> Callable[[], Table]:
    """Daily means, seven days ahead."""

    def made() -> Table:
        header, rows = _pollution()
        days: dict[str, list[float]] = {}
        for row in rows:
            day = f"{row[1]}-{int(row[2]):02}-{int(row[3]):02}"
            days.setdefault(day, []).append(float(row[header.index(column)]))
        lines = [[day, f"{sum(amounts) / len(amounts):.2f}"] for day, amounts in days.items()]
        peers = {
            "naive": seasonal_naive,
            "AR(14) + year": autoregression(14),
            "linear, 28": linear(28),
        }
        return Table(["day", column], lines[:steps], ("--horizon", 7), [column], 1, peers, 365.25)

    return made


def hourly(column: str, steps: int) -> Callable[[], Table]:
    """24 hours ahead."""

    def made() -> Table:
        header, rows = _pollution()
        kept_rows = [
            [f"{r[1]}-{int(r[2]):02}-{int(r[3]):02} {int(r[4]):02}:00", r[header.index(column)]]
            for r in rows[:steps]
        ]
        peers = {
            "seasonal naive": seasonal_naive,
            "AR(48)": autoregression(48),
            "linear, 168": linear(168),
        }
        return Table(["time", column], kept_rows, ("--horizon", 24), [column], 24, peers)

    return made


def transformer(steps: int) -> Callable[[], Table]:
    """ETTh1, seven variables, 96 hours ahead, scaled by its usual training part."""

    def made() -> Table:
        header, rows = _table("ett/ETTh1.csv.gz")
        peers = {
            "seasonal naive": seasonal_naive,
            "linear, 96": linear(96),
            "linear, 336": linear(336),
        }
        words = ("--horizon", 96)
        return Table(header, rows[:steps], words, header[1:], 24, peers, scaled=8_640)

    return made


SETS: dict[str, Callable[[], Table]] = {
    "passengers-96": passengers(96),
    "passengers-108": passengers(108),
    "passengers-120": passengers(120),
    "sunspots": sunspots,
    "temperatures": temperatures(1400),
    "dew-points": temperatures(1400, "DEWP"),
    "hourly-temperature": hourly("TEMP", 10_000),
    "hourly-pressure": hourly("PRES", 6_000),
    "transformer": transformer(11_520),
}
OPENED = {"transformer-test": transformer(14_400)}  # the usual test part: only where it is named


# --- the default ---------------------------------------------------------------------------------


def main() -> None:
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or list(SETS):
        _measured(name, {**SETS, **OPENED}[name]())


def _measured(name: str, table: Table) -> None:
    import ensue as package

    with scratch() as folder:
        with (folder / "series.csv").open("w", newline="") as file:
            csv.writer(file).writerows([table.header, *table.rows])
        seconds = trained(folder, "series.csv", *table.words)
        evaluation = evaluated(folder)
        model = package.load(folder / "run")
        columns = dict(zip(table.header, zip(*table.rows, strict=True), strict=True))
        values = np.stack([np.array(columns[target], float) for target in table.targets], 1)
        horizon = model.settings.horizon
        begin = _begin(len(values), model.settings.split)
        numbers = {name: list(column) for name, column in columns.items()}
        for target in table.targets:
            numbers[target] = [float(cell) for cell in numbers[target]]
        # with all steps before each origin, as `evaluate` has them
        backtest = model.backtest(numbers)
    split = Split(values, begin, horizon, table.season, table.year)
    unit = values[: table.scaled or begin].std(0) if values.shape[1] > 1 else np.ones(1)
    last = -len(split.origins)
    every = (backtest.point, backtest.low, backtest.high, backtest.truth)
    point, low, high, truth = (np.moveaxis(part, 0, 1)[last:] for part in every)
    _same("the truth of the test part", truth, split.truth)
    printed = evaluation["scores"]["mae"]["value"]
    _same("the error that `evaluate` prints", np.abs(point - truth).mean(), printed)
    coverage = float(((low <= split.truth) & (split.truth <= high)).mean())
    default = Default(_blocks(point, split, unit), seconds, evaluation["baselines"], "")
    peers, square = [], {"default": float((((point - split.truth) / unit) ** 2).mean())}
    for key, forecast in table.peers.items():
        with clocked() as target:
            forecasts = forecast(split)
        square[key] = float((((forecasts - split.truth) / unit) ** 2).mean())
        peers.append(Peer(key, _blocks(forecasts, split, unit), target[0]))
    report(f"{name}, {horizon} ahead", default, peers, mean, 1.0, -1)
    shares = ", ".join(f"{key} {error:.4g}" for key, error in square.items())
    print(f"    90 % intervals hold {coverage:.1%}; squared errors: {shares}")
    print(f"    {model.task.describe(model)}", flush=True)
    mixture = model.learned.mixture
    for weight, member in zip(mixture.weights, mixture.members, strict=True):
        print(f"      {weight:.2f} {member.name}", flush=True)
    print(f"      network's share {mixture.share:.2f}")


def _same(what: str, one: Array, other: Array) -> None:
    """Figures of another set of windows than `evaluate` has would compare nothing."""
    if np.shape(one) != np.shape(other) or not np.allclose(one, other, rtol=1e-4):
        raise SystemExit(f"{what}: expected the same here, got {one} and {other}")


def _begin(steps: int, split: Sequence[float]) -> int:
    if sum(split) > 1.5:
        return int(split[0] + split[1])
    return steps - round(steps * split[2])


def _blocks(forecasts: Array, split: Split, unit: Array) -> Array:
    """Errors and their number, for each horizon of origins; of a short part for each origin."""
    off = (np.abs(forecasts - split.truth) / unit).sum((1, 2))
    size = split.horizon if len(off) >= FEW * split.horizon else 1
    block = np.arange(len(off)) // size
    count = np.full(len(off), float(split.horizon * split.values.shape[1]))
    return np.stack([np.bincount(block, off), np.bincount(block, count)], 1)


if __name__ == "__main__":
    main()
