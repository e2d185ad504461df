"""What is done with a trained run: its test part opened, and answers to new rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ensue.errors import DataError, RunError
from ensue.models.collect import Collector, Numbers
from ensue.models.estimator import Estimator
from ensue.models.evaluation import Evaluation
from ensue.models.saved import read_model
from ensue.runs.config import TASKS, DataSettings, RunConfig
from ensue.runs.parts import Reading, digest_of
from ensue.training import RunFolder

OPENINGS = "test-openings.jsonl"
AT_ONCE = 1000  # rows predicted together


@dataclass(frozen=True)
class Opened:
    """An evaluation, and how often this test part has been looked at, by any run beside."""

    evaluation: Evaluation
    by_this_run: int
    by_all: int


def load_run(folder: RunFolder) -> tuple[RunConfig, Estimator]:
    if not folder.config.exists():
        raise RunError(f"{folder.path}: there is no run here; train one with `ensue train`")
    if not folder.model.is_dir():
        raise RunError(
            f"{folder.path}: this run has not ended yet; `ensue train --run {folder.path}` goes on"
        )
    saved = read_model(folder.model)
    if saved.kind not in TASKS:
        raise RunError(f"{folder.model}: unknown kind of model {saved.kind!r}")
    return RunConfig.read(folder.config), TASKS[saved.kind].of_saved(saved)


def evaluate_run(folder: RunFolder, test: list[str], part: str = "test") -> Opened:
    """Opens the test part (or files given as such), and writes down that it was opened."""
    config, model = load_run(folder)
    data = config.data.model_copy(update={"test": test}) if test else config.data
    if part == "test" and data.validation and not data.test:
        raise DataError(f"{folder.path}: this run has no test part; give a file with --test")
    several = bool(getattr(config.model, "several", False))
    numbers = Numbers()
    rows = Reading(data, several).collect(part, numbers, model.tokeniser)
    found = model.judge(rows, numbers)
    if part != "test":
        return Opened(found, 0, 0)
    digest = digest_of(data.test or data.train)
    ours, all_ = _record(folder, digest, found)
    return Opened(found, ours, all_)


def _record(folder: RunFolder, digest: str, found: Evaluation) -> tuple[int, int]:
    """One more line beside the runs, and how many there are of this test part."""
    place = folder.path.resolve().parent / OPENINGS
    run = folder.path.resolve().name
    line = {
        "test": digest,
        "run": run,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        found.main: found.scores[found.main].value,
    }
    with open(place, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    lines = [json.loads(text) for text in place.read_text("utf-8").splitlines() if text.strip()]
    same = [own for own in lines if own["test"] == digest]
    return sum(own["run"] == run for own in same), len(same)


# --- answers -------------------------------------------------------------------------------


def predict_texts(model: Estimator, texts: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """(text, answer) for each line, as many at a time as make a good batch."""
    waiting: list[str] = []
    for text in texts:
        waiting.append(text)
        if len(waiting) == AT_ONCE:
            yield from zip(waiting, model.predict(waiting), strict=True)
            waiting.clear()
    if waiting:
        yield from zip(waiting, model.predict(waiting), strict=True)


def predict_files(
    model: Estimator, data: DataSettings, paths: list[str]
) -> Iterator[tuple[str, Any, Any]]:
    """(place, input, answer) for each row of files that look like the training files; labels
    are not needed and not read."""
    reading = Reading(replace_label(data), several=False)
    collector, numbers, values = None, Numbers(), list[tuple[str, Any]]()
    for row in reading.gathered(paths):
        if collector is None:
            numbers = Numbers()
            collector = Collector(numbers, model.tokeniser)
        value = reading.value(row)
        collector.add(value, None, *row.place)
        values.append((str(row.place), value))
        if len(values) == AT_ONCE:
            yield from _answered(model, collector, numbers, values)
            collector, values = None, []
    if collector is not None:
        yield from _answered(model, collector, numbers, values)


def _answered(
    model: Estimator, collector: Collector, numbers: Numbers, values: list[tuple[str, Any]]
) -> Iterator[tuple[str, Any, Any]]:
    answers = model.answers(collector.done(), numbers)
    for (place, value), answer in zip(values, answers, strict=True):
        yield place, value, answer


def replace_label(data: DataSettings) -> DataSettings:
    return data.model_copy(update={"label": "", "group": "", "separator": ""})
