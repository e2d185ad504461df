"""A weighted sum of earlier values for each step ahead, solved by ridge regression.

ŷ_{t+h} = anchor_h + s·(Σ_k w_hk·x_k + c_h)

x: the last steps minus the anchor (their last value, their mean, or the values a season before),
divided by the spread s of the window if series of different scale share weights; sine and cosine of
the year; columns known ahead; the last values of other columns. The penalty of each weight is in
units of its input's variance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.tasks.declarations import OneOf, Range, Shape
from ensue.tasks.forecast.members.ground import Ground, harmonics
from ensue.tasks.forecast.members.sizes import BackSteps, Floor, Level, Periods
from ensue.tasks.forecast.series import Steps
from ensue.tasks.forecast.settings import ForecastSettings

Array = NDArray[np.float64]

AT_ONCE = 2_000_000  # maximum numbers of a design matrix in memory
KNOWN_LAGS = 3  # steps of columns known ahead: the forecast one, and earlier ones
PAIRS = 2  # sine and cosine of a year, and of its half
EMPTY = np.zeros(0)


class RidgeForm(NamedTuple):
    """The form of a ridge regression. anchor: last, mean or season; shared: all targets have the
    same weights; scaled: windows are divided by their spread, because series of different scale
    share weights; periods: the periods of sines and cosines."""

    transform: Level
    anchor: Annotated[str, OneOf(("last", "mean", "season"))]
    shared: bool
    scaled: bool
    season: BackSteps
    periods: Periods = ()

    def needed(self, look_back: int) -> int:
        """The number of steps before an origin that are read."""
        return look_back + self.season * (self.anchor == "season")

    def pooled(self, targets: int) -> bool:
        """Whether targets of one series share weights, each in units of its spread."""
        return self.shared and not self.scaled and targets > 1

    def groups(self, targets: int) -> int:
        """The number of stored weight groups: in the units of the data, targets have different
        weights."""
        return 1 if self.shared and not self.pooled(targets) else targets


class Moments(NamedTuple):
    """Sums over windows for one group of targets: of x, of y, of x·x and x·y; for columns known
    ahead, (horizon, …) of their products with all inputs."""

    windows: float
    x: Array
    y: Array
    xx: Array
    xy: Array

    def plus(self, other: Moments | None) -> Moments:
        if other is None:
            return self
        return Moments(
            self.windows + other.windows,
            self.x + other.x,
            self.y + other.y,
            self.xx + other.xx,
            self.xy + other.xy,
        )


class Sums(NamedTuple):
    """Sums over windows. groups: one for each target, or one for all targets that share weights;
    unit (targets,): the divisor of each target, none without shared weights; lags: inputs that are
    steps before."""

    groups: Sequence[Moments]
    unit: Array | None
    lags: int

    @property
    def inputs(self) -> int:
        return int(self.groups[0].xx.shape[-1])


def _groups(member: Any) -> int:
    groups: int = member.form.groups(len(member.settings.targets))
    return groups


def _inputs(member: Any) -> int:
    """The number of inputs of a stored member."""
    look_back: int = member.look_back
    settings: ForecastSettings = member.settings
    beside = len(settings.covariates) + KNOWN_LAGS * len(settings.known)
    return look_back + 2 * PAIRS * len(member.form.periods) + beside


@dataclass(frozen=True)
class RidgeMember:
    """weight (groups, horizon, inputs), bias (groups, horizon): groups are the targets, or a single
    group if all series share weights."""

    form: RidgeForm
    look_back: Annotated[int, Range(low=1, high=lambda member: member.room - member.form.needed(0))]
    penalty: Annotated[float, Range(low=0)]
    floor: Floor
    weight: Annotated[Array, Shape(_groups, "settings.horizon", _inputs)] = field(
        default_factory=lambda: EMPTY
    )
    bias: Annotated[Array, Shape(_groups, "settings.horizon")] = field(
        default_factory=lambda: EMPTY
    )

    kind = "ridge"

    @property
    def name(self) -> str:
        of = "" if self.form.transform == "none" else " of log"
        return f"ridge{of}, {self.look_back} back"

    def fitted(self, ground: Ground, origins: Steps, horizon: int) -> RidgeMember:
        sums = gathered(self.form, ground, origins, horizon, self.look_back, self.floor)
        weight, bias = solved(sums, np.arange(sums.inputs), self.penalty)
        return replace(self, weight=weight, bias=bias)

    def forecasts(self, ground: Ground, origins: Steps, horizon: int) -> Array:
        """Forecasts (horizon, windows, targets) in the units of the data."""
        predicted = []
        for some in _batches(ground, origins, self.look_back, horizon):
            design = designed(self.form, ground, some, horizon, self.look_back, self.floor)
            predicted.append(apply_weights(design, self.weight, self.bias))
        return self.outward(np.concatenate(predicted, 1))

    def outward(self, level: Array) -> Array:
        """The inverse of the transform: levels in the units of the data."""
        return level if self.form.transform == "none" else np.exp(np.minimum(level, 60.0))


# --- the design ------------------------------------------------------------------------------


class Design(NamedTuple):
    """x (targets, windows, inputs); anchor (horizon, windows, targets); spread (windows, targets);
    ahead (horizon, windows, known), None without columns known ahead."""

    x: Array
    anchor: Array
    spread: Array
    ahead: Array | None


def designed(
    form: RidgeForm, ground: Ground, origins: Steps, horizon: int, look_back: int, floor: Array
) -> Design:
    level = ground.level(form.transform, floor)
    place = ground.at_origin(origins)
    back = place[:, None] - 1 - np.arange(look_back)  # the newest first
    lags = level[back]  # (windows, look_back, targets)
    if form.anchor == "season":
        lags = lags - level[back - form.season]
        again = place[None] - form.season + (np.arange(horizon) % form.season)[:, None]
        anchor = level[again]
    else:
        window = form.season if form.anchor == "mean" else 1
        middle = level[place[:, None] - 1 - np.arange(max(window, 1))].mean(1)
        lags = lags - middle[:, None]
        anchor = np.broadcast_to(middle, (horizon, *middle.shape))
    spread = np.ones((len(origins), level.shape[1]))
    if form.scaled:
        spread = ground.spread(origins, ground.room)
        if form.transform != "none":
            spread = np.ones_like(spread)
    x = (lags / spread[:, None]).transpose(2, 0, 1)
    others = [harmonics(ground.clock[place - 1], form.periods, PAIRS)]
    if ground.beside.shape[1]:
        others.append(ground.beside[place - 1])
    beside = np.concatenate(others, 1)
    if beside.shape[1]:
        x = np.concatenate([x, np.broadcast_to(beside, (x.shape[0], *beside.shape))], 2)
    ahead = None
    if ground.known.shape[1]:
        steps = place[None] + np.arange(horizon)[:, None]
        last = len(ground.known) - 1
        each = [ground.known[np.clip(steps - back, 0, last)] for back in range(KNOWN_LAGS)]
        ahead = np.concatenate(each, -1)
    return Design(x, anchor, spread, ahead)


def apply_weights(design: Design, weight: Array, bias: Array) -> Array:
    """Levels (horizon, windows, targets) from weights (groups, horizon, inputs)."""
    inputs = design.x.shape[-1]
    y = design.x @ weight[..., :inputs].transpose(0, 2, 1)  # (targets, windows, horizon)
    y = y.transpose(2, 1, 0) + bias.T[:, None]
    if design.ahead is not None:
        y = y + design.ahead @ weight[..., inputs:].transpose(1, 2, 0)
    return np.asarray(design.anchor + design.spread * y)


def _batches(ground: Ground, origins: Steps, look_back: int, horizon: int) -> Iterator[Steps]:
    size = max(1, AT_ONCE // ((look_back + horizon) * ground.y.shape[1]))
    for first in range(0, len(origins), size):
        yield origins[first : first + size]


def gathered(
    form: RidgeForm, ground: Ground, origins: Steps, horizon: int, look_back: int, floor: Array
) -> Sums:
    """The sums of each group of targets, over windows with all steps ahead. With columns known
    ahead, each step ahead has different inputs and therefore separate sums."""
    targets = ground.y.shape[1]
    truth = ground.series.values[:, :targets]
    level = ground.level(form.transform, floor)
    unit = _unit(level[ground.at]) if form.pooled(targets) else None
    moments: list[Moments | None] = [None] * (1 if form.shared else targets)
    steps = np.arange(horizon)[:, None]
    for some in _batches(ground, origins, look_back, horizon):
        design = designed(form, ground, some, horizon, look_back, floor)
        observed = np.isfinite(truth[some[None] + steps]).all(0)  # (windows, targets)
        y = (level[ground.at[some[None] + steps]] - design.anchor) / design.spread
        if unit is not None:
            design.x[..., :look_back] /= unit[:, None, None]
            y = y / unit
        for k in range(targets):
            present = observed[:, k]
            sums = _moments(design, y[:, present, k], k, present)
            at = 0 if form.shared else k
            moments[at] = sums.plus(moments[at])
    return Sums([moment for moment in moments if moment is not None], unit, look_back)


def _unit(level: Array) -> Array:
    """The spread of each target; 1 for a constant one; shape (targets,)."""
    spread = level.std(0)
    return np.where(spread > 0, spread, 1.0)


def _moments(design: Design, y: Array, k: int, present: NDArray[np.bool_]) -> Moments:
    x = design.x[k, present]
    if design.ahead is None:
        return Moments(float(len(x)), x.sum(0), y.sum(1), x.T @ x, x.T @ y.T)
    each = [np.concatenate([x, ahead[present]], 1) for ahead in design.ahead]
    return Moments(
        float(len(x)),
        np.stack([rows.sum(0) for rows in each]),
        y.sum(1),
        np.stack([rows.T @ rows for rows in each]),
        np.stack([rows.T @ y[h] for h, rows in enumerate(each)]),
    )


def solved(sums: Sums, steps: Steps, penalty: float) -> tuple[Array, Array]:
    """weight (groups, horizon, inputs) and bias (groups, horizon) with these inputs."""
    weights, biases = [], []
    for group in sums.groups:
        count = max(group.windows, 1.0)
        if group.xx.ndim == 2:
            weight, bias = _solve(
                group.xx[np.ix_(steps, steps)],
                group.xy[steps],
                group.x[steps],
                group.y,
                count,
                penalty,
            )
        else:
            each = [
                _solve(
                    group.xx[h][np.ix_(steps, steps)],
                    group.xy[h][steps, None],
                    group.x[h][steps],
                    group.y[h : h + 1],
                    count,
                    penalty,
                )
                for h in range(len(group.y))
            ]
            weight = np.concatenate([w for w, _ in each])
            bias = np.concatenate([b for _, b in each])
        weights.append(weight)
        biases.append(bias)
    weight, bias = np.stack(weights), np.stack(biases)
    if sums.unit is None:
        return weight, bias
    unit = sums.unit[:, None, None]
    return np.where(steps < sums.lags, weight, weight * unit), bias * unit[:, 0]


def _solve(
    xx: Array, xy: Array, x: Array, y: Array, count: float, penalty: float
) -> tuple[Array, Array]:
    """weight (horizon, inputs), bias (horizon,)."""
    centre, middle = x / count, y / count
    inner = xx - np.outer(x, centre)
    both = xy - np.outer(x, middle)
    size = inner.diagonal().copy()
    flat = size <= 1e-10 * max(float(size.max(initial=0.0)), 1e-12)  # never changes: no weight
    size[flat] = 1.0
    scale = 1 / np.sqrt(size)
    normal = inner * scale[:, None] * scale + penalty * np.eye(len(size))
    normal[flat] = normal[:, flat] = 0.0
    normal[flat, flat] = 1.0
    right = both * scale[:, None]
    right[flat] = 0.0
    weight = (np.linalg.solve(normal, right) * scale[:, None]).T
    return weight, middle - weight @ centre
