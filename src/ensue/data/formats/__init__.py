"""Formats of files, each in a module here with its name.

Such a module has ENDINGS, the endings of file names (without ".gz"), and `read`. It may have
HEADER, True if the first line may name the columns, and `recognised`, which decides by the first
lines if the ending, such as .txt, does not. To add a format, add a module; `ensue data check`,
`--format` and every task then support it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ensue.data.options import ReadOptions
    from ensue.data.rows import ProblemCallback, Row

Reader = Callable[[Path, "ReadOptions", "ProblemCallback"], "Iterator[Row]"]


class Format(NamedTuple):
    """A format of files. read: (path, options, on_bad_row) → the valid rows; header: whether the
    first line may name the columns; recognised: whether these first lines of a file are in this
    format."""

    name: str
    endings: tuple[str, ...]
    read: Reader
    header: bool
    recognised: Callable[[Sequence[str]], bool]


def format_names() -> list[str]:
    """The names of all formats; none is loaded."""
    return sorted(module.name for module in iter_modules(__path__))


def format_named(name: str) -> Format:
    module = import_module(f"{__name__}.{name}")
    return Format(
        name,
        module.ENDINGS,
        module.read,
        getattr(module, "HEADER", False),
        getattr(module, "recognised", lambda first: False),
    )


def formats() -> list[Format]:
    """All formats, by name."""
    return [format_named(name) for name in format_names()]


def format_of_ending(ending: str) -> str | None:
    """The format of an ending. A format named like the ending is tried first, so the others need
    not be loaded."""
    name = ending.removeprefix(".")
    if name in format_names() and ending in format_named(name).endings:
        return name
    return endings().get(ending)


def endings() -> dict[str, str]:
    """The format of each ending of file names: ".csv" is csv."""
    return {ending: form.name for form in formats() for ending in form.endings}
