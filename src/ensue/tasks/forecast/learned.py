"""What a forecaster learns from its training part, beside the weights of its networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.errors import DataError
from ensue.files.caps import SEASON
from ensue.tasks import checks
from ensue.tasks.forecast.baselines import Baselines
from ensue.tasks.forecast.members.choice import Chosen, chosen
from ensue.tasks.forecast.members.mixed import MixedWindows
from ensue.tasks.forecast.members.mixture import Mixture
from ensue.tasks.forecast.members.sizes import IDS
from ensue.tasks.forecast.metrics import Units, levels_asked
from ensue.tasks.forecast.scale import ForecastScale, ScaleSizes, refuse_constants
from ensue.tasks.forecast.seasons import season_errors
from ensue.tasks.forecast.series import Series
from ensue.tasks.forecast.settings import MIXED, ForecastSettings
from ensue.tasks.forecast.static import StaticCode
from ensue.tasks.forecast.windows import Windows
from ensue.tasks.saved import Saved
from ensue.tasks.task import Packed

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LearnedSeries:
    """scale, baselines, units: of the training part alone; widening (horizon, targets): what
    calibration adds to the intervals of levels, 0 before it; static: how what is known of a series
    becomes numbers; mixture: the solved members of a mixed forecast; chosen: how they came to be
    chosen, until calibration; shifts (levels, horizon, targets): what calibration adds to
    quantiles, None in models of 0.2.0 and before; held (horizon, windows, targets): forecasts of
    the validation part before anything has learned from it, not kept."""

    scale: ForecastScale
    baselines: Baselines
    units: Units
    widening: Array
    static: StaticCode
    mixture: Mixture | None = None
    chosen: Chosen | None = None
    shifts: Array | None = None
    held: Array | None = None

    @classmethod
    def learn(
        cls, train: Series, settings: ForecastSettings, whole: Series | None = None
    ) -> LearnedSeries:
        """whole: with the steps of the validation part, which mixed forecasts choose by."""
        check_length(train, settings)
        if settings.season >= int(train.lengths.max()):
            raise DataError(
                f"model.season: expected fewer steps than the training part has, "
                f"{int(train.lengths.max())}, got {settings.season}"
            )
        targets, baselines = len(settings.targets), Baselines.of(train, settings)
        if settings.family in MIXED:
            refuse_constants(train, settings)
            found = chosen(whole or train, settings, baselines.season)
            mixture = found.mixture.fitted(train, settings)
            levels = settings.model_copy(update={"transform": mixture.transform})
            scale = ForecastScale.of(train, levels, found.floor)
        else:
            scale, mixture, found = ForecastScale.of(train, settings), None, None
        seasonal = season_errors(train, targets, baselines.season)
        units = Units(scale.unit, seasonal if settings.ids else seasonal[0])
        widening = np.zeros((settings.horizon, targets))
        static = StaticCode.of(train, settings.static)
        return cls(scale, baselines, units, widening, static, mixture, found)

    def history(self, settings: ForecastSettings) -> int:
        """Steps that must stand before the first forecast."""
        spaced = 2 if settings.time else 1  # two steps tell how far steps are apart
        look_back = settings.look_back if settings.family in MIXED else settings.history
        return max(look_back, self.baselines.season, spaced)

    def windows(self, series: Series, settings: ForecastSettings) -> Windows:
        """Series as the networks see them."""
        scale = self.scale.aligned(series, settings.history)
        values = scale.inward(scale.levels(series, settings), series, settings.calendar)
        if self.static.width:
            known = self.static.numbers(series)[series.owner]
            values = np.concatenate([values, known], 1)
        ahead = settings.ahead + self.static.width
        if self.mixture is not None:
            return MixedWindows(values, settings, series, ahead, scale, self.mixture)
        return Windows(values, settings, series.starts, ahead)

    # ------------------------------------------------------------- as files
    def pack(self) -> Packed:
        parts = {"units": self.units._asdict(), "scale": self.scale.arrays()}
        parts["baselines"] = self.baselines.arrays()
        arrays: dict[str, NDArray[Any]] = {"widening": self.widening}
        arrays |= {f"{name}.{key}": v for name, part in parts.items() for key, v in part.items()}
        if self.shifts is not None:
            arrays["shifts"] = self.shifts
        facts: dict[str, Any] = {"season": self.baselines.season}
        if self.scale.ids:
            facts |= {"ids": [list(own) for own in self.scale.ids]}
        if self.static.columns:
            facts |= {"static": self.static.facts()}
        if self.mixture is not None:
            facts |= {"mixture": self.mixture.facts()}
            arrays |= {f"mixture.{name}": own for name, own in self.mixture.arrays().items()}
        return Packed(facts, {}, arrays)

    @classmethod
    def unpack(cls, saved: Saved, settings: ForecastSettings) -> LearnedSeries:
        facts, targets = saved.facts, len(settings.targets)
        if not saved.networks:
            raise checks.Unfit("networks: expected one or more, got none")
        ids = IDS(facts.get("ids", []), "ids")
        if bool(ids) != bool(settings.ids) or {len(own) for own in ids} - {len(settings.ids)}:
            raise checks.Unfit(f"ids: expected {len(settings.ids)} for each series, got others")
        season = checks.whole(1, SEASON)(facts["season"], "season")
        mixture, transform = None, str(settings.transform)
        if settings.family in MIXED:
            own = saved.part("mixture")
            mixture = Mixture.of_facts(facts.get("mixture"), own, settings, season)
            transform = mixture.transform
        sizes = ScaleSizes(transform, settings.difference, len(settings.columns), targets)
        errors = checks.array((len(ids), targets) if ids else (targets,), checks.DOUBLE, above=0)
        units = checks.built(Units, {"spread": errors, "season": errors})
        ahead = settings.horizon, targets
        shifts = checks.array((len(levels_asked(settings)), *ahead), checks.DOUBLE)
        return cls(
            ForecastScale.of_arrays(saved.part("scale"), sizes, ids, "scale"),
            Baselines.of_arrays(saved.part("baselines"), season, settings, ids),
            units(saved.part("units"), "units"),
            checks.array(ahead, checks.DOUBLE)(saved.arrays.get("widening"), "widening"),
            StaticCode.of_facts(facts.get("static", []), len(settings.static)),
            mixture,
            shifts=checks.maybe(shifts)(saved.arrays.get("shifts"), "shifts"),
        )


def check_length(train: Series, settings: ForecastSettings) -> None:
    """The training part has a window at least."""
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
