"""Every change of what a model learned that its digests do not tell: each value of its JSON, each
of its arrays and weights, in turn missing, of another type, shape, size or sign."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy
from hostile import places, resealed
from numpy.typing import NDArray
from task_laws import AHEAD, LABELLER, SMALL, TABLE, Row
from task_laws import data as task_data

Array = NDArray[Any]
# What stands in the place of a value; a dictionary is read as JSON writes it, NaN among it.
VALUES: tuple[Any, ...] = (
    *(None, True, 0, 1, -1, 3, 1 << 15, 10**9, 10**18, -(10**18), 0.5, -0.5, 1e300, float("nan")),
    *(float("inf"), "", "x", "0", [], {}, [[]], [0], ["x", "x"], {"a": {}}),
)


class Removed:
    """Stands for a value that is not there."""


def of_value(value: Any) -> Iterator[tuple[str, Any]]:
    """What may stand in its place."""
    yield "removed", Removed
    for other in VALUES:
        if type(other) is not type(value) or other != value:
            yield f"= {json.dumps(other)}", other
    if isinstance(value, list):
        yield "cut", value[:-1]
        yield "longer", value + value[-1:]
        yield "turned round", value[::-1]
        yield "nested", [value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield "negative", -value
        yield "as text", str(value)
        yield "one more", value + 1
    if isinstance(value, str):
        yield "longer", f"{value}x"
    if isinstance(value, dict):
        yield "one key more", {**value, "another": 1}


WAYS: dict[str, Callable[[Array], Array]] = {
    "empty": lambda array: array[:0] if array.ndim else np.zeros(0, array.dtype),
    "cut": lambda array: array[:-1] if array.ndim else array,
    "cut at its last axis": lambda array: array[..., :-1] if array.ndim else array,
    "longer": lambda array: np.concatenate([array, array[-1:]]) if array.ndim else array,
    "transposed": lambda array: np.ascontiguousarray(array.T),
    "flat": lambda array: array.reshape(-1),
    "nested": lambda array: array[None],
    "one number": lambda array: array.reshape(-1)[:1].reshape(()) if array.size else array,
    "turned round": lambda array: np.ascontiguousarray(array[::-1]) if array.ndim else array,
    "whole numbers": lambda array: np.ones(array.shape, np.int64),
    "bytes": lambda array: np.zeros(array.shape, np.uint8),
    "halves": lambda array: np.zeros(array.shape, np.float16),
    "doubles": lambda array: np.ones(array.shape, np.float64),
    "flags": lambda array: np.ones(array.shape, np.bool_),
    "negative": lambda array: (-array.astype(np.float64) - 1).astype(_signed(array)),
    "zeros": lambda array: np.zeros_like(array),
    "large": lambda array: np.full(array.shape, _largest(array), array.dtype),
    "a large one": lambda array: _with_last(array, _largest(array)),
    "NaN": lambda array: np.full(array.shape, np.nan, _floats(array)),
    "one NaN": lambda array: _with_last(array.astype(_floats(array)), np.nan),
    "infinite": lambda array: np.full(array.shape, np.inf, _floats(array)),
}  # fmt: skip


def _signed(array: Array) -> Any:
    return np.int64 if array.dtype.kind in "bu" else array.dtype


def _floats(array: Array) -> Any:
    return array.dtype if array.dtype.kind == "f" else np.float32


def _largest(array: Array) -> Any:
    if array.dtype.kind == "b":
        return True
    return np.finfo(array.dtype).max if array.dtype.kind == "f" else np.iinfo(array.dtype).max


def _with_last(array: Array, value: Any) -> Array:
    copied = array.copy()
    copied.reshape(-1)[-1:] = value
    return copied


class Change(NamedTuple):
    """file, and where inside; how: what is done; data: the file then."""

    file: str
    where: str
    how: str
    data: Callable[[], bytes]

    def __str__(self) -> str:
        return f"{self.file}: {self.where} {self.how}"

    def files(self, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """All files of the model, with digests that are right."""
        return resealed({**files, self.file: self.data()})


def _with(value: Any, way: tuple[Any, ...], other: Any) -> bytes:
    copied = copy.deepcopy(value)
    *before, last = way
    inside = copied
    for key in before:
        inside = inside[key]
    if other is Removed:
        del inside[last]
    else:
        inside[last] = other
    return json.dumps(copied).encode()


def _json_changes(file: str, data: bytes) -> Iterator[Change]:
    value = json.loads(data)
    for way in places(value):
        inside = value
        for key in way:
            inside = inside[key]
        for how, other in of_value(inside):
            where = "/".join(map(str, way))
            yield Change(file, where, how, lambda w=way, o=other: _with(value, w, o))


def _array_changes(file: str, data: bytes) -> Iterator[Change]:
    arrays = safetensors.numpy.load(data)

    def saved(change: Mapping[str, Array], without: str = "") -> bytes:
        arrays_left = {
            name: array for name, array in {**arrays, **change}.items() if name != without
        }
        return safetensors.numpy.save({n: np.ascontiguousarray(v) for n, v in arrays_left.items()})

    yield Change(file, "another", "added", lambda: saved({"another": np.zeros(3)}))
    for name, array in arrays.items():
        yield Change(file, name, "removed", lambda n=name: saved({}, n))
        for how, way in WAYS.items():
            yield Change(file, name, how, lambda n=name, w=way, o=array: saved({n: w(o)}))


KINDS = {".json": _json_changes, ".safetensors": _array_changes}


def changes(files: Mapping[str, bytes]) -> list[Change]:
    """All that can be done to the files of a model, by name."""
    return [
        change
        for name in sorted(files)
        if name != "manifest.json" and Path(name).suffix in KINDS
        for change in KINDS[Path(name).suffix](name, files[name])
    ]


# --- models --------------------------------------------------------------------------------------

FITTED = {"linear_share": "fitted"}
PANEL = {"ids": ["region"], "time": "month", "static": ["offer"]}


def _panel(count: int) -> list[Any]:
    """Two series side by side."""
    return [
        {**row, "region": region, "sales": row["sales"] * (1 + k), "offer": f"kind {k}"}
        for row in task_data.SERIES.make(count // 2)
        for k, region in enumerate(("north", "south"))
    ]


# What training without settings makes, in addition to the rows of the table of tasks.
MIXED = [
    Row("classify", "mixed of two", task_data.MOODS, SMALL | {"linear": "mixed"}, members=2),
    Row("regress", "mixed", task_data.LENGTHS, SMALL | {"linear": "mixed"}),
    Row("label", "mixed", task_data.SPANS, LABELLER | FITTED),
    Row("table", "mixed", task_data.FLATS, {"hidden": [4], "batch_rows": 16} | FITTED),
    Row("forecast", "mixed", task_data.SERIES,
        AHEAD | {"family": "mixed", "time": "month", "covariates": ["visitors"]}),
    Row("forecast", "mixed of a panel", replace(task_data.SERIES, make=_panel),
        AHEAD | PANEL | {"family": "mixed"}),
    Row("forecast", "panel of two", replace(task_data.SERIES, make=_panel),
        AHEAD | PANEL | {"family": "direct"}, members=2),
]  # fmt: skip
MODELS = [*TABLE, *MIXED]
