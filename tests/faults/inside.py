"""Commands in this process: what they print, and whether they end as they should."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import ensue
from ensue.errors import EnsueError
from faults import processes


class Notice(NamedTuple):
    """Exit code, standard output and error."""

    code: int
    out: str
    err: str


def command(folder: Path, words: Sequence[str]) -> Notice:
    """A command in a folder; an error that is not ours is raised unchanged."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        code = processes.exit_code(words)
    return Notice(code, out.getvalue(), err.getvalue())


def answers(model: Path, questions: list[Any], trust: bool) -> Notice:
    """The same of a saved model, which Python asks."""
    try:
        loaded: Any = ensue.load(model, trust=trust)
        return Notice(0, str(loaded.predict(questions)), "")
    except EnsueError as error:
        return Notice(2, "", str(error))


def without_syncing() -> None:
    """From now on this process waits for no disk: nothing here is about the loss of power."""
    os.fsync = lambda handle: None
