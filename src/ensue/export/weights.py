"""Stored weights: float32, bfloat16, or int8 with a scale for each row.

Matrices are stored in the chosen kind; vectors (biases, peepholes, initial states) are small and
stay float32. `value` is the number of a stored weight that is used in computation.

    int8      w ≈ scale[row] · q,  q = round(w / scale[row]),  scale[row] = max |w[row]| / 127
    bfloat16  the upper half of a float32, rounded to nearest, ties to even
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.errors import unknown

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Stored:
    """One stored weight. scale (rows,): for int8 only."""

    kind: str
    data: NDArray[Any]
    scale: Floats | None = None

    @property
    def value(self) -> Floats:
        return VALUES[self.kind](self)

    @property
    def nbytes(self) -> int:
        return self.data.nbytes + (0 if self.scale is None else self.scale.nbytes)


def _as_float32(values: Floats) -> Stored:
    return Stored("float32", values)


def _as_bfloat16(values: Floats) -> Stored:
    bits = values.view(np.uint32)
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)
    finite = np.where(np.isfinite(values), rounded, bits)  # rounding would turn inf into NaN
    return Stored("bf16", (finite >> 16).astype(np.uint16))


def _as_int8(values: Floats) -> Stored:
    rows = values.reshape(len(values), -1)
    scale = (np.abs(rows).max(1, initial=0) / 127).astype(np.float32)
    divisor = np.where(scale > 0, scale, 1)[:, None]
    quantised = np.clip(np.rint(rows / divisor), -127, 127).astype(np.int8)
    return Stored("int8", quantised.reshape(values.shape), scale)


KINDS: dict[str, Callable[[Floats], Stored]] = {
    "float32": _as_float32,
    "bf16": _as_bfloat16,
    "int8": _as_int8,
}
VALUES: dict[str, Callable[[Stored], Floats]] = {
    "float32": lambda stored: stored.data,
    "bf16": lambda stored: (stored.data.astype(np.uint32) << 16).view(np.float32),
    "int8": lambda stored: _scaled(stored),
}


def _scaled(stored: Stored) -> Floats:
    assert stored.scale is not None
    rows = stored.data.reshape(len(stored.data), -1).astype(np.float32)
    return np.asarray((rows * stored.scale[:, None]).reshape(stored.data.shape), np.float32)


def store(values: Floats, kind: str) -> Stored:
    """The stored form of a weight: matrices in the given kind, vectors in float32."""
    if kind not in KINDS:
        raise unknown("kind of weights", kind, KINDS)
    return KINDS[kind if values.ndim > 1 else "float32"](np.ascontiguousarray(values, np.float32))


@dataclass(frozen=True)
class Weights:
    """Weights by name."""

    stored: Mapping[str, Stored]

    @classmethod
    def of(cls, named: Mapping[str, Floats], kind: str = "float32") -> Weights:
        return cls({name: store(value, kind) for name, value in named.items()})

    def __getitem__(self, name: str) -> Stored:
        return self.stored[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.stored.values())
