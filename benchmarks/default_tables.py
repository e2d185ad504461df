"""`ensue train FILE` without settings against scikit-learn, on tables.

    python benchmarks/default_tables.py [NAME …]

The tables are those that scikit-learn brings along; 30 % of their rows are what all are scored on.
Peers: logistic regression or ridge of scaled columns, and HistGradientBoosting. Printed: accuracy,
or the root of the mean squared error, of the default, of its parts alone, of each peer, the
difference to the best peer with its paired 95 % bootstrap interval, and processor seconds.
"""

from __future__ import annotations

import csv
import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from default_runs import (
    Default,
    Peer,
    clocked,
    described,
    ensue,
    evaluated,
    mean,
    report,
    scratch,
    trained,
)
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

Row = dict[str, Any]
SHARE, SEED = 0.3, 7

SETS: dict[str, tuple[Callable[[], Any], bool]] = {  # whether a number is predicted
    "iris": (datasets.load_iris, False),
    "wine": (datasets.load_wine, False),
    "breast-cancer": (datasets.load_breast_cancer, False),
    "digits": (datasets.load_digits, False),
    "diabetes": (datasets.load_diabetes, True),
}
PEERS: dict[bool, dict[str, Callable[[], Any]]] = {
    False: {
        "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
        "HistGradientBoosting": HistGradientBoostingClassifier,
    },
    True: {
        "ridge": lambda: make_pipeline(StandardScaler(), Ridge()),
        "HistGradientBoosting": HistGradientBoostingRegressor,
    },
}


def table(name: str) -> tuple[list[Row], list[Row]]:
    """Rows to learn from, and to be scored on."""
    made, number = SETS[name]
    bunch = made()
    names = [str(name).replace(" ", "_") for name in bunch.feature_names]
    targets = bunch.target if number else [f"class {name}" for name in bunch.target]
    rows = [
        {**dict(zip(names, map(float, x), strict=True)), "target": y}
        for x, y in zip(bunch.data, targets, strict=True)
    ]
    random.Random(SEED).shuffle(rows)
    scored = round(SHARE * len(rows))
    return rows[scored:], rows[:scored]


def errors(guess: Sequence[Any], gold: Sequence[Any], number: bool) -> np.ndarray:
    if number:
        each = (np.asarray(guess, float) - np.asarray(gold, float)) ** 2
    else:
        each = np.array([float(a == b) for a, b in zip(guess, gold, strict=True)])
    return np.stack([each, np.ones(len(each))], 1)


def root(sums: np.ndarray) -> float:
    return float(np.sqrt(sums[0] / sums[1]))


def peer(name: str, learned: list[Row], scored: list[Row], number: bool) -> Peer:
    x, z = ([[v for k, v in row.items() if k != "target"] for row in part]
            for part in (learned, scored))  # fmt: skip
    y, gold = ([row["target"] for row in part] for part in (learned, scored))
    with clocked() as seconds:
        guess = PEERS[number][name]().fit(x, y).predict(z)
    return Peer(name, errors(guess, gold, number), seconds[0])


def default(learned: list[Row], scored: list[Row], number: bool) -> Default:
    with scratch() as folder:
        for name, rows in (("learned", learned), ("scored", scored)):
            with (folder / f"{name}.csv").open("w", newline="") as file:
                out = csv.DictWriter(file, list(rows[0]))
                out.writeheader()
                out.writerows(rows)
        seconds = trained(folder, "learned.csv", "--test", "scored.csv")
        evaluation = evaluated(folder)
        ensue("predict", "run", "scored.csv", "--out", "said.csv", folder=folder)
        with (folder / "said.csv").open(newline="") as file:
            answers = list(csv.DictReader(file))
        column = next(name for name in ("label", "value", "prediction") if name in answers[0])
        rows_found = errors([row[column] for row in answers], [r["target"] for r in scored], number)
        return Default(rows_found, seconds, evaluation["baselines"], described(folder))


def main() -> None:
    for name in sys.argv[1:] or list(SETS):
        number = SETS[name][1]
        learned, scored = table(name)
        peers = [peer(peer_of, learned, scored, number) for peer_of in PEERS[number]]
        result = default(learned, scored, number)
        if number:
            report(
                f"{name}, {len(learned)} rows, root mean squared error", result, peers, root, 1, -1
            )
        else:
            report(f"{name}, {len(learned)} rows", result, peers, mean)


if __name__ == "__main__":
    main()
