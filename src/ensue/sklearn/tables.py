"""Estimators of tables: rows of numbers and categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from ensue.errors import DataError
from ensue.sklearn.estimator import (
    TRAINING,
    ClassEstimator,
    Estimator,
    NumberEstimator,
    RowLabels,
    RowNumbers,
)

EXACT = 2**53  # smaller integers are exact as floats
# Lower-case prefixes of the dtypes of a frame's columns.
CATEGORIES = ("category", "categorical", "enum")
TIMES = ("date", "time", "period", "duration")


@dataclass(frozen=True)
class TableCells:
    """The cells of a table. columns: the columns by name; each cell is a number, a text, or None if
    missing. categorical: columns of category names, even if these look like numbers."""

    columns: dict[str, list[Any]]
    categorical: tuple[str, ...]

    def refuse_gaps(self) -> None:
        for name, cells in self.columns.items():
            if None in cells:
                raise DataError(
                    f"Input X contains NaN: row {cells.index(None)}, column {name!r}: expected a "
                    "value; fill it in, or learn with gaps: missing='indicator'"
                )


def refuse_times(X: Any) -> None:
    """Raises an error if an array or a column of a frame holds dates or times."""
    kinds = {"X": str(getattr(X, "dtype", ""))}
    if hasattr(X, "columns"):
        columns = zip(X.columns, X.dtypes, strict=True)
        kinds = {f"X: column {name!r}": str(kind) for name, kind in columns}
    for place, kind in kinds.items():
        if kind.lower().startswith(TIMES):
            raise DataError(
                f"{place}: expected numbers, texts or categories, got {kind}; convert it to "
                "numbers, such as days since the first date, or leave it out"
            )


def table_cells(array: NDArray[Any], names: Sequence[str], dtypes: Any = None) -> TableCells:
    """The cells of an array (rows, columns). dtypes: the types of a frame's columns, in order."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise DataError(f"X: expected columns of different names, got {twice!r} twice")
    kinds = [""] * len(names) if dtypes is None else [str(dtype).lower() for dtype in dtypes]
    columns = {name: _cells(array[:, k], name) for k, name in enumerate(names)}
    plain = array.dtype.kind in "US"  # from lists of numbers and texts, numpy made texts
    categorical = [
        name
        for name, kind in zip(names, kinds, strict=True)
        if kind.startswith(CATEGORIES)
        or (not plain and any(isinstance(column, str) for column in columns[name]))
    ]
    return TableCells(columns, tuple(categorical))


def _cells(column: NDArray[Any], name: str) -> list[Any]:
    return [_cell(value, name, row) for row, value in enumerate(column.tolist())]


def _cell(value: Any, name: str, row: int) -> Any:
    """A cell as an int if possible, a float, a text, or None if missing."""
    if isinstance(value, Real) and not isinstance(value, int):
        value = float(value)
    if isinstance(value, float):
        if np.isinf(value):
            raise DataError(f"Input X contains infinity: row {row}, column {name!r}")
        if np.isnan(value):
            return None
        return int(value) if value.is_integer() and abs(value) < EXACT else value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        return value.strip() or None
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    raise TypeError(
        f"X: row {row}, column {name!r}: a cell's argument must be a string or a number, got "
        f"{type(value).__name__}"
    )


TARGET = "target"  # name of y's column; underscores are added if it is taken


class TableEstimator(Estimator):
    """An estimator for the rows of a table."""

    _task = "table"
    _keys: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "hidden": ("model.hidden",),
        "dropout": ("model.dropout_layers",),
        "l2": ("train.l2",),
        "missing": ("model.missing",),
        **TRAINING,
    }

    # answers are the network's most probable class, from every column of X
    _defaults: ClassVar[Mapping[str, Any]] = {
        "model.linear_share": 0.0,
        "model.threshold": "off",
        "model.leave_out": [],
    }

    n_features_in_: int
    missing: str
    feature_names_in_: NDArray[Any]  # of a frame

    def __init__(
        self,
        *,
        hidden: tuple[int, ...] = (64,),
        dropout: float = 0.0,
        l2: float = 0.03,
        missing: str = "error",
        epochs: int = 100,
        rate: float = 1e-2,
        batch_rows: int | None = 64,
        patience: int | None = 10,
        validation_fraction: float | None = 0.1,
        members: int = 1,
        random_state: Any = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self._store(locals())

    def _table(self, X: Any, y: Any, **checks: Any) -> tuple[TableCells, NDArray[Any]]:
        """X and y for `fit`, as a table."""
        refuse_times(X)
        array, y = validate_data(
            self, X, y, dtype=None, ensure_all_finite="allow-nan", ensure_min_samples=2, **checks
        )
        return self._cells(X, array), y

    def _inputs(self, X: Any) -> dict[str, list[Any]]:
        refuse_times(X)
        array = validate_data(self, X, reset=False, dtype=None, ensure_all_finite="allow-nan")
        return self._cells(X, array).columns

    def _cells(self, X: Any, array: NDArray[Any]) -> TableCells:
        default = [f"x{k}" for k in range(array.shape[1])]
        names = [str(name) for name in getattr(self, "feature_names_in_", default)]
        cells = table_cells(array, names, getattr(X, "dtypes", None))
        if self.missing != "indicator":
            cells.refuse_gaps()
        return cells

    def _learn_table(self, cells: TableCells, y: list[Any], labels: RowLabels) -> Self:
        target = TARGET
        while target in cells.columns:
            target += "_"
        columns = {**cells.columns, target: y}

        def take(rows: RowNumbers) -> dict[str, list[Any]]:
            return {name: [column[row] for row in rows] for name, column in columns.items()}

        values = self._values()
        named = {*values.get("model.categorical", []), *cells.categorical}
        settings = {"model.categorical": sorted(named - {*values.get("model.numeric", [])})}
        return self._learn(take, labels, settings, target=target)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "indicator"
        return tags


class TableClassifier(ClassEstimator, TableEstimator):
    """Classifies rows of numbers and categories.

    X: an array (row, column) of numbers, or a frame, whose columns may be texts and categories too.
    Numbers are standardised by the training rows. y: a class for each row.

    >>> from sklearn.datasets import load_iris
    >>> from ensue.sklearn import TableClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TableClassifier(random_state=1).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True

    hidden: units of each hidden layer; () is a linear model. dropout: after each hidden layer. l2:
    adds l2/2·Σw² to the cost. missing: "error", or "indicator" to replace missing numbers by the
    mean and add a column that marks them. epochs, rate, batch_rows: number of epochs, learning rate
    and rows of a batch. validation_fraction: share of the rows that is held out for early stopping.
    If that would be fewer than 5 rows, none are held out and all epochs are trained. patience:
    epochs without a better cost on the held-out rows after which training stops. members: number of
    networks, whose predictions are averaged. random_state: an integer is used as Ensue's seed,
    train.seed. settings: any other setting of the task, such as {"model.categorical": ["zip"]}.

    Fitted attributes: classes_; model_, an `ensue.TableModel`; n_features_in_; feature_names_in_,
    for a frame.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"model.target": "class"}

    def fit(self, X: Any, y: Any) -> Self:
        """Learns from rows X and y, a class for each row."""
        cells, y = self._table(X, y)
        classes = self._class_names(y)
        return self._learn_table(cells, classes, [{label} for label in classes])


class TableRegressor(NumberEstimator, TableEstimator):
    """Predicts a number from a row of numbers and categories.

    X and parameters are the same as in `TableClassifier`. y: a number for each row.

    >>> import pandas
    >>> from ensue.sklearn import TableRegressor
    >>> X = pandas.DataFrame({"area": [50, 60, 70, 80] * 5, "town": ["Delft", "Gouda"] * 10})
    >>> y = 3 * X["area"] + 40 * (X["town"] == "Delft")
    >>> model = TableRegressor(random_state=1).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True

    Fitted attributes: model_, an `ensue.TableModel`; n_features_in_; feature_names_in_, for a
    frame.
    """

    _fixed: ClassVar[Mapping[str, Any]] = {"model.target": "number"}

    def fit(self, X: Any, y: Any) -> Self:
        """Learns from rows X and y, a number for each row."""
        cells, y = self._table(X, y, y_numeric=True)
        numbers = y.astype(float).tolist()
        return self._learn_table(cells, numbers, [set()] * len(numbers))
