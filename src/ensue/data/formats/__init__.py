"""Formats of files, each in a file here that is named after it.

Such a file has ENDINGS, what names of files end in (".gz" aside), and `read`. To add a format, add
a file; `ensue data check`, `--format` and every task then know it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ensue.data.options import ReadOptions
    from ensue.data.rows import Row, Tell

Reader = Callable[[Path, "ReadOptions", "Tell"], "Iterator[Row]"]


def format_names() -> list[str]:
    """Every format, by name; none is loaded."""
    return sorted(module.name for module in iter_modules(__path__))


def reader_of(name: str) -> Reader:
    """The function that reads a format: (path, options, on_bad_row) → the sound rows."""
    found: Reader = import_module(f"{__name__}.{name}").read
    return found


def endings() -> dict[str, str]:
    """The format that each ending of a file's name stands for: ".csv" is csv."""
    return {
        ending: name
        for name in format_names()
        for ending in import_module(f"{__name__}.{name}").ENDINGS
    }
