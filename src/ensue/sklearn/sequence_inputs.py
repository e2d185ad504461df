"""What scikit-learn hands over as X, as sequences that a task reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.errors import DataError

Value = str | list[str] | NDArray[np.float32]  # a text, its tokens, or vectors (time, features)


class Sequences(NamedTuple):
    """values: one a row; features: of each step, None of texts and tokens."""

    values: list[Value]
    features: int | None


def sequences_of(X: Any) -> Sequences:
    """Of texts, lists of tokens, arrays (time, features) or one array (row, time, features)."""
    values = [_value(own, row) for row, own in enumerate(_rows(X))]
    if not values:
        raise DataError("X: expected at least 1 sequence, got an empty X with 0 sample(s)")
    kinds = [own.shape[1] if isinstance(own, np.ndarray) else None for own in values]
    for row, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise DataError(
                f"X: row {row}: expected {_described(kinds[0])} as in row 0, got {_described(kind)}"
            )
    return Sequences(values, kinds[0])


def _rows(X: Any) -> Sequence[Any]:
    if isinstance(X, str):
        raise DataError("X: expected a list of texts or sequences, got one text; write [text]")
    if hasattr(X, "columns"):  # a frame: going through it would give the names of its columns
        names = list(X.columns)
        if len(names) != 1:
            raise DataError(
                "X: expected one column of texts, got a frame with the columns "
                f"{', '.join(map(str, names))}; choose one, such as X[{names[0]!r}]"
                if names
                else "X: expected one column of texts, got a frame without columns"
            )
        X = X[names[0]]
    if hasattr(X, "tocsr"):
        raise DataError(
            "X: expected texts or sequences, got a sparse matrix; leave out the vectoriser before "
            "this estimator: it reads the texts themselves"
        )
    if not isinstance(X, list | tuple) and hasattr(X, "__array__"):
        return _rows_of_array(np.asarray(X))
    if not hasattr(X, "__len__") or not hasattr(X, "__iter__"):
        raise DataError(f"X: expected a list of texts or sequences, got {type(X).__name__}")
    return list(X)


def _rows_of_array(X: NDArray[Any]) -> Sequence[Any]:
    """(rows,) of texts or sequences, also as one column; (rows, time, features) of numbers."""
    numbers = X.dtype.kind in "biuf"
    if X.ndim == 2 and X.shape[1] == 1 and not numbers:
        return list(X[:, 0])
    if X.ndim == (3 if numbers else 1):
        return list(X)
    hint = "; for one number a step write X[:, :, None]" if numbers and X.ndim == 2 else ""
    raise DataError(
        "X: expected an array (row, time, features) of numbers, or (row,) of texts, got "
        f"{X.dtype} of shape {X.shape}{hint}"
    )


def _value(own: Any, row: int) -> Value:
    if isinstance(own, str):
        return str(own)
    if not isinstance(own, list | tuple) and hasattr(own, "__array__"):
        own = np.asarray(own)
        if own.dtype.kind in "biuf":
            return _vectors(own, row)
    if isinstance(own, list | tuple | np.ndarray):
        if all(isinstance(token, str) for token in own):
            return [str(token) for token in own]
        return _vectors(own, row)
    raise DataError(
        f"X: row {row}: expected a text, a list of tokens, or an array (time, features), "
        f"got {own!r}"[:200]
    )


def _vectors(own: Any, row: int) -> NDArray[np.float32]:
    try:
        found = np.asarray(own, np.float32)
    except (TypeError, ValueError):
        raise DataError(
            f"X: row {row}: expected a list of tokens, or numbers (time, features), got {own!r}"[
                :200
            ]
        ) from None
    if found.ndim != 2:
        hint = "; for one number a step write row[:, None]" if found.ndim == 1 else ""
        raise DataError(
            f"X: row {row}: expected an array (time, features), got shape {found.shape}{hint}"
        )
    if not np.isfinite(found).all():
        step = int(np.flatnonzero(~np.isfinite(found).all(1))[0])
        raise DataError(
            f"X: row {row}, step {step}: expected finite numbers, got NaN or infinity; fill "
            "the gaps first"
        )
    return found


def _described(features: int | None) -> str:
    return "a text or tokens" if features is None else f"steps of {features} features"
