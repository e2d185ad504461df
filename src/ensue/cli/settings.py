"""`ensue settings`: every setting of a task with default, range and meaning."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from difflib import get_close_matches
from typing import Annotated

from ensue.cli.app import AsJson, answer, app, argument, as_json_text
from ensue.cli.help import Page, widest
from ensue.drawing.layout import cut
from ensue.errors import OptionError
from ensue.runs.known_settings import (
    Setting,
    TaskSettings,
    asked_by,
    full_key,
    known_settings,
    shown_value,
)
from ensue.setting_words import WORDS
from ensue.tasks import TASKS

LONGEST = 24  # signs of a default that is shown whole
SELF_EVIDENT = ("a text", "a list of texts", "true or false")
HOW = (
    "Change one with --set train.clip=0.5, with its own option where one is named, or in the "
    "config.toml of a run. The default follows each key; brackets hold the expected values."
)


@app.command(
    examples="""
    ensue settings classify  all of them
    ensue settings classify train  those of a table
    ensue settings classify dropout  those whose key contains a word
    ensue settings classify train.rate  one of them
    """
)
def settings(
    task: Annotated[str, argument("TASK", "Task; without one, the tasks are listed.")] = "",
    key: Annotated[
        str, argument("KEY", "Setting, table, or a part of a key: rate, train, drop.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """List the settings of a task: default, range and meaning of each."""
    if not task:
        sentences = {name: known_settings(name).sentence for name in TASKS}
        _show(as_json_text(sentences) if as_json else tasks_page(sentences))
        return
    known = known_settings(task)
    matching = chosen(known, key)
    if as_json:
        facts = {
            name: {k: v for k, v in asdict(setting).items() if k != "key"}
            for name, setting in matching
        }
        _show(as_json_text(facts))
    elif len(list(matching)) == 1:
        _show(setting_page(known, *next(iter(matching))))
    else:
        _show(settings_page(matching))


def _show(page: Page | str) -> None:
    """Prints a page. Its text is Ensue's own, with headings in bold, so it is not escaped."""
    answer(str(page), styled=True)


def chosen(known: TaskSettings, key: str) -> TaskSettings:
    """The settings of a table, with a key, or with a key that contains `key`; "" selects all."""
    tests: tuple[Callable[[str, str], bool], ...] = (
        lambda table, name: key in ("", table),
        lambda table, name: key in (name, full_key(table, name)),
        lambda table, name: key in full_key(table, name),
    )
    for test in tests:
        tables = {
            name: {key_name: setting for key_name, setting in table.items() if test(name, key_name)}
            for name, table in known.tables.items()
        }
        if any(tables.values()):
            return replace(known, tables={name: value for name, value in tables.items() if value})
    near = get_close_matches(key, [word for full, s in known for word in (full, s.key)], n=1)
    guess = f"did you mean {near[0]}? " if near else ""
    raise OptionError(
        f"{known.task} has no setting {key!r}: {guess}`ensue settings {known.task}` lists them"
    )


def tasks_page(sentences: Mapping[str, str]) -> Page:
    page = Page()
    page.heading("Tasks:", "`ensue settings TASK` lists the settings of one")
    page.entries(list(sentences.items()))
    return page


def settings_page(known: TaskSettings) -> Page:
    """A list for each table."""
    page = Page()
    page.heading(f"{known.task}:", known.sentence)
    page.paragraphs(HOW)
    flags = flags_of(known)
    rows = {
        name: [
            (_named(value), _setting_lines(value, flags.get(full_key(name, key))))
            for key, value in table.items()
        ]
        for name, table in known.tables.items()
    }
    column = widest(text for listed in rows.values() for text in listed)
    if known.recipes and len(known.tables) > 1:
        page.heading("Recipes", "what --quick and --best set; your own settings take precedence")
        page.entries(
            [(asked_by(name), as_words(recipe)) for name, recipe in known.recipes.items()], column
        )
    for name, listed in rows.items():
        page.heading(f"[{name}]" if name else "Above all tables", known.about[name])
        page.entries(listed, column)
    return page


def setting_page(known: TaskSettings, name: str, setting: Setting) -> Page:
    """The help page of one setting: meaning, default, valid values, and ways to set it."""
    flag, table, _ = flags_of(known).get(name), *name.rpartition(".")[:2]
    example = json.dumps(setting.default, ensure_ascii=False)
    ways = [*([f"{flag} …"] if flag else []), f"--set {name}=…"]
    where = f"under [{table}] in config.toml" if table else "in config.toml, above all tables"
    page = Page()
    page.heading(name, f"of {known.task}")
    page.entries(
        [
            ("meaning", setting.meaning),
            ("default", shown_value(setting.default) or "none: required"),
            ("expected", setting.expected),
            ("change it", f"{' or '.join(ways)}; or {setting.key} = {example} {where}"),
        ]
    )
    return page


def flags_of(known: TaskSettings) -> dict[str, str]:
    """The flags of words, by the keys of the settings they stand for."""
    return {key: WORDS[word].flag for word, keys in known.words.items() for key in keys}


def as_words(recipe: Mapping[str, object]) -> str:
    return ", ".join(f"{key} = {shown_value(value)}" for key, value in recipe.items())


def _named(setting: Setting) -> str:
    default = shown_value(setting.default)
    return f"{setting.key} = {cut(default, LONGEST)}" if default else setting.key


def _setting_lines(setting: Setting, flag: str | None) -> str:
    expected = [] if setting.expected in SELF_EVIDENT else [setting.expected]
    beside = "; ".join([*expected, *([flag] if flag else [])])
    return f"{setting.meaning} [{beside}]" if beside else setting.meaning
