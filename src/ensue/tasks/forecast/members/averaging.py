"""The mean forecast of several models."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ensue.tasks.abilities import Averages, Outputs, RequestOptions
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.evaluation.summary import Summary, summary_of
from ensue.tasks.forecast.answer import ForecastStep, SeriesForecast, answered
from ensue.tasks.forecast.evaluation import (
    Backtest,
    Units,
    evaluation_of,
    levels_asked,
    mean_of,
)
from ensue.tasks.forecast.forecasts import (
    ForecastModel,
    backtest_of,
    backtest_origins,
    forecasts,
    next_window,
    origins_of,
    truth_of,
)
from ensue.tasks.forecast.part import SeriesPart

Array = NDArray[np.float64]


class ForecastAverages(Averages):
    """Outputs are forecasts in the units of the data, (kinds, horizon, windows, targets): the
    point, both bounds, and the quantiles of the settings. There is one for all networks of a model,
    which are calibrated together."""

    def alone(self, model: ForecastModel) -> bool:
        """Never: the scores of networks are in their own scale, but answers are not."""
        return False

    def outputs(self, part: SeriesPart, model: ForecastModel) -> list[Array]:
        """The outputs for the steps after the part."""
        window, quantiles = next_window(model, part.series), model.settings.quantiles
        predicted = forecasts(model, window.series, window.origins, bool(quantiles))
        places = [levels_asked(model.settings).index(level) for level in quantiles]
        every = [
            predicted.point,
            predicted.low,
            predicted.high,
            *(predicted.quantiles[k] for k in places),
        ]
        return [np.stack(every)]

    def gold_outputs(self, part: SeriesPart, model: ForecastModel) -> list[Array]:
        """The outputs for the steps after every origin of a backtest."""
        predicted = forecasts(model, part.series, backtest_origins(model, part))
        return [np.stack(predicted[:3])]

    def out_of_sample(self, validation: SeriesPart, model: ForecastModel) -> list[Array]:
        """The point forecasts only."""
        out_of_sample = model.learned.out_of_sample
        assert out_of_sample is not None
        return [out_of_sample[None]]

    def summary(self, validation: SeriesPart, model: ForecastModel) -> Summary | None:
        """The score next to the usual baselines, from the origins that have enough steps before
        them."""
        settings, learned, series = model.settings, model.learned, validation.series
        origins = origins_of(validation, settings)
        owner = series.owner[origins - 1]
        enough = origins - series.bounds[owner] >= learned.history(settings)
        if not enough.any():
            return None
        origins, owner = origins[enough], owner[enough]
        point = _mean(self.out_of_sample(validation, model))[0][:, enough]
        known = {key: k for k, key in enumerate(learned.scale.ids)}
        backtest = Backtest(
            truth_of(series, origins, settings),
            point,
            point,  # without intervals
            point,
            learned.baselines.forecasts(series, origins),
            settings.interval,
            owner,
            series.ids,
            np.array([known.get(key, -1) for key in series.ids]),
        )
        return summary_of(evaluation_of(backtest, learned.units, model.train.seed))

    def scores(
        self, outputs: Outputs, validation: SeriesPart, model: ForecastModel
    ) -> dict[str, float]:
        """Scores of numbers scaled by the spread of the training part."""
        origins, learned = origins_of(validation, model.settings), model.learned
        off = _mean(outputs)[0] - truth_of(validation.series, origins, model.settings)
        known = {key: k for k, key in enumerate(learned.scale.ids)}
        rows = np.array([known.get(key, -1) for key in validation.series.ids])
        units: Units = learned.units.of_windows(rows[validation.series.owner[origins - 1]])
        scaled = off / units.spread
        return {"mae": float(mean_of(np.abs(scaled))), "error": float(mean_of(scaled**2))}

    def answers(
        self, outputs: Outputs, part: SeriesPart, model: ForecastModel, options: RequestOptions
    ) -> SeriesForecast:
        """The steps after the part. Steps at its end without targets count as known steps ahead."""
        from ensue.tasks.forecast.draws import end_of  # most answers need no pictures

        settings, series = model.settings, part.series
        window = next_window(model, series)
        bounds = np.moveaxis(_mean(outputs), 0, -1)  # (horizon, windows, targets, kinds)
        steps: list[ForecastStep] = []
        for k in range(series.count):
            only = series.only(k)
            now = int(window.origins[k] - window.series.bounds[k])
            times = only.until(now).times_after(0, settings.horizon)
            ids = dict(zip(settings.ids, only.ids[0], strict=True))
            steps += answered(times, settings.targets, bounds[:, k], ids, settings.quantiles)
        now = int(window.origins[0] - window.series.bounds[0])
        return SeriesForecast(steps, end_of(model, series.only(0), now))

    def evaluate(
        self, outputs: Outputs, part: SeriesPart, model: ForecastModel, options: RequestOptions
    ) -> Evaluation:
        """A backtest with rolling origin, next to the baselines."""
        backtest = backtest_of(model, part, _mean(outputs))
        return evaluation_of(backtest, model.learned.units, model.train.seed)


def _mean(outputs: Outputs) -> Array:
    return np.asarray(sum(outputs) / len(outputs), np.float64)
