"""The settings of every task: key, default, valid values, meaning.

They are read from settings.json, so that help and messages need not load the tasks.
`settings_reference` writes that file from the tables, which are the only source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from ensue.errors import OptionError, unknown
from ensue.setting_words import WORDS, Word, Words
from ensue.tasks import ROOMS, TASKS

FILE = Path(__file__).with_name("settings.json")
ALONE = ""  # keys outside all tables
TABLES = (ALONE, "data", "text", "model", "train", "base")  # in the order of config.toml


COMMANDS = {"pretrain": "ensue pretrain"}  # recipes that are a command instead of an option


def asked_by(name: str) -> str:
    """The option or command for a recipe."""
    return COMMANDS.get(name, f"--{name}")


@dataclass(frozen=True)
class Setting:
    """A setting. default: its default in TOML, None without one; expected: the valid values."""

    key: str
    default: Any
    expected: str
    meaning: str


@dataclass(frozen=True)
class TaskSettings:
    """The settings of a task. tables: the settings of each table, by key; about: a sentence on each
    table; words: the settings that each option of the command line stands for; instead: the closest
    setting, for options that stand for none; recipes: the settings of --quick, --best and of
    commands that change settings."""

    task: str
    sentence: str
    about: Mapping[str, str]
    tables: Mapping[str, Mapping[str, Setting]]
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)
    recipes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[tuple[str, Setting]]:
        """Every setting by its full key, "train.rate"."""
        for table, settings in self.tables.items():
            for setting in settings.values():
                yield full_key(table, setting.key), setting

    def keys_of(self, word: Word) -> Sequence[str]:
        """The settings that an option stands for; raises an error if the task has none of them."""
        if word.name in self.words:
            return self.words[word.name]
        if word.name in self.instead:
            key = self.instead[word.name]
            closest = dict(self)[key]
            hint = (
                f"{key} comes closest: --set {key}='{shown_value(closest.default)}'. "
                f"{closest.meaning}"
            )
        else:
            having = [task for task in TASKS if word.name in known_settings(task).words]
            hint = (
                f"expected one of the tasks {', '.join(having)}; `ensue settings {self.task}` "
                "lists its settings"
            )
        raise OptionError(f"{word.flag}: {self.task} has no such setting: {hint}")

    def as_settings(self, words: Words) -> list[str]:
        """Options as settings, `train.epochs=3`."""
        return [
            f"{key}={value if WORDS[name].kind == 'text' else json.dumps(value)}"
            for name, value in words.items()
            for key in self.keys_of(WORDS[name])
        ]


def full_key(table: str, key: str) -> str:
    return f"{table}.{key}" if table else key


def shown_value(value: Any) -> str:
    """The value as typed after `--set key=`; "" for None."""
    if value is None or (isinstance(value, str) and value):
        return value or ""
    return f"{value:g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def by_task(values: Mapping[str, str]) -> str:
    """The values by task, as text; the value of more than half of the tasks is listed without them.

    >>> by_task({"image": "8", "label": "5", "match": "5", "table": "9"})
    '5 for label, match; 8 for image; 9 for table'
    """
    having: dict[str, list[str]] = {}
    for task, value in values.items():
        having.setdefault(value, []).append(task)
    texts = {value: f"{value} for {', '.join(tasks)}" for value, tasks in having.items()}
    texts |= {value: value for value, tasks in having.items() if 2 * len(tasks) > len(values)}
    return "; ".join(texts[value] for value in sorted(texts, key=lambda value: -len(having[value])))


def known_settings(task: str) -> TaskSettings:
    """The settings of a task, by its name."""
    if task not in TASKS:
        raise unknown("task", task, TASKS)
    if task in ROOMS:
        return _of_facts(task)
    from ensue.runs.settings_reference import describe  # registered, so it is already loaded

    return describe(TASKS[task])


@cache
def _facts() -> Any:
    return json.loads(FILE.read_text("utf-8"))


@cache
def _of_facts(task: str) -> TaskSettings:
    """The settings of a task from settings.json: the tables that all tasks share, and the task's
    own."""
    facts, task_facts = _facts(), _facts()["tasks"][task]
    known = {**facts["tables"], "model": task_facts["model"]}
    tables = {
        name: {key: Setting(key, **value) for key, value in known[name]["keys"].items()}
        for name in TABLES
    }
    for name, changes in task_facts["changes"].items():
        table, _, key = name.rpartition(".")
        tables[table][key] = replace(tables[table][key], **changes)
    about = {name: known[name]["about"] for name in TABLES}
    return TaskSettings(
        task,
        task_facts["sentence"],
        about,
        tables,
        task_facts["words"],
        task_facts["instead"],
        task_facts["recipes"],
    )
