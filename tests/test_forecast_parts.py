"""Series as forecasters take them: times, faults, files, parts, leakage."""

import math
from typing import Any

import numpy as np
import pytest

from ensue.data.time.dates import ISO
from ensue.errors import ConfigError, DataError, EnsueError, OptionError
from ensue.tasks.forecast.part import divided, following
from ensue.tasks.forecast.scale import calendar
from ensue.tasks.forecast.settings import ForecastSettings
from ensue.tasks.forecast.tables.reading import part_of_table
from ensue.tasks.forecast.tables.recipe import leaks
from ensue.tasks.forecast.task import Forecaster
from ensue.training import Notice

rng = np.random.default_rng(5)


def settings_of(**options: Any) -> ForecastSettings:
    return ForecastSettings.of({"targets": ["y"], "look_back": 4, "horizon": 2, **options}, "model")


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
    settings = settings_of(time="t")
    series = part_of_table({"t": times, "y": numbers_of(len(times))}, settings).series
    assert series.times_after(0, len(following)) == following
    assert series.lengthened(len(following)).times == (*times, *following)


def test_steps_without_times_are_counted() -> None:
    settings = settings_of()
    series = part_of_table({"y": numbers_of(3)}, settings).series
    assert series.times_after(0, 2) == ["+1", "+2"]


def test_neighbours_on_the_calendar_are_near_on_the_circle() -> None:
    days = [ISO.read(f"2021-{month:02}-15") for month in range(1, 13)]
    positions = calendar(days, ["month"])
    steps = np.linalg.norm(np.roll(positions, -1, 0) - positions, axis=1)
    np.testing.assert_allclose(steps, steps[0])  # December to January as all others
    week = calendar([ISO.read(f"2021-03-{d:02}") for d in (1, 8, 9)], ["weekday"])
    np.testing.assert_allclose(week[0], week[1])
    assert np.linalg.norm(week[0] - week[2]) > 0.5
    hours = calendar([ISO.read("2021-03-01 18:00")], ["hour"])
    np.testing.assert_allclose(hours, [[-1, 0]], atol=1e-12)


# --- faults --------------------------------------------------------------------------------


def fit(columns: dict[str, list[Any]], **options: Any) -> Forecaster:
    settings = {"targets": ["y"], "look_back": 4, "horizon": 2, "family": "linear", **options}
    return Forecaster(model=settings).fit(columns)


DAYS = [f"2020-01-{day:02}" for day in range(1, 31)]

FAULTS: dict[str, tuple[dict[str, list[Any]], dict[str, Any], str]] = {
    "twice": (
        {"t": [*DAYS[:3], DAYS[2], *DAYS[3:29]], "y": numbers_of(30)},
        {"time": "t"},
        "row:4: column 't': '2020-01-03' comes twice, as row:3 has it too\nkeep one row for each "
        "time, or name the column that tells several series apart with --group",
    ),
    "no date": (
        {"t": [*DAYS[:29], "soon"], "y": numbers_of(30)},
        {"time": "t"},
        "row:30: column 't': expected a date such as 1958-11-30, 30.11.1958, 11/30/1958, 1958-11 "
        "or 1958Q4, with a time such as 06:00 or not, or a number, got 'soon'",
    ),
    "two ways of writing": (
        {"t": [*DAYS[:29], "30"], "y": numbers_of(30)},
        {"time": "t"},
        "row:30: column 't': expected a time written as '2020-01-01', got '30'",
    ),
    "day or month": (
        {"t": ["01/02/2021", "02/02/2021", "03/02/2021"] * 1, "y": numbers_of(3)},
        {"time": "t"},
        "row:1: column 't': '01/02/2021' may be 2021-02-01 or 2021-01-02, and no row tells which: "
        'add --dates day-first or --dates month-first (in Python: model={"dates": '
        '"day-first"})',
    ),
    "no number": (
        {"y": [*numbers_of(8), "n. a.", "1,5", *numbers_of(20)]},
        {},
        "row:9: column 'y': expected a finite number, got 'n. a.'\n"
        "row:10: column 'y': expected a finite number, got '1,5' (a decimal comma?)",
    ),
    "no value": (
        {"y": [math.nan] * 27 + numbers_of(3)},
        {},
        "y: no value at any of the 27 steps of the training part; choose another column, or give "
        "more rows",
    ),
    "no column": (
        {"x": numbers_of(30)},
        {},
        "row:1: unknown column 'y'. Known: x",
    ),
    "unequal columns": (
        {"y": numbers_of(30), "x": numbers_of(29)},
        {"family": "direct", "covariates": ["x"]},
        "row: expected columns of equal length, got {'y': 30, 'x': 29}",
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
    with pytest.raises(DataError) as error:
        fit(columns, **settings)
    assert str(error.value) == message


WRONG_SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "target known ahead": (
        {"known": ["y"], "family": "direct"},
        "model: y: each column may have only one role (targets, covariates, known, static, ids). "
        "The past of a target is always an input, so it need not be a covariate; its future is not "
        "known, so it cannot be in known",
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
        "model: family: linear reads only the targets, got also x; leave these out, or choose "
        "mixed, direct or recurrent",
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
    settings, message = WRONG_SETTINGS[name]
    with pytest.raises(ConfigError) as error:
        fit({"y": numbers_of(30)}, **settings)
    assert str(error.value) == message


def test_what_is_asked_of_a_model_that_cannot_do_it() -> None:
    columns = {"y": numbers_of(40), "k": numbers_of(40)}
    cases: list[tuple[type[EnsueError], str, Any]] = []
    plain = fit(columns, season=1)
    driven = Forecaster(
        model={"targets": ["y"], "known": ["k"], "look_back": 4, "horizon": 2, "hidden_size": 4},
        train={"epochs": 1, "most_updates": 1},
    ).fit(columns)
    short = {"y": numbers_of(3)}
    cases += [
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
            "predict: expected k of the next 2 steps, which this model reads, got 0; give them "
            "with --future FILE (Python: future=)",
            lambda: driven.predict(columns),
        ),
        (
            OptionError,
            "unknown target 'x'. Known: y",
            lambda: plain.picture(columns, target="x"),
        ),
        (
            DataError,
            "the validation part: expected at least 2 steps, a horizon, got 1; give more rows, or "
            "set a smaller model.horizon",
            lambda: Forecaster(model=plain.settings).fit(columns, {"y": [1.0], "k": [1.0]}),
        ),
        (
            OptionError,
            "find-rate: model.family = linear is fitted in closed form and has no learning rate",
            lambda: plain.find_rate(part_of_table(columns, plain.settings)),
        ),
        (
            DataError,
            "expected columns by name, or a list of rows that are dictionaries",
            lambda: plain.predict([1.0, 2.0]),
        ),
    ]
    for kind, message, ask in cases:
        with pytest.raises(kind) as error:
            ask()
        assert str(error.value) == message


def test_only_metrics_of_forecasts_are_watched() -> None:
    with pytest.raises(OptionError) as error:
        Forecaster(train={"watch": "bleu"})
    assert str(error.value) == "train.watch: expected one of cost, mae, error, got 'bleu'"
    assert Forecaster(train={"watch": "mae"}).train.watch == "mae"


# --- parts --------------------------------------------------------------------------------


@pytest.mark.parametrize("split", [[0.5, 0.25, 0.25], [20, 10, 10], [10, 10, 5]])
def test_parts_follow_one_another_in_time(split: list[float]) -> None:
    settings = settings_of(split=split)
    parts = divided(part_of_table({"y": list(range(40))}, settings), settings)
    values = {name: part.values[part.begin :, 0] for name, part in parts.items()}
    train, validation = len(values["train"]), len(values["validation"])
    first = [round(40 * share) if sum(split) == 1 else share for share in split]
    assert [train, validation, len(values["test"])] == first
    assert [len(part) for part in parts.values()] == first
    np.testing.assert_array_equal(values["train"], np.arange(train))
    np.testing.assert_array_equal(values["validation"], np.arange(train, train + validation))
    np.testing.assert_array_equal(
        values["test"], np.arange(train + validation, train + validation + first[2])
    )
    for part in parts.values():  # the steps before a part are its history
        np.testing.assert_array_equal(part.values[:, 0], np.arange(len(part.values)))
        assert part.names[0] == f"row:{part.begin + 1}"


def test_a_part_given_after_another_reads_it_as_its_history() -> None:
    settings = settings_of(time="t")
    days = [f"2020-01-{day:02}" for day in range(1, 13)]
    table = {"t": days, "y": list(range(12))}
    before, after = ({k: v[a:b] for k, v in table.items()} for a, b in ((0, 8), (8, 12)))
    model = Forecaster(model=settings)
    train = model.reader.labelled(before)
    validation = model.reader.labelled(after, {}, train)
    assert (len(train), train.begin, len(validation), validation.begin) == (8, 0, 4, 8)
    np.testing.assert_array_equal(validation.values[:, 0], np.arange(12))
    assert validation.series.times == tuple(days)
    assert [validation.names[k] for k in range(4)] == ["row:1", "row:2", "row:3", "row:4"]
    again = following(train, validation)  # history is not read twice
    np.testing.assert_array_equal(again.values, validation.values)
    rows_taken = validation.take(np.arange(1, 3))
    assert (len(rows_taken), rows_taken.begin, rows_taken.names[0]) == (2, 9, "row:2")
    np.testing.assert_array_equal(rows_taken.values[:, 0], np.arange(11))


def test_a_validation_part_without_history_gives_up_its_first_steps() -> None:
    values = numbers_of(40)
    model = Forecaster(
        model={"targets": ["y"], "look_back": 4, "horizon": 2, "family": "linear", "season": 1}
    )
    train, alone = (
        part_of_table({"y": values_of_part}, model.settings)
        for values_of_part in (values[:30], values[30:])
    )
    (outcome,) = model.fit_parts(train, alone)
    assert outcome.scores is not None
    with pytest.raises(DataError) as error:
        model.fit_parts(train, alone.until(5))
    assert str(error.value) == (
        "the validation part: expected at least 6 steps, 4 to begin with and a horizon, got 5; "
        "give more rows, or set a smaller model.horizon"
    )


def test_a_split_that_does_not_fit_is_told() -> None:
    settings = settings_of(split=[20, 10, 10])
    part = part_of_table({"y": numbers_of(30)}, settings)
    with pytest.raises(DataError) as error:
        divided(part, settings)
    assert str(error.value) == "row:30: model.split names 40 steps, and the series has 30"


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
    settings = settings_of(family="direct", known=["same", "honest"], covariates=["next", "before"])
    series = part_of_table(columns, settings).series
    warnings = leaks(series.until(50), settings)
    assert warnings == [
        "same is declared known ahead, and is nearly the target y itself (at the same step): the "
        "forecasts will be too good. Leave it out, unless you really know it before",
        "next has y 1 step before it happens: is it a shifted copy? Leave it out",
    ]
    # what comes after the training part is not looked at, for it is not known yet
    assert leaks(series.until(2), settings) == []
    heard: list[object] = []
    Forecaster(model=settings, train={"epochs": 1, "most_updates": 1}).fit(
        columns, watchers=[heard.append]
    )
    messages = [row.text for row in heard if isinstance(row, Notice)]
    assert messages == [*warnings, "fitting shares and intervals on the validation part"]
