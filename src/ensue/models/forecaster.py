"""`Forecaster`: given the steps of a series so far, which come next, and between which bounds?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ensue.errors import DataError, OptionError, unknown
from ensue.models.collect import Collected, Numbers
from ensue.models.evaluation import Evaluation
from ensue.models.forecast_answer import ForecastStep, answered
from ensue.models.forecast_baselines import Baselines, season_error, solve
from ensue.models.forecast_intervals import widened, widening
from ensue.models.forecast_judge import Backtest, judged
from ensue.models.forecast_metrics import Units
from ensue.models.forecast_networks import NETWORKS, ForecastNetwork, LinearForecast
from ensue.models.forecast_picture import View, draw
from ensue.models.forecast_rolling import Levels, rolled
from ensue.models.forecast_scale import ForecastScale
from ensue.models.forecast_settings import ForecastSettings
from ensue.models.forecast_source import Origins, Windows, WindowScores, WindowSource
from ensue.models.forecast_steps import (
    Series,
    Table,
    cut,
    joined,
    leaks,
    series_of,
    steps_of,
    times_ahead,
)
from ensue.models.saved import Saved, network_files, networks_of
from ensue.models.settings import Table as Settings
from ensue.models.task_model import IN_MEMORY, Fitting, TaskModel
from ensue.training import Outcome, RateCurve, RunFolder, Said, Watcher, find_rate, fit

Array = NDArray[np.float64]

HELD_OUT = 0.1  # of the steps, where no validation is given
SHOWN_BEFORE = 3  # horizons of history in a picture


class Forecaster(TaskModel):
    """The next steps of one or many variables, with intervals.

    model = Forecaster(model={"targets": ["passengers"], "time": "month", "horizon": 12})
    model.fit(columns).predict(columns)

    A series is given as columns by name or as a list of rows, in the order of time. Whatever is
    learned, scales and seasons included, comes from the training part; the validation part says
    when to stop, and how wide intervals must be."""

    kind = "forecast"
    model_settings: ClassVar[type[Settings]] = ForecastSettings
    train_defaults: ClassVar[Mapping[str, Any]] = {"epochs": 100, "patience": 10}
    model: ForecastSettings

    scale: ForecastScale
    baselines: Baselines
    units: Units
    widening: Array  # (horizon, targets), of levels
    _fitted = False

    def fitted(self) -> bool:
        return self._fitted

    @property
    def history(self) -> int:
        """Steps that must stand before the first forecast."""
        spaced = 2 if self.model.time else 1  # two steps tell how far steps are apart
        return max(self.model.history, self.baselines.season, spaced)

    # ------------------------------------------------------------- learning
    def fit(
        self,
        train: Table,
        validation: Table | None = None,
        *,
        folder: Path | str | None = None,
        watchers: Sequence[Watcher] = (),
    ) -> Self:
        """validation: the steps right behind those to train on; without it, the last tenth of
        the steps is held out, at least a horizon."""
        part, numbers = steps_of(train, self.model)
        if validation is None:
            kept = len(part) - max(self.model.horizon, round(HELD_OUT * len(part)))
            own, held = cut(part, 0, max(kept, 0)), cut(part, max(kept, 0), len(part))
        else:
            own, held = part, steps_of(validation, self.model, numbers)[0]
        place = None if folder is None else RunFolder(folder)
        self.fit_parts(own, held, numbers, Fitting(place, watchers))
        return self

    def fit_parts(
        self,
        train: Collected,
        validation: Collected,
        numbers: Numbers,
        how: Fitting = IN_MEMORY,
    ) -> list[Outcome]:
        """validation: the steps right behind the training part."""
        own = self.model
        series = series_of(joined(train, validation), numbers, own)
        steps, ends = self._learn(series, len(train)), len(series) - own.horizon + 1
        if ends <= len(train):
            raise DataError(
                f"the validation part: expected at least {own.horizon} steps, a horizon, "
                f"got {len(validation)}"
            )
        for text in leaks(series, own, len(train)):
            for watcher in how.watchers:
                watcher(Said(text))
        windows, held = self._windows(series), np.arange(len(train), ends)
        outcomes = self._trained(windows, steps, held, series, how)
        self._calibrate(series, len(train))
        if own.refit:
            self._refit(windows, series, outcomes, how)
        self._fitted = True
        return outcomes

    def _learn(self, series: Series, train: int) -> Origins:
        """Scales, season and baseline of the training part; the origins of its windows."""
        own = self.model
        needed = own.history + own.horizon
        if train < needed:
            raise DataError(
                f"the training part: expected at least {needed} steps (look_back {own.look_back}"
                + f" + difference {own.difference}" * bool(own.difference)
                + f" + horizon {own.horizon}), got {train}; give more rows, or set a smaller "
                "model.look_back or model.horizon"
            )
        if own.season >= train:
            raise DataError(
                f"model.season: expected fewer steps than the training part has, {train}, "
                f"got {own.season}"
            )
        self.scale = ForecastScale.of(series, own, train)
        self.baselines = Baselines.of(series, own, train)
        values = series.values[:train, : len(own.targets)]
        self.units = Units(self.scale.unit, season_error(values, self.baselines.season))
        return np.arange(own.history, train - own.horizon + 1)

    def _trained(
        self,
        windows: Windows,
        origins: Origins,
        held: Origins,
        series: Series,
        how: Fitting,
    ) -> list[Outcome]:
        if self.model.family == "linear":
            network = cast(LinearForecast, self.fresh(self.train.seed))
            solve(network, windows, origins, self.model.ridge)
            self.networks = [network.eval()]
            with torch.no_grad():
                return [Outcome(0, 0, "solved", WindowScores(network, windows, held)(), None)]
        return self.fit_members(
            lambda seed: WindowSource(windows, origins, series.names, seed),
            lambda network: WindowScores(cast(ForecastNetwork, network), windows, held),
            how,
        )

    def _refit(
        self,
        windows: Windows,
        series: Series,
        outcomes: Sequence[Outcome],
        how: Fitting,
    ) -> None:
        """All again on every window, for as many updates as were best; nothing is left to stop
        by. Scales and intervals stay as they are."""
        own = self.model
        origins = np.arange(own.history, len(series) - own.horizon + 1)
        if own.family == "linear":
            solve(cast(LinearForecast, self.networks[0]), windows, origins, own.ridge)
            return
        for member, outcome in enumerate(outcomes):
            changed = {"seed": self.train.seed + member, "most_updates": outcome.best_update}
            settings = self.train.model_copy(update={**changed, "patience": None})
            network = self.fresh(settings.seed)
            place = None
            if how.folder is not None:
                place = RunFolder(how.folder.path / "refit" / str(member + 1))
            source = WindowSource(windows, origins, series.names, settings.seed)
            fit(network, source, None, settings, place, config=how.config or self.config())
            self.networks[member] = network.eval()

    def _calibrate(self, series: Series, train: int) -> None:
        """By the validation steps, each from every origin before it; the last windows are not
        whole, which only a model that reads nothing of the time ahead can do without."""
        own = self.model
        self.widening = np.zeros((own.horizon, len(own.targets)))
        if not own.calibrated:
            return
        origins = np.arange(train, len(series) - (own.horizon - 1) * bool(own.known))
        whole = series.lengthened(own.horizon)
        levels = self._levels(whole, origins)
        truth = self.scale.levels(whole, own)[:, : len(own.targets)]
        ahead = truth[origins[None] + np.arange(own.horizon)[:, None]]
        self.widening = widening(ahead, levels.low, levels.high, own.interval)

    def find_rate(self, train: Collected, numbers: Numbers) -> RateCurve:
        if self.model.family == "linear":
            raise OptionError("find-rate: the linear family is solved and has no learning rate")
        series = series_of(train, numbers, self.model)
        origins = self._learn(series, len(series))
        source = WindowSource(self._windows(series), origins, series.names, self.train.seed)
        return find_rate(self.fresh(self.train.seed), source, self.train)

    def build(self) -> nn.Module:
        return NETWORKS[self.model.family](self.model)

    # ------------------------------------------------------------- forecasts
    def _windows(self, series: Series) -> Windows:
        levels = self.scale.levels(series, self.model)
        return Windows(self.scale.inward(levels, series, self.model.calendar), self.model)

    def _levels(self, series: Series, origins: Origins) -> Levels:
        """The forecasts from these origins, before calibration."""
        networks = [cast(ForecastNetwork, network) for network in self.networks]
        levels = self.scale.levels(series, self.model)
        windows = Windows(self.scale.inward(levels, series, self.model.calendar), self.model)
        return rolled(networks, self.scale, windows, levels, origins, self.train.seed)

    def _forecasts(self, series: Series, origins: Origins) -> Levels:
        """In the units of the data, with calibrated intervals."""
        point, low, high = self._levels(series, origins)
        low, high = widened(low, high, self.widening)
        return Levels(*(self.scale.from_levels(own) for own in (point, low, high)))

    def backtest(self, table: Table) -> Backtest:
        """Forecasts of a series from every `stride`-th origin, its first `history` steps are
        only read."""
        self.must_be_fitted()
        return self._backtest(series_of(*steps_of(table, self.model), self.model))

    def _backtest(self, series: Series) -> Backtest:
        own = self.model
        origins = np.arange(self.history, len(series) - own.horizon + 1, own.stride)
        if not len(origins):
            raise DataError(
                f"evaluate: expected at least {self.history + own.horizon} steps, "
                f"{self.history} to begin with and a horizon of {own.horizon}, got {len(series)}"
            )
        values = series.values[:, : len(own.targets)]
        truth = values[origins[None] + np.arange(own.horizon)[:, None]]
        found = self._forecasts(series, origins)
        return Backtest(truth, *found, self.baselines.forecasts(series, origins), own.interval)

    def judge(self, part: Collected, numbers: Numbers) -> Evaluation:
        """The part begins with the `history` steps before those that are forecast."""
        found = self._backtest(series_of(part, numbers, self.model))
        return judged(found, self.units, self.train.seed)

    def evaluate(self, table: Table) -> Evaluation:
        """A backtest with rolling origin beside the baselines; the first `history` steps are
        only read."""
        self.must_be_fitted()
        return self.judge(*steps_of(table, self.model))

    def predict(self, inputs: Any, future: Table | None = None) -> list[ForecastStep]:
        """The `horizon` steps behind a series. future: what is known of them, if the model reads
        columns that are known ahead."""
        self.must_be_fitted()
        part, numbers = steps_of(inputs, self.model)
        if future is not None:
            own, _ = steps_of(future, self.model, numbers, file="future", ahead=True)
            part = joined(part, own)
        return self.answers(part, numbers)

    def answers(self, part: Collected, numbers: Numbers) -> list[ForecastStep]:
        """Steps at the end without targets are the time ahead, as far as it is known."""
        own, series = self.model, series_of(part, numbers, self.model)
        ahead = self._ahead(series)
        point, low, high = (own[:, 0] for own in self._forecasts(*ahead))
        times = times_ahead(series.begun(int(ahead[1][0])), own.horizon)
        return answered(times, own.targets, point, low, high)

    def _enough(self, steps: int) -> int:
        """So many steps, if they are a history."""
        if steps < self.history:
            raise DataError(
                f"predict: expected at least {self.history} steps to begin with, "
                f"got {max(0, steps)}"
            )
        return steps

    def _ahead(self, series: Series) -> tuple[Series, Origins]:
        """The series made long enough for one more window, and the origin of that."""
        own = self.model
        given = np.isnan(series.values[:, 0]).sum()
        now = self._enough(len(series) - int(given))
        if own.known and given < own.horizon:
            raise DataError(
                f"predict: expected {', '.join(own.known)} of the next {own.horizon} steps, which "
                f"this model reads, got {given}; give them as the future"
            )
        missing = own.horizon - int(given)
        return series.lengthened(missing) if missing > 0 else series, np.array([now])

    def picture(self, table: Table, target: str = "", *, held_out: bool = False) -> str:
        """The forecast of one target as SVG: behind the end of the series, or with `held_out` of
        its last horizon, with what came."""
        self.must_be_fitted()
        return self.drawn(series_of(*steps_of(table, self.model), self.model), target, held_out)

    def drawn(self, series: Series, target: str, held_out: bool) -> str:
        own = self.model
        name = target or own.targets[0]
        if name not in own.targets:
            raise unknown("target", name, own.targets)
        if held_out:
            whole, now = series, self._enough(len(series) - own.horizon)
            origin = np.array([now])
        else:
            whole, origin = self._ahead(series)
            now = int(origin[0])
        k = own.targets.index(name)
        point, low, high = (own[:, 0, k] for own in self._forecasts(whole, origin))
        name_of_best, best = list(self.baselines.forecasts(whole, origin).items())[-1]
        shown = SHOWN_BEFORE * max(own.horizon, self.baselines.season)
        before = series.values[max(0, now - shown) : now, k]
        times = [*series.times[:now], *times_ahead(series.begun(now), own.horizon)]
        if not series.times:
            times = [str(step) for step in range(1, now + own.horizon + 1)]
        view = View(
            f"{name}, {own.horizon} steps ahead",
            f"{self.describe()}; {100 * own.interval:g} % interval",
            times[-len(before) - own.horizon :],
            before,
            point,
            low,
            high,
            best[:, 0, k],
            name_of_best,
            series.values[now:, k] if held_out else None,
        )
        return draw(view)

    # ------------------------------------------------------------- as files
    def state(self) -> Saved:
        arrays = {"widening": self.widening}
        parts = {"units": self.units._asdict(), "scale": self.scale.arrays()}
        parts["baselines"] = self.baselines.arrays()
        arrays |= {f"{name}.{key}": v for name, own in parts.items() for key, v in own.items()}
        facts = {**self.settings_facts(), "season": self.baselines.season}
        return Saved(self.kind, facts, {}, arrays, network_files(self.networks))

    @classmethod
    def of_saved(cls, saved: Saved) -> Self:
        facts = saved.facts
        found = cls(facts["text"], facts["model"], facts["train"], members=facts["members"])
        own = found.model
        found.widening, found.units = saved.arrays["widening"], Units(**saved.part("units"))
        found.scale = ForecastScale(own.transform, own.difference, **saved.part("scale"))
        found.baselines = Baselines.of_arrays(saved.part("baselines"), facts["season"], own)
        found.networks = networks_of(saved, found.build)
        found._fitted = True
        return found

    # ------------------------------------------------------------- to be looked at
    def describe(self) -> str:
        own = self.model
        what = {
            "linear": "weighted sum of the window",
            "segment": f"{own.cell} of {own.hidden_size} over segments of {own.segment} steps",
            "direct": f"{own.layers} × {own.cell} of {own.hidden_size}, all steps at once",
            "recurrent": f"{own.layers} × {own.cell} of {own.hidden_size}, step by step",
        }[own.family]
        return f"{what}; {own.look_back} steps back, {own.horizon} ahead"

    def summary(self) -> str:
        lines = [f"{type(self).__name__}: {self.describe()}"]
        if self._fitted:
            lines.append(self.size_line())
            steps = self.baselines.season
            season = f"a season of {steps} steps" if steps > 1 else "no season"
            lines.append(f"  {', '.join(self.model.targets)}: {season}")
        return "\n".join(lines)
