"""The tasks' own words on the command line: options under the heading of their task."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, NamedTuple

import typer

from ensue.cli.app import names_of
from ensue.cli.help import FILLED_IN
from ensue.errors import OptionError
from ensue.tasks import TASKS
from ensue.tasks.options import Option

PREFIX = "task_option_"
NAMES = "@tasks"  # in a help text: the tasks that there are when it is read
FILLED_IN[NAMES] = lambda: ", ".join(TASKS)


OptionValues = Mapping[Option, Any]  # the tasks' own options that were given


def _as_given(value: Any) -> Any:
    return value


class OptionKind(NamedTuple):
    """A kind of option. type, metavar, default: arguments for Typer; value: converts the typed
    text."""

    type: Any
    metavar: str | None
    default: Any = None
    value: Callable[[Any], Any] = _as_given


KINDS: Mapping[str, OptionKind] = {
    "text": OptionKind(str | None, "TEXT"),
    "number": OptionKind(int | None, "N"),
    "fraction": OptionKind(float | None, "X"),
    "switch": OptionKind(bool, None, False),
    "names": OptionKind(str | None, "A,B", value=names_of),
    "files": OptionKind(list[str] | None, "FILE"),
}
_COMMANDS: list[tuple[Callable[..., None], str]] = []  # those that have such options, by verb


def options_by_task(verb: str) -> dict[Option, list[str]]:
    """Every option of a verb, and the tasks that have it."""
    owners: dict[Option, list[str]] = {}
    for name in TASKS:
        for option in TASKS.options(name):
            if verb in option.verbs:
                owners.setdefault(option, []).append(name)
    return owners


def task_options() -> tuple[tuple[Option, str], ...]:
    """Every option of every verb with a task that has it."""
    return tuple((option, name) for name in TASKS for option in TASKS.options(name))


def with_task_options(verb: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator that adds the tasks' options of a verb to a command. Their values, by option, are
    passed as its last argument, `option_values`."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def filled(**arguments: Any) -> None:
            values = {
                name: arguments.pop(name) for name in list(arguments) if name.startswith(PREFIX)
            }
            options = {PREFIX + option.name: option for option in options_by_task(verb)}
            option_values = {
                options[n]: KINDS[options[n].kind].value(v)
                for n, v in values.items()
                if _was_given(v)
            }
            command(**arguments, option_values=option_values)

        plain = [p for p in signature(command).parameters.values() if p.name != "option_values"]
        filled.__signature__ = Signature(plain)  # type: ignore[attr-defined]
        _COMMANDS.append((filled, verb))
        return filled

    return decorate


def offer_task_options() -> None:
    """Gives every command the options of the tasks that there are now."""
    for command, verb in _COMMANDS:
        plain = [
            parameter
            for parameter in command.__signature__.parameters.values()  # type: ignore[attr-defined]
            if not parameter.name.startswith(PREFIX)
        ]
        more = [_parameter(name, names) for name, names in options_by_task(verb).items()]
        command.__signature__ = Signature([*plain, *more])  # type: ignore[attr-defined]


def _parameter(option: Option, names: list[str]) -> Parameter:
    kind = KINDS[option.kind]
    declared = typer.Option(
        option.flag,
        metavar=kind.metavar,
        help=option.help,
        rich_help_panel=f"Options for {', '.join(names)}",
        show_default=False,
    )
    return Parameter(
        PREFIX + option.name,
        Parameter.KEYWORD_ONLY,
        default=kind.default,
        annotation=Annotated[kind.type, declared],
    )


def _was_given(value: Any) -> bool:
    """0 and an empty text are values; an option that was left out is None, false or an empty
    list."""
    return not (value is None or value is False or value == [])


def task_of(option_values: OptionValues, verb: str, task: str) -> str:
    """The task that the options imply, "" if several have them; raises an error if they do not
    belong to the named task."""
    owners = options_by_task(verb)
    possible = [name for name in TASKS if all(name in owners[option] for option in option_values)]
    if task:
        if task not in TASKS:
            raise TASKS.unknown(task)
        check_owned(option_values, verb, task, f"--task {task}")
        return task
    if option_values and not possible:
        flags = ", ".join(option.flag for option in option_values)
        raise OptionError(f"{flags}: expected options of one task, got options of several")
    return possible[0] if option_values and len(possible) == 1 else ""


def check_owned(option_values: OptionValues, verb: str, task: str, got: str) -> None:
    owners = options_by_task(verb)
    strange = [option for option in option_values if task not in owners[option]]
    if strange:
        names = dict.fromkeys(name for option in strange for name in owners[option])
        flags = ", ".join(option.flag for option in strange)
        raise OptionError(f"{flags}: expected a run of task {' or '.join(names)}, got {got}")


def as_settings(option_values: OptionValues) -> list[str]:
    """Options of training as settings, `model.horizon=12`."""
    return [f"{name.key}={json.dumps(value)}" for name, value in option_values.items()]


def as_asked(option_values: OptionValues, verb: str, task: str) -> dict[str, Any]:
    """Options of a question, by their words; raises an error if the run's task does not have
    them."""
    check_owned(option_values, verb, task, f"one of task {task}")
    return {name.word: value for name, value in option_values.items()}
