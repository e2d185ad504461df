"""The learned part of a forecaster, except the weights of its networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ensue.data.series import number_of
from ensue.errors import DataError
from ensue.tasks.declarations import (
    DISTINCT,
    NEXT_TO,
    NOT_SAVED,
    OMITTED,
    Length,
    Let,
    OfClass,
    Positive,
    SavedAs,
    Shape,
)
from ensue.tasks.forecast.baselines import Baselines
from ensue.tasks.forecast.evaluation import Units, levels_asked
from ensue.tasks.forecast.members.choice import Chosen, chosen
from ensue.tasks.forecast.members.mixture import MixedWindows, Mixture
from ensue.tasks.forecast.part import Windows
from ensue.tasks.forecast.scale import ForecastScale, refuse_constants
from ensue.tasks.forecast.seasons import season_errors
from ensue.tasks.forecast.series import Series
from ensue.tasks.forecast.settings import MIXED, ForecastSettings

MOST_NAMES = 50  # maximum names of one column; rarer ones are ignored


@dataclass(frozen=True)
class StaticColumn:
    """A static column: numbers, scaled by mean and spread of the training part; or names,
    one-hot."""

    names: Annotated[tuple[str, ...], DISTINCT] = ()
    mean: float = 0.0
    spread: Positive = 1.0

    @property
    def width(self) -> int:
        return len(self.names) or 1

    def numbers(self, values: Sequence[Any]) -> NDArray[np.float32]:
        """The values of all series as numbers (series, width); 0 for missing values."""
        if self.names:
            indicators = [[float(value == name) for name in self.names] for value in values]
            return np.array(indicators, np.float32).reshape(len(values), self.width)
        read = [number_of(value) if value is not None else None for value in values]
        scaled = [0.0 if value is None else (value - self.mean) / self.spread for value in read]
        return np.array(scaled, np.float32)[:, None]


@dataclass(frozen=True)
class StaticCode:
    """The encodings of the static columns of the settings."""

    columns: Annotated[
        tuple[StaticColumn, ...], SavedAs("static"), Length("settings.static"), OMITTED
    ] = ()

    @classmethod
    def of(cls, train: Series, names: Sequence[str]) -> StaticCode:
        return cls(tuple(_column([row[k] for row in train.static]) for k in range(len(names))))

    @property
    def width(self) -> int:
        return sum(column.width for column in self.columns)

    def numbers(self, series: Series) -> NDArray[np.float32]:
        """The static columns of all series as numbers (series, width)."""
        rows = [row if len(row) else [None] * len(self.columns) for row in series.static]
        arrays = [column.numbers([row[k] for row in rows]) for k, column in enumerate(self.columns)]
        return np.concatenate(arrays, 1)


def _column(values: Sequence[Any]) -> StaticColumn:
    present = [value for value in values if value is not None]
    numbers = [number for value in present if (number := number_of(value)) is not None]
    if len(numbers) == len(present):
        numbers_known = np.array(numbers or [0.0])
        return StaticColumn((), float(numbers_known.mean()), float(numbers_known.std()) or 1.0)
    counts: dict[str, int] = {}
    for value in present:
        counts[value] = counts.get(value, 0) + 1
    most = sorted(counts, key=lambda name: (-counts[name], name))[:MOST_NAMES]
    return StaticColumn(tuple(most))


Array = NDArray[np.float64]


def _mixture_class(record: Any) -> type[Mixture] | None:
    return Mixture if record.settings.family in MIXED else None


def _levels(record: Any) -> int:
    return len(levels_asked(record.settings))


@dataclass(frozen=True)
class LearnedSeries:
    """Everything a forecaster learns except weights. scale, baselines, units: learned from the
    training part only; widening (horizon, targets): added to the intervals of levels by
    calibration, 0 before it; static: encoding of static columns; mixture: the solved members of a
    mixed forecast; chosen: the choice of these members, until calibration; shifts (levels, horizon,
    targets): added to quantiles by calibration, None without it; held (horizon, windows, targets):
    forecasts of the validation part before anything learned from it; not saved."""

    scale: Annotated[
        ForecastScale,
        SavedAs("", arrays="scale"),
        Let(
            transform=lambda record: (record.mixture or record.settings).transform,
            lag="settings.difference",
            columns="settings.columns",
        ),
    ]
    baselines: Annotated[Baselines, SavedAs("", arrays="baselines"), Let(model="settings")]
    units: Units
    widening: Annotated[Array, Shape("settings.horizon", "settings.targets")]
    static: Annotated[StaticCode, NEXT_TO]
    mixture: Annotated[Mixture | None, OfClass(_mixture_class)] = None
    chosen: Annotated[Chosen | None, NOT_SAVED] = None
    shifts: Annotated[Array, Shape(_levels, "settings.horizon", "settings.targets")] | None = None
    out_of_sample: Annotated[Array | None, NOT_SAVED] = None

    @classmethod
    def learn(
        cls, train: Series, settings: ForecastSettings, whole: Series | None = None
    ) -> LearnedSeries:
        """Learns from the training part. whole: including the steps of the validation part, for the
        choices of mixed forecasts."""
        check_length(train, settings)
        if settings.season >= int(train.lengths.max()):
            raise DataError(
                f"model.season: expected fewer steps than the training part has, "
                f"{int(train.lengths.max())}, got {settings.season}"
            )
        targets, baselines = len(settings.targets), Baselines.of(train, settings)
        if settings.family in MIXED:
            refuse_constants(train, settings)
            selected = chosen(whole or train, settings, baselines.season)
            mixture = selected.mixture.fitted(train, settings)
            levels = settings.model_copy(update={"transform": mixture.transform})
            scale = ForecastScale.of(train, levels, selected.floor)
        else:
            scale, mixture, selected = ForecastScale.of(train, settings), None, None
        seasonal = season_errors(train, targets, baselines.season)
        units = Units(scale.unit, seasonal if settings.ids else seasonal[0])
        widening = np.zeros((settings.horizon, targets))
        static = StaticCode.of(train, settings.static)
        return cls(scale, baselines, units, widening, static, mixture, selected)

    def history(self, settings: ForecastSettings) -> int:
        """Number of steps needed before the first forecast."""
        spaced = 2 if settings.time else 1  # two steps are needed to determine the spacing
        look_back = settings.look_back if settings.family in MIXED else settings.history
        return max(look_back, self.baselines.season, spaced)

    def windows(self, series: Series, settings: ForecastSettings) -> Windows:
        """The windows of series, as the networks see them."""
        scale = self.scale.aligned(series, settings.history)
        values = scale.inward(scale.levels(series, settings), series, settings.calendar)
        if self.static.width:
            known = self.static.numbers(series)[series.owner]
            values = np.concatenate([values, known], 1)
        ahead = settings.ahead + self.static.width
        if self.mixture is not None:
            return MixedWindows(values, settings, series, ahead, scale, self.mixture)
        return Windows(values, settings, series.starts, ahead)


def check_length(train: Series, settings: ForecastSettings) -> None:
    """Raises an error unless the training part has at least one window."""
    needed, steps = settings.history + settings.horizon, int(train.lengths.max())
    mixed = settings.family in MIXED
    if steps < needed:
        raise DataError(
            f"the training part: expected at least {needed} steps "
            + (f"({settings.history}" if mixed else f"(look_back {settings.look_back}")
            + f" + difference {settings.difference}" * bool(settings.difference)
            + f" + horizon {settings.horizon}), got {steps}; give more rows, or set a smaller "
            + ("model.horizon" if mixed else "model.look_back or model.horizon")
        )
