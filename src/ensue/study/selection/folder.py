"""The files of a selection: selection.json, the picture, and the test of the winner, opened
once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ensue.data.fingerprint import digest_of
from ensue.drawing import write as write_picture
from ensue.errors import DataError, RunError
from ensue.files.atomic_folder import Damaged, finite, or_infinite, sealed, unsealed
from ensue.files.disk import write_whole
from ensue.files.format import check_format
from ensue.files.opening import read_plain
from ensue.runs.config import RunConfig
from ensue.runs.messages import Message, MessageCallback
from ensue.study.selection.entries import Entry, Selection, WinnerVerdict
from ensue.training import RunFolder

FILE, PICTURE = "selection.json", "selection.svg"
# Errors that reading an invalid file may raise.
FAULTS = (OSError, Damaged, ValueError, KeyError, TypeError, RecursionError)


def begun(config: RunConfig) -> Selection:
    """An empty selection of models with this configuration."""
    files = [*config.data.train, *config.data.validation, *config.data.test]
    return Selection(config.task, measure_of(config), digest_of(files))


def measure_of(config: RunConfig) -> str:
    """The score for ranking models: train.watch if it was set, else the score of the task, which is
    the same for all of its families."""
    named = "watch" in config.explicit.get("train", ())
    return config.train.watch if named else config.description.ranked_by or config.train.watch


def tested(
    place: Path, winner: Entry, config: RunConfig, before: Selection | None, say: MessageCallback
) -> WinnerVerdict | None:
    """The winner's test, opened once; other models are not tested."""
    if before and before.test and before.test.name == winner.name and _same(winner, before):
        return before.test
    if config.data.validation and not config.data.test:
        say(Message("there is no test part: give one with --test", warning=True))
        return None
    from ensue.runs.evaluate import EvaluationRequest, evaluate_run
    from ensue.runs.load import Loading

    try:
        request = EvaluationRequest(loading=Loading(device=config.train.device))
        opened = evaluate_run(RunFolder(place / winner.folder), request, say)
    except DataError as error:
        say(Message(f"not tested: {error}", warning=True))
        return None
    if opened.not_kept is not None:
        say(Message(str(opened.not_kept), warning=True))
    evaluation = opened.evaluation
    main = evaluation.scores[evaluation.main]
    return WinnerVerdict(
        winner.name,
        evaluation.main,
        evaluation.rows,
        main.value,
        main.low,
        main.high,
        dict(evaluation.baselines),
        opened.by_all,
        evaluation.higher_is_better,
    )


def _same(winner: Entry, before: Selection) -> bool:
    """Whether the winner is still the same: an ensemble may have other models now."""
    return (winner.name, winner.what) in {(row.name, row.what) for row in before.rows}


def write(place: Path, selection: Selection) -> None:
    """Writes selection.json, sealed by its own digest, and the picture, each atomically. Creates
    the folder again if a failed trial has removed it."""
    place.mkdir(parents=True, exist_ok=True)
    write_whole(place / FILE, sealed(finite(selection.as_json()), sort=False))
    if selection.winner:
        write_picture(selection.picture(), place / PICTURE)


def read(place: Path, now: Selection) -> Selection | None:
    """The selection of an earlier call, if it had the same data and measure."""
    path = place / FILE
    try:
        facts = _facts(path)
        rows = tuple(Entry(**row) for row in facts["rows"])
        test = None if facts["test"] is None else _verdict(facts["test"])
        about = (facts["task"], facts["measure"], facts["data"])
        before = Selection(*about, rows, test, facts["search"])
    except FileNotFoundError:
        return None
    except FAULTS:
        raise RunError(
            f"{path}: this is not what Ensue wrote; restore it, or move it away to rank the models "
            "again, or name another --run"
        ) from None
    for key, what in {"task": "task", "measure": "train.watch", "data": "content of files"}.items():
        was, new = getattr(before, key), getattr(now, key)
        if was != new:
            raise RunError(
                f"{path}: the {what} of this selection was {was}, now it is {new}; it must be "
                "the same for all models: undo the change, or name another --run"
            )
    return before


def check_selection(place: Path) -> None:
    """Raises RunError if another version of Ensue wrote the selection in a folder, before anything
    is written there."""
    with suppress(*FAULTS):  # which `read` tells
        _facts(place / FILE)


def _facts(path: Path) -> dict[str, Any]:
    """The content of the file; raises Damaged if a bit differs."""
    data = read_plain(path)
    facts = json.loads(data)
    if "sha256" not in facts:  # the key of the first format
        check_format(facts["format"], path)
    facts = unsealed(data, path.name)
    check_format(facts["format"], path)
    return facts


def _verdict(facts: Mapping[str, Any]) -> WinnerVerdict:
    """The verdict from JSON; null becomes infinity."""
    numbers = {name: or_infinite(facts[name]) for name in ("value", "low", "high")}
    baselines = {name: or_infinite(value) for name, value in facts["baselines"].items()}
    return WinnerVerdict(**{**facts, **numbers, "baselines": baselines})
