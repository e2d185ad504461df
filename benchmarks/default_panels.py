"""`ensue train panel.csv` without settings: many series in one long file.

    python benchmarks/default_panels.py [SERIES …]

Series of 200 days by a column of ids. Each has its own level, size and phase; all share a weekly
pattern, a slow wave and a drift that turns. Peers at the same origins: the seasonal naive, and for
each series a linear model of its own (ridge, 28 steps back, all steps at once). Printed, for each
number of series: mean absolute error over the spread of each series; the default's difference to
the best peer with its paired 95 % bootstrap interval over series; processor seconds and memory of
`ensue train`.
"""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

import numpy as np
from default_runs import Peer, clocked, evaluated, mean, paired, scratch

STEPS, BACK, WEEK, RIDGE = 200, 28, 7, 1.0
COUNTS = (125, 250, 500)
PEAK = re.compile(r"Maximum resident set size \(kbytes\): (\d+)")
TIMES = re.compile(r"(?:User|System) time \(seconds\): ([\d.]+)")


def panel(count: int, seed: int = 4) -> np.ndarray:
    """(series, steps)."""
    draw = np.random.default_rng(seed)
    t = np.arange(STEPS)
    level, size = draw.uniform(20, 200, (count, 1)), draw.uniform(0.05, 0.4, (count, 1))
    week = draw.normal(0, 1, WEEK)
    phase = draw.uniform(0, 2 * np.pi, (count, 1))
    drift = np.zeros((count, STEPS))
    for k in range(1, STEPS):  # pulled back the more, the farther away: no linear rule
        drift[:, k] = 0.95 * drift[:, k - 1] - 0.3 * np.tanh(drift[:, k - 1]) ** 3
        drift[:, k] += 0.3 * draw.normal(size=count)
    wave = np.sin(2 * np.pi * t / 31 + phase)
    shares = week[t % WEEK] + wave + drift + 0.2 * draw.normal(size=(count, STEPS))
    return np.round(level * (1 + size * shares), 3)


def written(values: np.ndarray, path: Path) -> None:
    days = [date(2021, 1, 1) + timedelta(k) for k in range(STEPS)]
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(("day", "shop", "sales"))
        for k, series in enumerate(values):
            out.writerows(
                (day, f"shop{k:03}", values) for day, values in zip(days, series, strict=True)
            )


def columns(values: np.ndarray) -> dict[str, list[object]]:
    """The same as the file."""
    days = [str(date(2021, 1, 1) + timedelta(k)) for k in range(STEPS)]
    shops = [f"shop{k:03}" for k in range(len(values)) for _ in days]
    return {"day": days * len(values), "shop": shops, "sales": values.ravel().tolist()}


def seasonal_naive(values: np.ndarray, origins: range, horizon: int) -> np.ndarray:
    back = WEEK - np.arange(horizon) % WEEK
    return np.stack([values[:, k - back] for k in origins], 1)  # (series, origins, horizon)


def each_linear(values: np.ndarray, origins: range, horizon: int) -> np.ndarray:
    begin = origins[0]
    forecasts = []
    for series in values:
        middle, spread = series[:begin].mean(), series[:begin].std()
        z = (series - middle) / spread
        rows = range(BACK, begin - horizon + 1)
        x = np.stack([z[k - BACK : k] for k in rows])
        y = np.stack([z[k : k + horizon] for k in rows])
        w = np.linalg.solve(x.T @ x + RIDGE * np.eye(BACK), x.T @ y)
        standard = np.stack([z[k - BACK : k] for k in origins]) @ w
        forecasts.append(standard * spread + middle)
    return np.stack(forecasts)


def errors(
    forecasts: np.ndarray, values: np.ndarray, origins: range, unit: np.ndarray
) -> np.ndarray:
    """What each series adds to the mean, and how many numbers."""
    horizon = forecasts.shape[2]
    truth = np.stack([values[:, k : k + horizon] for k in origins], 1)
    off = np.abs(forecasts - truth) / unit[:, None, None]
    return np.stack([off.sum((1, 2)), np.full(len(values), off[0].size)], 1)


def trained(folder: Path) -> tuple[float, float]:
    """Processor seconds and megabytes of `ensue train`."""
    words = ["train", "panel.csv", "--run", "run", "--quiet"]
    command = ["/usr/bin/time", "-v", sys.executable, "-m", "ensue", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    peak = PEAK.search(done.stderr)
    assert peak is not None
    return sum(map(float, TIMES.findall(done.stderr))), int(peak[1]) / 1024


def main() -> None:
    import ensue

    for count in map(int, sys.argv[1:] or COUNTS):
        values = panel(count)
        with scratch() as folder:
            written(values, folder / "panel.csv")
            seconds, peak = trained(folder)
            printed = evaluated(folder)["baselines"]
            model = ensue.load(folder / "run")
            horizon, parts = model.settings.horizon, model.settings.split
            begin = int(parts[0] + parts[1])
            origins = range(begin, STEPS - horizon + 1)
            backtest = model.backtest(columns(values))
            shaped = np.moveaxis(backtest.point, 0, 1)[..., 0].reshape(count, -1, horizon)
            forecasts = shaped[:, -len(origins) :]
        unit = values[:, :begin].std(1)
        default_errors = errors(forecasts, values, origins, unit)
        peers = []
        for name, forecast in (("seasonal naive", seasonal_naive), ("linear each", each_linear)):
            with clocked() as clock:
                rows = errors(forecast(values, origins, horizon), values, origins, unit)
            peers.append(Peer(name, rows, clock[0]))
        print(
            f"{count} series: default {mean(default_errors.sum(0)):.4f} "
            f"({seconds:.0f} s, {peak:.0f} MB)"
        )
        print(f"    parts: {printed}; network's share {model.learned.mixture.share:.2f}")
        for peer in peers:
            off, low, high = paired(default_errors, peer.rows, mean)
            about = f"{off:+.4f} [{low:+.4f}, {high:+.4f}]"
            print(f"    {peer.name} {mean(peer.rows.sum(0)):.4f}: {about}", flush=True)


if __name__ == "__main__":
    main()
