"""docs/settings.md: every setting of every task, as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ensue.runs.known_settings import (
    Setting,
    TaskSettings,
    asked_by,
    by_task,
    known_settings,
    shown_value,
)
from ensue.setting_words import MODEL, WORDS
from ensue.tasks import ROOMS

BEGINNING = """\
# Settings

Everything that a run follows from stands in its `config.toml`, which `ensue init` and `ensue train`
write. A setting is changed there, on the command line with `--set train.clip=0.5`, or in Python,
`Classifier(train={"clip": 0.5})`. The most common ones have a word of their own, `--epochs 3`.
`ensue settings TASK` prints this page for one task, and `ensue settings TASK KEY` one setting.
`make settings` writes it, from the tables of the program itself.

"""
WORDS_HEAD = """\
## Words

They stand for a setting, whatever a task calls it; a task without such a setting refuses the word
and names what comes closest.

"""
RECIPES_HEAD = """
## Recipes

`--quick` is about a minute of training, `--best` hours: less and more effort than the default. They
set what is not given otherwise; in Python, `Classifier(recipe="quick")`. `ensue pretrain` trains a
language model for others to begin from, `LanguageModel(recipe="pretrain")`.

"""
COLUMNS = ("key", "default", "expected", "meaning")


def as_markdown() -> str:
    known = {task: known_settings(task) for task in ROOMS}
    some = next(iter(known.values()))
    parts = [BEGINNING, WORDS_HEAD, _table(("word", "sets", "of"), _words(known))]
    parts += [RECIPES_HEAD, _table(("recipe", "sets", "of"), _recipes(known))]
    for name in some.tables:
        if name == MODEL:
            continue
        parts.append(f"\n## {_title(name)}\n\n{some.about[name]}\n\n".replace("\n\n\n\n", "\n\n"))
        tables = {task: own.tables[name] for task, own in known.items()}
        parts.append(_table(COLUMNS, [_shared(key, tables) for key in some.tables[name]]))
    for task, own in known.items():
        parts.append(f"\n## `[model]` of {task}\n\n{own.about[MODEL]}\n\n")
        rows = [_row(setting) for setting in own.tables[MODEL].values()]
        parts.append(_table(COLUMNS, rows))
    return "".join(parts)


def _title(table: str) -> str:
    return f"`[{table}]`" if table else "Above all tables"


def _words(known: Mapping[str, TaskSettings]) -> list[tuple[str, str, str]]:
    """For each word, the settings that it stands for, and the tasks where it does."""
    found = []
    for word in WORDS.values():
        having: dict[str, list[str]] = {}
        for task, own in known.items():
            if word.name in own.words:
                keys = ", ".join(f"`{key}`" for key in own.words[word.name])
                having.setdefault(keys, []).append(task)
        flags = ", ".join(f"`{flag}`" for flag in word.flags)
        for keys, tasks in having.items():
            found.append(
                (flags, keys, "every task" if len(tasks) == len(known) else ", ".join(tasks))
            )
    return found


def _recipes(known: Mapping[str, TaskSettings]) -> list[tuple[str, str, str]]:
    """For each recipe, what it sets for each task."""
    found: dict[tuple[str, str], list[str]] = {}
    for task, own in known.items():
        for name, recipe in own.recipes.items():
            told = ", ".join(f"`{key}={shown_value(value)}`" for key, value in recipe.items())
            found.setdefault((name, told), []).append(task)
    names = dict.fromkeys(name for name, _ in found)
    return [
        (f"`{asked_by(name)}`", told, ", ".join(tasks))
        for name in names
        for (own, told), tasks in found.items()
        if own == name
    ]


def _shared(key: str, tables: Mapping[str, Mapping[str, Setting]]) -> tuple[str, ...]:
    """A setting that every task has, with the defaults of all of them."""
    defaults = by_task({task: _code(shown_value(own[key].default)) for task, own in tables.items()})
    expected = by_task({task: own[key].expected for task, own in tables.items()})
    return f"`{key}`", defaults, expected, next(iter(tables.values()))[key].meaning


def _row(setting: Setting) -> tuple[str, ...]:
    default = _code(shown_value(setting.default))
    return f"`{setting.key}`", default, setting.expected, setting.meaning


def _code(shown: str) -> str:
    return f"`{shown}`" if shown else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in lines
    )
