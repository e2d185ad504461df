"""The reference of all settings, for help, documentation and messages.

`make settings` runs `python -m ensue.runs.settings_reference`. It writes settings.json for the
command line and, given a file's name, the page of the documentation."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from ensue.data.settings import DataSettings
from ensue.runs.config import AnyTask, tables_of
from ensue.runs.known_settings import (
    ALONE,
    FILE,
    TABLES,
    Setting,
    TaskSettings,
    asked_by,
    by_task,
    full_key,
    known_settings,
    shown_value,
)
from ensue.setting_words import MODEL, WORDS
from ensue.settings import Table, expected_of, in_toml
from ensue.tasks import ROOMS, TASKS
from ensue.tasks.recipes import recipes_of
from ensue.tasks.settings import TextSettings
from ensue.tasks.transfer.settings import BaseSettings
from ensue.training import TrainSettings

BEGINNING = """\
# Settings

`ensue init` and `ensue train` write all settings of a run into its `config.toml`. Change a setting
there, on the command line with `--set train.clip=0.5`, or in Python with
`Classifier(train={"clip": 0.5})`. The most common ones have an option, such as `--epochs 3`.
`ensue settings TASK` prints this page for one task, and `ensue settings TASK KEY` one setting.
`make settings` generates it from the code.

"""
WORDS_HEAD = """\
## Words

Each option sets the same thing in every task, whatever the task calls it. A task without such a
setting rejects the option and names the closest setting.

"""
RECIPES_HEAD = """
## Recipes

`--quick` trains for about a minute, `--best` for hours. Your own settings take precedence. In
Python: `Classifier(recipe="quick")`. `ensue pretrain` trains a language model that others start
from: `LanguageModel(recipe="pretrain")`.

"""
COLUMNS = ("key", "default", "expected", "meaning")


def as_markdown() -> str:
    known = {task: known_settings(task) for task in ROOMS}
    some = next(iter(known.values()))
    parts = [BEGINNING, WORDS_HEAD, _page_table(("word", "sets", "of"), _page_words(known))]
    parts += [RECIPES_HEAD, _page_table(("recipe", "sets", "of"), _recipes(known))]
    for name in some.tables:
        if name == MODEL:
            continue
        parts.append(f"\n## {_title(name)}\n\n{some.about[name]}\n\n".replace("\n\n\n\n", "\n\n"))
        tables = {task: known_task.tables[name] for task, known_task in known.items()}
        parts.append(_page_table(COLUMNS, [_shared(key, tables) for key in some.tables[name]]))
    for task, value in known.items():
        parts.append(f"\n## `[model]` of {task}\n\n{value.about[MODEL]}\n\n")
        rows = [_row(setting) for setting in value.tables[MODEL].values()]
        parts.append(_page_table(COLUMNS, rows))
    return "".join(parts)


def _title(table: str) -> str:
    return f"`[{table}]`" if table else "Above all tables"


def _page_words(known: Mapping[str, TaskSettings]) -> list[tuple[str, str, str]]:
    """A row for each option: the settings that it stands for, and the tasks that have them."""
    words = []
    for word in WORDS.values():
        having: dict[str, list[str]] = {}
        for task, value in known.items():
            if word.name in value.words:
                keys = ", ".join(f"`{key}`" for key in value.words[word.name])
                having.setdefault(keys, []).append(task)
        flags = ", ".join(f"`{flag}`" for flag in word.flags)
        for keys, tasks in having.items():
            words.append(
                (flags, keys, "every task" if len(tasks) == len(known) else ", ".join(tasks))
            )
    return words


def _recipes(known: Mapping[str, TaskSettings]) -> list[tuple[str, str, str]]:
    """A row for each recipe: its settings, and their tasks."""
    tasks_of_recipe: dict[tuple[str, str], list[str]] = {}
    for task, table in known.items():
        for name, recipe in table.recipes.items():
            listed = ", ".join(f"`{key}={shown_value(value)}`" for key, value in recipe.items())
            tasks_of_recipe.setdefault((name, listed), []).append(task)
    names = dict.fromkeys(name for name, _ in tasks_of_recipe)
    return [
        (f"`{asked_by(name)}`", texts, ", ".join(tasks))
        for name in names
        for (recipe_name, texts), tasks in tasks_of_recipe.items()
        if recipe_name == name
    ]


def _shared(key: str, tables: Mapping[str, Mapping[str, Setting]]) -> tuple[str, ...]:
    """A setting of all tasks, with the defaults of each."""
    defaults = by_task(
        {task: _code(shown_value(table[key].default)) for task, table in tables.items()}
    )
    expected = by_task({task: table[key].expected for task, table in tables.items()})
    return f"`{key}`", defaults, expected, next(iter(tables.values()))[key].meaning


def _row(setting: Setting) -> tuple[str, ...]:
    default = _code(shown_value(setting.default))
    return f"`{setting.key}`", default, setting.expected, setting.meaning


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _page_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in lines
    )


MEMBERS = Setting(
    "members",
    1,
    "a whole number ≥ 1",
    "Ensemble size: number of networks whose predictions are averaged.",
)
SHARED: Mapping[str, type[Table]] = {
    "data": DataSettings,
    "text": TextSettings,
    "train": TrainSettings,
    "base": BaseSettings,
}


def describe(task: AnyTask) -> TaskSettings:
    """Every setting of a task, with the task's defaults."""
    kinds = tables_of(task)
    tables = {ALONE: {MEMBERS.key: MEMBERS}}
    tables |= {name: _table(*kinds[name]) for name in TABLES if name in kinds}
    names = ", ".join(metric.name for metric in task.metrics)
    tables["train"]["watch"] = replace(tables["train"]["watch"], expected=names)
    return TaskSettings(
        task.name,
        task.sentence,
        {ALONE: "", **{name: _about(kind) for name, (kind, _) in kinds.items()}},
        tables,
        _words(task.settings, tables),
        {word: f"{MODEL}.{key}" for word, key in task.settings.instead.items()},
        {name: dict(value) for name, value in recipes_of(task).items()},
    )


def _table(kind: type[Table], defaults: Mapping[str, Any]) -> dict[str, Setting]:
    return {
        key: Setting(
            key, defaults.get(key, _default(field)), expected_of(field), field.description or ""
        )
        for key, field in kind.model_fields.items()
    }


def _default(field: FieldInfo) -> Any:
    """The default as in TOML; None if a value is required."""
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined:
        return None
    return list(value) if isinstance(value, tuple) else in_toml(value, field)


def _about(kind: type[Table]) -> str:
    """The first sentence of the table's docstring."""
    text = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
    return f"{text.partition('. ')[0].rstrip('.')}."


def _words(
    kind: type[Table], tables: Mapping[str, Mapping[str, Setting]]
) -> dict[str, tuple[str, ...]]:
    """The settings that each option stands for; options without settings are left out."""
    words: dict[str, tuple[str, ...]] = {}
    for word in WORDS.values():
        table, _, key = word.key.rpartition(".")
        keys = kind.words.get(word.name, (key,)) if table == MODEL else (key,)
        if all(key in tables[table] for key in keys):
            words[word.name] = tuple(full_key(table, key) for key in keys)
    return words


# --- written down -----------------------------------------------------------------------------


def facts() -> dict[str, Any]:
    """The content of settings.json: the tables that all tasks share, and the particular ones of
    each task."""
    shared = {name: _table(kind, {}) for name, kind in SHARED.items()}
    shared["train"]["watch"] = replace(shared["train"]["watch"], expected="a metric of the task")
    shared[ALONE] = {MEMBERS.key: MEMBERS}
    about = {ALONE: "", **{name: _about(kind) for name, kind in SHARED.items()}}
    tables = {name: _table_facts(about[name], value) for name, value in shared.items()}
    return {"tables": tables, "tasks": {name: _task_facts(name, shared) for name in ROOMS}}


def _table_facts(about: str, settings: Mapping[str, Setting]) -> dict[str, Any]:
    keys = {key: {k: v for k, v in asdict(setting).items() if k != "key"}
            for key, setting in settings.items()}  # fmt: skip
    return {"about": about, "keys": keys}


def _task_facts(name: str, shared: Mapping[str, Mapping[str, Setting]]) -> dict[str, Any]:
    described = describe(TASKS[name])
    changes = {
        full_key(table, key): {
            k: v for k, v in asdict(setting).items() if v != asdict(shared[table][key])[k]
        }
        for table in shared
        for key, setting in described.tables[table].items()
        if setting != shared[table][key]
    }
    return {
        "sentence": described.sentence,
        "words": {word: list(keys) for word, keys in described.words.items()},
        "instead": dict(described.instead),
        "recipes": dict(described.recipes),
        "changes": changes,
        "model": _table_facts(described.about[MODEL], described.tables[MODEL]),
    }


def as_text(value: Any, depth: int = 0) -> str:
    """JSON with a line for each setting."""
    if not (isinstance(value, dict) and any(isinstance(item, dict) for item in value.values())):
        return json.dumps(value, ensure_ascii=False)
    space = "\n" + " " * (depth + 1)
    inside = [
        f"{space}{json.dumps(key)}: {as_text(item, depth + 1)}" for key, item in value.items()
    ]
    return "{" + ",".join(inside) + "\n" + " " * depth + "}"


def write() -> None:

    FILE.write_text(as_text(facts()) + "\n", "utf-8")
    for page in sys.argv[1:]:
        Path(page).write_text(as_markdown(), "utf-8")


if __name__ == "__main__":
    write()
