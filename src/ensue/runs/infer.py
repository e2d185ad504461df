"""Infers a configuration from files and column names, and reports each decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from os.path import abspath
from pathlib import Path
from typing import Any, NamedTuple

from ensue.data.parallel import sides_of
from ensue.data.recognise.columns import VALUES, WRITTEN, Column, Kind
from ensue.data.settings import DataSettings
from ensue.errors import ConfigError, DataError, EnsueError, OptionError
from ensue.escape import in_shell
from ensue.runs.config import (
    RunConfig,
    changed,
    inputs_of_others,
    listed,
    with_base_paths,
    with_cell_paths,
    with_paths,
)
from ensue.runs.known_settings import known_settings, shown_value
from ensue.runs.messages import Message
from ensue.setting_words import Words
from ensue.tasks import TASKS
from ensue.tasks.questions import decided, undecided
from ensue.tasks.recipes import recipe_of
from ensue.tasks.rows.recognise import roles_of
from ensue.tasks.sample import Guess, Sample

NO_WORDS: Words = {}
ASIDE = (Kind.IDENTIFIER, Kind.DATE)  # columns that most tasks ignore
BESIDE = (*VALUES, Kind.TEXT, Kind.NAME, Kind.OTHER)  # columns that tasks with one text ignore too


class Inferred(NamedTuple):
    """The configuration, and a message for each setting that was inferred."""

    config: RunConfig
    messages: list[Message]


def infer(
    data: Mapping[str, Any],
    task: str | None,
    settings: Sequence[str],
    words: Words = NO_WORDS,
    recipe: str = "",
) -> Inferred:
    """Infers the configuration. data: the keys of [data] that were set; settings: `table.key=value`
    each; words: values of options that stand for settings, whose keys differ between tasks; recipe:
    quick or best, for all other settings."""
    given_settings = changed({}, settings)
    data = {**data, **given_settings.get("data", {})}
    data_settings = DataSettings.of(data, "data")
    if task is not None and task not in TASKS:
        raise TASKS.unknown(task)
    _refuse_twice(data_settings)
    sample = Sample(data_settings, given_settings).without_header().without_marks()
    if task is None or "data.image" in TASKS[task].columns.values():
        sample = sample.with_pictures()
    data = {
        **data,
        **sample.data.model_dump(
            include={"header", "marked", "decimal", "image"} & sample.data.model_fields_set
        ),
    }
    name, guess = _named(sample, task) if task else _recognised(sample)
    hints = sample.header_lines() if "rows" in vars(sample) else []
    image = "" if data_settings.image else sample.data.image
    lines = [f"image: {image} (names of picture files)"] * bool(image)
    lines += _decisions(sample, guess, "" if task else name)
    tables = {"task": name, "data": {**data, **guess.data}, **guess.tables}
    in_words = known_settings(name).as_settings(words)
    based = bool(given_settings.get("base", {}).get("path"))
    more = recipe_of(TASKS[name], recipe, given_settings.get("model"), based)
    effort = [f"{key}={shown_value(value)}" for key, value in more.items()]
    lines += [f"{recipe}: {', '.join(effort)}"] * bool(recipe)
    config = RunConfig.of(changed(tables, [*effort, *in_words, *settings]))
    base, data_there = with_base_paths(config.base, abspath), with_paths(config.data, abspath)
    cells = with_cell_paths(config.model, abspath)
    config = replace(config, data=data_there, model=cells, base=base)
    split = config.description.split.line(config.data, config.model)
    messages = [Message(hint, warning=True) for hint in [*sample.notes, *hints]]
    return Inferred(config, [*messages, *map(Message, lines), *[Message(split)] * bool(split)])


def _decisions(sample: Sample, guess: Guess, task: str) -> list[str]:
    """A line for each inferred setting, with its reason. task: the inferred task, "" if the user
    named it."""
    inferred = {key: value for key, value in guess.data.items() if not getattr(sample.data, key)}
    columns = _columns_seen(sample, inferred=bool(task))
    lines = [
        f"{key}: {_setting_text(value)}{_description(columns, value)}"
        for key, value in inferred.items()
        if value
    ]
    if task:
        lines.append(f"task: {task} ({guess.why})")
    for table, keys in guess.tables.items():
        lines += [
            f"{table}.{key}: {_setting_text(value)}{_description(columns, value)}"
            for key, value in keys.items()
            if key not in sample.settings.get(table, {})
        ]
    looked_at = "rows" if _series(guess) else "kinds"
    if (inferred or _series(guess)) and looked_at in vars(sample):
        lines += _not_used(sample, guess)
    return lines


def _series(guess: Guess) -> bool:
    """Whether a message names all columns that are read, as for series."""
    return "targets" in guess.tables.get("model", {})


def _not_used(sample: Sample, guess: Guess) -> list[str]:
    """A line on the columns that are not used; if there is a text, also on how to use them."""
    beside = bool(guess.data.get("text") or sample.data.texts or sample.data.image)
    mentioned = [*guess.data.values(), *guess.tables.values(), sample.data.table(), sample.settings]
    times = str(guess.tables.get("model", {}).get("time", "")).split(",")  # one in many columns
    used = str([*mentioned, times])
    left = [column for column in sample.kinds.values() if repr(column.name) not in used]
    kinds = (*ASIDE, *BESIDE) if beside or _series(guess) else ASIDE
    unused = [column for column in left if column.kind in kinds]
    if not unused:
        return []
    line = f"not used: {', '.join(f'{column.name} ({column.summary})' for column in unused)}"
    readable = [column.name for column in unused if column.kind in VALUES]
    if readable and beside:
        line += f"; learn from them, too, with --columns {in_shell(','.join(readable))}"
    return [line]


def _columns_seen(sample: Sample, inferred: bool) -> Mapping[str, Column]:
    """A description of the columns, if they were examined (always if the task is inferred)."""
    looked_at = "kinds" in vars(sample) or (inferred and sample.has_rows)
    return sample.kinds if looked_at else {}


def _description(columns: Mapping[str, Column], name: Any) -> str:
    """A description of one column."""
    return f" ({columns[name].summary})" if isinstance(name, str) and name in columns else ""


def _named(sample: Sample, task: str) -> tuple[str, Guess]:
    if wrong := inputs_of_others(TASKS[task], sample.data):
        raise ConfigError(listed(wrong))
    return task, decided(sample, TASKS[task], TASKS[task].infer(sample))


def _recognised(sample: Sample) -> tuple[str, Guess]:
    """The first task that is certain about the data, or else the only possible reading. Several
    readings raise an error that lists a command for each."""
    readings: list[tuple[str, Guess]] = []
    problems: list[DataError] = []
    joins = sample.data.joins
    able = [name for name in TASKS if not joins or "data.image" in TASKS[name].columns.values()]
    for name in able:
        guess = sample.recognised_by(partial(TASKS.recognise, name))
        if guess is None:
            continue
        if isinstance(guess, DataError):
            problems.append(guess)
            continue
        if guess.sure and not guess.others:
            return name, guess
        readings += [(name, reading) for reading in guess.readings]
    if not readings:
        raise problems[0] if problems else _nothing_recognised(sample)
    if len(readings) > 1:
        raise undecided(sample, [(TASKS[name], guess) for name, guess in readings])
    return readings[0]


def _nothing_recognised(sample: Sample) -> EnsueError:
    """Why no task fits, judging by the columns."""
    label, rows = sample.data.label, sample.rows
    try:
        roles_of(sample)
    except EnsueError as problem:
        message = problem
    else:
        message = sample.no_text()
    beside = [column for column in sample.kinds.values() if column.name != label]
    if label in sample.columns and not any(column.kind in (*WRITTEN, *VALUES) for column in beside):
        listed = ", ".join(f"{column.name} ({column.kind})" for column in beside) or "none"
        return DataError(
            f"{rows[0].place}: no column to predict {label} from, got {listed}; to use one of "
            "them anyway, name it with --text"
        )
    return message


def _refuse_twice(data: DataSettings) -> None:
    """Raises an error if a file is in two parts, or twice in one."""
    parts = {
        "train": data.train,
        "--validation": data.validation,
        "--test": data.test,
        "--unlabelled": data.unlabelled,
    }
    parts_by_file: dict[Path, str] = {}
    for part, paths in parts.items():
        for path in (side for both in paths for side in sides_of(both)):
            full = Path(path).resolve()
            if full in parts_by_file:
                why = _why_not_both(parts_by_file[full], part)
                raise OptionError(
                    f"{path}: given twice ({parts_by_file[full]} and {part}){why}. Give each "
                    "file once"
                )
            parts_by_file[full] = part


def _why_not_both(one: str, other: str) -> str:
    if one == other:
        return ""
    if "--unlabelled" in (one, other):
        return ": rows that have labels are learned from or kept to validate and test"
    return ": rows that a model learned from cannot test it"


def _setting_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
