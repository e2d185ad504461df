"""`--trust-cell`: without a value it trusts every file of a custom cell of the run; with sha256
digests, only those files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ensue.tasks.saved_cells import Trust

OPTION, EVERY = "--trust-cell", "every"
TrustCell = Annotated[
    str,
    typer.Option(
        OPTION,
        metavar="[SHA256,…]",
        help="Run the Python files of the run's cells: the files with these sha256, or all.",
    ),
]


def with_trusted(words: list[str]) -> list[str]:
    """The words of a command line; an option without a value gets the value `EVERY`."""
    completed = list[str]()
    for k, word in enumerate(words):
        if word == "--":
            return [*completed, *words[k:]]
        alone = word == OPTION and not (k + 1 < len(words) and _digests(words[k + 1]))
        completed.append(f"{OPTION}={EVERY}" if alone else word)
    return completed


def _digests(word: str) -> bool:
    """Whether a word is meant as digests, valid or not."""
    return re.fullmatch("[0-9a-fA-F]{8,}(,.*)?", word) is not None


def trusted(files: str) -> Trust:
    """The files of custom cells that a command may run, by the value of the option."""
    from ensue.cli.app import say
    from ensue.tasks.saved_cells import Trust

    return Trust(files == EVERY if files in ("", EVERY) else files, command=OPTION, announce=say)
