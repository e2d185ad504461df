"""The table estimators with their defaults and linear models, on scikit-learn's small data sets.

    python benchmarks/small_tables.py

Five folds, three times with other folds and seeds: the mean score and its standard deviation over
the fifteen test folds (accuracy; of diabetes R²), and the seconds of one core that a fit and
its score take.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ensue.sklearn import TableClassifier, TableRegressor

REPEATS, FOLDS = 3, 5
Make = Callable[[int], Any]  # an estimator by its seed


def linear_classifier(seed: int) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression())


def linear_regressor(seed: int) -> Any:
    return make_pipeline(StandardScaler(), Ridge())


def table_classifier(seed: int) -> Any:
    return TableClassifier(random_state=seed)


def table_regressor(seed: int) -> Any:
    return TableRegressor(random_state=seed)


CLASSES = (StratifiedKFold, linear_classifier, table_classifier)
NUMBERS = (KFold, linear_regressor, table_regressor)
SETS = {
    "iris": (load_iris, *CLASSES),
    "wine": (load_wine, *CLASSES),
    "breast cancer": (load_breast_cancer, *CLASSES),
    "diabetes": (load_diabetes, *NUMBERS),
}


def scored(make: Make, folds: type[Any], X: Any, y: Any) -> str:
    """Mean ± standard deviation, and the seconds of a fit with its score."""
    scores: list[float] = []
    begin = time.process_time()
    for seed in range(1, REPEATS + 1):
        split = folds(FOLDS, shuffle=True, random_state=seed)
        scores += cross_val_score(make(seed), X, y, cv=split).tolist()
    seconds = (time.process_time() - begin) / len(scores)
    mean = sum(scores) / len(scores)
    spread = (sum((score - mean) ** 2 for score in scores) / len(scores)) ** 0.5
    return f"{mean:.3f} ± {spread:.3f} {seconds:7.2f} s"


def main() -> None:
    print(f"{'':14}{'rows':>5}   {'linear':>22}   {'Ensue':>22}")
    for name, (load, folds, linear, table) in SETS.items():
        X, y = load(return_X_y=True)
        cells = [scored(make, folds, X, y) for make in (linear, table)]
        print(f"{name:14}{len(y):>5}   {cells[0]:>22}   {cells[1]:>22}", flush=True)


if __name__ == "__main__":
    main()
