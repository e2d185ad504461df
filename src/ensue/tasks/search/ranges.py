"""The ranges of searched settings. Most lie around the setting's usual value, which depends on the
task and its data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Finite:
    """One of these values; ordered: neighbours are similar."""

    values: tuple[Any, ...]
    ordered: bool = False


@dataclass(frozen=True)
class Interval:
    """A number from low to high; logarithmic: equal ratios are equally likely."""

    low: float
    high: float
    logarithmic: bool = False

    def rounded(self, value: float) -> float:
        """The value rounded to three digits, within the interval: 0.0012345 → 0.00123."""
        return min(max(float(f"{value:.3g}"), self.low), self.high)


Values = Finite | Interval


class Range(Protocol):
    def around(self, usual: Any) -> Values:
        """The searched values around the usual one, which is included."""
        ...


@dataclass(frozen=True)
class Choice:
    """One of a few values; ordered: neighbours are similar.

    >>> Choice(("GRU", "LSTM")).around("MGU")
    Finite(values=('MGU', 'GRU', 'LSTM'), ordered=False)
    """

    values: tuple[Any, ...]
    ordered: bool = False

    def around(self, usual: Any) -> Finite:
        if usual in self.values:
            return Finite(self.values, self.ordered)
        if self.ordered:
            return Finite(tuple(sorted({*self.values, usual})), True)
        return Finite((usual, *self.values))


@dataclass(frozen=True)
class Sizes:
    """Integers in half octaves up to `octaves` below and above the usual one, each a multiple of
    `multiple`; most: the maximum, if any.

    >>> Sizes(1, multiple=8).around(64)
    Finite(values=(32, 48, 64, 88, 128), ordered=True)
    """

    octaves: int = 2
    multiple: int = 1
    most: float = math.inf

    def around(self, usual: int) -> Finite:
        halves = range(-2 * self.octaves, 2 * self.octaves + 1)
        multiples = {max(round(usual * 2 ** (k / 2) / self.multiple), 1) for k in halves}
        sizes = {
            multiple * self.multiple
            for multiple in multiples
            if multiple * self.multiple <= self.most
        }
        return Finite(tuple(sorted({*sizes, usual})), True)


@dataclass(frozen=True)
class Around:
    """An interval from the usual value / `factor` to the usual value × `factor`, on a logarithmic
    scale."""

    factor: float = 5.0

    def around(self, usual: float) -> Interval:
        return Interval(usual / self.factor, usual * self.factor, True)


@dataclass(frozen=True)
class Between:
    """An interval from low to high, extended to the usual value if this value lies outside."""

    low: float
    high: float

    def around(self, usual: float) -> Interval:
        return Interval(min(self.low, usual), max(self.high, usual))


Sets = Mapping[Any, Mapping[str, Any]]  # value → settings by key


@dataclass(frozen=True)
class Searched:
    """A searched setting. when: conditions for it to have an effect, as values of other settings by
    key; sets: settings that accompany some values."""

    range: Range
    when: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    sets: Sets = field(default_factory=dict)


Space = Mapping[str, Searched]  # by `table.key`; conditions refer to earlier keys
