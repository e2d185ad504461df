"""Laws of forecasters: the future changes nothing, batches equal singles, saved equals kept."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Generator

from ensue.data.tasks.series import SERIES, air_passengers, known_series
from ensue.tasks.codec import packed
from ensue.tasks.forecast.families import FAMILIES
from ensue.tasks.forecast.networks import WindowBatch
from ensue.tasks.forecast.settings import ForecastSettings
from ensue.tasks.forecast.task import Forecaster
from ensue.tasks.saved import read_model
from ensue.training import Finished, Notice, Stopped, Update

STEPS, TRAIN, VALIDATION = 90, 60, 80
QUICK = {"epochs": 1, "most_updates": 2, "patience": 5}
SMALL = {"look_back": 8, "horizon": 4, "hidden_size": 6, "segment": 4, "paths": 20, "season": 6}

# Every family, with every option that touches the numbers of the series.
CASES: dict[str, dict[str, Any]] = {
    "mixed": {"family": "mixed"},
    "mixed, covariates": {
        "family": "mixed",
        "covariates": ["heat"],
        "known": ["drive"],
        "time": "day",
        "calendar": ["weekday"],
    },
    "mixed, two targets": {"family": "mixed", "targets": ["value", "heat"], "output": "squared"},
    "recurrent": {"family": "recurrent"},
    "recurrent, covariates": {
        "family": "recurrent",
        "covariates": ["heat"],
        "known": ["drive"],
        "time": "day",
        "calendar": ["weekday", "month"],
        "output": "mixture",
    },
    "recurrent, one number": {"family": "recurrent", "output": "squared", "normalise": "mean"},
    "direct": {"family": "direct"},
    "direct, covariates": {
        "family": "direct",
        "covariates": ["heat"],
        "known": ["drive"],
        "time": "day",
        "calendar": ["yearday", "hour"],
        "normalise": "instance",
    },
    "direct, differences": {"family": "direct", "difference": 3, "transform": "log"},
    "direct, two targets": {"family": "direct", "targets": ["value", "heat"], "output": "mixture"},
    "segment": {"family": "segment", "output": "absolute"},
    "segment, log1p": {"family": "segment", "transform": "log1p", "normalise": "none"},
    "segment, odd horizon": {"family": "segment", "horizon": 5, "layers": 2},
    "linear": {"family": "linear", "season": 0},
    "linear, differences": {"family": "linear", "difference": 6, "normalise": "none"},
}


def table(steps: int = STEPS) -> dict[str, list[Any]]:
    rng = np.random.default_rng(3)
    drive = (np.arange(steps) % 5 == 0).astype(float)
    value = 20 + np.sin(np.arange(steps) / 2) + 2 * drive + rng.normal(0, 0.2, steps)
    days = [str(np.datetime64("2023-12-20") + k) for k in range(steps)]
    return {
        "day": days,
        "value": value.tolist(),
        "heat": rng.normal(5, 1, steps).tolist(),
        "drive": drive.tolist(),
    }


def between(columns: dict[str, list[Any]], start: int, end: int) -> dict[str, list[Any]]:
    return {name: column[start:end] for name, column in columns.items()}


def model_of(case: str, **train: Any) -> Forecaster:
    settings = {"targets": ["value"], **SMALL, **CASES[case]}
    return Forecaster(model=settings, train={**QUICK, **train})


def fitted(case: str, columns: dict[str, list[Any]] | None = None, **train: Any) -> Forecaster:
    series = columns or table()
    model = model_of(case, **train)
    return model.fit(between(series, 0, TRAIN), between(series, TRAIN, VALIDATION))


def ahead(model: Forecaster, columns: dict[str, list[Any]], now: int) -> Any:
    """predict from a moment, with what is known of the steps after it."""
    future = between(columns, now, now + model.settings.horizon) if model.settings.known else None
    return model.predict(between(columns, 0, now), future=future)


# --- no look-ahead -------------------------------------------------------------------------


def changed_from(columns: dict[str, list[Any]], step: int, keep: tuple[str, ...]) -> dict[str, Any]:
    """Other numbers from a step on, except for the columns that are known ahead."""
    columns_changed = {}
    for name, column in columns.items():
        later = column[step:] if name in ("day", *keep) else [3 * x + 100 for x in column[step:]]
        columns_changed[name] = column[:step] + later
    return columns_changed


@pytest.mark.parametrize("case", CASES)
def test_the_future_changes_no_forecast(case: str) -> None:
    columns = table()
    model, now = fitted(case), 84
    known = tuple(model.settings.known)
    other = changed_from(columns, now, known)
    assert ahead(model, columns, now) == ahead(model, other, now)
    backtest, alike = model.backtest(columns), model.backtest(other)
    # the last origin whose window lies before the change in all that is read
    before = now - model.history
    for one, two in (
        (backtest.point, alike.point),
        (backtest.low, alike.low),
        (backtest.high, alike.high),
    ):
        np.testing.assert_array_equal(one[:, : before + 1], two[:, : before + 1])
    for name in backtest.baselines:
        same = backtest.baselines[name][:, : before + 1], alike.baselines[name][:, : before + 1]
        np.testing.assert_array_equal(*same)
    assert not np.array_equal(backtest.point[:, before + 1 :], alike.point[:, before + 1 :])


@pytest.mark.parametrize("case", CASES)
def test_the_steps_after_the_training_part_change_nothing_that_is_learned_from_it(
    case: str,
) -> None:
    columns = table()
    if case.startswith("mixed"):
        pytest.skip("its members are chosen by the validation part as well")
    one = fitted(case, columns)
    other = changed_from(columns, TRAIN, ())
    # one update: before anything was validated, so that only what training sees counts
    two = fitted(case, other)
    for part in ("scale", "baselines"):
        arrays = [packed(getattr(trained.learned, part)).arrays for trained in (one, two)]
        for name, value in arrays[0].items():
            np.testing.assert_array_equal(value, arrays[1][name])
    assert one.learned.baselines.season == two.learned.baselines.season
    np.testing.assert_array_equal(one.learned.units.season, two.learned.units.season)
    for tensor, alike in zip(
        one.networks[0].state_dict().values(), two.networks[0].state_dict().values(), strict=True
    ):
        assert torch.equal(tensor, alike)


@pytest.mark.parametrize("case", CASES)
def test_a_network_does_not_look_at_its_targets_to_forecast_them(case: str) -> None:
    model = model_of(case)
    torch.manual_seed(0)
    network = FAMILIES[model.settings.family].network(model.settings).eval()
    batch = random_batch(model.settings, 3)
    blind = batch._replace(target=torch.full_like(batch.target, torch.nan))
    with torch.no_grad():
        assert torch.equal(network.point(batch), network.point(blind))
        assert torch.isfinite(network.point(blind)).all()
        drawn = [
            network.paths(seen_batch, 5, Generator().manual_seed(1))
            for seen_batch in (batch, blind)
        ]
    if drawn[0] is not None:
        assert torch.equal(drawn[0], drawn[1])


def random_batch(settings: ForecastSettings, rows: int) -> WindowBatch:
    draw = Generator().manual_seed(7)
    columns = len(settings.columns) + 2 * len(settings.calendar)
    mixed = settings.family == "mixed"
    batch = WindowBatch(
        torch.randn(settings.look_back, rows, columns + mixed * settings.outputs, generator=draw),
        torch.randn(settings.horizon, rows, settings.ahead, generator=draw),
        torch.randn(settings.horizon, rows, settings.outputs, generator=draw),
    )
    return batch._replace(base=batch.target * 0.5 + 1) if mixed else batch


# --- networks ------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_a_batch_equals_its_windows_alone(case: str) -> None:
    settings = model_of(case).settings
    torch.manual_seed(0)
    network = FAMILIES[settings.family].network(settings).eval()
    batch = random_batch(settings, 4)
    with torch.no_grad():
        whole, costs = network.point(batch), network.costs(batch)
        for row in range(4):
            alone = WindowBatch(*(field[:, row : row + 1] for field in batch))
            torch.testing.assert_close(network.point(alone)[:, 0], whole[:, row])
            torch.testing.assert_close(network.costs(alone)[:, 0], costs[:, row])
    total, _ = network(batch, {})
    torch.testing.assert_close(total.detach(), costs.sum())


@pytest.mark.parametrize("case", ["recurrent", "direct", "segment, log1p"])
def test_drawn_paths_have_the_mean_and_spread_that_the_network_says(case: str) -> None:
    settings = model_of(case).settings
    torch.manual_seed(0)
    network = FAMILIES[settings.family].network(settings).eval()
    batch = random_batch(settings, 2)
    with torch.no_grad():
        paths = network.paths(batch, 4000, Generator().manual_seed(2))
        assert paths is not None
        point = network.point(batch)
        first = network.encode(batch, network.normalisation(batch))[0]
    assert network.says is not None
    low, high = network.says.interval(first, 0.9)
    normalised = network.normalisation(batch).inward(paths)[:, 0]
    inside = ((low[..., 0] <= normalised) & (normalised <= high[..., 0])).double().mean(0)
    assert ((inside - 0.9).abs() < 0.02).all()  # four standard errors of 4,000 draws
    assert torch.allclose(paths[:, 0].mean(0), point[0], atol=0.08)


def test_a_rolled_step_is_a_step_of_teacher_forcing_on_the_same_numbers() -> None:
    settings = model_of("recurrent, covariates").settings
    torch.manual_seed(0)
    network = FAMILIES["recurrent"].network(settings).eval()
    batch = random_batch(settings, 2)
    with torch.no_grad():
        rolled = network.point(batch)
        normal = network.normalisation(batch)
        forced = network.means(network.encode(batch._replace(target=rolled), normal))
    torch.testing.assert_close(normal.outward(forced), rolled)


@pytest.mark.parametrize("case", ["recurrent, covariates", "direct, covariates"])
def test_what_is_known_of_a_step_ahead_moves_that_step_and_none_before(case: str) -> None:
    settings = model_of(case).settings
    torch.manual_seed(0)
    network = FAMILIES[settings.family].network(settings).eval()
    batch = random_batch(settings, 2)
    with torch.no_grad():
        point, costs = network.point(batch), network.costs(batch)
        for step in range(settings.horizon):
            other = batch._replace(ahead=batch.ahead.clone())
            other.ahead[step] += 1
            for before, after in ((point, network.point(other)), (costs, network.costs(other))):
                assert torch.equal(before[:step], after[:step])
                assert (before[step] != after[step]).all()


@pytest.mark.parametrize("how", ["last", "mean", "instance"])
def test_a_window_that_lies_higher_is_forecast_as_much_higher(how: str) -> None:
    settings = model_of("direct").settings.model_copy(update={"normalise": how})
    torch.manual_seed(0)
    network = FAMILIES["direct"].network(settings).eval()
    batch = random_batch(settings, 3)
    higher = batch._replace(past=batch.past + 7)
    with torch.no_grad():
        torch.testing.assert_close(network.point(higher), network.point(batch) + 7)
        if how == "instance":
            wider = batch._replace(past=batch.past * 3)
            torch.testing.assert_close(network.point(wider), network.point(batch) * 3)


def test_the_cost_does_not_depend_on_how_windows_are_normalised() -> None:
    """A density is that of the numbers as they came: N(y; c + s·μ, (s·σ)²)."""
    settings = model_of("direct").settings.model_copy(update={"normalise": "instance"})
    torch.manual_seed(0)
    network = FAMILIES["direct"].network(settings).eval().double()
    batch = WindowBatch(*(tensor.double() for tensor in random_batch(settings, 3)))
    normal = network.normalisation(batch)
    z = network.encode(batch, normal)
    mean, raw = z[..., 0], z[..., 1]
    spread = normal.spread * (1e-3 + torch.nn.functional.softplus(raw))
    expected = -torch.distributions.Normal(normal.outward(mean), spread).log_prob(batch.target)
    torch.testing.assert_close(network.costs(batch), expected)


@pytest.mark.parametrize("case", CASES)
def test_gradients_equal_finite_differences(case: str) -> None:
    settings = model_of(case).settings
    if settings.family == "linear":
        settings = settings.model_copy(update={"output": "squared"})
    torch.manual_seed(0)
    network = FAMILIES[settings.family].network(settings).double()
    batch = WindowBatch(*(tensor.double() for tensor in random_batch(settings, 2)))
    names, weights = zip(*network.named_parameters(), strict=True)

    def cost(*tensors: torch.Tensor) -> torch.Tensor:
        parameters = dict(zip(names, tensors, strict=True))
        costs = torch.func.functional_call(network, parameters, (batch, {}))
        return torch.as_tensor(costs[0])

    if settings.output == "absolute":  # a kink where an error is 0, which no random weight meets
        torch.nn.init.normal_(weights[-1])
    torch.autograd.gradcheck(cost, weights, atol=1e-4, fast_mode=True)


# --- the verbs -----------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_saved_and_loaded_it_answers_the_same(case: str, tmp_path: Path) -> None:
    columns, model = table(), fitted(case)
    model.save(tmp_path / "model")
    again = Forecaster.load(tmp_path / "model")
    assert ahead(again, columns, VALIDATION) == ahead(model, columns, VALIDATION)
    assert again.evaluate(columns).as_json() == model.evaluate(columns).as_json()
    assert again.summary() == model.summary()


class Interrupt:
    """Stops a training after an update, as a signal would."""

    def __init__(self, update: int) -> None:
        self.update = update

    def __call__(self, row: object) -> None:
        if isinstance(row, Update) and row.update == self.update:
            raise Stopped(2, row.update)


@pytest.mark.parametrize(
    "case", ["mixed, covariates", "recurrent", "direct, covariates", "segment"]
)
def test_interrupted_and_continued_equals_never_stopped(case: str, tmp_path: Path) -> None:
    columns = table()
    train, validation = between(columns, 0, TRAIN), between(columns, TRAIN, VALIDATION)
    settings = {"most_updates": 4, "epochs": 3, "checkpoint_updates": 1}
    whole = model_of(case, **settings).fit(train, validation, folder=tmp_path / "whole")
    with pytest.raises(Stopped):
        model_of(case, **settings).fit(
            train, validation, folder=tmp_path / "cut", watchers=[Interrupt(2)]
        )
    rest = model_of(case, **settings).fit(train, validation, folder=tmp_path / "cut")
    histories = [(tmp_path / name / "history.jsonl").read_bytes() for name in ("whole", "cut")]
    assert histories[0] == histories[1]
    assert ahead(rest, columns, VALIDATION) == ahead(whole, columns, VALIDATION)


@pytest.mark.parametrize("case", ["direct", "linear"])
def test_a_refit_learns_from_the_validation_part_too(case: str, tmp_path: Path) -> None:
    """And is what a training on both parts for as many updates would be."""
    columns = table()
    train, validation = between(columns, 0, TRAIN), between(columns, TRAIN, VALIDATION)
    plain = model_of(case)
    settings = {**plain.settings.table(), "refit": True}
    models = [
        Forecaster(model=settings, train=plain.train).fit(train, validation, folder=folder)
        for folder in (None, tmp_path / "run")
    ]
    again = Forecaster(model=settings, train=plain.train).fit(
        train, validation, folder=tmp_path / "run"
    )
    plain.fit(train, validation)
    answers = [ahead(model, columns, VALIDATION) for model in (*models, again)]
    assert answers[0] == answers[1] == answers[2] != ahead(plain, columns, VALIDATION)
    np.testing.assert_array_equal(models[0].learned.scale.mean, plain.learned.scale.mean)
    np.testing.assert_array_equal(models[0].learned.widening, plain.learned.widening)


def test_what_is_computed_after_the_last_update_is_said() -> None:
    columns, heard = table(), list[Any]()
    settings = {**model_of("direct").settings.table(), "refit": True}
    model = Forecaster(model=settings, train=QUICK)
    model.fit(
        between(columns, 0, TRAIN), between(columns, TRAIN, VALIDATION), watchers=[heard.append]
    )
    ends = [k for k, row in enumerate(heard) if isinstance(row, Finished)]
    first, last = ends
    messages = [row for row in heard[first:last] if isinstance(row, Notice) and row.progress]
    assert messages[0].text == "fitting shares and intervals on the validation part"
    assert messages[1].text.startswith("retraining with the validation part: ")
    updates = sum(isinstance(row, Update) for row in heard[first:last])
    assert messages[1].text.endswith(f" {updates} updates")


def test_members_answer_with_their_mean(tmp_path: Path) -> None:
    columns = table()
    settings = {**SMALL, "targets": ["value"], "output": "squared", "calibrated": False}
    settings |= {"family": "direct"}
    both = Forecaster(model=settings, train=QUICK, members=2)
    both.fit(between(columns, 0, TRAIN), between(columns, TRAIN, VALIDATION))
    forecasts = both.backtest(columns).point
    both.save(tmp_path / "model")
    saved, single = read_model(tmp_path / "model"), []
    one = {**saved.facts, "members": 1}
    for network in both.networks:
        alone = Forecaster.of_saved(replace(saved, facts=one, networks=[network.state_dict()]))
        single.append(alone.backtest(columns).point)
    np.testing.assert_allclose(forecasts, (single[0] + single[1]) / 2, rtol=1e-5)


def test_rows_and_columns_are_the_same_series() -> None:
    columns, model = table(), fitted("direct, covariates")
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    assert model.evaluate(rows).as_json() == model.evaluate(columns).as_json()


# --- it learns -----------------------------------------------------------------------------


def test_what_drives_a_series_and_is_known_ahead_is_used() -> None:
    columns: dict[str, Any] = known_series("driven", 400, noise=0.1)
    model = Forecaster(
        model={
            "targets": ["value"],
            "known": ["drive"],
            "look_back": 6,
            "horizon": 2,
            "hidden_size": 24,
            "normalise": "none",
        },
        train={"epochs": 12, "rate": 0.01, "patience": 4},
    )
    model.fit(between(columns, 0, 300), between(columns, 300, 350))
    evaluation = model.evaluate(between(columns, 350 - model.history, 400))
    plain = [evaluation.baselines[name] for name in ("naive", "linear model")]
    assert evaluation.scores["mae"].value < 0.5 * min(plain)
    assert 0.75 <= evaluation.others["coverage"] <= 1.0


def test_an_autoregressive_series_is_forecast_as_well_as_it_can_be() -> None:
    columns: dict[str, Any] = known_series("autoregressive", 700, noise=1.0)
    settings = {"targets": ["value"], "family": "linear", "look_back": 4, "horizon": 1}
    model = Forecaster(model={**settings, "normalise": "none", "season": 1})
    model.fit(between(columns, 0, 500), between(columns, 500, 600))
    evaluation = model.evaluate(between(columns, 600 - model.history, 700))
    best = np.sqrt(2 / np.pi)  # mean |e| of a Gaussian
    assert evaluation.scores["mae"].value < 1.15 * best
    assert "does not beat" not in evaluation.as_text()


def test_a_network_that_does_not_beat_the_baseline_says_so() -> None:
    columns: dict[str, Any] = known_series("seasonal", 120, noise=0.01)
    settings = {**SMALL, "targets": ["value"], "season": 12, "family": "direct"}
    model = Forecaster(model=settings, train={"epochs": 1, "most_updates": 1})
    model.fit(between(columns, 0, 90), between(columns, 90, 100))
    text = model.evaluate(between(columns, 80, 120)).as_text()
    assert "The model does not beat the " in text
    assert "seasonal naive" in text


@pytest.mark.parametrize("name", SERIES)
def test_generated_series_are_the_same_again_and_begin_alike(name: str) -> None:
    long, short = known_series(name, 50, seed=2), known_series(name, 20, seed=2)
    assert {key: column[:20] for key, column in long.items()} == short
    assert known_series(name, 50, seed=3) != long


def test_the_months_of_air_passengers() -> None:
    columns = air_passengers()
    assert len(columns["month"]) == len(columns["passengers"]) == 144
    assert (columns["month"][0], columns["month"][-1]) == ("1949-01", "1960-12")
    yearly = np.array(columns["passengers"], float).reshape(12, 12).sum(1)
    assert (np.diff(yearly) > 0).all()  # it grew in every year
