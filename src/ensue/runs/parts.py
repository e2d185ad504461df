"""The files of a run, read, split and collected: no row is kept as text."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ensue.data.options import ReadOptions
from ensue.data.read import Gathered, gather
from ensue.data.rows import Problem, Row
from ensue.data.split import SHARES, part_of
from ensue.errors import DataError
from ensue.models.collect import Collected, Collector, Numbers
from ensue.runs.config import DataSettings

Tokenise = Callable[[str], list[str]]
BLOCK = 1 << 20


@dataclass(frozen=True)
class Parts:
    """What was collected of each part, and how many rows could not be read."""

    parts: Mapping[str, Collected]
    numbers: Numbers
    rejected: int


@dataclass
class Reading:
    """The rows of a run's files."""

    data: DataSettings
    several: bool
    tell: Callable[[Problem], None] | None = None
    rejected: int = field(default=0, init=False)

    def rows(self, part: str) -> Iterator[tuple[Any, Any, Row]]:
        """(input, label, row) of one part, in the order of the files."""
        own = {"train": self.data.train, "validation": self.data.validation, "test": self.data.test}
        split = not own[part]
        gathered = self.gathered(self.data.train if split else own[part])
        for row in gathered:
            value, label = self.value(row), self.label(row)
            if (not split and part != "train") or self.part(row, value) == part:
                yield value, label, row
        self.rejected = gathered.rejected

    def gathered(self, paths: Iterable[str]) -> Gathered:
        options = read_options(self.data)
        return gather(list(paths), options, skip_bad=self.data.skip_bad, tell=self.tell)

    def value(self, row: Row) -> Any:
        name = "features" if self.data.sequence else self.data.text
        value = row.fields.get(name)
        if isinstance(value, list) and value and isinstance(value[0], list):
            return np.asarray(value, np.float32)
        if value is None or isinstance(value, int | float):
            raise DataError(f"{row.place}: {name}: expected a text or a sequence, got {value!r}")
        return value

    def label(self, row: Row) -> Any:
        """A text, a list of texts, or None where the row has none."""
        value = row.fields.get(self.data.label) if self.data.label else None
        if value is None or isinstance(value, list):
            return value
        text = str(value).strip()
        if self.data.separator:
            return [own.strip() for own in text.split(self.data.separator) if own.strip()]
        if not text:
            raise DataError(
                f"{row.place}: {self.data.label}: expected a label, got nothing; fill it in or "
                "remove the row"
            )
        return text

    def part(self, row: Row, value: Any) -> str:
        """Where a row of the training files belongs."""
        shares = dict(SHARES)
        if self.data.validation:
            shares["train"] += shares.pop("validation")
        if self.data.test:
            shares["train"] += shares.pop("test")
        if self.data.validation and not self.data.test:
            return "train"  # the files say what is what, and there is no test part
        if len(shares) == 1:
            return "train"
        content = str(row.fields[self.data.group]) if self.data.group else _content(value)
        return part_of(content, shares, self.data.split_seed)

    def collect(self, part: str, numbers: Numbers, tokenise: Tokenise) -> Collected:
        collector = Collector(numbers, tokenise, self.several)
        for value, label, row in self.rows(part):
            collector.add(value, label, *row.place)
        return collector.done()


def _content(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return value.tobytes().hex()
    return value if isinstance(value, str) else " ".join(value)


def read_options(data: DataSettings) -> ReadOptions:
    wanted = [data.text if not data.sequence else "", data.label, data.group]
    columns = tuple(dict.fromkeys(name for name in wanted if name))
    return ReadOptions(
        format=data.format,
        encoding=data.encoding,
        delimiter=data.delimiter or None,
        columns=columns,
        numbers=tuple(data.features),
        sequence=data.sequence or None,
    )


def digest_of(paths: Iterable[str]) -> str:
    """sha256 over the bytes of files; of a folder, over its files by name."""
    found = sha256()
    for path in map(Path, paths):
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        for file in files:
            with open(file, "rb") as stream:
                while block := stream.read(BLOCK):
                    found.update(block)
    return found.hexdigest()


def first_rows(paths: Iterable[str], options: ReadOptions, count: int) -> list[Row]:
    """The first rows that are sound; a file without any is an error that says why."""
    problems: list[Problem] = []
    rows = itertools.chain.from_iterable(
        iter(gather([path], options, skip_bad=True, tell=problems.append)) for path in paths
    )
    return list(itertools.islice(rows, count))
