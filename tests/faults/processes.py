"""Commands in processes of their own: forked from one that has torch loaded, or the executable."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from ensue import cli


def forked(
    folder: Path, words: Sequence[str], log: Path, before: Callable[[], object] = lambda: None
) -> int:
    """Starts the command's main function in a forked process, in a folder; its number. log: takes
    both streams; before: called in the child."""
    process = os.fork()
    if process:
        return process
    code = 70
    try:
        _streams_to(log)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else 0)
        os.chdir(folder)
        before()
        import torch

        torch.seed()  # no two processes begin with the same random state
        code = exit_code(words)
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def warm() -> None:
    """Loads what torch loads at the first update, so that forked processes need not."""
    import torch

    weight = torch.nn.Parameter(torch.zeros(1))
    weight.sum().backward()
    torch.optim.Adam([weight]).step()


def _streams_to(log: Path) -> None:
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, source in enumerate((nothing, output, output)):
        os.dup2(source, number)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", closefd=False)


def exit_code(words: Sequence[str]) -> int:
    """Of a command in this process; what is no exit code is raised."""
    try:
        cli.main(list(words))
    except SystemExit as ending:
        return int(ending.code or 0)
    return 0


def executable(folder: Path, words: Sequence[str], log: Path) -> int:
    """Starts `ensue` as a user does."""
    with open(log, "ab") as file:
        started = subprocess.Popen(
            [program(), *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=file, stderr=file
        )
    started.returncode = 0  # `wait` below takes the status, not this object
    return started.pid


def program() -> str:
    beside = Path(sys.executable).with_name("ensue")
    return str(beside) if beside.exists() else str(shutil.which("ensue"))


def wait(process: int) -> int:
    """The exit code; below zero the signal that it was ended by."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def tail(log: Path, most: int = 300) -> str:
    """The end of a command's output."""
    return log.read_text("utf-8", "replace").strip()[-most:] if log.exists() else ""
