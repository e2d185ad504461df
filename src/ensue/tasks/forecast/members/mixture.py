"""Mixtures of solved members and their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Protocol, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray

from ensue.tasks.declarations import Equal, Kinds, Range, SavedAs, Shape
from ensue.tasks.forecast.intervals import Levels
from ensue.tasks.forecast.members.arima import ArimaMember
from ensue.tasks.forecast.members.autoregression import AutoregressiveMember
from ensue.tasks.forecast.members.ground import Ground
from ensue.tasks.forecast.members.ridge import RidgeMember
from ensue.tasks.forecast.members.sizes import LONGEST_LOOK_BACK, Level
from ensue.tasks.forecast.members.smoothing import SmoothingMember
from ensue.tasks.forecast.networks import ForecastNetwork, WindowBatch
from ensue.tasks.forecast.part import Origins, Windows, in_batches
from ensue.tasks.forecast.scale import ForecastScale
from ensue.tasks.forecast.seasons import repeated
from ensue.tasks.forecast.series import Series, Steps, ranges
from ensue.tasks.forecast.settings import ForecastSettings
from ensue.training.processes import device_of_weights, moved

if TYPE_CHECKING:
    from ensue.tasks.forecast.forecasts import ForecastModel

MOST_WINDOWS = 40_000  # maximum windows times targets for solving weights
YOUNG = 3  # this fraction of a panel's series is only read


class Member(Protocol):
    """The interface of solved members. kind: a key of KINDS."""

    kind: str

    @property
    def name(self) -> str: ...

    def fitted(self, ground: Ground, origins: Steps, horizon: int) -> Self:
        """The member fitted to all of the ground."""
        ...

    def forecasts(self, ground: Ground, origins: Steps, horizon: int) -> Array: ...


@dataclass(frozen=True)
class RepeatedMember:
    """Repeats the last season, or the last value."""

    season: Annotated[int, Range(low=1, high="season")]

    kind = "repeated"

    @property
    def name(self) -> str:
        return "seasonal naive" if self.season > 1 else "naive"

    def fitted(self, ground: Ground, origins: Steps, horizon: int) -> RepeatedMember:
        return self

    def forecasts(self, ground: Ground, origins: Steps, horizon: int) -> Array:
        starts = ground.series.starts[origins - 1]
        return repeated(ground.y[ground.at], origins, horizon, self.season, starts)


Array = NDArray[np.float64]
MEMBERS: tuple[type[Member], ...] = (
    RepeatedMember,
    RidgeMember,
    SmoothingMember,
    AutoregressiveMember,
    ArimaMember,
)
KINDS = {member.kind: member for member in MEMBERS}


@dataclass(frozen=True)
class Mixture:
    """A weighted mean of members, whose weights sum to 1.

    room: padding before each series that members may read; transform: transformation of the levels
    for intervals and networks; share: weight of the network's correction."""

    members: Annotated[tuple[Annotated[Member, Kinds(KINDS)], ...], SavedAs("members", arrays="")]
    weights: Annotated[Array, Shape("members"), Range(low=0, high=1)]
    season: Annotated[int, Equal("baselines.season")]
    room: Annotated[int, Range(low=1, high=lambda record: LONGEST_LOOK_BACK + record.season + 1)]
    transform: Level = "none"
    share: Annotated[float, Range(low=0, high=1)] = 0.0
    scores: Mapping[str, float] = field(default_factory=dict)

    def ground(self, series: Series, settings: ForecastSettings) -> Ground:
        targets, known = len(settings.targets), len(settings.known)
        return Ground.of(series, targets, known, self.season, self.room)

    def fitted(self, series: Series, settings: ForecastSettings) -> Mixture:
        """The same members, fitted to this part."""
        ground = self.ground(series, settings)
        origins = fit_origins(series, settings, self.room)
        members = tuple(member.fitted(ground, origins, settings.horizon) for member in self.members)
        return replace(self, members=members)

    def forecasts(self, ground: Ground, origins: Steps, horizon: int) -> Array:
        """Forecasts (horizon, windows, targets) in the units of the data."""
        total = np.zeros((horizon, len(origins), ground.y.shape[1]))
        for weight, member in zip(self.weights, self.members, strict=True):
            if weight > 0:
                total += weight * member.forecasts(ground, origins, horizon)
        return total


def fit_origins(series: Series, settings: ForecastSettings, room: int) -> Steps:
    """Origins of the windows that weights are solved from: those with all steps ahead, every n-th
    one if there are too many. In a panel, whose windows are divided by their spread, only those
    after `room` steps or a third of the series: the padding before a series repeats its first
    value, and very short windows would outweigh all others. room: steps of the past that a
    window reads."""
    young = np.clip(series.lengths // YOUNG, 1, room) if series.count > 1 else 1
    first = series.bounds[:-1] + young
    origins = ranges(first, np.maximum(series.bounds[1:] - settings.horizon + 1, first))
    return origins[:: max(1, -(-len(origins) * len(settings.targets) // MOST_WINDOWS))]


SHARES = (0.25, 0.5, 0.75, 1.0)  # candidate shares of the correction
SURE, QUITE_SURE = 1.0, 3.0  # standard errors: a share begins, is complete
AT_ONCE = 256  # windows
KEPT_WINDOWS, KEPT_NUMBERS = 65_536, 50_000_000  # maximum windows whose forecasts are cached
BLOCK = 64  # windows of one request


class MixedWindows(Windows):
    """Windows with padding before each series, marked as missing, and with the forecasts of the
    solved members for the steps ahead."""

    def __init__(
        self,
        values: NDArray[np.float32],
        settings: ForecastSettings,
        series: Series,
        ahead: int,
        scale: ForecastScale,
        mixture: Mixture,
    ) -> None:
        self.series, self.scale, self.mixture = series, scale, mixture
        self.ground: Ground = mixture.ground(series, settings)
        targets, room = len(settings.targets), settings.look_back
        bounds = series.bounds + room * np.arange(series.count + 1)
        self._at = ranges(bounds[:-1] + room, bounds[1:])
        observed = np.isfinite(values[:, :targets]).astype(np.float32)
        end = values.shape[1] - ahead
        wide = np.concatenate([values[:, :end], observed, values[:, end:]], 1)
        padded = np.full((int(bounds[-1]), wide.shape[1]), np.nan, np.float32)
        padded[self._at] = wide
        starts = np.repeat(bounds[:-1], np.diff(bounds))
        super().__init__(padded, settings, starts, ahead)
        self.values = values
        blocks = -(-len(series) // BLOCK)
        numbers = len(series) * settings.horizon * targets
        keeps = len(series) <= KEPT_WINDOWS and numbers <= KEPT_NUMBERS
        self._predicted: list[NDArray[np.float32] | None] | None = (
            [None] * blocks if keeps else None
        )

    def batch(self, origins: Sequence[int] | Origins) -> WindowBatch:
        some = np.asarray(origins, np.int64)
        mixed = super().batch(self._place(some))
        return mixed._replace(base=torch.from_numpy(self.base(some)))

    def observed(self, origins: Sequence[int] | Origins) -> NDArray[np.int64]:
        return super().observed(self._place(np.asarray(origins, np.int64)))

    def _place(self, origins: Origins) -> Origins:
        return np.asarray(self._at[origins - 1] + 1)

    def base(self, origins: Origins) -> NDArray[np.float32]:
        """Forecasts of the members, (horizon, windows, targets), in the scale of the network.
        Repeated windows are computed only once, in blocks: the last digits of a forecast must not
        depend on the windows computed with it."""
        if self._predicted is None:
            return self._base(origins)
        block, row = (origins - 1) // BLOCK, (origins - 1) % BLOCK
        values = np.empty((self.settings.horizon, len(origins), self.scale.targets), np.float32)
        for k in np.unique(block):
            in_block = block == k
            values[:, in_block] = self._block(self._predicted, int(k))[:, row[in_block]]
        return values

    def _block(
        self, predicted: list[NDArray[np.float32] | None], number: int
    ) -> NDArray[np.float32]:
        first = number * BLOCK + 1
        block = predicted[number]
        if block is None:
            block = self._base(np.arange(first, min(first + BLOCK, len(self.series) + 1)))
            predicted[number] = block
        return block

    def _base(self, origins: Origins) -> NDArray[np.float32]:
        forecasts = self.mixture.forecasts(self.ground, origins, self.settings.horizon)
        mean, spread = self.scale.of_windows(self.series.owner[origins - 1])
        z = (self.scale.to_level(forecasts) - mean) / spread
        return np.ascontiguousarray(z, np.float32)


@torch.no_grad()
def mixed_levels(
    model: ForecastModel,
    windows: MixedWindows,
    scale: ForecastScale,
    origins: Origins,
    level_count: int,
) -> Levels:
    """Forecasts of all members together; the bounds equal the point. level_count: number of
    quantiles."""
    share, predicted = windows.mixture.share, []
    for some in in_batches(origins, AT_ONCE):
        base, corrected = both(model, windows, some, needed=share > 0)
        z = base + share * (corrected - base)
        owner = windows.series.owner[some - 1]
        predicted.append(scale.to_levels(z, np.zeros((0, len(some), scale.targets)), owner))
    return Levels.of_point(np.concatenate(predicted, 1), level_count)


@torch.no_grad()
def both(
    model: ForecastModel, windows: MixedWindows, origins: Origins, needed: bool = True
) -> tuple[Array, Array]:
    """Forecasts of the solved members, and the mean of the networks, (horizon, windows,
    targets)."""
    if not needed:
        base = windows.base(origins).astype(np.float64)
        return base, base
    batch = windows.batch(origins)
    networks = [cast(ForecastNetwork, network) for network in model.networks]
    on_device = moved(batch, device_of_weights(networks[0]))
    points = torch.stack([network.point(on_device) for network in networks]).mean(0)
    return batch.base.double().numpy(), points.double().cpu().numpy()


def fitted_share(
    model: ForecastModel, windows: MixedWindows, origins: Origins, horizon: int
) -> float:
    """The share of the correction with the smallest absolute error on these windows, shrunk towards
    0 if the improvement over blocks of windows is uncertain."""
    off: dict[float, list[Array]] = {share: [] for share in (0.0, *SHARES)}
    truth = []
    for some in in_batches(origins, AT_ONCE):
        base, corrected = both(model, windows, some)
        target = super(MixedWindows, windows).batch(windows._place(some)).target.double().numpy()
        truth.append(np.isfinite(target).sum((0, 2)))
        for share in off:
            size = np.abs(base + share * (corrected - base) - target)
            off[share].append(np.nansum(size, (0, 2)))
    count = np.concatenate(truth)
    sums = {share: np.concatenate(errors) for share, errors in off.items()}
    best = min(sums, key=lambda share: float(sums[share].sum()))
    if best == 0.0:
        return 0.0
    owner = windows.series.owner[origins - 1]
    starts = windows.series.starts[origins - 1]
    block = owner * (len(windows.series) + 1) + (origins - starts) // horizon
    _, at = np.unique(block, return_inverse=True)
    gain = np.bincount(at, sums[0.0] - sums[best]) / np.maximum(np.bincount(at, count), 1)
    if len(gain) < 3:
        return 0.0
    sure = float(gain.mean() / (gain.std(ddof=1) / len(gain) ** 0.5 + 1e-12))
    return best * float(np.clip((sure - SURE) / (QUITE_SURE - SURE), 0.0, 1.0))
