"""The parts of forecasts: series, their faults, scales, baselines, errors, intervals, pictures."""

import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from ensue.data.tasks.air_passengers import air_passengers
from ensue.data.tasks.series import known_series
from ensue.errors import ConfigError, DataError, EnsueError, OptionError
from ensue.models.collect import Numbers
from ensue.models.forecast_baselines import repeated, season_error, season_of, solve
from ensue.models.forecast_intervals import widened, widening
from ensue.models.forecast_judge import Backtest, judged
from ensue.models.forecast_metrics import Units, errors
from ensue.models.forecast_networks import LinearForecast
from ensue.models.forecast_scale import ForecastScale
from ensue.models.forecast_settings import ForecastSettings
from ensue.models.forecast_source import Windows
from ensue.models.forecast_steps import (
    calendar,
    divided,
    joined,
    leaks,
    moment_of,
    read_steps,
    series_of,
    steps_of,
    times_ahead,
)
from ensue.models.forecaster import Forecaster
from ensue.training import Said

rng = np.random.default_rng(5)


def settings_of(**given: Any) -> ForecastSettings:
    return ForecastSettings.of({"targets": ["y"], "look_back": 4, "horizon": 2, **given}, "model")


def numbers_of(count: int) -> list[float]:
    return rng.normal(10, 1, count).tolist()


# --- times ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "following"),
    [
        (["1960-10", "1960-11", "1960-12"], ["1961-01", "1961-02"]),
        (["1960-08-01", "1960-09-01", "1960-10-01"], ["1960-11-01", "1960-12-01"]),
        (["1959-12-30", "1959-12-31", "1960-01-01"], ["1960-01-02", "1960-01-03"]),
        (["2020-02-28 22:00", "2020-02-28 23:00", "2020-02-29 00:00"], ["2020-02-29 01:00"]),
        (["2020-01-01T00:00:00", "2020-01-08T00:00:00"], ["2020-01-15T00:00:00"]),
        (["1958", "1959", "1960"], ["1961", "1962"]),
        (["0.1", "0.2", "0.3"], ["0.4"]),
    ],
)
def test_times_go_on_as_they_are_spaced(times: list[str], following: list[str]) -> None:
    own = settings_of(time="t")
    series = series_of(*steps_of({"t": times, "y": numbers_of(len(times))}, own), own)
    assert times_ahead(series, len(following)) == following
    assert series.lengthened(len(following)).times == (*times, *following)


def test_steps_without_times_are_counted() -> None:
    own = settings_of()
    series = series_of(*steps_of({"y": numbers_of(3)}, own), own)
    assert times_ahead(series, 2) == ["+1", "+2"]


def test_neighbours_on_the_calendar_are_near_on_the_circle() -> None:
    days = [moment_of(f"2021-{month:02}-15", "t", "row:1") for month in range(1, 13)]
    found = calendar(days, ["month"])
    steps = np.linalg.norm(np.roll(found, -1, 0) - found, axis=1)
    np.testing.assert_allclose(steps, steps[0])  # December to January as all others
    week = calendar([moment_of(f"2021-03-{d:02}", "t", "row:1") for d in (1, 8, 9)], ["weekday"])
    np.testing.assert_allclose(week[0], week[1])
    assert np.linalg.norm(week[0] - week[2]) > 0.5
    hours = calendar([moment_of("2021-03-01 18:00", "t", "row:1")], ["hour"])
    np.testing.assert_allclose(hours, [[-1, 0]], atol=1e-12)


# --- faults --------------------------------------------------------------------------------


def fit(columns: dict[str, list[Any]], **given: Any) -> Forecaster:
    own = {"targets": ["y"], "look_back": 4, "horizon": 2, "family": "linear", **given}
    return Forecaster(model=own).fit(columns)


DAYS = [f"2020-01-{day:02}" for day in range(1, 31)]

FAULTS: dict[str, tuple[dict[str, list[Any]], dict[str, Any], str]] = {
    "unsorted": (
        {"t": [DAYS[1], DAYS[0], *DAYS[2:]], "y": numbers_of(30)},
        {"time": "t"},
        "row:2: column 't': '2020-01-01' does not come after '2020-01-02'; sort the rows by time, "
        "one row for each",
    ),
    "twice": (
        {"t": [*DAYS[:3], DAYS[2], *DAYS[3:29]], "y": numbers_of(30)},
        {"time": "t"},
        "row:4: column 't': '2020-01-03' comes twice; sort the rows by time, one row for each",
    ),
    "gap": (
        {"t": [*DAYS[:10], *DAYS[11:]], "y": numbers_of(29)},
        {"time": "t"},
        "row:11: column 't': expected 2020-01-11 behind '2020-01-10', got '2020-01-12': steps must "
        "be evenly spaced. Fill the gap, or leave the time out, and rows count as steps",
    ),
    "no date": (
        {"t": [*DAYS[:29], "soon"], "y": numbers_of(30)},
        {"time": "t"},
        "row:30: column 't': expected a date such as 1958-11-30, 1958-11-30 06:00 or 1958-11, or "
        "a number, got 'soon'",
    ),
    "two ways of writing": (
        {"t": [*DAYS[:29], "30"], "y": numbers_of(30)},
        {"time": "t"},
        "row:30: column 't': expected a time written as '2020-01-29' before it, got '30'",
    ),
    "no number": (
        {"y": [*numbers_of(8), "n/a", "1,5", *numbers_of(20)]},
        {},
        "row:9: column 'y': expected a finite number, got 'n/a' (a missing value?)\n"
        "row:10: column 'y': expected a finite number, got '1,5' (a decimal comma?)",
    ),
    "NaN": (
        {"y": [*numbers_of(8), math.nan, *numbers_of(20)]},
        {},
        "row:9: column 'y': expected a finite number, got nan",
    ),
    "no column": (
        {"x": numbers_of(30)},
        {},
        "row:1: unknown column 'y'. Known: x",
    ),
    "unequal columns": (
        {"y": numbers_of(30), "x": numbers_of(29)},
        {"family": "direct", "covariates": ["x"]},
        "row: expected columns of one length, got {'y': 30, 'x': 29}",
    ),
    "too short": (
        {"y": numbers_of(8)},
        {"difference": 1},
        "the training part: expected at least 7 steps (look_back 4 + difference 1 + horizon 2), "
        "got 6; give more rows, or set a smaller model.look_back or model.horizon",
    ),
    "constant": (
        {"y": [3.0] * 30},
        {},
        "y: the same number, 3, at all 27 steps of the training part: there is nothing to learn "
        "from a constant; choose another column, or give more rows",
    ),
    "log of zero": (
        {"y": [*numbers_of(4), 0.0, *numbers_of(25)]},
        {"transform": "log"},
        "row:5: column 'y': expected a number > 0 for model.transform log, got 0",
    ),
    "long season": (
        {"y": numbers_of(30)},
        {"season": 40},
        "model.season: expected fewer steps than the training part has, 27, got 40",
    ),
    "calendar of numbers": (
        {"t": [str(k) for k in range(30)], "y": numbers_of(30)},
        {"time": "t", "calendar": ["month"], "family": "direct"},
        "calendar: month needs dates, got the number 0",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_series_that_cannot_be_learned_from_says_why(name: str) -> None:
    columns, settings, message = FAULTS[name]
    with pytest.raises(DataError) as told:
        fit(columns, **settings)
    assert str(told.value) == message


WRONG_SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "target known ahead": (
        {"known": ["y"], "family": "direct"},
        "model: y: expected each column once among targets, covariates and known; a target is read "
        "as it is, and is never known ahead",
    ),
    "calendar without time": (
        {"calendar": ["month"], "family": "direct"},
        "model: calendar: month needs model.time, a column",
    ),
    "unknown feature": (
        {"time": "t", "calendar": ["mnth"], "family": "direct"},
        "model.calendar: unknown calendar feature 'mnth': did you mean 'month'? Known: hour, "
        "month, weekday, yearday",
    ),
    "covariates of a linear model": (
        {"covariates": ["x"]},
        "model: family: linear reads the targets alone, got x beside them; leave these out, or "
        "take direct or recurrent",
    ),
    "split": (
        {"split": [0.7, 0.1]},
        "model.split: expected three shares that make 1, or three numbers of steps, for train, "
        "validation and test, got [0.7, 0.1]",
    ),
    "segments": (
        {"family": "segment", "segment": 3},
        "model: segment: expected a divisor of model.look_back, 4, got 3",
    ),
}


@pytest.mark.parametrize("name", WRONG_SETTINGS)
def test_settings_that_do_not_fit_together_say_why(name: str) -> None:
    given, message = WRONG_SETTINGS[name]
    with pytest.raises(ConfigError) as told:
        fit({"y": numbers_of(30)}, **given)
    assert str(told.value) == message


def test_what_is_asked_of_a_model_that_cannot_do_it() -> None:
    columns = {"y": numbers_of(40), "k": numbers_of(40)}
    told: list[tuple[type[EnsueError], str, Any]] = []
    plain = fit(columns, season=1)
    driven = Forecaster(
        model={"targets": ["y"], "known": ["k"], "look_back": 4, "horizon": 2, "hidden_size": 4},
        train={"epochs": 1, "most_updates": 1},
    ).fit(columns)
    short = {"y": numbers_of(3)}
    told += [
        (
            OptionError,
            "model.targets: expected the columns to forecast, got none",
            lambda: Forecaster().fit(columns),
        ),
        (
            OptionError,
            "this forecast model has not been fitted: call fit or load first",
            lambda: Forecaster().predict(columns),
        ),
        (
            DataError,
            "predict: expected at least 4 steps to begin with, got 3",
            lambda: plain.predict(short),
        ),
        (
            DataError,
            "evaluate: expected at least 6 steps, 4 to begin with and a horizon of 2, got 3",
            lambda: plain.evaluate(short),
        ),
        (
            DataError,
            "predict: expected k of the next 2 steps, which this model reads, got 0; give them as "
            "the future",
            lambda: driven.predict(columns),
        ),
        (
            OptionError,
            "unknown target 'x'. Known: y",
            lambda: plain.picture(columns, "x"),
        ),
        (
            DataError,
            "the validation part: expected at least 2 steps, a horizon, got 1",
            lambda: Forecaster(model=plain.model).fit(columns, {"y": [1.0], "k": [1.0]}),
        ),
        (
            OptionError,
            "find-rate: the linear family is solved and has no learning rate",
            lambda: plain.find_rate(*steps_of(columns, plain.model)),
        ),
        (
            DataError,
            "expected columns by name, or a list of rows that are dictionaries",
            lambda: plain.predict([1.0, 2.0]),
        ),
    ]
    for kind, message, asked in told:
        with pytest.raises(kind) as error:
            asked()
        assert str(error.value) == message


# --- files and parts -----------------------------------------------------------------------


def test_a_file_is_read_and_its_faults_have_lines(tmp_path: Path) -> None:
    own = settings_of(time="month", known=["k"], family="direct")
    path = tmp_path / "series.csv"
    path.write_text("month,y,k,words\n1960-01,1,2,a\n1960-02,3,4,b\n", "utf-8")
    numbers = Numbers()
    part = read_steps([path], own, numbers)
    series = series_of(part, numbers, own)
    np.testing.assert_array_equal(series.values, [[1, 2], [3, 4]])
    assert series.times == ("1960-01", "1960-02")
    assert part.names[1] == f"{path}:3"
    future = tmp_path / "future.csv"
    future.write_text("month,k\n1960-03,6\n", "utf-8")
    behind = joined(part, read_steps([future], own, numbers, ahead=True))
    whole = series_of(behind, numbers, own)
    assert whole.times[-1] == "1960-03"
    assert np.isnan(whole.values[2, 0])
    assert behind.names[2] == f"{future}:2"
    path.write_text("month,y,k\n1960-01,1,2\n1960-02,,4\n", "utf-8")
    with pytest.raises(DataError) as told:
        read_steps([path], own, numbers)
    assert str(told.value) == (
        f"1 problem in {path}\n"
        f"  {path}:3: column 'y': expected a finite number, got '' (a missing value?)\n"
        "Fix the lines, or use --skip-bad to leave them out."
    )


@pytest.mark.parametrize("split", [[0.5, 0.25, 0.25], [20, 10, 10], [10, 10, 5]])
def test_parts_follow_one_another_in_time(split: list[float]) -> None:
    own = settings_of(split=split)
    part, _ = steps_of({"y": list(range(40))}, own)
    found = {name: own.inputs.values[:, 0] for name, own in divided(part, own, 4).items()}
    train, held = len(found["train"]), len(found["validation"])
    first = [round(40 * own) if sum(split) == 1 else own for own in split]
    assert [train, held, len(found["test"]) - 4] == first
    np.testing.assert_array_equal(found["train"], np.arange(train))
    np.testing.assert_array_equal(found["validation"], np.arange(train, train + held))
    np.testing.assert_array_equal(found["validated"], np.arange(train - 4, train + held))
    np.testing.assert_array_equal(
        found["test"], np.arange(train + held - 4, train + held + first[2])
    )


def test_a_split_that_does_not_fit_is_told() -> None:
    own = settings_of(split=[20, 10, 10])
    part, _ = steps_of({"y": numbers_of(30)}, own)
    with pytest.raises(DataError) as told:
        divided(part, own, 4)
    assert str(told.value) == "row:30: model.split names 40 steps, and the series has 30"


# --- leakage -------------------------------------------------------------------------------


def test_a_covariate_that_gives_the_target_away_is_told() -> None:
    y = np.array(numbers_of(60))
    columns = {
        "y": y.tolist(),
        "same": (2 * y + 1).tolist(),
        "next": np.roll(y, -1).tolist(),
        "honest": numbers_of(60),
        "before": np.roll(y, 1).tolist(),
    }
    own = settings_of(family="direct", known=["same", "honest"], covariates=["next", "before"])
    series = series_of(*steps_of(columns, own), own)
    found = leaks(series, own, 50)
    assert found == [
        "same is said to be known ahead, and is nearly the target y itself (at the same step): the "
        "forecasts will be too good. Leave it out, unless you really know it before",
        "next has y 1 step before it happens: a column that was shifted? Leave it out",
    ]
    # what lies behind the training part is not looked at, for it is not known yet
    assert leaks(series, own, 2) == []
    heard: list[object] = []
    Forecaster(model=own, train={"epochs": 1, "most_updates": 1}).fit(
        columns, watchers=[heard.append]
    )
    assert [row.text for row in heard if isinstance(row, Said)] == found


# --- scales --------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", ["none", "log", "log1p"])
@pytest.mark.parametrize("lag", [0, 1, 3, 7])
def test_what_is_done_to_a_series_can_be_undone(transform: str, lag: int) -> None:
    own = settings_of(targets=["y", "z"], transform=transform, difference=lag, horizon=5)
    columns = {"y": np.exp(rng.normal(0, 1, 40)).tolist(), "z": (5 + rng.random(40)).tolist()}
    series = series_of(*steps_of(columns, own), own)
    scale = ForecastScale.of(series, own, 30)
    levels = scale.levels(series, own)
    z = scale.inward(levels, series, []).astype(np.float64)
    np.testing.assert_allclose(z[lag:30].mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(z[lag:30].std(0), 1, atol=1e-6)
    origins = np.array([20, 35])
    ahead = z[origins[None] + np.arange(5)[:, None]]
    before = levels[origins[None] + np.arange(-lag, 0)[:, None]]
    found = scale.from_levels(scale.to_levels(ahead, before))
    np.testing.assert_allclose(found, series.values[origins[None] + np.arange(5)[:, None]], 1e-5)


# --- baselines -----------------------------------------------------------------------------


@pytest.mark.parametrize("season", [2, 7, 12, 24])
def test_a_season_is_found(season: int) -> None:
    steps = 40 * season
    pattern = rng.permutation(season) / season
    values = np.tile(pattern, 40) + 0.03 * np.arange(steps) + rng.normal(0, 0.05, steps)
    assert season_of(values[:, None]) == season


def test_noise_and_wandering_have_no_season() -> None:
    noise = rng.normal(0, 1, (300, 1))
    assert season_of(noise) == season_of(np.cumsum(noise, 0)) == 1
    assert season_of(np.ones((30, 1))) == 1
    assert season_of(np.array(air_passengers()["passengers"], float)[:, None]) == 12


def test_the_naive_forecasts_repeat_what_was_last() -> None:
    values = np.arange(10.0)[:, None]
    origins = np.array([6, 8])
    np.testing.assert_array_equal(repeated(values, origins, 3, 1)[..., 0], [[5, 7]] * 3)
    found = repeated(values, origins, 5, 3)[..., 0]
    np.testing.assert_array_equal(found.T, [[3, 4, 5, 3, 4], [5, 6, 7, 5, 6]])
    np.testing.assert_array_equal(season_error(values, 3), [3])


def test_the_linear_model_is_that_of_least_squares() -> None:
    own = settings_of(family="linear", normalise="mean", targets=["y", "z"])
    values = rng.normal(0, 1, (50, 2)).astype(np.float32)
    windows, origins = Windows(values, own), np.arange(4, 49)
    network = LinearForecast(own)
    solve(network, windows, origins, 1e-9)
    exact = values.astype(np.float64)
    x = np.concatenate([exact[o - 4 : o].T for o in origins])  # (windows · variables, look_back)
    y = np.concatenate([exact[o : o + 2].T for o in origins])
    centre = x.mean(1, keepdims=True)
    design = np.concatenate([x - centre, np.ones((len(x), 1))], 1)
    wanted, *_ = np.linalg.lstsq(design, y - centre, rcond=None)
    found = network.point(windows.batch(origins)).detach().numpy()  # (horizon, windows, variables)
    expected = (design @ wanted + centre).reshape(len(origins), 2, 2).transpose(2, 0, 1)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_windows_are_views_of_the_series() -> None:
    values = rng.normal(0, 1, (30, 3)).astype(np.float32)
    own = settings_of(family="direct", covariates=["a"], known=["b"])
    windows = Windows(values, own)
    assert windows._past.data_ptr() == windows._target.data_ptr() == values.ctypes.data
    batch = windows.batch([7, 20])
    np.testing.assert_array_equal(batch.past[:, 1], values[16:20])
    np.testing.assert_array_equal(batch.ahead[:, 0], values[7:9, 2:])
    np.testing.assert_array_equal(batch.target[:, 1], values[20:22, :1])


# --- errors and intervals ------------------------------------------------------------------


def test_errors_by_hand() -> None:
    truth = np.array([100.0, 200.0]).reshape(2, 1, 1)
    point = np.array([110.0, 190.0]).reshape(2, 1, 1)
    found = errors(truth, point, Units(np.array([5.0]), np.array([20.0])))
    assert found == pytest.approx(
        {
            "mae": 10,
            "rmse": 10,
            "mape": 7.5,
            "smape": 100 * (20 / 210 + 20 / 390) / 2,
            "mase": 0.5,
            "scaled mae": 2,
            "scaled mse": 4,
        }
    )
    assert "mape" not in errors(truth - 100, point, Units(np.ones(1), np.ones(1)))


def test_a_forecast_a_season_back_has_mase_one_on_its_own_training_part() -> None:
    values = rng.normal(0, 1, (60, 1))
    origins = np.arange(12, 60)
    found = errors(
        values[origins][None],
        repeated(values, origins, 1, 12),
        Units(values.std(0), season_error(values, 12)),
    )
    assert found["mase"] == pytest.approx(1)


@pytest.mark.parametrize("share", [0.8, 0.9])
def test_calibrated_intervals_hold_what_they_promise(share: float) -> None:
    """On new errors of the same kind, whatever intervals the network gave."""
    spread = np.array([1.0, 2.0, 4.0])[:, None, None]
    held, new = (spread * rng.standard_t(4, (3, 2000, 1)) for _ in range(2))
    for half in (0.0, 0.3, 9.0):  # a point, too narrow, too wide
        low, high = np.full_like(held, -half), np.full_like(held, half)
        by = widening(held, low, high, share)
        low, high = widened(low, high, by)
        inside = ((low <= new) & (new <= high)).mean((1, 2))
        np.testing.assert_allclose(inside, share, atol=0.035)  # each step by itself


def test_few_held_out_errors_are_taken_together() -> None:
    truth = rng.normal(0, 1, (4, 5, 1))
    truth[2:, 3:] = np.nan  # windows that are not whole
    by = widening(truth, np.zeros_like(truth), np.zeros_like(truth), 0.9)
    assert (by == by[0]).all()
    known = np.sort(np.abs(truth[np.isfinite(truth)]))
    assert by[0, 0] == known[math.ceil(17 * 0.9) - 1]


def test_intervals_cover_what_they_say_on_held_out_data() -> None:
    columns: dict[str, Any] = known_series("seasonal", 600, noise=0.5)
    for family in ("linear", "recurrent"):
        model = Forecaster(
            model={
                "targets": ["value"],
                "look_back": 24,
                "horizon": 6,
                "family": family,
                "hidden_size": 12,
                "paths": 60,
            },
            train={"epochs": 3, "rate": 0.01},
        )
        part = {name: own[:500] for name, own in columns.items()}
        model.fit({"value": part["value"][:350]}, {"value": part["value"][350:]})
        found = model.evaluate({"value": columns["value"][500 - model.history :]})
        assert 0.85 <= found.others["coverage"] <= 0.95, family


def test_one_target_is_judged_in_its_units_and_several_scaled() -> None:
    truth = rng.normal(0, 1, (3, 40, 2)) * [1, 100]
    point = truth + np.array([0.5, 50])
    units = Units(np.array([1.0, 100.0]), np.ones(2))
    found = judged(Backtest(truth, point, point, point, {"naive": truth}, 0.9), units, 1)
    assert found.main == "scaled mae"
    assert found.scores["scaled mae"].value == pytest.approx(0.5)
    assert found.baselines == {"naive": 0}
    assert [own.step for own in found.ahead] == [1, 2, 3]
    alone = Backtest(*(own[..., 1:] for own in (truth, point, point, point)), {}, 0.9)
    single = judged(alone, Units(units.spread[1:], units.season[1:]), 1)
    assert single.scores["mae"].value == pytest.approx(50)
    assert single.scores["rmse"].value == pytest.approx(50)
    assert single.as_json()["ahead"][0]["mae"] == pytest.approx(50)


# --- to be looked at -----------------------------------------------------------------------


def test_the_picture_is_sound_and_holds_what_it_should(tmp_path: Path) -> None:
    columns: dict[str, Any] = air_passengers()
    model = Forecaster(
        model={"targets": ["passengers"], "time": "month", "family": "linear", "look_back": 12}
    ).fit(columns)
    for held_out, words in ((True, "what came"), (False, "1961-")):
        text = model.picture(columns, held_out=held_out)
        ElementTree.fromstring(text)
        assert "passengers, 12 steps ahead" in text
        assert words in text
        assert model.picture(columns, held_out=held_out) == text
    assert "what came" not in model.picture(columns)


def test_an_answer_is_a_line_and_the_summary_says_what_it_is() -> None:
    columns: dict[str, Any] = air_passengers()
    settings = {"targets": ["passengers"], "time": "month", "family": "linear", "horizon": 3}
    model = Forecaster(model=settings).fit(columns)
    found = model.predict(columns)
    assert [own.time for own in found] == ["1961-01", "1961-02", "1961-03"]
    first = found[0].expected["passengers"]
    assert first.low < first.value < first.high
    assert found[0].as_line() == "1961-01\t" + "\t".join(
        f"{own:.6g}" for own in (first.value, first.low, first.high)
    )
    assert model.summary() == (
        "Forecaster: weighted sum of the window; 24 steps back, 3 ahead\n"
        "  75 parameters\n"
        "  passengers: a season of 12 steps"
    )
