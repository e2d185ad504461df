"""The command line: one short function for each command.

stdout carries the result, stderr the progress and the errors. Exit codes:

    0    done
    1    a mistake in Ensue itself; the traceback is shown
    2    something that you can put right: the command, an option, a file, the data
    130  stopped with Ctrl-C; 143 (129) by SIGTERM (SIGHUP)

`ensue --help` has to answer at once, so nothing heavy is imported here: a command imports
what it needs inside its function.
"""

import io
import sys
import traceback
from collections.abc import Sequence

from ensue.cli import (  # each hangs its commands on the app
    cells,
    data,
    explain,
    foundations,
    language,
    learning,
    machine,
    runs,
    select,
    study,
)
from ensue.cli.app import app
from ensue.cli.task_options import offer_task_options
from ensue.errors import EnsueError

__all__ = [
    "app",
    "cells",
    "data",
    "explain",
    "foundations",
    "language",
    "learning",
    "machine",
    "main",
    "runs",
    "select",
    "study",
]


def take_debug(arguments: Sequence[str]) -> tuple[bool, list[str]]:
    """Whether `--debug` stands before any `--`, and the arguments without it."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = [argument for argument in arguments[:end] if argument != "--debug"]
    return len(kept) < end, [*kept, *arguments[end:]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; an `EnsueError` becomes its message on stderr and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # σ on an ASCII terminal must not be an error
            stream.reconfigure(errors="backslashreplace")
    debug, rest = take_debug(sys.argv[1:] if arguments is None else arguments)
    offer_task_options()
    try:
        app(rest, prog_name="ensue")
    except EnsueError as problem:
        if debug:
            traceback.print_exc()
        else:
            print(f"{type(problem).__name__}: {problem}", file=sys.stderr)
            for note in getattr(problem, "__notes__", ()):
                print(note, file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as problem:
        code = code_of_signal(problem)
        if code is None:
            raise
        print(problem, file=sys.stderr)
        sys.exit(code)


def code_of_signal(problem: Exception) -> int | None:
    """128 + the signal that stopped a run; None for every other problem."""
    training = sys.modules.get("ensue.training")  # while it is not loaded, no run can be stopped
    if training is None or not isinstance(problem, training.Stopped):
        return None
    return int(problem.code)
