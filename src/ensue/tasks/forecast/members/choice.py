"""The choice of members, their settings and weights: by forecasts from earlier origins.

The training steps are cut several times. At each cut the candidates learn from the steps before it
and forecast from origins after it. Of each kind the candidate with the smallest error is kept, and
those not significantly worse than the best are mixed (`weights_of`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.tasks.forecast.evaluation import mean_of
from ensue.tasks.forecast.members.arima import ArimaMember
from ensue.tasks.forecast.members.autoregression import AutoregressiveMember
from ensue.tasks.forecast.members.ground import Ground
from ensue.tasks.forecast.members.mixture import Member, Mixture, RepeatedMember, fit_origins
from ensue.tasks.forecast.members.ridge import (
    RidgeForm,
    RidgeMember,
    apply_weights,
    designed,
    gathered,
    solved,
)
from ensue.tasks.forecast.members.sizes import LONGEST_LOOK_BACK, MOST_SMOOTHED
from ensue.tasks.forecast.members.smoothing import SmoothingMember
from ensue.tasks.forecast.series import Id, Series, Steps, ranges
from ensue.tasks.forecast.settings import ForecastSettings

Array = NDArray[np.float64]

CUTS, MOST_ORIGINS = 4, 240  # number of cuts; origins after each cut
FIRST_CUT = 0.5  # share of the steps that the first candidates learn from


class Fold(NamedTuple):
    """The part before a cut, and origins after it."""

    before: Ground
    after: Ground
    fitting: Steps
    origins: Steps
    truth: Array


def folds_of(series: Series, settings: ForecastSettings, draft: Mixture) -> Iterator[Fold]:
    """Cuts at even distances, the last one a horizon before the end."""
    targets, horizon = len(settings.targets), settings.horizon
    first = np.maximum((FIRST_CUT * series.lengths).astype(np.int64), 2)
    last = series.lengths - horizon
    whole = draft.ground(series, settings)
    many = max(1, min(CUTS, int((last - first).max() // max(horizon // 2, 1)) + 1))
    for k in range(many):
        cut = first + (last - first) * k // max(many - 1, 1) if many > 1 else last
        until = first + (last - first) * (k + 1) // (many - 1) if k + 1 < many else last + 1
        begins, ends = series.bounds[:-1] + cut, series.bounds[:-1] + np.minimum(until, last + 1)
        good = (cut >= 2) & (ends > begins)
        origins = ranges(begins[good], ends[good])
        origins = origins[:: max(1, -(-len(origins) // MOST_ORIGINS))]
        if not len(origins):
            continue
        before = series.slices(series.bounds[:-1], series.bounds[:-1] + np.maximum(cut, 0))
        rows = [k for k in range(series.count) if before.lengths[k] > 1]
        before = before.among(rows)
        fitting = fit_origins(before, settings, draft.room)
        truth = series.values[origins[None] + np.arange(horizon)[:, None], :targets]
        yield Fold(draft.ground(before, settings), whole, fitting, origins, truth)


def blocks_of(folds: list[Fold]) -> int:
    """The approximate number of non-overlapping windows: horizons spanned by the origins of each
    series."""
    blocks = 0
    for fold in folds:
        owner = fold.after.series.owner[fold.origins - 1]
        for k in np.unique(owner):
            origins = fold.origins[owner == k]
            blocks += max(1, int(origins[-1] - origins[0] + 1) // len(fold.truth))
    return blocks


def unit_of(series: Series, targets: int) -> Array:
    """Units that make errors additive: the mean change of each series; for
    several targets their spread, as in the evaluation; shape (series, targets)."""
    values = series.values[:, :targets]
    if targets == 1:
        change = np.full_like(values, np.nan)
        change[1:] = np.abs(np.diff(values, axis=0))
        change[series.bounds[:-1]] = np.nan
        each = [mean_of(change[a:b], 0) for a, b in pairwise(series.bounds)]
    else:
        pieces = [values[a:b] for a, b in pairwise(series.bounds)]
        each = [np.sqrt(mean_of((piece - mean_of(piece, 0)) ** 2, 0)) for piece in pieces]
    unit = np.nan_to_num(np.stack(each))
    return np.where(unit > 0, unit, 1.0)


FEW_BLOCKS = 20  # of windows
SHARPNESS = 2.0  # weight of the prior, times √blocks
SHARPEST = 12.0
PULL = 2.0  # exponent of scores in the prior


def weights_of(errors: Array, scores: Array, blocks: int, targets: int) -> Array:
    """The weights of members. errors (numbers, members); scores: the mean error of each; blocks:
    number of non-overlapping windows."""
    if blocks <= FEW_BLOCKS:
        return np.full(len(scores), 1 / len(scores))
    return simplex_weights(errors, scores, blocks * targets)


def simplex_weights(errors: Array, scores: Array, blocks: int) -> Array:
    """w ≥ 0 with sum 1 that minimises w·Q·w + τ·q̄·|w − p|², where Q are the mean products of
    errors (numbers, members), p the weights from scores alone, and τ = 2/√blocks. Weights below a
    twentieth become 0."""
    scores = scores + 1e-9 * scores.max() + 1e-12
    prior = (scores.min() / scores) ** min(SHARPNESS * blocks**0.5, SHARPEST)
    prior /= prior.sum()
    products = errors.T @ errors / max(len(errors), 1)
    pull = PULL * products.diagonal().min() / max(blocks, 1) ** 0.5
    weights = prior.copy()
    rate = 0.5 / (np.linalg.norm(products, 2) + pull + 1e-300)
    for _ in range(2000):
        slope = products @ weights + pull * (weights - prior)
        weights = _projected(weights - rate * slope)
    weights[weights < 0.05] = 0.0
    return np.asarray(weights / weights.sum())


def _projected(w: Array) -> Array:
    """The nearest point of the simplex."""
    order = np.sort(w)[::-1]
    above = (np.cumsum(order) - 1) / np.arange(1, len(w) + 1)
    shift = above[np.flatnonzero(order > above)[-1]]
    return np.asarray(np.maximum(w - shift, 0.0))


PENALTIES = (1e-4, 1e-2, 1e-1, 1.0)
MOST_APART = 16  # maximum targets with separate weights: more take too long
SHORTEST_TABLE = 3  # minimum windows per weight for a look-back
LONG, LONG_TABLE = (64, 128, 336), 8  # look-back of long series, and windows per step of it
FAR = 336  # steps back
SURELY = 4.0  # significant difference of log-likelihood of y and log y
LAGS, STEPS_A_LAG = (2, 4, 7, 14, 28), 5  # lags of an autoregression, and steps per lag
DOUBT = 1.0  # members whose error exceeds the best by more than this over √blocks are dropped
SERIES_LOOKED_AT = 60  # maximum series of a panel for choices


@dataclass(frozen=True)
class Chosen:
    """The chosen mixture. mixture: not fitted yet; floor: replaces smaller numbers before a
    logarithm; truth, point (horizon, windows, targets): actual values after the cuts, and the
    mixture's forecasts; ids: the series of each window."""

    mixture: Mixture
    floor: Array
    truth: Array
    point: Array
    ids: tuple[Id, ...]


def chosen(whole: Series, settings: ForecastSettings, season: int) -> Chosen:
    """Chooses the members by the steps of training and validation."""
    looked = _looked_at(whole)
    targets = len(settings.targets)
    backs = look_backs(looked, settings, season)
    room = max(backs) + season + 1
    draft = Mixture((), np.zeros(0), season, room)
    folds = list(folds_of(looked, settings, draft))
    unit = unit_of(looked, targets)
    floor = _floor(looked, targets)
    low = floor if floor is not None else np.full(targets, 1e-12)
    transforms = _transforms(folds, low) if floor is not None else ["none"]
    best: list[tuple[float, Member, list[Array]]] = []
    for candidates in (
        _repeated(season, folds, settings),
        *_ridges(looked, settings, season, backs, transforms, low, folds, unit),
        *_smoothings(season, transforms, low, folds, settings),
        *_arimas(season, transforms, low, folds, settings),
        *_autoregressions(looked, season, backs, transforms, low, folds, settings),
    ):
        scored = [
            (_score(folds, predicted, unit), member, predicted) for member, predicted in candidates
        ]
        if scored:
            best.append(min(scored, key=lambda row: row[0]))
    return _mixed(best, folds, unit, draft, settings, low)


def _looked_at(whole: Series) -> Series:
    """For a large panel, a subset of series, evenly spaced; the longest are always long enough."""
    if whole.count <= SERIES_LOOKED_AT:
        return whole
    rows = np.unique(np.linspace(0, whole.count - 1, SERIES_LOOKED_AT).round().astype(int))
    return whole.among(rows.tolist())


def look_backs(series: Series, settings: ForecastSettings, season: int) -> list[int]:
    """Candidate look-backs of a ridge regression: short, a season and more, and several horizons,
    as long as enough windows remain."""
    length = int(series.lengths.max() * FIRST_CUT)
    windows = max(1, int((series.lengths * FIRST_CUT).sum()))
    horizon = settings.horizon
    lengths = {4, 8, 14, 28, season, season + 1, 2 * season, 3 * season, horizon, 2 * horizon}
    lengths |= {length for length in LONG if windows >= LONG_TABLE * length}
    most = min(length - horizon, LONGEST_LOOK_BACK, max(2, windows // SHORTEST_TABLE))
    sizes = sorted(
        {min(max(length, 1), max(most, 1)) for length in lengths if length <= max(most, 4)}
    )
    return _thinned(sizes)


def _thinned(sizes: list[int]) -> list[int]:
    """Sizes without near duplicates."""
    thinned = sizes[:1]
    for size in sizes[1:]:
        if size >= 1.3 * thinned[-1]:
            thinned.append(size)
    return thinned


def _floor(series: Series, targets: int) -> Array | None:
    """A tenth of the smallest value of each target, if all are positive."""
    values = series.values[:, :targets]
    least = np.nanmin(values, 0)
    return least / 10 if (least > 0).all() else None


def _transforms(folds: list[Fold], floor: Array) -> list[str]:
    """The candidate transforms, y or log y or both: with few windows, only those that are not ruled
    out by a significantly higher one-step likelihood of the other."""
    ground = folds[-1].after
    season = ground.season if ground.season <= MOST_SMOOTHED else 1
    if blocks_of(folds) > FEW_BLOCKS or ground.series.lengths.min() < 3 * season + 2:
        return ["none", "log"]
    transforms = {}
    for transform in ("none", "log"):
        member = ArimaMember(transform, season, 1, False, floor, np.zeros(0))
        transforms[transform] = member.fitted(ground).log_likelihood(ground)
    best = max(transforms.values())
    return [name for name, likelihood in transforms.items() if likelihood > best - SURELY]


Candidate = tuple[Member, list[Array]]  # a candidate, and its forecasts for each fold


def _repeated(season: int, folds: list[Fold], settings: ForecastSettings) -> Iterator[Candidate]:
    for period in {season, 1}:
        member = RepeatedMember(period)
        yield member, [member.forecasts(f.after, f.origins, settings.horizon) for f in folds]


def _ridges(
    series: Series,
    settings: ForecastSettings,
    season: int,
    backs: list[int],
    transforms: list[str],
    floor: Array,
    folds: list[Fold],
    unit: Array,
) -> Iterator[list[Candidate]]:
    """A list for each transform, anchor, sharing and reach: the best over look-backs, penalties,
    and with or without the year."""
    targets, panel = len(settings.targets), series.count > 1
    anchors = ["last", "mean", *["season"] * (season > 1)]
    sharings = [True] if targets == 1 or panel or targets > MOST_APART else [False, True]
    years = _years(series, max(backs))
    for transform, anchor, shared in product(transforms, anchors, sharings):
        by_difference: dict[bool, list[Candidate]] = {}
        for periods in [(), years] if years else [()]:
            window = season if anchor != "mean" or season > 1 else min(8, max(backs))
            form = RidgeForm(transform, anchor, shared, panel, max(window, 1), periods)
            for far, ridge in _best_ridges(form, settings, backs, floor, folds, unit).items():
                by_difference.setdefault(far, []).append(ridge)
        yield from by_difference.values()


def _years(series: Series, look_back: int) -> tuple[float, ...]:
    """The calendar periods that are too long for the look-back and occurred almost twice."""
    if series.spacing is None or series.count > 1:
        return ()
    length = int(series.lengths.max())
    return tuple(season for season in series.spacing.seasons if look_back < season <= length / 1.5)


def _best_ridges(
    form: RidgeForm,
    settings: ForecastSettings,
    backs: list[int],
    floor: Array,
    folds: list[Fold],
    unit: Array,
) -> dict[bool, Candidate]:
    """The best of the long look-backs and the best of the others. With many windows both are kept:
    long ones will gain from the steps after the first cuts."""
    longest, horizon = max(backs), settings.horizon
    sums = [gathered(form, f.before, f.fitting, horizon, longest, floor) for f in folds]
    designs = [designed(form, f.after, f.origins, horizon, longest, floor) for f in folds]
    inputs, beside = sums[0].inputs, designs[0].x.shape[-1] - longest
    best: dict[bool, tuple[float, Member, list[Array]]] = {}
    for back in backs:
        inputs_used = np.array([*range(back), *range(longest, inputs)])
        inputs_read = np.array([*range(back), *range(longest, longest + beside)])
        cut = [
            design._replace(x=np.ascontiguousarray(design.x[..., inputs_read]))
            for design in designs
        ]
        for penalty in PENALTIES:
            member = RidgeMember(form, back, penalty, floor)
            predicted = [
                member.outward(apply_weights(design, *solved(sum_of_fold, inputs_used, penalty)))
                for design, sum_of_fold in zip(cut, sums, strict=True)
            ]
            score, far = _score(folds, predicted, unit), back >= FAR
            if far not in best or score < best[far][0]:
                best[far] = score, member, predicted
    return {far: (member, predicted) for far, (_, member, predicted) in best.items()}


def _smoothings(
    season: int,
    transforms: list[str],
    floor: Array,
    folds: list[Fold],
    settings: ForecastSettings,
) -> Iterator[list[Candidate]]:
    period = season if season <= MOST_SMOOTHED else 1
    forms = [(transform, False) for transform in transforms]
    forms += [("none", True)] * (period > 1 and "log" in transforms)  # positive numbers
    for transform, multiplies in forms:
        members = [
            SmoothingMember(transform, period, trend, multiplies, floor, np.zeros(0))
            for trend in (True, False)
        ]
        yield [(member, _predictions(member, folds, settings.horizon)) for member in members]


def _arimas(
    season: int,
    transforms: list[str],
    floor: Array,
    folds: list[Fold],
    settings: ForecastSettings,
) -> Iterator[list[Candidate]]:
    period = season if season <= MOST_SMOOTHED else 1
    for transform, difference in product(transforms, (1, 0)):
        members = [
            ArimaMember(transform, period, difference, ar, floor, np.zeros(0))
            for ar in ({False, True} if difference else {True})
        ]
        yield [(member, _predictions(member, folds, settings.horizon)) for member in members]


def _autoregressions(
    series: Series,
    season: int,
    backs: list[int],
    transforms: list[str],
    floor: Array,
    folds: list[Fold],
    settings: ForecastSettings,
) -> Iterator[list[Candidate]]:
    """Candidates for a single series; the series of a panel are too short for separate weights."""
    if series.count > 1:
        return
    steps = int(series.lengths.max() * FIRST_CUT)
    lags = [lag for lag in (*LAGS, season + 1, 2 * season) if lag * STEPS_A_LAG <= steps]
    lags = sorted({min(lag, max(backs)) for lag in lags})
    for transform, difference in product(transforms, (0, 1)):
        members = [
            AutoregressiveMember(transform, lag, difference, periods, floor)
            for lag in lags
            for periods in ({(), _years(series, max(lag, season))} if not difference else {()})
        ]
        yield [(member, _predictions(member, folds, settings.horizon)) for member in members]


def _predictions(member: Member, folds: list[Fold], horizon: int) -> list[Array]:
    """Forecasts of a member for each fold, learned from the steps before it."""
    every = [member.fitted(fold.before, fold.fitting, horizon) for fold in folds]
    pairs = zip(every, folds, strict=True)
    return [member.forecasts(fold.after, fold.origins, horizon) for member, fold in pairs]


def _score(folds: list[Fold], predicted: list[Array], unit: Array) -> float:
    """The mean absolute error in units of each series; infinite if a candidate diverges."""
    total, count = 0.0, 0
    for fold, values in zip(folds, predicted, strict=True):
        owner = fold.after.series.owner[fold.origins - 1]
        off = np.abs(values - fold.truth) / unit[owner]
        known = np.isfinite(fold.truth)
        if not np.isfinite(values).all():
            return float("inf")
        total += float(off[known].sum())
        count += int(known.sum())
    return total / max(count, 1)


# --- weights ---------------------------------------------------------------------------------


def _mixed(
    members: list[tuple[float, Member, list[Array]]],
    folds: list[Fold],
    unit: Array,
    draft: Mixture,
    settings: ForecastSettings,
    floor: Array,
) -> Chosen:
    blocks = blocks_of(folds)
    worst = (1 + DOUBT / blocks**0.5) * min(row[0] for row in members)
    members = sorted((row for row in members if row[0] <= worst), key=lambda row: row[0])
    # members that repeat the past are a fallback: in a mixture they only add noise
    members = [row for row in members if row is members[0] or row[1].kind != RepeatedMember.kind]
    scores = np.array([row[0] for row in members])
    every = [np.concatenate([row[2][k] for k in range(len(folds))], 1) for row in members]
    truth = np.concatenate([fold.truth for fold in folds], 1)
    owner = np.concatenate([fold.after.series.owner[fold.origins - 1] for fold in folds])
    off = np.stack(
        [(values - truth) / unit[owner] for values in every], -1
    )  # (horizon, windows, t, k)
    known = np.isfinite(truth)
    errors = off[known]
    weights = weights_of(errors, scores, blocks, truth.shape[2])
    used = [k for k in range(len(members)) if weights[k] > 0]
    log = sum(weights[k] for k in used if _transform(members[k][1]) == "log")
    transform = "log" if log > 0.5 and (truth[known] > 0).all() else "none"
    mixture = replace(
        draft,
        members=tuple(members[k][1] for k in used),
        weights=weights[used] / weights[used].sum(),
        transform=transform,
        scores={members[k][1].name: float(scores[k]) for k in range(len(members))},
    )
    point = np.einsum("k,k...->...", mixture.weights, np.stack([every[k] for k in used]))
    ids = folds[0].after.series.ids
    return Chosen(mixture, floor, truth, point, tuple(ids[k] for k in owner))


def _transform(member: Member) -> str:
    transform: str = getattr(getattr(member, "form", member), "transform", "none")
    return transform
