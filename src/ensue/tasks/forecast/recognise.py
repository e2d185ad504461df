"""What the data tell of a series: the column of the time, and the column to forecast."""

from __future__ import annotations

from typing import Any

from ensue.data.series import number_of
from ensue.errors import DataError, OptionError
from ensue.tasks.forecast.calendar import moment_of
from ensue.tasks.forecast.options import OPTIONS
from ensue.tasks.options import TRAIN
from ensue.tasks.sample import Guess, Sample


def options_given(sample: Sample) -> list[str]:
    """The words of forecasting that were said."""
    model = sample.settings.get("model", {})
    words = {option.key: option.flag for option in OPTIONS if TRAIN in option.verbs}
    return [flag for key, flag in words.items() if key.removeprefix("model.") in model]


def series_guess(sample: Sample) -> Guess:
    """The keys of [model] that nobody said. The label of other tasks names the targets here."""
    refuse_skipping(sample.data.skip_bad)
    given, label = sample.settings.get("model", {}), sample.data.label
    found: dict[str, Any] = {}
    if "time" not in given:
        times = [name for name in sample.columns if _dates(sample, name)]
        found |= {"time": times[0]} if times else {}
    if "targets" not in given:
        found["targets"] = _names(label) if label else _only_numbers(sample)
    flags = ", ".join(options_given(sample))
    why = f"{flags} given" if flags else "one step of a series in each row"
    return Guess(why, {"label": ""} if label else {}, {"model": found} if found else {})


def refuse_skipping(skip_bad: bool) -> None:
    if skip_bad:
        raise OptionError(
            "--skip-bad: a series cannot leave steps out, for those after them would move; "
            "fill the cells in"
        )


def _names(listed: str) -> list[str]:
    """a,b → the names a and b."""
    return [name.strip() for name in listed.split(",") if name.strip()]


def _only_numbers(sample: Sample) -> list[str]:
    """The one column of numbers."""
    numbers = [name for name in sample.columns if sample.numeric(name)]
    if len(numbers) != 1:
        raise DataError(
            f"{sample.place}: expected one column of numbers to forecast, got "
            f"{', '.join(numbers) or 'none'}; name it with {sample.word('target')}. "
            f"Columns: {', '.join(sample.columns)}"
        )
    return numbers


def _dates(sample: Sample, name: str) -> bool:
    """Whether a column holds dates; numbers may be times or not, and are left to the user."""
    for value in sample.values(name):
        if not isinstance(value, str) or number_of(value) is not None:
            return False
        try:
            moment_of(value, name, "")
        except DataError:
            return False
    return True
