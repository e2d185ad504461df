"""Words that stand for settings, `--epochs 3`, as options of the commands that train."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer

from ensue.cli.help import FILLED_IN, SETTINGS
from ensue.errors import OptionError
from ensue.runs.known_settings import TaskSettings, by_task, known_settings, shown_value
from ensue.setting_words import WORDS, Word, Words
from ensue.tasks import TASKS

PREFIX = "word_"
TYPES: dict[str, Any] = {"text": str | None, "number": int | None, "fraction": float | None}


def with_words(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each word: what was given of them is its argument `words`."""

    @wraps(command)
    def filled(**given: Any) -> None:
        said = {name: given.pop(PREFIX + name) for name in WORDS}
        command(**given, words={name: own for name, own in said.items() if own is not None})

    plain = [own for own in signature(command).parameters.values() if own.name != "words"]
    more = [_parameter(word) for word in WORDS.values()]
    filled.__signature__ = Signature([*more, *plain])  # type: ignore[attr-defined]
    return filled


def _parameter(word: Word) -> Parameter:
    mark = f"@{word.name}"
    FILLED_IN[mark] = partial(meaning, word)
    shown = typer.Option(
        *word.flags, metavar=word.metavar, help=mark, rich_help_panel=SETTINGS, show_default=False
    )
    return Parameter(
        PREFIX + word.name,
        Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[TYPES[word.kind], shown],
    )


def meaning(word: Word) -> str:
    """What a word sets, with its default for every task: "Learning rate. [0.001; 0.002 for image,
    table]"."""
    known = {task: known_settings(task) for task in TASKS}
    having = [task for task, own in known.items() if word.name in own.words]
    told = word.help or dict(known[having[0]])[word.key].meaning
    return f"{told} [{by_task({task: default(word, known[task]) for task in having})}]"


def default(word: Word, settings: TaskSettings) -> str:
    """What a word is if it is not given: one value, or a/b/c where it stands for several settings
    that differ."""
    values = dict(settings)
    shown = [shown_value(values[key].default) for key in settings.words[word.name]]
    return shown[0] if len({*shown}) == 1 else "/".join(shown)


def refuse_clashes(
    words: Words, options: Mapping[str, str], settings: Sequence[str], task: str
) -> None:
    """No setting is given in two ways. options: the flags of other options that were given, by the
    keys they stand for; task: "" while it is not known."""
    flags = dict(options)
    for name in words:
        for own in [task] if task else TASKS:
            flags |= dict.fromkeys(known_settings(own).words.get(name, ()), WORDS[name].flag)
    for key in map(_key, settings):
        if key in flags:
            raise OptionError(
                f"{flags[key]} and --set {key}: two values for one setting; give one of them"
            )


def _key(setting: str) -> str:
    """train.rate=0.01 → train.rate"""
    return setting.partition("=")[0].strip()
