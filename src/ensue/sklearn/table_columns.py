"""What scikit-learn hands over as a table's X, as columns by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.errors import DataError

EXACT = 2**53  # whole numbers below it are exact as floats
# How the dtypes of a frame's columns begin, in small letters.
CATEGORIES = ("category", "categorical", "enum")
TIMES = ("date", "time", "period", "duration")


@dataclass(frozen=True)
class TableCells:
    """columns: by name, each cell a number, a text, or None where it is missing; categorical:
    those whose cells are names, also where these look like numbers."""

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
    """An error where a column of a frame, or an array, holds dates or times."""
    kinds = {"X": str(getattr(X, "dtype", ""))}
    if hasattr(X, "columns"):
        columns = zip(X.columns, X.dtypes, strict=True)
        kinds = {f"X: column {name!r}": str(own) for name, own in columns}
    for place, kind in kinds.items():
        if kind.lower().startswith(TIMES):
            raise DataError(
                f"{place}: expected numbers, texts or categories, got {kind}; make numbers of it, "
                "such as the days since a first one, or leave it out"
            )


def table_cells(array: NDArray[Any], names: Sequence[str], dtypes: Any = None) -> TableCells:
    """array (rows, columns); dtypes: those of a frame's columns, in their order."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise DataError(f"X: expected columns of different names, got {twice!r} twice")
    kinds = [""] * len(names) if dtypes is None else [str(own).lower() for own in dtypes]
    columns = {name: _cells(array[:, k], name) for k, name in enumerate(names)}
    plain = array.dtype.kind in "US"  # a list of lists of numbers and texts: all became texts
    categorical = [
        name
        for name, kind in zip(names, kinds, strict=True)
        if kind.startswith(CATEGORIES)
        or (not plain and any(isinstance(own, str) for own in columns[name]))
    ]
    return TableCells(columns, tuple(categorical))


def _cells(column: NDArray[Any], name: str) -> list[Any]:
    return [_cell(own, name, row) for row, own in enumerate(column.tolist())]


def _cell(value: Any, name: str, row: int) -> Any:
    """A number, whole where it is; a text; None where there is nothing."""
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
