"""`ensue evaluate`: the test part of a run opened, and every opening written down."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ensue.data.parallel import sides_of
from ensue.data.settings import DataSettings
from ensue.errors import DataError, OptionError, RunError
from ensue.files.disk import disk_errors
from ensue.runs.config import RunConfig
from ensue.runs.data_files import digest_of, split_still_holds
from ensue.runs.load import load_run
from ensue.runs.messages import Message, Say, nobody, rejected_message
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.kept_cells import NO_TRUST, Trust
from ensue.tasks.model import Model
from ensue.training import RunFolder

OPENINGS = "test-openings.jsonl"


@dataclass(frozen=True)
class EvaluationRequest:
    """What is evaluated. part: test or validation; test: files in the place of the run's test
    part; reading: keys of [data] in the place of the run's; asked: the task's own words;
    picture: whether it is to be drawn; trust: what may be run for a cell of one's own; device:
    where the model answers."""

    part: str = "test"
    test: Sequence[str] = ()
    reading: Mapping[str, Any] = field(default_factory=dict)
    asked: Mapping[str, Any] = field(default_factory=dict)
    picture: bool = False
    trust: Trust = NO_TRUST
    device: str = "auto"


@dataclass(frozen=True)
class Opened:
    """An evaluation, and how often this test part has been looked at, by any run beside; svg: its
    picture, where it was asked for."""

    evaluation: Evaluation
    by_this_run: int
    by_all: int
    svg: str = ""


def evaluate_run(folder: RunFolder, request: EvaluationRequest, say: Say = nobody) -> Opened:
    """Opens the test part (or files given as such), and writes down that it was opened."""
    config, model = load_run(folder, request.trust, request.device)
    part_name, test = request.part, list(request.test)
    if test and part_name != "test":
        raise OptionError("--test and --validation: expected one of them, got both")
    data = config.data.model_copy(update={**request.reading, **({"test": test} if test else {})})
    if part_name == "test" and data.validation and not data.test:
        raise DataError(f"{folder.path}: this run has no test part; give a file with --test")
    if request.picture and model.task.draws is None:
        raise OptionError(f"--picture: a run to {model.task.name} has no picture")
    _warn(folder, config, data, request, say)
    part = _part(folder, data, model, part_name, say)
    found = model.evaluate_part(part, request.asked)
    svg = ""
    if request.picture and model.task.draws is not None:
        svg = model.task.draws.evaluated(model, part)
    if part_name != "test":
        return Opened(found, 0, 0, svg)
    ours, by_all = _record(folder, digest_of(data.test or data.train), found)
    return Opened(found, ours, by_all, svg)


def _warn(
    folder: RunFolder, config: RunConfig, data: DataSettings, request: EvaluationRequest, say: Say
) -> None:
    """Warnings about files that have changed, and about files that the model was trained with."""
    split_off = not (data.validation if request.part == "validation" else data.test)
    if split_off and (warning := split_still_holds(folder, config)):
        say(Message(warning, warning=True))
    learned = resolved([*config.data.train, *config.data.validation])
    for path in request.test:
        if learned & resolved([path]):
            told = f"{path}: this run was trained with this file: the scores will be too good"
            say(Message(told, warning=True))


def _part(
    folder: RunFolder, data: DataSettings, model: Model[Any, Any, Any], name: str, say: Say
) -> Any:
    files = model.task.files(data, model)
    part = files.part(name)
    for message in rejected_message(files.rejected):
        say(message)
    if not len(part):
        raise DataError(
            f"{folder.path}: no row falls into the {name} part: too few rows were split by their "
            "hash; give a file with --test"
        )
    return part


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
