"""Mistakes in the words of a command, as messages that name the right ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import typer

from ensue.errors import OptionError

UsageError: type[Exception] = typer.BadParameter.__mro__[1]  # Typer has no public name for it
HELP = "help"
REPHRASED = {
    "Input should be a valid integer, unable to parse string as an integer": "expected a whole "
    "number",
    "Input should be a valid number, unable to parse string as a number": "expected a number",
    "Input should be greater than or equal to": "expected a number ≥",
    "Input should be less than or equal to": "expected a number ≤",
}


def unknown_command(path: str, got: str, known: Iterable[str]) -> OptionError:
    """path: the command above it, `ensue data`."""
    near = get_close_matches(got.lower(), [*known, HELP], n=1)
    told = f"{path}: unknown command {got!r}: "
    if near == [HELP]:
        return OptionError(f"{told}did you mean `{path} --help`?")
    guess = f"did you mean `{path} {near[0]}`? " if near else ""
    return OptionError(f"{told}{guess}`{path} --help` lists them all")


def usage_message(problem: Any, words: Sequence[str]) -> OptionError:
    """What Typer says of the words of a command, as one of our errors."""
    ctx, param = getattr(problem, "ctx", None), getattr(problem, "param", None)
    path = ctx.command_path if ctx is not None else " ".join(["ensue", *words[:1]])
    if hasattr(problem, "possibilities"):
        told = _unknown_option(problem, ctx)
    elif hasattr(problem, "option_name"):
        told = f"{problem.option_name}: expected a value after it, got nothing"
    elif hasattr(problem, "param_type") and param is not None:
        told = f"expected {param.metavar}, got nothing"
    elif param is not None:
        told = _wrong_value(problem.message, param, words)
    else:
        told = problem.format_message().rstrip(".")
    return OptionError(f"{path}: {told}\n`{path} --help` lists what it takes")


def _wrong_value(told: str, param: Any, words: Sequence[str]) -> str:
    for theirs, ours in REPHRASED.items():
        told = told.replace(theirs, ours)
    apart = [part for word in words for part in word.split("=", 1)]  # --epochs=abc
    given = [apart[at + 1] for at, word in enumerate(apart[:-1]) if word in param.opts]
    return f"{param.opts[0]}: {told}" + (f", got {given[-1]!r}" if given else "")


def _unknown_option(problem: Any, ctx: Any) -> str:
    """The nearest option, or the setting that has this name."""
    flag = problem.option_name
    known = [own for param in ctx.command.get_params(ctx) for own in param.opts] if ctx else []
    if "--set" in known and (keys := _settings_called(flag)):
        return f"unknown option {flag}, did you mean --set {' or '.join(keys)}=…?"
    bare = {own.lstrip("-"): own for own in known}
    near = get_close_matches(flag.lstrip("-"), bare, n=1)
    return f"unknown option {flag}" + (f", did you mean {bare[near[0]]}?" if near else "")


def _settings_called(flag: str) -> list[str]:
    """The settings that some task has under the name of an option, `--weight-decay`."""
    from ensue.runs.known_settings import known_settings
    from ensue.tasks import TASKS

    name = flag.lstrip("-").replace("-", "_")
    keys = (key for task in TASKS for key, own in known_settings(task) if own.key == name)
    return list(dict.fromkeys(keys))
