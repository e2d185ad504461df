"""The figures of forecasts: scales, baselines, errors, intervals, pictures."""

import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from ensue.data.tasks.series import air_passengers, known_series
from ensue.tasks.forecast.baselines import solve
from ensue.tasks.forecast.evaluation import Backtest, Units, errors, evaluation_of
from ensue.tasks.forecast.intervals import widened, widening
from ensue.tasks.forecast.networks import LinearForecast
from ensue.tasks.forecast.part import Windows
from ensue.tasks.forecast.scale import ForecastScale
from ensue.tasks.forecast.seasons import repeated, season_of
from ensue.tasks.forecast.settings import ForecastSettings
from ensue.tasks.forecast.tables.reading import part_of_table
from ensue.tasks.forecast.task import Forecaster

rng = np.random.default_rng(5)


def settings_of(**options: Any) -> ForecastSettings:
    return ForecastSettings.of({"targets": ["y"], "look_back": 4, "horizon": 2, **options}, "model")


def numbers_of(count: int) -> list[float]:
    return rng.normal(10, 1, count).tolist()


# --- scales --------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", ["none", "log", "log1p"])
@pytest.mark.parametrize("lag", [0, 1, 3, 7])
def test_what_is_done_to_a_series_can_be_undone(transform: str, lag: int) -> None:
    options = {"transform": transform, "difference": lag, "family": "direct"}
    settings = settings_of(targets=["y", "z"], horizon=5, **options)
    columns = {"y": np.exp(rng.normal(0, 1, 40)).tolist(), "z": (5 + rng.random(40)).tolist()}
    series = part_of_table(columns, settings).series
    scale = ForecastScale.of(series.until(30), settings)
    levels = scale.levels(series, settings)
    z = scale.inward(levels, series, []).astype(np.float64)
    np.testing.assert_allclose(z[lag:30].mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(z[lag:30].std(0), 1, atol=1e-6)
    origins = np.array([20, 35])
    ahead = z[origins[None] + np.arange(5)[:, None]]
    before = levels[origins[None] + np.arange(-lag, 0)[:, None]]
    restored = scale.from_levels(scale.to_levels(ahead, before, np.zeros(2, int)))
    np.testing.assert_allclose(restored, series.values[origins[None] + np.arange(5)[:, None]], 1e-5)


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
    forecasts = repeated(values, origins, 5, 3)[..., 0]
    np.testing.assert_array_equal(forecasts.T, [[3, 4, 5, 3, 4], [5, 6, 7, 5, 6]])


def test_the_linear_model_is_that_of_least_squares() -> None:
    settings = settings_of(family="linear", normalise="mean", targets=["y", "z"])
    values = rng.normal(0, 1, (50, 2)).astype(np.float32)
    windows, origins = Windows(values, settings), np.arange(4, 49)
    network = LinearForecast(settings)
    solve(network, windows, origins, 1e-9)
    exact = values.astype(np.float64)
    x = np.concatenate([exact[o - 4 : o].T for o in origins])  # (windows · variables, look_back)
    y = np.concatenate([exact[o : o + 2].T for o in origins])
    centre = x.mean(1, keepdims=True)
    design = np.concatenate([x - centre, np.ones((len(x), 1))], 1)
    weights, *_ = np.linalg.lstsq(design, y - centre, rcond=None)
    # (horizon, windows, variables)
    forecasts = network.point(windows.batch(origins)).detach().numpy()
    expected = (design @ weights + centre).reshape(len(origins), 2, 2).transpose(2, 0, 1)
    np.testing.assert_allclose(forecasts, expected, atol=1e-4)


def test_windows_are_views_of_the_series() -> None:
    values = rng.normal(0, 1, (30, 3)).astype(np.float32)
    settings = settings_of(family="direct", covariates=["a"], known=["b"])
    windows = Windows(values, settings)
    assert windows._past.data_ptr() == windows._target.data_ptr() == values.ctypes.data
    batch = windows.batch([7, 20])
    np.testing.assert_array_equal(batch.past[:, 1], values[16:20])
    np.testing.assert_array_equal(batch.ahead[:, 0], values[7:9, 2:])
    np.testing.assert_array_equal(batch.target[:, 1], values[20:22, :1])


# --- errors and intervals ------------------------------------------------------------------


def test_errors_by_hand() -> None:
    truth = np.array([100.0, 200.0]).reshape(2, 1, 1)
    point = np.array([110.0, 190.0]).reshape(2, 1, 1)
    scores = errors(truth, point, Units(np.array([5.0]), np.array([20.0])))
    assert scores == pytest.approx(
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
    scores = errors(
        values[origins][None],
        repeated(values, origins, 1, 12),
        Units(values.std(0), np.abs(values[12:] - values[:-12]).mean(0)),
    )
    assert scores["mase"] == pytest.approx(1)


@pytest.mark.parametrize("share", [0.8, 0.9])
def test_calibrated_intervals_hold_what_they_promise(share: float) -> None:
    """On new errors of the same kind, whatever intervals the network gave."""
    spread = np.array([1.0, 2.0, 4.0])[:, None, None]
    truth, new = (spread * rng.standard_t(4, (3, 2000, 1)) for _ in range(2))
    for half in (0.0, 0.3, 9.0):  # a point, too narrow, too wide
        low, high = np.full_like(truth, -half), np.full_like(truth, half)
        by = widening(truth, low, high, share)
        low, high = widened(low, high, by[:, None])
        inside = ((low <= new) & (new <= high)).mean((1, 2))
        np.testing.assert_allclose(inside, share, atol=0.035)  # each step by itself


def test_few_held_out_errors_are_taken_together() -> None:
    truth = rng.normal(0, 1, (4, 5, 1))
    truth[2:, 3:] = np.nan  # windows that are not whole
    by = widening(truth, np.zeros_like(truth), np.zeros_like(truth), 0.9)
    assert (by == by[0]).all()
    known = np.sort(np.abs(truth[np.isfinite(truth)]))
    assert by[0, 0] == known[math.ceil(17 * 0.9) - 1]


def test_intervals_are_calibrated_by_the_validation_steps_and_no_others() -> None:
    # the training part is wilder
    values = [5 * number for number in numbers_of(50)] + numbers_of(30)
    model = Forecaster(
        model={"targets": ["y"], "look_back": 4, "horizon": 1, "family": "linear", "season": 1}
    ).fit({"y": values[:50]}, {"y": values[50:]})
    backtest = model.backtest({"y": values[50 - model.history :]})  # of the held-out steps
    off = np.sort(np.abs(backtest.truth - backtest.point).ravel())
    assert len(off) == 30
    assert model.learned.widening[0, 0] == pytest.approx(off[math.ceil(31 * 0.9) - 1])
    np.testing.assert_allclose(backtest.high - backtest.point, model.learned.widening[0, 0])


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
        part = {name: column[:500] for name, column in columns.items()}
        model.fit({"value": part["value"][:350]}, {"value": part["value"][350:]})
        evaluation = model.evaluate({"value": columns["value"][500 - model.history :]})
        assert 0.85 <= evaluation.others["coverage"] <= 0.95, family


def test_one_target_is_scored_in_its_units_and_several_scaled() -> None:
    truth = rng.normal(0, 1, (3, 40, 2)) * [1, 100]
    point = truth + np.array([0.5, 50])
    units = Units(np.array([1.0, 100.0]), np.ones(2))
    evaluation = evaluation_of(
        Backtest(truth, point, point, point, {"naive": truth}, 0.9), units, 1
    )
    assert evaluation.main == "scaled mae"
    assert evaluation.scores["scaled mae"].value == pytest.approx(0.5)
    assert evaluation.baselines == {"naive": 0}
    assert [step.step for step in evaluation.ahead] == [1, 2, 3]
    alone = Backtest(*(forecasts[..., 1:] for forecasts in (truth, point, point, point)), {}, 0.9)
    single = evaluation_of(alone, Units(units.spread[1:], units.season[1:]), 1)
    assert single.scores["mae"].value == pytest.approx(50)
    assert single.scores["rmse"].value == pytest.approx(50)
    assert single.as_json()["ahead"][0]["mae"] == pytest.approx(50)


# --- to be looked at -----------------------------------------------------------------------


def test_the_picture_is_sound_and_holds_what_it_should(tmp_path: Path) -> None:
    columns: dict[str, Any] = air_passengers()
    model = Forecaster(
        model={"targets": ["passengers"], "time": "month", "family": "linear", "look_back": 12}
    ).fit(columns)
    for held_out, words in ((True, "actual"), (False, "1961-")):
        text = model.picture(columns, held_out=held_out)
        ElementTree.fromstring(text)
        assert "passengers, 12 steps ahead" in text
        assert words in text
        assert model.picture(columns, held_out=held_out) == text
    assert "actual" not in model.picture(columns)


def test_an_answer_is_a_line_and_the_summary_says_what_it_is() -> None:
    columns: dict[str, Any] = air_passengers()
    settings = {"targets": ["passengers"], "time": "month", "family": "linear", "horizon": 3}
    model = Forecaster(model=settings).fit(columns)
    answers = model.predict(columns)
    assert [answer.time for answer in answers] == ["1961-01", "1961-02", "1961-03"]
    first = answers[0].expected["passengers"]
    assert first.low < first.value < first.high
    assert answers[0].as_line() == "1961-01\t" + "\t".join(
        f"{number:.6g}" for number in (first.value, first.low, first.high)
    )
    assert model.summary() == (
        "Forecaster: weighted sum of the window; 24 steps back, 3 ahead\n"
        "  75 parameters\n"
        "  passengers: a season of 12 steps"
    )


def test_a_learning_rate_is_suggested_for_a_network() -> None:
    settings = {"targets": ["passengers"], "look_back": 12, "horizon": 3, "hidden_size": 4}
    model = Forecaster(model=settings)
    columns: dict[str, Any] = air_passengers()
    curve = model.find_rate(part_of_table(columns, model.settings))
    assert 0 < curve.suggestion < max(curve.rates)
    assert not model.fitted
