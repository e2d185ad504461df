"""The files of a selection: selection.json, the picture, and the test of the winner, opened
once."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from ensue.data.fingerprint import digest_of
from ensue.drawing import write as write_picture
from ensue.errors import DataError, OptionError, RunError
from ensue.files.atomic_folder import Damaged, finite, or_infinite, sealed, unsealed
from ensue.files.disk import write_whole
from ensue.files.format import check_format
from ensue.files.opening import is_plain_name, read_plain, refuse_strange
from ensue.files.run_folder import Lock
from ensue.runs.config import RunConfig
from ensue.runs.messages import Message, MessageCallback
from ensue.study.selection.entries import TOGETHER, TRIAL, Entry, Selection, WinnerVerdict
from ensue.tasks.codec import Packed, unpacked
from ensue.tasks.declarations import Unfit
from ensue.training import RunFolder

FILE, PICTURE = "selection.json", "selection.svg"
STORAGE_FILE = "optuna.db"
SQLITE = ("", "-journal", "-wal", "-shm")  # the files of one database
LOCK = "lock"
NUMBERS = ("value", "low", "high")  # of a verdict, which may be infinite
# What a file that is not as Ensue writes it may end in.
FAULTS = (OSError, Damaged, ValueError, KeyError, TypeError, RecursionError)


@contextmanager
def selecting(place: Path) -> Iterator[None]:
    """Holds the folder of a selection for one process, from the first read to the last write. A
    folder in which nothing was written is restored."""
    if RunFolder(place).config.exists():
        raise OptionError(f"{place}: this is the folder of one run; name another one with --run")
    refuse_links(place)
    check_selection(place)
    with Lock(place / LOCK) as lock:
        try:
            yield
            lock.check()
        finally:
            if os.listdir(place) == [LOCK]:
                lock.undo()


def refuse_links(place: Path, runs: Iterable[str] = ()) -> None:
    """Raises RunError where a link, a FIFO or a device stands for a file of a selection or the
    folder of a run, so that nothing outside is read or written. runs: names of their folders."""
    files = [FILE, PICTURE, LOCK, *(STORAGE_FILE + end for end in SQLITE)]
    folders = [*runs, TOGETHER, *(path.name for path in place.glob(f"{TRIAL}*"))]
    refuse_strange(
        dict.fromkeys([place / name for name in files], stat.S_IFREG)
        | dict.fromkeys([place / name for name in folders], stat.S_IFDIR)
    )


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
        rows = tuple(_entry(row) for row in facts["rows"])
        if len({row.name for row in rows}) < len(rows):
            raise Unfit("rows: expected different names")
        test = None if facts["test"] is None else _verdict(facts["test"])
        task, measure, data = (_text(facts, key) for key in ("task", "measure", "data"))
        before = Selection(task, measure, data, rows, test, _search_facts(facts["search"]))
    except FileNotFoundError:
        return None
    except FAULTS:
        raise not_ours(path) from None
    refuse_links(place, [row.folder for row in rows])
    for key, what in {"task": "task", "measure": "train.watch", "data": "content of files"}.items():
        was, new = getattr(before, key), getattr(now, key)
        if was != new:
            raise RunError(
                f"{path}: the {what} of this selection was {was}, now it is {new}; it must be "
                "the same for all models: undo the change, or name another --run"
            )
    return before


def not_ours(path: Path) -> RunError:
    return RunError(
        f"{path}: this is not what Ensue wrote; restore it, or move it away to rank the models "
        "again, or name another --run"
    )


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


def _entry(facts: Any) -> Entry:
    """A row of the table, checked: a file with a valid digest may still have content that Ensue
    never writes."""
    known = {**asdict(Entry("", "")), **_by_name(facts)}
    if odd := known.keys() - asdict(Entry("", "")).keys():
        raise Unfit(f"{min(odd)}: not known")
    entry = unpacked(Entry, Packed(known))
    if not is_plain_name(entry.folder):
        raise Unfit(f"folder: expected the name of a folder, got {entry.folder!r}")
    settings = _by_name(known["settings"])
    if not all(_is_setting(value) for value in settings.values()):
        raise Unfit("settings: expected texts, numbers and lists of them")
    return replace(entry, settings=settings)


def _verdict(facts: Any) -> WinnerVerdict:
    """A number that JSON has not got, null, is infinite."""
    facts = _by_name(facts)
    value, low, high = (or_infinite(facts[name]) for name in NUMBERS)
    baselines = {name: or_infinite(value) for name, value in _by_name(facts["baselines"]).items()}
    if facts.keys() != {field.name for field in fields(WinnerVerdict)}:
        raise Unfit("test: expected other keys")
    plain = unpacked(WinnerVerdict, Packed({**facts, **dict.fromkeys(NUMBERS, 0), "baselines": {}}))
    return replace(plain, value=value, low=low, high=high, baselines=baselines)


def _search_facts(facts: Any) -> dict[str, Any]:
    """What the search follows from, and the seconds that it has used."""
    search = dict(_by_name(facts))
    seconds = search.get("seconds", 0.0)
    if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
        raise Unfit(f"search.seconds: expected a number, got {seconds!r}")
    return search


def _is_setting(value: object) -> bool:
    values = value if isinstance(value, list) else [value]
    return all(isinstance(each, str | int | float | None) for each in values)


def _by_name(facts: Any) -> dict[str, Any]:
    if not isinstance(facts, dict):
        raise Unfit(f"expected values by name, got {facts!r}")
    return facts


def _text(facts: Mapping[str, Any], key: str) -> str:
    if not isinstance(facts[key], str):
        raise Unfit(f"{key}: expected a text, got {facts[key]!r}")
    return str(facts[key])
