"""The next steps of a series, each between bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from torch import nn

from ensue.data.frames.origin import FILES, Origin
from ensue.data.rows import Problem, ProblemCallback
from ensue.data.settings import DataSettings
from ensue.drawing import write
from ensue.errors import DataError
from ensue.metrics.table import ERROR, NUMBER_METRICS
from ensue.tasks.abilities import NOTHING, RequestOptions
from ensue.tasks.any_model import AnyModel
from ensue.tasks.declarations import Unfit
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.exported import Exported
from ensue.tasks.forecast.answer import ForecastStep, SeriesForecast
from ensue.tasks.forecast.calibration import calibrated
from ensue.tasks.forecast.draws import ForecastDraws, drawn_ahead, drawn_end
from ensue.tasks.forecast.evaluation import Backtest, ForecastEvaluation, evaluation_of
from ensue.tasks.forecast.families import FAMILIES, search_of
from ensue.tasks.forecast.forecasts import (
    ForecastModel,
    backtest,
    origins_of,
)
from ensue.tasks.forecast.learned import LearnedSeries, check_length
from ensue.tasks.forecast.members.averaging import ForecastAverages
from ensue.tasks.forecast.members.exported import exported
from ensue.tasks.forecast.networks import ForecastNetwork
from ensue.tasks.forecast.options import OPTIONS
from ensue.tasks.forecast.part import (
    SeriesPart,
    WindowScores,
    WindowSource,
    divided,
    following,
    joined,
)
from ensue.tasks.forecast.settings import MIXED, ForecastSettings
from ensue.tasks.forecast.tables.reading import SeriesTable, part_of_files, part_of_table
from ensue.tasks.forecast.tables.recipe import leaks, recipe_of
from ensue.tasks.forecast.tables.recognise import recognised, series_guess
from ensue.tasks.model import Model
from ensue.tasks.reader import HELD_OUT, NO_COLUMNS, DatasetReader, QuestionFiles, Questions
from ensue.tasks.sample import Guess, Sample
from ensue.tasks.saved import Saved
from ensue.tasks.search.ranges import Space
from ensue.tasks.splits import HashSplit
from ensue.tasks.task import AnswerShape, Recipe, Task

# Metrics that are means over numbers, so that they can be averaged over batches of windows.
METRICS = (*(metric for metric in NUMBER_METRICS if metric.name in ("cost", "mae")), ERROR)

CHOOSING = "choosing seasonal, ridge and smoothing models by forecasts from earlier origins"


class SeriesFiles:
    """The parts of a run's series. A part with separate files has all their steps; others are split
    off the training files, in the order of time."""

    def __init__(
        self,
        data: DataSettings,
        settings: ForecastSettings,
        origin: Origin = FILES,
        on_bad_row: ProblemCallback | None = None,
    ) -> None:
        self._data, self._settings, self._origin = data, settings, origin
        self._on_bad_row, self.rejected = on_bad_row, 0

    @cached_property
    def _whole(self) -> SeriesPart:
        return self.read(self._data.train)

    def read(self, paths: Sequence[str], *, ahead: bool = False) -> SeriesPart:
        """Reads series. ahead: files of future steps, without targets."""
        self.rejected = 0
        return part_of_files(
            paths,
            self._settings,
            self._data.model_copy(update={"label": "", "group": ""}).read_options(),
            ahead=ahead,
            origin=self._origin,
            skip_bad=self._data.skip_bad,
            on_bad_row=self._rejected,
        )

    def _rejected(self, problem: Problem) -> None:
        self.rejected += problem.rejects
        if self._on_bad_row is not None:
            self._on_bad_row(problem)

    def part(self, name: str, like: SeriesPart | None = None) -> SeriesPart:
        """Reads a part. like: the training part, which is the history of a validation part."""
        if name == "train":
            cut = self._whole if self._data.validation else self._divided(name)
            return cut
        if name == "test":
            return self.read(self._data.test) if self._data.test else self._divided(name)
        if not self._data.validation:
            return self._divided(name)
        part = self.read(self._data.validation)
        return part if like is None else following(like, part)

    def _divided(self, name: str) -> SeriesPart:
        part = divided(self._whole, self._settings)[name]
        if not len(part):
            split = self._settings.split
            raise DataError(
                f"{', '.join(self._data.train)}: no step falls into the {name} part: the series "
                f"has {int(self._whole.series.lengths.max())} steps, and model.split is {split}"
            )
        return part


class SeriesReader(DatasetReader[SeriesPart]):
    """Series from files, frames and memory."""

    def files(
        self, data: DataSettings, on_bad_row: ProblemCallback | None = None, origin: Origin = FILES
    ) -> SeriesFiles:
        return SeriesFiles(data, self.model.settings, origin, on_bad_row)

    def labelled(
        self,
        rows: Any,
        columns: Mapping[str, str] = NO_COLUMNS,
        before: SeriesPart | None = None,
    ) -> SeriesPart:
        part = part_of_table(rows, self.model.settings)
        return part if before is None else following(before, part)

    def hold_out(self, part: SeriesPart) -> tuple[SeriesPart, SeriesPart]:
        """The last tenth of the steps, at least a horizon."""
        bounds = part.series.bounds
        lengths = bounds[1:] - part.begins
        tenth = np.round(HELD_OUT * lengths).astype(np.int64)
        ends = np.maximum(bounds[1:] - np.maximum(self.model.settings.horizon, tenth), part.begins)
        return part.between(part.begins, ends), replace(part, begins=ends, notes=())

    def remarks(self, train: SeriesPart, validation: SeriesPart) -> list[str]:
        return [*train.notes, *validation.notes, *leaks(train.series, self.model.settings)]

    def questions(self, inputs: Any, options: RequestOptions = NOTHING) -> SeriesPart:
        settings = self.model.settings
        part, future = part_of_table(inputs, settings), options.get("future")
        if future is None:
            return part
        return joined(part, part_of_table(future, settings, file="future", ahead=True))

    def question_files(
        self, files: QuestionFiles, options: RequestOptions = NOTHING
    ) -> Iterator[Questions[SeriesPart]]:
        """Questions: the series that the files contain; without files, those of the run."""
        settings, future, data = self.model.settings, options.get("future"), files.data
        series = SeriesFiles(data, settings, files.origin, files.on_bad_row)
        part = series.read(files.paths or [*data.train, *data.validation, *data.test])
        if isinstance(future, list) and all(isinstance(path, str) for path in future):
            part = joined(part, SeriesFiles(data, settings).read(future, ahead=True))
        elif future is not None:
            part = joined(part, part_of_table(future, settings, file="future", ahead=True))
        yield Questions(part)

    def question_keys(self, origin: Origin) -> tuple[str, ...]:
        return ()


class RefitsBothParts:
    """Networks are trained again on the steps of both parts."""

    def part(
        self, train: SeriesPart, validation: SeriesPart, model: ForecastModel
    ) -> SeriesPart | None:
        return joined(train, validation) if model.settings.refit else None


class TimeSplit(HashSplit):
    """A split by time: the first steps of each series for training, the last ones for testing."""

    def line(self, data: DataSettings, settings: ForecastSettings) -> str:
        if data.validation:
            return super().line(data, settings)
        values = [
            f"{100 * part:g} %" if settings.split_in_shares else f"{part:g} steps"
            for part in settings.split
        ]
        names = zip(("train", "validation", "test"), values, strict=True)
        parts = ", ".join(f"{part} {name}" for name, part in names)
        return f"split: {parts}, in order of time"

    def moves_with_files(self, data: DataSettings) -> bool:
        return True


class Forecast(Task[ForecastSettings, SeriesPart, LearnedSeries]):
    """The next steps of one or many variables of a series, with intervals."""

    name = "forecast"
    compared_on = ("data", "model.targets", "model.horizon", "model.split")
    ranked_by = "mae"  # the cost of a distribution is not an error metric
    settings = ForecastSettings
    learned_class = LearnedSeries
    train_defaults: ClassVar[Mapping[str, Any]] = {"epochs": 100, "patience": 10}
    metrics = METRICS
    families = FAMILIES
    options = OPTIONS
    columns: ClassVar[Mapping[str, str]] = {
        "time": "model.time",
        "target": "model.targets",
        "covariates": "model.covariates",
        "known": "model.known",
        "group": "model.ids",
        "static": "model.static",
    }
    adapts = True
    needs_input = False
    evaluation_class = ForecastEvaluation
    draws = ForecastDraws()
    averages = ForecastAverages()
    refits = RefitsBothParts()
    split = TimeSplit()

    # ------------------------------------------------------------- recognised
    def recognise(self, sample: Sample) -> Guess | DataError | None:
        return recognised(sample)

    def infer(self, sample: Sample) -> Guess:
        return series_guess(sample)

    # ------------------------------------------------------------- read
    def reader(self, model: AnyModel) -> SeriesReader:
        return SeriesReader(model)

    # ------------------------------------------------------------- learned
    def announcement(self, step: str, settings: ForecastSettings) -> str:
        if step == "calibrate":
            return "fitting shares and intervals on the validation part"
        return CHOOSING if settings.family in MIXED else ""

    def learn(
        self, train: SeriesPart, validation: SeriesPart, model: ForecastModel
    ) -> LearnedSeries:
        settings = model.settings
        whole = (
            validation.series if (validation.begins > validation.series.bounds[:-1]).any() else None
        )
        check_length(train.series, settings)
        _check_validation(validation, settings)
        return LearnedSeries.learn(train.series, settings, whole)

    def fitted_settings(self, train: SeriesPart, model: ForecastModel) -> Recipe:
        return recipe_of(train, model.settings, model.explicit["model"])

    def search_space(self, train: SeriesPart, model: ForecastModel) -> Space:
        usual = super().search_space(train, model)
        return {**usual, **search_of(model.settings, int(train.series.lengths.min()))}

    def source(self, train: SeriesPart, model: ForecastModel, seed: int) -> WindowSource:
        windows = model.learned.windows(train.series, model.settings)
        origins = origins_of(train, model.settings)
        return WindowSource(windows, origins, train.series.names, seed)

    def validation(
        self, network: nn.Module, part: SeriesPart, model: ForecastModel
    ) -> WindowScores:
        windows = model.learned.windows(part.series, model.settings)
        origins = origins_of(part, model.settings)
        network = cast(ForecastNetwork, network)
        return WindowScores(network, windows, origins, self.metrics, model.train.watch)

    def calibrate(self, validation: SeriesPart, model: ForecastModel) -> LearnedSeries:
        return calibrated(validation, model)

    # ------------------------------------------------------------- asked
    def answer_shape(self, model: ForecastModel) -> AnswerShape:
        return AnswerShape(time=model.settings.time)

    def answers(
        self, part: SeriesPart, model: ForecastModel, options: RequestOptions = NOTHING
    ) -> SeriesForecast:
        """The steps after the part. Steps at its end without targets count as known steps ahead."""
        averages = self.averages
        return averages.answers(averages.outputs(part, model), part, model, options)

    def evaluate(
        self, part: SeriesPart, model: ForecastModel, options: RequestOptions = NOTHING
    ) -> Evaluation:
        """A backtest with rolling origin, next to the baselines."""
        return evaluation_of(backtest(model, part), model.learned.units, model.train.seed)

    # ------------------------------------------------------------- kept, looked at
    def exported(self, model: ForecastModel) -> Exported:
        return exported(model)

    def unpack(self, saved: Saved, model: ForecastModel) -> LearnedSeries:
        if not saved.networks:
            raise Unfit("expected one or more, got none", "networks")
        learned = super().unpack(saved, model)
        if bool(learned.scale.ids) != bool(model.settings.ids):
            raise Unfit(f"expected {len(model.settings.ids)} for each series, got others", "ids")
        return learned

    def facts(self, model: ForecastModel) -> list[str]:
        steps = model.learned.baselines.season
        season = f"a season of {steps} steps" if steps > 1 else "no season"
        return [f"{', '.join(model.settings.targets)}: {season}"]


def _check_validation(validation: SeriesPart, settings: ForecastSettings) -> None:
    """Raises an error if the validation part is too short for one horizon."""
    bounds = validation.series.bounds
    # steps that can only be read
    missing = np.maximum(0, settings.history - (validation.begins - bounds[:-1]))
    left = bounds[1:] - validation.begins - missing
    if left.max() < settings.horizon:
        k = int(left.argmax())
        begin = f"{missing[k]} to begin with and " * bool(missing[k])
        raise DataError(
            f"the validation part: expected at least {missing[k] + settings.horizon} steps, "
            f"{begin}a horizon, got {bounds[k + 1] - validation.begins[k]}; give more rows, or set "
            "a smaller model.horizon"
        )


TASK = Forecast()


class Forecaster(Model[ForecastSettings, SeriesPart, LearnedSeries, ForecastStep]):
    """The next steps of one or many variables, with intervals.

    A series is passed as columns by name or as a list of rows, in the order of time; columns known
    ahead as `predict(columns, future=columns)`. Everything, including scales and seasons, is
    learned from the training part. The validation part, the steps right after it, determines early
    stopping and the width of intervals.

    >>> series = {"sales": [0.0, 1.0, 2.0, 3.0] * 12}
    >>> model = Forecaster(model={"family": "linear", "horizon": 2, "look_back": 4})
    >>> ahead = model.fit(series, target="sales").predict(series)
    >>> [round(step.expected["sales"].value) for step in ahead]
    [0, 1]
    """

    task = TASK

    @property
    def history(self) -> int:
        """Number of steps needed before the first forecast."""
        return self.learned.history(self.settings)

    def backtest(self, table: SeriesTable) -> Backtest:
        """Forecasts of a series from every `stride`-th origin; its first `history` steps are only
        read."""
        self.must_be_fitted()
        return backtest(self, part_of_table(table, self.settings))

    def picture(
        self,
        table: SeriesTable,
        file: Path | str | None = None,
        *,
        target: str = "",
        held_out: bool = False,
        theme: str = "auto",
    ) -> str:
        """The forecast of every target, or of one, as SVG: of the steps after the series, or with
        `held_out` of its last horizon with actual values. file: also writes it as .svg, .png or
        .pdf; theme: the theme of the file: light, dark or auto, which follows its reader."""
        self.must_be_fitted()
        drawn = drawn_end if held_out else drawn_ahead
        svg = drawn(self, part_of_table(table, self.settings).series, target)
        if file is not None:
            write(svg, file, theme)
        return svg
