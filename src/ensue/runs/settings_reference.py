"""What the tables of settings say of themselves, for help, documentation and messages.

`python -m ensue.runs.settings_reference` writes it down, which `make settings` does: settings.json
for the command line, and with a file's name the page of the documentation."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from ensue.data.settings import DataSettings
from ensue.runs.config import AnyTask, tables_of
from ensue.runs.known_settings import ALONE, FILE, TABLES, Setting, TaskSettings, full_key
from ensue.setting_words import MODEL, WORDS
from ensue.settings import Table, expected_of, in_toml
from ensue.tasks import ROOMS, TASKS
from ensue.tasks.settings import TextSettings
from ensue.tasks.transfer.settings import BaseSettings
from ensue.training import TrainSettings

MEMBERS = Setting("members", 1, "a whole number ≥ 1", "Number of networks; their mean answers.")
SHARED: Mapping[str, type[Table]] = {
    "data": DataSettings,
    "text": TextSettings,
    "train": TrainSettings,
    "base": BaseSettings,
}


def describe(task: AnyTask) -> TaskSettings:
    """Every setting of a task, with the defaults that it has for this task."""
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
        {name: dict(own) for name, own in task.recipes.items()},
    )


def _table(kind: type[Table], defaults: Mapping[str, Any]) -> dict[str, Setting]:
    return {
        key: Setting(
            key, defaults.get(key, _default(field)), expected_of(field), field.description or ""
        )
        for key, field in kind.model_fields.items()
    }


def _default(field: FieldInfo) -> Any:
    """As TOML holds it; None where a value must be given."""
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
    """By word, the settings that it stands for; words for which there is none are left out."""
    found: dict[str, tuple[str, ...]] = {}
    for word in WORDS.values():
        table, _, key = word.key.rpartition(".")
        keys = kind.words.get(word.name, (key,)) if table == MODEL else (key,)
        if all(own in tables[table] for own in keys):
            found[word.name] = tuple(full_key(table, own) for own in keys)
    return found


# --- written down -----------------------------------------------------------------------------


def facts() -> dict[str, Any]:
    """What settings.json holds: the tables that all tasks share, once, and what is particular to
    each task."""
    shared = {name: _table(kind, {}) for name, kind in SHARED.items()}
    shared["train"]["watch"] = replace(shared["train"]["watch"], expected="a metric of the task")
    shared[ALONE] = {MEMBERS.key: MEMBERS}
    about = {ALONE: "", **{name: _about(kind) for name, kind in SHARED.items()}}
    tables = {name: _table_facts(about[name], own) for name, own in shared.items()}
    return {"tables": tables, "tasks": {name: _task_facts(name, shared) for name in ROOMS}}


def _table_facts(about: str, settings: Mapping[str, Setting]) -> dict[str, Any]:
    keys = {key: {k: v for k, v in asdict(own).items() if k != "key"}
            for key, own in settings.items()}  # fmt: skip
    return {"about": about, "keys": keys}


def _task_facts(name: str, shared: Mapping[str, Mapping[str, Setting]]) -> dict[str, Any]:
    found = describe(TASKS[name])
    changes = {
        full_key(table, key): {
            k: v for k, v in asdict(own).items() if v != asdict(shared[table][key])[k]
        }
        for table in shared
        for key, own in found.tables[table].items()
        if own != shared[table][key]
    }
    return {
        "sentence": found.sentence,
        "words": {word: list(keys) for word, keys in found.words.items()},
        "instead": dict(found.instead),
        "recipes": dict(found.recipes),
        "changes": changes,
        "model": _table_facts(found.about[MODEL], found.tables[MODEL]),
    }


def as_text(found: Any, depth: int = 0) -> str:
    """JSON with a line for each setting."""
    if not (isinstance(found, dict) and any(isinstance(own, dict) for own in found.values())):
        return json.dumps(found, ensure_ascii=False)
    space = "\n" + " " * (depth + 1)
    inside = [f"{space}{json.dumps(key)}: {as_text(own, depth + 1)}" for key, own in found.items()]
    return "{" + ",".join(inside) + "\n" + " " * depth + "}"


def write() -> None:
    from ensue.runs.settings_page import as_markdown

    FILE.write_text(as_text(facts()) + "\n", "utf-8")
    for page in sys.argv[1:]:
        Path(page).write_text(as_markdown(), "utf-8")


if __name__ == "__main__":
    write()
