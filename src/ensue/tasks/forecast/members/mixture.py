"""Solved members mixed: what each has learned, and how much it counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ensue.tasks import checks
from ensue.tasks.forecast.members.arima import ArimaMember
from ensue.tasks.forecast.members.autoregression import AutoregressiveMember
from ensue.tasks.forecast.members.ground import Ground
from ensue.tasks.forecast.members.ridge import RidgeMember
from ensue.tasks.forecast.members.sizes import LEVEL, LONGEST_LOOK_BACK, MixtureSizes
from ensue.tasks.forecast.members.smoothing import SmoothingMember
from ensue.tasks.forecast.seasons import repeated
from ensue.tasks.forecast.series import Series, Steps, ranges
from ensue.tasks.forecast.settings import ForecastSettings

Array = NDArray[np.float64]

MOST_WINDOWS = 40_000  # windows times targets that weights are solved from
YOUNG = 3  # the first so-manieth part of a series of a panel is read only


class Member(Protocol):
    """A way to forecast that is solved. kind: a key of KINDS."""

    kind: str

    @property
    def name(self) -> str: ...

    def fitted(self, ground: Ground, origins: Steps, horizon: int) -> Self:
        """Learned from all that the ground holds."""
        ...

    def forecasts(self, ground: Ground, origins: Steps, horizon: int) -> Array: ...

    def arrays(self) -> dict[str, Array]: ...

    def facts(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class RepeatedMember:
    """The last season again, or the last value."""

    season: int

    kind = "repeated"

    @property
    def name(self) -> str:
        return "seasonal naive" if self.season > 1 else "naive"

    def fitted(self, ground: Ground, origins: Steps, horizon: int) -> RepeatedMember:
        return self

    def forecasts(self, ground: Ground, origins: Steps, horizon: int) -> Array:
        starts = ground.series.starts[origins - 1]
        return repeated(ground.y[ground.at], origins, horizon, self.season, starts)

    def arrays(self) -> dict[str, Array]:
        return {}

    def facts(self) -> dict[str, Any]:
        return {"season": self.season}

    @classmethod
    def of_facts(
        cls, facts: Mapping[str, Any], arrays: Mapping[str, Array], sizes: MixtureSizes, name: str
    ) -> RepeatedMember:
        return checks.built(cls, {"season": checks.whole(1, sizes.season)})(facts, name)


OfFacts = Callable[[Mapping[str, Any], Mapping[str, Array], MixtureSizes, str], Member]
KINDS: dict[str, OfFacts] = {
    "repeated": RepeatedMember.of_facts,
    "ridge": RidgeMember.of_facts,
    "smoothing": SmoothingMember.of_facts,
    "autoregression": AutoregressiveMember.of_facts,
    "arima": ArimaMember.of_facts,
}


@dataclass(frozen=True)
class Mixture:
    """members with weights, which make 1; room: steps before each series that members may read;
    transform: of the levels that intervals and the network live in; share: how much of the
    network's correction counts."""

    members: tuple[Member, ...]
    weights: Array
    season: int
    room: int
    transform: str = "none"
    share: float = 0.0
    scores: Mapping[str, float] = field(default_factory=dict)

    def ground(self, series: Series, settings: ForecastSettings) -> Ground:
        targets, known = len(settings.targets), len(settings.known)
        return Ground.of(series, targets, known, self.season, self.room)

    def fitted(self, series: Series, settings: ForecastSettings) -> Mixture:
        """The same members, learned from this part."""
        ground = self.ground(series, settings)
        origins = fit_origins(series, settings, self.room)
        found = tuple(own.fitted(ground, origins, settings.horizon) for own in self.members)
        return replace(self, members=found)

    def forecasts(self, ground: Ground, origins: Steps, horizon: int) -> Array:
        """(horizon, windows, targets), in the units of the data."""
        total = np.zeros((horizon, len(origins), ground.y.shape[1]))
        for weight, member in zip(self.weights, self.members, strict=True):
            if weight > 0:
                total += weight * member.forecasts(ground, origins, horizon)
        return total

    # ------------------------------------------------------------- as files
    def facts(self) -> dict[str, Any]:
        members = [{"kind": own.kind, **own.facts()} for own in self.members]
        return {
            "members": members,
            "season": self.season,
            "room": self.room,
            "transform": self.transform,
            "share": self.share,
            "scores": dict(self.scores),
        }

    def arrays(self) -> dict[str, Array]:
        found = {"weights": self.weights}
        for k, own in enumerate(self.members):
            found |= {f"{k}.{name}": array for name, array in own.arrays().items()}
        return found

    @classmethod
    def of_facts(
        cls,
        facts: Any,
        arrays: Mapping[str, Array],
        settings: ForecastSettings,
        season: int,
    ) -> Mixture:
        """The inverse of `facts` and `arrays`. season: of the forecast."""
        plain = {
            "members": checks.listed(checks.by_name(lambda value, name: value)),
            "season": checks.whole(season, season),
            "room": checks.whole(1, LONGEST_LOOK_BACK + season + 1),
            "transform": LEVEL,
            "share": checks.number(low=0, high=1),
            "scores": checks.by_name(checks.number()),
        }
        kept = checks.record(plain)(facts, "mixture")
        targets, known = len(settings.targets), len(settings.known)
        beside = len(settings.covariates)
        sizes = MixtureSizes(targets, beside, known, settings.horizon, kept["room"], season)
        members = [
            _member(own, arrays, sizes, f"mixture.{k}") for k, own in enumerate(kept["members"])
        ]
        weights = checks.array((len(members),), checks.DOUBLE, 0, 1)
        own = {
            "members": tuple(members),
            "weights": weights(arrays.get("weights"), "mixture.weights"),
        }
        return cls(**kept | own)


def _member(
    facts: Mapping[str, Any], arrays: Mapping[str, Array], sizes: MixtureSizes, name: str
) -> Member:
    begin = name.removeprefix("mixture.") + "."
    held = {key.removeprefix(begin): own for key, own in arrays.items() if key.startswith(begin)}
    plain = {key: value for key, value in facts.items() if key != "kind"}
    return KINDS[checks.one_of(KINDS)(facts.get("kind"), f"{name}.kind")](plain, held, sizes, name)


def fit_origins(series: Series, settings: ForecastSettings, room: int) -> Steps:
    """Of the windows that weights are solved from: those whose steps ahead are all there, every
    so-manieth where there are too many. Of a panel, whose windows are divided by their spread, only
    those after as many steps as are looked at, or a third of the series: the room before a series
    holds its first value, and windows of few steps would outweigh all others. room: steps that are
    looked at."""
    young = np.clip(series.lengths // YOUNG, 1, room) if series.count > 1 else 1
    first = series.bounds[:-1] + young
    origins = ranges(first, np.maximum(series.bounds[1:] - settings.horizon + 1, first))
    return origins[:: max(1, -(-len(origins) * len(settings.targets) // MOST_WINDOWS))]
