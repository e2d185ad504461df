"""Long series, and many targets: what bounds the time that they take."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue import Forecaster
from ensue.tasks.forecast.forecasts import origins_of
from ensue.tasks.forecast.members.mixture import BLOCK, MixedWindows
from ensue.tasks.forecast.settings import ForecastSettings
from ensue.tasks.forecast.tables.reading import part_of_table
from ensue.tasks.forecast.tables.recipe import EPOCH_WINDOWS, FEW_EPOCHS, recipe_of
from ensue.tasks.forecast.task import CHOOSING
from ensue.training.rows import Began, Notice

HORIZON, STEPS = 4, 160


def columns(targets: int, steps: int = STEPS) -> dict[str, list[float]]:
    draw, t = np.random.default_rng(1), np.arange(steps)
    each = [
        10 + np.sin(2 * np.pi * t / 8 + k) + 0.1 * draw.normal(size=steps) for k in range(targets)
    ]
    return {f"y{k}": values.tolist() for k, values in enumerate(each)}


def settings_of(targets: int) -> dict[str, Any]:
    names = [f"y{k}" for k in range(targets)]
    return {"targets": names, "horizon": HORIZON, "hidden_size": 4, "look_back": 8}


def test_an_epoch_has_as_many_numbers_whatever_the_targets() -> None:
    """Seven targets had taken seven times as long as one."""
    numbers = {}
    for targets in (1, 4):
        settings = ForecastSettings.of(settings_of(targets), "model")
        part = part_of_table(columns(targets, EPOCH_WINDOWS + 100), settings)
        recipe = recipe_of(part, settings, ()).tables
        numbers[targets] = recipe["model"]
        assert recipe["train"]["epochs"] == FEW_EPOCHS
    for name in ("epoch_windows", "batch_windows"):
        assert numbers[1][name] == 4 * numbers[4][name]


def test_what_is_computed_before_the_first_update_is_said() -> None:
    heard = list[Any]()
    model = Forecaster(model=settings_of(1), train={"epochs": 1, "most_updates": 1})
    model.fit(columns(1), watchers=[heard.append])
    begun = next(k for k, row in enumerate(heard) if isinstance(row, Began))
    assert CHOOSING in [row.text for row in heard[:begun] if isinstance(row, Notice)]


def test_members_say_of_a_window_the_same_bits_whatever_it_is_asked_with() -> None:
    """They are asked once; a training that continues begins to ask at another window."""
    model = Forecaster(model=settings_of(2), train={"epochs": 1, "most_updates": 1})
    table = columns(2)
    model.fit(table)
    part = part_of_table(table, model.settings)
    origins = origins_of(part, model.settings)
    assert len(origins) > 2 * BLOCK
    windows = [model.learned.windows(part.series, model.settings) for _ in range(2)]
    one, two = (window for window in windows if isinstance(window, MixedWindows))
    whole = one.base(origins)
    np.testing.assert_array_equal(two.base(origins[70:71]), whole[:, 70:71])
    np.testing.assert_array_equal(two.base(origins[::-3]), whole[:, ::-3])
    plain = one.mixture.forecasts(one.ground, origins, HORIZON)
    mean, spread = one.scale.of_windows(one.series.owner[origins - 1])
    np.testing.assert_allclose(whole, (one.scale.to_level(plain) - mean) / spread, atol=1e-5)
