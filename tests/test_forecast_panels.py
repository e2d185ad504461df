"""Panels and missing values: laws over series that are forecast together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ensue.tasks.forecast.members.choice import simplex_weights
from ensue.tasks.forecast.task import Forecaster

LENGTHS = {"a": 70, "b": 62, "c": 66}
SIZES = {"a": 1.0, "b": 100.0, "c": 10.0}
SMALL = {"look_back": 8, "horizon": 3, "hidden_size": 4, "season": 7, "paths": 10}
QUICK = {"epochs": 1, "most_updates": 2}
FAMILIES = ("mixed", "direct", "linear")


def panel(ids: str = "abc", seed: int = 1) -> dict[str, list[Any]]:
    """Sales of shops by the day, with a season of a week."""
    table: dict[str, list[Any]] = {"shop": [], "day": [], "sales": [], "place": []}
    for name in ids:
        rng = np.random.default_rng([seed, ord(name)])
        days = np.arange(LENGTHS[name])
        sales = SIZES[name] * (5 + np.sin(2 * np.pi * days / 7) + rng.normal(0, 0.1, len(days)))
        table["shop"] += [name] * len(days)
        table["day"] += [str(np.datetime64("2021-01-01") + day) for day in days.tolist()]
        table["sales"] += sales.round(4).tolist()
        table["place"] += ["north" if name == "a" else "south"] * len(days)
    return table


def model_of(family: str, **options: Any) -> Forecaster:
    static = [] if family == "linear" else ["place"]
    roles = {"targets": ["sales"], "ids": ["shop"], "time": "day", "static": static}
    return Forecaster(model={**roles, **SMALL, "family": family, **options}, train=QUICK)


def only(table: dict[str, list[Any]], name: str) -> dict[str, list[Any]]:
    rows = [k for k, shop in enumerate(table["shop"]) if shop == name]
    return {key: [values[k] for k in rows] for key, values in table.items()}


@pytest.mark.parametrize("family", FAMILIES)
def test_series_together_are_series_alone(family: str, tmp_path: Path) -> None:
    table = panel()
    model = model_of(family).fit(table)
    together = model.predict(table)
    assert [(step.ids["shop"], step.time) for step in together][::3] == [
        ("a", "2021-03-12"),
        ("b", "2021-03-04"),
        ("c", "2021-03-08"),
    ]
    alone = [step for name in "abc" for step in model.predict(only(table, name))]
    for one, two in zip(together, alone, strict=True):
        assert (one.ids, one.time) == (two.ids, two.time)
        value, other = one.expected["sales"], two.expected["sales"]
        assert value.value == pytest.approx(other.value, rel=1e-4)
        if family != "direct":  # its bounds are drawn, for all series in turn
            assert (value.low, value.high) == pytest.approx((other.low, other.high), rel=1e-4)
    model.save(tmp_path / "model")
    assert Forecaster.load(tmp_path / "model").predict(table) == together
    evaluation = model.evaluate(table)
    assert [row.id for row in evaluation.series] == ["a", "b", "c"]
    assert "3 series" in evaluation.as_text()
    for size, row in zip(SIZES.values(), evaluation.series, strict=True):
        assert row.mae < size  # each in its own units
    assert model.picture(table).count(">b<") == 1


@pytest.mark.parametrize("family", ["mixed", "linear"])
def test_rows_of_a_panel_may_come_in_any_order(family: str) -> None:
    table = panel()
    order = np.random.default_rng(3).permutation(len(table["day"])).tolist()
    shuffled = {key: [values[k] for k in order] for key, values in table.items()}
    answers = []
    for rows in (table, shuffled):
        steps = model_of(family).fit(rows).predict(rows)
        answers.append({(s.ids["shop"], s.time): s.expected["sales"].value for s in steps})
    assert answers[0] == pytest.approx(answers[1], rel=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_series_that_training_did_not_have_is_forecast(family: str) -> None:
    model = model_of(family).fit(panel("ab"))
    steps = model.predict(panel("c"))
    assert all(20 < step.expected["sales"].value < 80 for step in steps)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_future_of_no_series_changes_a_forecast(family: str) -> None:
    table = panel()
    model = model_of(family).fit(table)
    changed = {key: list(values) for key, values in table.items()}
    last = [k for k, day in enumerate(table["day"]) if day >= "2021-02-25"]
    for row in last:
        changed["sales"][row] *= 3
    one, two = model.backtest(table), model.backtest(changed)
    early = [
        k for k in range(one.point.shape[1]) if np.array_equal(one.truth[:, k], two.truth[:, k])
    ]
    for name in ("point", "low", "high"):
        np.testing.assert_array_equal(getattr(one, name)[:, early], getattr(two, name)[:, early])
    assert len(early) > 100


@pytest.mark.parametrize("family", ["mixed", "direct", "segment", "recurrent", "linear"])
def test_missing_values_are_no_numbers(family: str) -> None:
    """An empty cell, a missing row and a NaN are the same, cost nothing and count nowhere."""
    days = [str(np.datetime64("2021-01-01") + k) for k in range(90)]
    rng = np.random.default_rng(2)
    values = (5 + np.sin(np.arange(90)) + rng.normal(0, 0.1, 90)).round(4).tolist()
    gone = [7, 20, 21, 22, 50, 70, 84]
    roles = {
        "targets": ["y"],
        "time": "t",
        "look_back": 8,
        "horizon": 3,
        "hidden_size": 4,
        "segment": 4,
    }
    settings = {**roles, "family": family, "season": 6, "paths": 10}
    cells = {"t": days, "y": ["" if k in gone else value for k, value in enumerate(values)]}
    empty = {"t": days, "y": [None if k in gone else value for k, value in enumerate(values)]}
    rows = {
        key: [v for k, v in enumerate(column) if k not in gone] for key, column in cells.items()
    }
    tables = (cells, empty, rows)
    models = [Forecaster(model=settings, train=QUICK).fit(table) for table in tables]
    answers = [model.predict(table) for model, table in zip(models, tables, strict=True)]
    assert answers[0] == answers[1] == answers[2]
    scores = [model.evaluate(rows).as_json() for model in models]
    assert scores[0] == scores[1] == scores[2]
    assert all(np.isfinite(value["value"]) for value in scores[0]["scores"].values())


def test_weights_are_shares_and_follow_the_errors() -> None:
    rng = np.random.default_rng(1)
    errors = rng.normal(0, 1, (4000, 3)) * [1.0, 1.0, 3.0]
    scores = np.abs(errors).mean(0)
    weights = simplex_weights(errors, scores, 400)
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()
    assert weights[2] < 0.12
    # that of two independent errors: halves
    np.testing.assert_allclose(weights[:2], 0.47, atol=0.06)
