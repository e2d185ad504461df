"""Laws of the solved members of a mixed forecast, over a table of all of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ensue.tasks.codec import Packed, packed, unpacked
from ensue.tasks.forecast.members.arima import ArimaMember, _errors
from ensue.tasks.forecast.members.autoregression import AutoregressiveMember
from ensue.tasks.forecast.members.choice import (
    FEW_BLOCKS,
    MOST_ORIGINS,
    blocks_of,
    chosen,
    folds_of,
    weights_of,
)
from ensue.tasks.forecast.members.ground import Ground
from ensue.tasks.forecast.members.mixture import (
    KINDS,
    Member,
    Mixture,
    RepeatedMember,
    fit_origins,
)
from ensue.tasks.forecast.members.ridge import RidgeForm, RidgeMember
from ensue.tasks.forecast.members.smoothing import SmoothingMember
from ensue.tasks.forecast.series import Series
from ensue.tasks.forecast.settings import ForecastSettings
from ensue.tasks.forecast.tables.reading import part_of_table

Array = NDArray[np.float64]
HORIZON, SEASON, ROOM = 6, 4, 12
FLOOR, NONE = np.array([1e-3]), np.zeros(0)


def arima(transform: str, season: int, difference: int, own_season: bool) -> ArimaMember:
    return ArimaMember(transform, season, difference, own_season, FLOOR, NONE)


def smoothing(transform: str, season: int, trend: bool, multiplies: bool) -> SmoothingMember:
    return SmoothingMember(transform, season, trend, multiplies, FLOOR, NONE)


MEMBERS: dict[str, Member] = {
    "repeated": RepeatedMember(SEASON),
    "ridge": RidgeMember(RidgeForm("none", "last", True, False, 1), 5, 0.01, FLOOR),
    "ridge of log, by the season": RidgeMember(
        RidgeForm("log", "season", True, False, SEASON), 5, 0.01, FLOOR
    ),
    "smoothing": smoothing("none", SEASON, True, False),
    "smoothing, season multiplied": smoothing("none", SEASON, True, True),
    "smoothing of log, no season": smoothing("log", 1, False, False),
    "airline model of log": arima("log", SEASON, 1, False),
    "ARIMA, seasonal, with a mean": arima("none", SEASON, 0, True),
    "ARIMA without a season": arima("none", 1, 1, True),
    "AR": AutoregressiveMember("none", 5, 0, (), FLOOR),
    "AR of changes of log": AutoregressiveMember("log", 3, 1, (), FLOOR),
    "AR with the calendar": AutoregressiveMember("none", 3, 0, (9.0, 25.5), FLOOR),
}


def walk(steps: int, seed: int) -> Array:
    """Positive numbers with a trend, a season that grows with it, and noise."""
    draw = np.random.default_rng(seed)
    steady = np.exp(0.01 * np.arange(steps) + 0.02 * draw.normal(size=steps).cumsum())
    return np.asarray(20 * steady * (1 + 0.3 * np.sin(2 * np.pi * np.arange(steps) / SEASON)))


def ground_of(*columns: Array, season: int = SEASON) -> Ground:
    """A series of each column, a panel of several."""
    ids = [f"s{k}" for k, column in enumerate(columns) for _ in column]
    table: dict[str, Any] = {"y": np.concatenate(columns).tolist()}
    settings = {"targets": ["y"], "horizon": HORIZON}
    if len(columns) > 1:
        table, settings = {"id": ids, **table}, {**settings, "ids": ["id"]}
    series: Series = part_of_table(table, ForecastSettings.of(settings, "model")).series
    return Ground.of(series, 1, 0, season, ROOM)


def learned(member: Member, ground: Ground) -> Member:
    last = ground.series.bounds[1:] - HORIZON
    every = [np.arange(a + 1, b) for a, b in zip(ground.series.bounds, last, strict=False)]
    return member.fitted(ground, np.concatenate(every), HORIZON)


@pytest.mark.parametrize("name", MEMBERS)
def test_the_future_changes_no_forecast(name: str) -> None:
    values, origins = walk(60, 1), np.array([2, 9, 30, 50])
    member = learned(MEMBERS[name], ground_of(values))
    before = member.forecasts(ground_of(values), origins, HORIZON)
    assert np.isfinite(before).all()
    for k, origin in enumerate(origins):
        for future in (7.0, 1e6):
            other = values.copy()
            other[origin:] = future
            after = member.forecasts(ground_of(other), origins[k : k + 1], HORIZON)
            np.testing.assert_allclose(after[:, 0], before[:, k], rtol=1e-9)


@pytest.mark.parametrize("name", MEMBERS)
def test_a_series_among_others_is_forecast_as_alone(name: str) -> None:
    one, two = walk(40, 1), walk(60, 2)
    member = learned(MEMBERS[name], ground_of(two))
    alone = member.forecasts(ground_of(two), np.array([30, 55]), HORIZON)
    together = member.forecasts(ground_of(one, two), 40 + np.array([30, 55]), HORIZON)
    np.testing.assert_allclose(together, alone, rtol=1e-9)


@pytest.mark.parametrize("name", MEMBERS)
def test_kept_as_a_file_it_says_the_same(name: str) -> None:
    ground, origins = ground_of(walk(60, 1)), np.array([20, 55])
    member = learned(MEMBERS[name], ground)
    facts_and_arrays = packed(member)
    settings = ForecastSettings.of({"targets": ["y"], "horizon": HORIZON}, "model")
    reloaded = Packed(json.loads(json.dumps(facts_and_arrays.facts)), {}, facts_and_arrays.arrays)
    again = unpacked(KINDS[member.kind], reloaded, settings=settings, room=ROOM, season=SEASON)
    assert again.name == member.name
    forecasts = [instance.forecasts(ground, origins, HORIZON) for instance in (member, again)]
    np.testing.assert_array_equal(*forecasts)


@pytest.mark.parametrize("name", MEMBERS)
def test_missing_values_leave_forecasts_finite(name: str) -> None:
    values = walk(60, 1)
    values[[3, 20, 21, 57]] = np.nan
    ground = ground_of(values)
    forecasts = learned(MEMBERS[name], ground).forecasts(ground, np.array([10, 30, 59]), HORIZON)
    assert np.isfinite(forecasts).all()


# --- ARIMA ----------------------------------------------------------------------------------


STRANGE = {
    "a fall at the end": [*range(1, 21), 5],
    "a fall, from zero": [*range(20), 5],
    "one zero in each season": [20, 30, 40, 0] * 6,
    "zeros, then values": [0] * 12 + [20, 30, 25, 35] * 3,
    "one spike": [20.0] * 20 + [2000.0],
}


@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize("strange", STRANGE)
def test_a_series_unlike_the_others_is_not_forecast_away(name: str, strange: str) -> None:
    """One trough had divided a level by 1e-9: a forecast of 14 million after values of up to 20."""
    member = learned(MEMBERS[name], ground_of(walk(60, 1)))
    values = np.array(STRANGE[strange], float)
    ground = ground_of(values)
    forecasts = member.forecasts(ground, np.array([len(values)]), HORIZON)
    assert np.abs(forecasts).max() < 10 * values.max()


def drawn_airline(steps: int, theta: float, seasonal: float, seed: int = 1) -> Array:
    """y of w_t = e_t + θ·e_{t−1} + Θ·e_{t−m} + θΘ·e_{t−m−1}."""
    e = np.random.default_rng(seed).normal(size=steps)
    w = e.copy()
    w[1:] += theta * e[:-1]
    w[SEASON:] += seasonal * e[:-SEASON]
    w[SEASON + 1 :] += theta * seasonal * e[: -SEASON - 1]
    y = np.zeros(steps)
    for t in range(steps):
        y[t] = w[t] + (y[t - 1] if t else 0) + (y[t - SEASON] if t >= SEASON else 0)
        y[t] -= y[t - SEASON - 1] if t > SEASON else 0
    return y


def test_the_parameters_of_a_long_airline_series_are_found() -> None:
    member = learned(arima("none", SEASON, 1, True), ground_of(drawn_airline(1200, -0.5, -0.6)))
    assert isinstance(member, ArimaMember)
    _, theta, seasonal, _ = member.parameters[0, 0]
    assert theta == pytest.approx(-0.5, abs=0.15)
    assert seasonal == pytest.approx(-0.6, abs=0.08)


def test_arima_goes_on_by_its_equation_with_errors_of_zero() -> None:
    y, origin = drawn_airline(80, -0.5, -0.6), 70
    phi, theta, seasonal, centre = 0.4, -0.5, -0.6, 0.2
    parameters = np.array([[[phi, theta, seasonal, centre]]])
    member = ArimaMember("none", SEASON, 1, True, FLOOR, parameters, ((),))
    forecasts = member.forecasts(ground_of(y), np.array([origin]), HORIZON)[:, 0, 0]
    w = np.diff(y[SEASON:] - y[:-SEASON]) - centre  # the first is of step SEASON + 1
    first = SEASON + 1
    arguments = w[:, None, None], parameters[..., None, :3], SEASON
    errors = _errors(*arguments, head=first, keep=True)[1][:, 0, 0, 0]
    e = [*errors[: origin - first], *[0.0] * HORIZON]
    steps, known = list(w[: origin - first]), list(y[:origin])
    for h in range(HORIZON):
        t = origin - first + h
        now = phi * steps[t - 1] + theta * e[t - 1] + seasonal * e[t - SEASON]
        steps.append(now + theta * seasonal * e[t - SEASON - 1])
        at = origin + h
        known.append(
            steps[-1] + centre + known[at - 1] + known[at - SEASON] - known[at - SEASON - 1]
        )
    np.testing.assert_allclose(forecasts, known[origin:], rtol=1e-9)


def test_the_likelihood_tells_growing_swings_from_even_ones() -> None:
    grown = walk(80, 1)
    even = 200 + drawn_airline(80, -0.5, -0.6)
    for values, better in ((grown, "log"), (even - even.min() + 5, "none")):
        ground = ground_of(values)
        likelihoods = {}
        for transform in ("none", "log"):
            member = learned(arima(transform, SEASON, 1, False), ground)
            assert isinstance(member, ArimaMember)
            likelihoods[transform] = member.log_likelihood(ground)
        assert max(likelihoods, key=lambda name: likelihoods[name]) == better


def test_short_series_with_growing_swings_are_forecast_by_their_logarithm() -> None:
    settings = ForecastSettings.of({"targets": ["y"], "horizon": HORIZON}, "model")
    series = part_of_table({"y": walk(48, 1).tolist()}, settings).series
    mixture = chosen(series, settings, SEASON).mixture
    assert mixture.transform == "log"
    assert not any(
        member.name in ("smoothing", "AR(2)", "ridge, 4 back") for member in mixture.members
    )


# --- autoregression -------------------------------------------------------------------------


def test_an_autoregression_without_noise_is_found_and_goes_on() -> None:
    y = [1.0, 2.0]
    for _ in range(60):
        y.append(0.9 * y[-1] - 0.8 * y[-2] + 3)
    values = np.array(y)
    ground = ground_of(values)
    member = learned(AutoregressiveMember("none", 2, 0, (), FLOOR), ground)
    forecasts = member.forecasts(ground, np.array([10, 50]), HORIZON)[:, :, 0]
    truth = np.stack([values[10 : 10 + HORIZON], values[50 : 50 + HORIZON]], 1)
    np.testing.assert_allclose(forecasts, truth, atol=0.02)


def test_the_calendar_is_that_of_the_step_ahead() -> None:
    steps = np.arange(300)
    values = 10 + np.sin(2 * np.pi * steps / 25.5)
    ground = ground_of(values)
    member = learned(AutoregressiveMember("none", 1, 0, (25.5,), FLOOR), ground)
    forecasts = member.forecasts(ground, np.array([200]), HORIZON)[:, 0, 0]
    np.testing.assert_allclose(forecasts, values[200 : 200 + HORIZON], atol=0.01)


# --- weights --------------------------------------------------------------------------------


def test_few_windows_count_all_members_alike_and_many_find_the_better_one() -> None:
    errors = np.random.default_rng(1).normal(size=(4000, 2)) * [1.0, 3.0]
    scores = np.abs(errors).mean(0)
    np.testing.assert_array_equal(weights_of(errors, scores, FEW_BLOCKS, 1), [0.5, 0.5])
    assert weights_of(errors, scores, 10 * FEW_BLOCKS, 1)[0] > 0.8


# --- ridge ----------------------------------------------------------------------------------


def two_targets(factor: float) -> Series:
    """The same two columns, the second in another unit."""
    draw = np.random.default_rng(2)
    columns = {"y": walk(80, 1), "z": factor * (5 + draw.normal(size=80).cumsum())}
    table = {name: column.tolist() for name, column in columns.items()}
    settings = ForecastSettings.of({"targets": ["y", "z"], "horizon": HORIZON}, "model")
    return part_of_table(table, settings).series


def test_targets_that_share_weights_do_not_depend_on_their_units() -> None:
    form, floor = RidgeForm("none", "last", True, False, 1), np.full(2, 1e-3)
    origins, forecasts = np.array([40, 70]), []
    for factor in (1.0, 1000.0):
        ground = Ground.of(two_targets(factor), 2, 0, SEASON, ROOM)
        member = RidgeMember(form, 5, 0.01, floor).fitted(ground, np.arange(20, 74), HORIZON)
        assert member.weight.shape == (2, HORIZON, 5)
        np.testing.assert_allclose(member.weight[0], member.weight[1])
        forecasts.append(member.forecasts(ground, origins, HORIZON) / [1.0, factor])
        settings = ForecastSettings.of({"targets": ["y", "z"], "horizon": HORIZON}, "model")
        again = unpacked(RidgeMember, packed(member), settings=settings, room=ROOM, season=SEASON)
        np.testing.assert_array_equal(again.weight, member.weight)
    np.testing.assert_allclose(*forecasts, rtol=1e-6)


def test_windows_without_steps_before_them_are_not_learned_from() -> None:
    """The room before a series holds its first value: of a panel whose windows are divided by their
    spread, the first windows had outweighed all others."""
    t = np.arange(60)
    draw = np.random.default_rng(1)
    columns = [k * (2 + np.sin(2 * np.pi * t / 9 + draw.uniform(0, 6))) for k in range(1, 13)]
    ground = ground_of(*columns)
    settings = ForecastSettings.of({"targets": ["y"], "horizon": HORIZON}, "model")
    origins = fit_origins(ground.series, settings, ROOM)
    assert (origins - ground.series.starts[origins] >= ROOM).all()
    form = RidgeForm("none", "last", True, True, 1)
    member = RidgeMember(form, 4, 1e-6, FLOOR).fitted(ground, origins, HORIZON)
    ends = ground.series.bounds[1:] - HORIZON
    forecasts = member.forecasts(ground, ends, HORIZON)[..., 0]
    truth = np.stack([column[-HORIZON:] for column in columns], 1)
    np.testing.assert_allclose(forecasts, truth, rtol=0.01)


def test_blocks_are_counted_by_the_time_that_origins_span() -> None:
    """A long series had as many as a short one: all of its members counted the same."""
    settings = ForecastSettings.of({"targets": ["y"], "horizon": 96}, "model")
    for steps, few in ((800, True), (8000, False)):
        series = part_of_table({"y": [float(k % 7) for k in range(steps)]}, settings).series
        folds = list(folds_of(series, settings, Mixture((), np.zeros(0), SEASON, ROOM)))
        assert max(len(fold.origins) for fold in folds) <= MOST_ORIGINS
        assert (blocks_of(folds) <= FEW_BLOCKS) == few


def test_what_repeats_the_past_counts_only_where_nothing_is_better() -> None:
    settings = ForecastSettings.of({"targets": ["y"], "horizon": HORIZON}, "model")
    draw = np.random.default_rng(3)
    steady = {"noise": 20 + draw.normal(size=72), "walk": np.arange(72) % SEASON + 0.0}
    kinds = {}
    for name, values in steady.items():
        series = part_of_table({"y": values.tolist()}, settings).series
        members = chosen(series, settings, SEASON).mixture.members
        kinds[name] = [member.kind for member in members]
    assert "repeated" not in kinds["noise"]
    assert kinds["walk"][0] == "repeated"  # each season exactly as the one before
