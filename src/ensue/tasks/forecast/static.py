"""What is known of a series at all of its steps, as numbers: shop 7 is in the north and large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.data.series import number_of
from ensue.tasks import checks
from ensue.tasks.forecast.series import Series

MOST_NAMES = 50  # of one column; rarer ones are read as none


@dataclass(frozen=True)
class StaticColumn:
    """Numbers, scaled by mean and spread of the training part; or names, each a number 0 or 1."""

    names: tuple[str, ...] = ()
    mean: float = 0.0
    spread: float = 1.0

    @property
    def width(self) -> int:
        return len(self.names) or 1

    def numbers(self, values: Sequence[Any]) -> NDArray[np.float32]:
        """(series, width); 0 where nothing is known."""
        if self.names:
            own = [[float(value == name) for name in self.names] for value in values]
            return np.array(own, np.float32).reshape(len(values), self.width)
        read = [number_of(value) if value is not None else None for value in values]
        scaled = [0.0 if own is None else (own - self.mean) / self.spread for own in read]
        return np.array(scaled, np.float32)[:, None]


SAVED = checks.built(
    StaticColumn,
    {
        "names": checks.different(checks.text),
        "mean": checks.number(),
        "spread": checks.number(above=0),
    },
)


@dataclass(frozen=True)
class StaticCode:
    """Of each static column of the settings."""

    columns: tuple[StaticColumn, ...] = ()

    @classmethod
    def of(cls, train: Series, names: Sequence[str]) -> StaticCode:
        return cls(tuple(_column([own[k] for own in train.static]) for k in range(len(names))))

    @property
    def width(self) -> int:
        return sum(own.width for own in self.columns)

    def numbers(self, series: Series) -> NDArray[np.float32]:
        """(series, width)."""
        rows = [own if len(own) else [None] * len(self.columns) for own in series.static]
        found = [own.numbers([row[k] for row in rows]) for k, own in enumerate(self.columns)]
        return np.concatenate(found, 1)

    def facts(self) -> list[dict[str, Any]]:
        return [vars(own) | {"names": list(own.names)} for own in self.columns]

    @classmethod
    def of_facts(cls, facts: Any, columns: int) -> StaticCode:
        """The inverse of `facts`, for so many columns."""
        return cls(checks.listed(SAVED, columns)(facts, "static"))


def _column(values: Sequence[Any]) -> StaticColumn:
    there = [value for value in values if value is not None]
    numbers = [own for value in there if (own := number_of(value)) is not None]
    if len(numbers) == len(there):
        found = np.array(numbers or [0.0])
        return StaticColumn((), float(found.mean()), float(found.std()) or 1.0)
    counts: dict[str, int] = {}
    for value in there:
        counts[value] = counts.get(value, 0) + 1
    most = sorted(counts, key=lambda name: (-counts[name], name))[:MOST_NAMES]
    return StaticColumn(tuple(most))
