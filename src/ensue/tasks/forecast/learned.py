"""What a forecaster learns from its training part, beside the weights of its networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.errors import DataError
from ensue.tasks.forecast.baselines import Baselines, season_error
from ensue.tasks.forecast.metrics import Units
from ensue.tasks.forecast.scale import ForecastScale
from ensue.tasks.forecast.series import Series
from ensue.tasks.forecast.settings import ForecastSettings
from ensue.tasks.forecast.windows import Windows
from ensue.tasks.saved import Saved
from ensue.tasks.task import Packed

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LearnedSeries:
    """scale, baselines, units: of the training part alone; widening (horizon, targets): what
    calibration adds to the intervals of levels, 0 before it."""

    scale: ForecastScale
    baselines: Baselines
    units: Units
    widening: Array

    @classmethod
    def learn(cls, train: Series, settings: ForecastSettings) -> LearnedSeries:
        check_length(len(train), settings)
        if settings.season >= len(train):
            raise DataError(
                f"model.season: expected fewer steps than the training part has, {len(train)}, "
                f"got {settings.season}"
            )
        scale, targets = ForecastScale.of(train, settings), len(settings.targets)
        baselines = Baselines.of(train, settings)
        seasonal = season_error(train.values[:, :targets], baselines.season)
        widening = np.zeros((settings.horizon, targets))
        return cls(scale, baselines, Units(scale.unit, seasonal), widening)

    def history(self, settings: ForecastSettings) -> int:
        """Steps that must stand before the first forecast."""
        spaced = 2 if settings.time else 1  # two steps tell how far steps are apart
        return max(settings.history, self.baselines.season, spaced)

    def windows(self, series: Series, settings: ForecastSettings) -> Windows:
        """A series as the networks see it."""
        levels = self.scale.levels(series, settings)
        return Windows(self.scale.inward(levels, series, settings.calendar), settings)

    # ------------------------------------------------------------- as files
    def pack(self) -> Packed:
        parts = {"units": self.units._asdict(), "scale": self.scale.arrays()}
        parts["baselines"] = self.baselines.arrays()
        arrays: dict[str, NDArray[Any]] = {"widening": self.widening}
        arrays |= {f"{name}.{key}": v for name, part in parts.items() for key, v in part.items()}
        return Packed({"season": self.baselines.season}, {}, arrays)

    @classmethod
    def unpack(cls, saved: Saved, settings: ForecastSettings) -> LearnedSeries:
        season = saved.facts["season"]
        return cls(
            ForecastScale(settings.transform, settings.difference, **saved.part("scale")),
            Baselines.of_arrays(saved.part("baselines"), season, settings),
            Units(**saved.part("units")),
            saved.arrays["widening"],
        )


def check_length(steps: int, settings: ForecastSettings) -> None:
    """The training part has a window at least."""
    needed = settings.history + settings.horizon
    if steps < needed:
        raise DataError(
            f"the training part: expected at least {needed} steps (look_back {settings.look_back}"
            + f" + difference {settings.difference}" * bool(settings.difference)
            + f" + horizon {settings.horizon}), got {steps}; give more rows, or set a smaller "
            "model.look_back or model.horizon"
        )
