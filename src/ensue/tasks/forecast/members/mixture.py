"""Solved members mixed: what each has learned, and how much it counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ensue.tasks.forecast.members.arima import ArimaMember
from ensue.tasks.forecast.members.autoregression import AutoregressiveMember
from ensue.tasks.forecast.members.ground import Ground
from ensue.tasks.forecast.members.ridge import RidgeMember
from ensue.tasks.forecast.members.smoothing import SmoothingMember
from ensue.tasks.forecast.seasons import repeated
from ensue.tasks.forecast.series import Series, Steps, ranges
from ensue.tasks.forecast.settings import ForecastSettings

Array = NDArray[np.float64]

MOST_WINDOWS = 40_000  # windows times targets that weights are solved from


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


def _of_each(
    member: Callable[..., Member], facts: Mapping[str, Any], arrays: Mapping[str, Array]
) -> Member:
    """A member with parameters for each series."""
    given: dict[str, Any] = {**facts, **arrays}
    return member(**given | {"ids": tuple(tuple(own) for own in facts["ids"])})


KINDS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Array]], Member]] = {
    "repeated": lambda facts, arrays: RepeatedMember(**facts),
    "ridge": RidgeMember.of_facts,
    "smoothing": partial(_of_each, SmoothingMember),
    "autoregression": AutoregressiveMember.of_facts,
    "arima": partial(_of_each, ArimaMember),
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
        origins = fit_origins(series, settings, len(settings.targets))
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
    def of_facts(cls, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> Mixture:
        """The inverse of `facts` and `arrays`."""
        members = list[Member]()
        for k, own in enumerate(facts["members"]):
            begin = f"{k}."
            held = {n.removeprefix(begin): a for n, a in arrays.items() if n.startswith(begin)}
            plain = {name: value for name, value in own.items() if name != "kind"}
            members.append(KINDS[own["kind"]](plain, held))
        kept = {name: facts[name] for name in ("season", "room", "transform", "share", "scores")}
        return cls(tuple(members), arrays["weights"], **kept)


def fit_origins(series: Series, settings: ForecastSettings, targets: int) -> Steps:
    """Of the windows that weights are solved from: those whose steps ahead are all there, after a
    step at least; every so-manieth where there are too many."""
    first = series.bounds[:-1] + 1
    origins = ranges(first, np.maximum(series.bounds[1:] - settings.horizon + 1, first))
    return origins[:: max(1, -(-len(origins) * targets // MOST_WINDOWS))]
