"""The error for ambiguous data, with a command to paste for each reading."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ensue.errors import Undecided
from ensue.escape import in_shell
from ensue.tasks.options import TRAIN
from ensue.tasks.sample import Guess, Sample

if TYPE_CHECKING:
    from ensue.tasks.task import Task

MOST_CHOICES = 8
FLAGS = ("text", "label", "separator", "sequence", "features", "group")  # of every task
Reading = tuple["Task[Any, Any, Any]", Guess]


def undecided(sample: Sample, readings: Sequence[Reading], named: bool = False) -> Undecided:
    """The error for several readings. named: the user named the task, so only its columns are
    ambiguous."""
    several = len({task.name for task, _ in readings}) > 1
    what = "what to learn" if several or not named else "which columns are meant"
    lines = [f"{sample.place}: the columns do not tell {what}:"]
    lines += [f"  ({note})" for note in sample.notes]
    lines += [f"  {kind.name}: {kind.summary}" for kind in sample.kinds.values()]
    more = len(readings) - MOST_CHOICES
    rest = f", and {more} more are possible" if more > 0 else ""
    lines.append(f"Say which, with one of these{rest}:")
    choices = {
        f"{task.name}: {_evidence(sample, guess)}": _words(sample, task, guess, named)
        for task, guess in readings[:MOST_CHOICES]
    }
    call = "ensue train … {}" if _by_command(sample) else "fit(…, {})"
    return Undecided("\n".join(lines), choices, call)


def decided(sample: Sample, task: Task[Any, Any, Any], guess: Guess) -> Guess:
    """The guess of a task that the user named; raises an error if others are equally plausible."""
    if guess.others:
        raise undecided(sample, [(task, reading) for reading in guess.readings], named=True)
    return guess


def _evidence(sample: Sample, guess: Guess) -> str:
    roles = [
        f"{key.rpartition('.')[2]} {_value_text(v)}" for key, v in _keys(sample, guess).items()
    ]
    return ", ".join([guess.why, *roles])


def _words(sample: Sample, task: Task[Any, Any, Any], guess: Guess, named: bool) -> str:
    """The options to add to the command, or the arguments to add to the call."""
    keys = _keys(sample, guess)
    if not _by_command(sample):
        roles = {sample.word(key.rpartition(".")[2]): _value_text(v) for key, v in keys.items()}
        return ", ".join(f"{role}{value!r}" for role, value in roles.items())
    words = [] if named else ["--task", task.name]
    for key, value in keys.items():
        flag = _flag(task, key)
        setting = f"{key}={json.dumps(value)}"
        words += [flag, _value_text(value)] if flag else ["--set", setting]
    return " ".join(map(in_shell, words))


def _by_command(sample: Sample) -> bool:
    """Whether columns are named by command-line options, not by arguments in Python."""
    return sample.word("label").startswith("--")


def _keys(sample: Sample, guess: Guess) -> dict[str, Any]:
    """The inferred settings that name columns."""
    keys = {f"data.{key}": value for key, value in guess.data.items()}
    for table, values in guess.tables.items():
        keys |= {f"{table}.{key}": value for key, value in values.items()}
    columns = {*sample.columns}
    return {
        key: value
        for key, value in keys.items()
        if value and not _is_set(sample, key) and {*_listed(value)} <= columns
    }


def _is_set(sample: Sample, key: str) -> bool:
    table, _, name = key.partition(".")
    if table == "data":
        return bool(getattr(sample.data, name))
    settings: Mapping[str, Any] = sample.settings.get(table, {})
    return name in settings


def _flag(task: Task[Any, Any, Any], key: str) -> str:
    """The command-line option of a setting; "" if it has none."""
    for option in task.options:
        if option.key == key and TRAIN in option.verbs:
            return option.flag
    if key == "model.targets":
        return "--target"
    name = key.removeprefix("data.")
    return f"--{name}" if name in FLAGS else ""


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _value_text(value: Any) -> str:
    return ",".join(map(str, _listed(value)))
