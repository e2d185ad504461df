"""Forecasts as runs: a series read from its files and cut in the order of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ensue.data.rows import Row
from ensue.data.series import number_of
from ensue.errors import DataError, OptionError
from ensue.models.collect import Collected, Numbers
from ensue.models.forecast_answer import ForecastStep
from ensue.models.forecast_settings import ForecastSettings
from ensue.models.forecast_steps import divided, joined, read_steps, series_of
from ensue.models.forecast_times import moment_of
from ensue.models.forecaster import Forecaster
from ensue.models.task_model import TaskModel
from ensue.runs.config import DataSettings, RunConfig
from ensue.runs.parts import read_options


@dataclass(frozen=True)
class Steps:
    """The series of a run. history: steps before a part that its forecasts read."""

    data: DataSettings
    settings: ForecastSettings
    history: int = 0

    def collect(self, part: str, numbers: Numbers) -> Collected:
        """train, validation, or, with their history, "validated" and test. A part with files of
        its own is all of their rows; the other ones are cut from the training files."""
        files = {"train": self.data.train, "validation": self.data.validation}
        files |= {"validated": self.data.validation, "test": self.data.test}
        if part == "train":
            whole = self._read(self.data.train, numbers)
            return whole if self.data.validation else self._cut(whole)[part]
        if files[part]:
            return self._read(files[part], numbers)
        return self._cut(self._read(self.data.train, numbers))[part]

    def _cut(self, whole: Collected) -> dict[str, Collected]:
        return divided(whole, self.settings, self.history)

    def _read(self, paths: Sequence[str], numbers: Numbers) -> Collected:
        return read_steps(paths, self.settings, numbers, read_options(self.data))


def series_steps(config: RunConfig, history: int = 0) -> Steps | None:
    """The series of a run that forecasts one."""
    if not isinstance(config.model, ForecastSettings):
        return None
    return Steps(config.data, config.model, history)


def forecaster(model: TaskModel, what: str) -> Forecaster:
    if not isinstance(model, Forecaster):
        raise OptionError(f"{what}: expected a run of a forecaster, got one to {model.kind}")
    return model


def steps_behind(
    model: Forecaster, config: RunConfig, files: Sequence[str], future: Sequence[str]
) -> list[ForecastStep]:
    """The steps behind the files, or behind those that the run was trained with. future: files
    with what is known of them."""
    return model.answers(*_whole(model, config, files, future))


def picture_ahead(
    model: Forecaster, config: RunConfig, files: Sequence[str], future: Sequence[str]
) -> str:
    """The same of the first target, drawn."""
    return model.drawn(series_of(*_whole(model, config, files, future), model.model), "", False)


def picture_of_part(
    model: Forecaster, config: RunConfig, test: Sequence[str], validation: bool
) -> str:
    """The last horizon of a part that is evaluated, with what came; no other part is drawn."""
    data = config.data.model_copy(update={"test": list(test)}) if test else config.data
    numbers, steps = Numbers(), Steps(data, model.model, model.history)
    part = steps.collect("validated" if validation else "test", numbers)
    return model.drawn(series_of(part, numbers, model.model), "", True)


def _whole(
    model: Forecaster, config: RunConfig, files: Sequence[str], future: Sequence[str]
) -> tuple[Collected, Numbers]:
    numbers, options, own = Numbers(), read_options(config.data), model.model
    paths = files or [*config.data.train, *config.data.validation, *config.data.test]
    part = read_steps(paths, own, numbers, options)
    if future:
        part = joined(part, read_steps(future, own, numbers, options, ahead=True))
    return part, numbers


# --- what nobody said ----------------------------------------------------------------------


def columns_of(rows: Sequence[Row], given: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of [model] that the first rows tell: the column of the time, and the target if
    there is only one column of numbers."""
    names, found = list(rows[0].fields), dict[str, Any]()
    if "time" not in given:
        times = [name for name in names if _dates(rows, name)]
        found |= {"time": times[0]} if times else {}
    if "targets" not in given:
        numbers = [n for n in names if all(number_of(r.fields.get(n)) is not None for r in rows)]
        if len(numbers) != 1:
            raise DataError(
                f"{rows[0].place}: expected one column of numbers to forecast, got "
                f"{', '.join(numbers) or 'none'}; name it with --target"
            )
        found["targets"] = numbers
    return found


def _dates(rows: Sequence[Row], name: str) -> bool:
    """Whether a column holds dates; numbers may be times or not, and are left to the user."""
    for row in rows:
        value = row.fields.get(name)
        if not isinstance(value, str) or number_of(value) is not None:
            return False
        try:
            moment_of(value, name, "")
        except DataError:
            return False
    return True


def split_line(config: RunConfig) -> str:
    """How the series is cut."""
    assert isinstance(config.model, ForecastSettings)
    own = config.model.split
    shares = sum(own) <= 1 + 1e-9
    shown = [f"{100 * part:g} %" if shares else f"{part:g} steps" for part in own]
    names = zip(("train", "validation", "test"), shown, strict=True)
    return "split: " + ", ".join(f"{part} {name}" for name, part in names) + ", in order of time"
