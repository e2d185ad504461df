"""What is done with a trained run: its test part opened, and answers to new rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from ensue.data.rows import Tell
from ensue.errors import DataError, EnsueError, OptionError, RunError
from ensue.models.captioner import Captioner
from ensue.models.collect import Collector, Numbers
from ensue.models.evaluation import Evaluation
from ensue.models.forecaster import Forecaster
from ensue.models.image_model import ImageModel
from ensue.models.saved import read_model
from ensue.models.speaker import Speaker
from ensue.models.table_model import TableModel
from ensue.models.task_model import TaskModel
from ensue.runs.captions import Captions, describe, rows_to_describe
from ensue.runs.config import TASKS, RunConfig
from ensue.runs.forecast import Steps
from ensue.runs.images import Pictures, predict_pictures, rows_to_predict
from ensue.runs.parallel import sides_of
from ensue.runs.parts import Example, Reading, digest_of, inputs_of
from ensue.runs.train import label_tokeniser
from ensue.runs.trained_on import split_still_holds
from ensue.training import RunFolder
from ensue.training.disk import disk_errors

OPENINGS = "test-openings.jsonl"
AT_ONCE = 1000  # rows predicted together
T = TypeVar("T")


@dataclass(frozen=True)
class Opened:
    """An evaluation, and how often this test part has been looked at, by any run beside."""

    evaluation: Evaluation
    by_this_run: int
    by_all: int


def load_run(folder: RunFolder) -> tuple[RunConfig, TaskModel]:
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


def evaluate_run(
    folder: RunFolder,
    test: list[str],
    part: str = "test",
    say: Callable[[str], None] = lambda line: None,
    reading: Mapping[str, Any] = MappingProxyType({}),
) -> Opened:
    """Opens the test part (or files given as such), and writes down that it was opened. say:
    hears of files that the model was trained with, and of rows left out; reading: keys of [data]
    in the place of the run's."""
    config, model = load_run(folder)
    data = config.data.model_copy(update={**reading, **({"test": test} if test else {})})
    if part == "test" and data.validation and not data.test:
        raise DataError(f"{folder.path}: this run has no test part; give a file with --test")
    if test and part != "test":
        raise OptionError("--test and --validation: expected one of them, got both")
    split_off = not (data.validation if part == "validation" else data.test)
    if split_off and (warning := split_still_holds(folder, config)):
        say(warning)
    learned = resolved([*config.data.train, *config.data.validation])
    for path in test:
        if learned & resolved([path]):
            say(f"{path}: this run was trained with this file: the scores will be too good")
    numbers = Numbers()
    if isinstance(model, Forecaster):
        steps = Steps(data, model.model, model.history)
        rows = steps.collect("validated" if part == "validation" else part, numbers)
    elif isinstance(model, ImageModel):
        rows = Pictures(data, model.model).collect(part, numbers, model.shape)
    elif isinstance(model, Captioner):
        rows = Captions(data, model).collect(part, numbers, model.shape)
    else:
        read = Reading(data, config.steps, pairs=config.pairs, table=config.tabular)
        rows = read.collect(part, numbers, model.tokeniser, label_tokeniser(model))
        if read.rejected:
            say(f"{read.rejected:,} bad row{'s' * (read.rejected > 1)} left out")
    if not len(rows):
        raise DataError(
            f"{folder.path}: no row falls into the {part} part: too few rows were split by their "
            "hash; give a file with --test"
        )
    found = model.judge(rows, numbers)
    if part != "test":
        return Opened(found, 0, 0)
    digest = digest_of(data.test or data.train)
    ours, by_all = _record(folder, digest, found)
    return Opened(found, ours, by_all)


def resolved(paths: Iterable[str]) -> set[Path]:
    """Every file by itself."""
    return {Path(side).resolve() for path in paths for side in sides_of(path)}


def _record(folder: RunFolder, digest: str, found: Evaluation) -> tuple[int, int]:
    """One more line beside the runs, and how many there are of this test part."""
    place = folder.path.resolve().parent / OPENINGS
    run = folder.path.resolve().name
    line = json.dumps(
        {
            "test": digest,
            "run": run,
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            found.main: found.scores[found.main].value,
        }
    )
    with disk_errors(place, len(line)), open(place, "a", encoding="utf-8") as file:
        file.write(line + "\n")
    same = [own for own in _openings(place) if own["test"] == digest]
    return sum(own["run"] == run for own in same), len(same)


def _openings(place: Path) -> Iterator[dict[str, str]]:
    for number, text in enumerate(place.read_text("utf-8").splitlines(), 1):
        try:
            line = json.loads(text)
            yield {"test": str(line["test"]), "run": str(line["run"])}
        except (ValueError, KeyError, TypeError):
            raise RunError(
                f"{place}:{number}: this is not a line that Ensue wrote; remove it, so that the "
                "openings of test parts can be counted"
            ) from None


# --- answers -------------------------------------------------------------------------------


def _together(rows: Iterable[T], count: int) -> Iterator[list[T]]:
    """So many rows at a time; those before an error come first, then the error."""
    waiting = iter(rows)
    while True:
        some: list[T] = []
        try:
            some.extend(islice(waiting, count))
        except EnsueError:
            if some:
                yield some
            raise
        if not some:
            return
        yield some


def searching(model: TaskModel, width: int, n_best: int, alignment: bool) -> Speaker:
    """A model that searches by these options; 0 leaves the width as it was."""
    if not isinstance(model, Speaker):
        raise OptionError(
            "--beam, --nbest and --alignment: expected a run of a translator or a captioner, "
            f"got one to {model.kind}"
        )
    own = model.search
    width = width or max(own.width, n_best)
    if n_best > width:
        raise OptionError(f"--nbest: expected at most --beam, {width}, got {n_best}")
    model.search = replace(own, width=width, n_best=n_best or 1, aligned=alignment)
    return model


def predict_texts(
    model: TaskModel, texts: Iterable[str], at_once: int = AT_ONCE
) -> Iterator[tuple[str, Any]]:
    """(text, answer) for each line, so many at a time."""
    for some in _together(texts, at_once):
        asked = [_cells(line) for line in some] if model.kind == TableModel.kind else some
        yield from zip(some, model.predict(asked), strict=True)


def _cells(line: str) -> dict[str, Any]:
    """A row of a table as a line of JSON."""
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise DataError(
            'standard input: expected a row as JSON, such as {"age": 39}, '
            f"got {line[:60]!r}; or give a file with a header"
        )
    return found


def predict_files(
    model: TaskModel, config: RunConfig, paths: Iterable[str], tell: Tell | None = None
) -> Iterator[tuple[Example, Any]]:
    """(row, answer) for each row of files that look like the training files; labels are not
    needed and not read. tell: who hears of bad rows."""
    if isinstance(model, ImageModel):
        for seen in _together(rows_to_predict(list(paths), config.data, tell), AT_ONCE):
            yield from predict_pictures(model, seen, Numbers())
        return
    if isinstance(model, Captioner):
        for seen in _together(rows_to_describe(list(paths), config.data, tell), AT_ONCE):
            yield from describe(model, seen)
        return
    rows = inputs_of(config.data, config.steps, paths, tell, config.tabular)
    for some in _together(rows, AT_ONCE):
        numbers = Numbers()
        collector = Collector(numbers, model.tokeniser)
        for row in some:
            collector.add(row.value, None, *row.place)
        yield from zip(some, model.answers(collector.done(), numbers), strict=True)
