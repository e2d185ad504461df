"""The command line: one short function for each command.

stdout carries the result, stderr the progress and the errors. Exit codes:

    0    done
    1    a mistake in Ensue itself; the traceback is shown
    2    something that you can put right: the command, an option, a file, the data; an answer
         that could not be written
    130  stopped with Ctrl-C; 143 (129) by SIGTERM (SIGHUP)

`ensue --help` has to answer at once, so nothing heavy is imported here: a command imports
what it needs inside its function.
"""

import sys
import traceback
from collections.abc import Callable, Sequence
from functools import lru_cache

from typer.main import get_command

from ensue.cli.app import app, say
from ensue.cli.commands import load_commands
from ensue.cli.help import HELP, UsageError, usage_message
from ensue.cli.streams import exit_code, steady_streams
from ensue.cli.task_options import offer_task_options, task_options
from ensue.data.stream import opened_once
from ensue.errors import DataError, EnsueError, Undecided, enough_memory
from ensue.escape import in_shell, printable_lines

__all__ = ["app", "load_commands", "main"]


def take_debug(arguments: Sequence[str]) -> tuple[bool, list[str]]:
    """Whether `--debug` comes before any `--`, and the arguments without it."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    remaining = [argument for argument in arguments[:end] if argument != "--debug"]
    return len(remaining) < end, [*remaining, *arguments[end:]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; an `EnsueError` becomes its message on stderr and exit code 2."""
    debug, rest = take_debug(sys.argv[1:] if arguments is None else arguments)
    if rest[:1] == [HELP]:  # `ensue help train`
        rest = [*rest[1:], "--help"]
    with steady_streams() as out:
        sys.exit(exit_code(_ended(rest, debug), out))


def _ended(words: Sequence[str], debug: bool) -> int:
    """Loads and runs a command; returns its exit code. Errors become messages."""
    try:
        load_commands(words)
        with enough_memory(), opened_once():
            return _ran(words)
    except EnsueError as problem:
        if debug:
            print(printable_lines(traceback.format_exc()), end="", file=sys.stderr)
        else:
            say(f"{type(problem).__name__}: {problem}")
            for note in getattr(problem, "__notes__", ()):
                say(note)
        return 2
    except KeyboardInterrupt:
        return 130
    except Exception as problem:
        code = code_of_signal(problem)
        if code is None:
            raise
        say(str(problem))
        return code


@lru_cache(maxsize=1)
def _parser(commands: tuple[object, ...], options: tuple[object, ...]) -> Callable[..., int | None]:
    """The parser of the command line. Building it takes longer than many commands: a process that
    runs several builds it again only after a change of commands or options."""
    offer_task_options()
    return get_command(app)


def _ran(words: Sequence[str]) -> int:
    """Runs a command; the exit code that it asks for."""
    try:
        parser = _parser(app.every_command_below(), task_options())
        return parser(words, prog_name="ensue", standalone_mode=False) or 0
    except UsageError as problem:
        raise usage_message(problem, words) from None
    except Undecided as problem:
        command = " ".join(["ensue", *map(in_shell, words)]).replace("{", "{{").replace("}", "}}")
        raise DataError(problem.with_choices(f"{command} {{}}")) from None


def code_of_signal(problem: Exception) -> int | None:
    """128 + the signal that stopped a run; None for every other problem."""
    training = sys.modules.get("ensue.training")  # while it is not loaded, no run can be stopped
    if training is None or not isinstance(problem, training.Stopped):
        return None
    return int(problem.code)
