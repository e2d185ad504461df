"""Origins of rows, files or memory, and their names in messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from ensue.data.options import ReadOptions
from ensue.data.parallel import read_any
from ensue.data.read import MEND_LINES
from ensue.data.rows import ProblemCallback, Row

Read = Callable[[str, ReadOptions, ProblemCallback], Iterator[Row]]


@dataclass(frozen=True)
class Origin:
    """Where rows come from.

    read: yields the valid rows of a source by its name; mend: how to fix the other rows; files:
    whether names are file names; option: the form of a column's option, "--{}" on the command line;
    words: roles that have another name in this source."""

    read: Read = read_any
    mend: str = MEND_LINES
    files: bool = True
    option: str = "--{}"
    words: Mapping[str, str] = field(default_factory=dict)

    def word(self, role: str) -> str:
        """The option as users write it: --label, or label=."""
        return self.option.format(self.words.get(role, role))


FILES = Origin()
