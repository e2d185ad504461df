"""The files of a run, read, split and collected: no row is kept as text."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from ensue.data.options import ReadOptions
from ensue.data.read import Gathered, format_of
from ensue.data.rows import Place, Problem, Row, Tell
from ensue.data.split import SHARES, part_of, part_of_line
from ensue.data.values import Unfit
from ensue.errors import DataError
from ensue.models.collect import Collected, Collector, Numbers
from ensue.runs.config import DataSettings
from ensue.runs.content import (
    EMPTY,
    Input,
    check_steps,
    hashed,
    input_of,
    label_of,
    row_cells,
    target_of,
)
from ensue.runs.parallel import parallel, read_any, sides_of

Tokenise = Callable[[str], list[str]]
BLOCK = 1 << 20
INPUT, LABEL = "input", "label"


class Example(NamedTuple):
    """What is learned from a row; a label of None is not known."""

    value: Input
    label: str | list[str] | None
    place: Place


@dataclass
class Reading:
    """The rows of a run's files. steps: each step has a label; tell: who hears of bad rows; pairs:
    the label is a text too, and neither is empty; table: all columns but the label and the group
    are learned from; seen: what an input stands for, such as the picture of a file's name."""

    data: DataSettings
    steps: bool
    tell: Tell | None = None
    pairs: bool = False
    table: bool = False
    seen: Callable[[Place, Input], Any] | None = None
    rejected: int = field(default=0, init=False)  # rows of the last part that were left out

    def rows(self, part: str) -> Iterator[Example]:
        """The rows of one part, in the order of the files. Rows of other parts are looked at for
        faults, so that those of a whole file are told at once, and for nothing else."""
        own = {"train": self.data.train, "validation": self.data.validation, "test": self.data.test}
        shares = self.shares() if part == "train" or not own[part] else None
        gathered = self._gathered(own[part] or self.data.train, part, shares)
        for row in gathered:
            if row.fields:
                yield Example(row.fields[INPUT], row.fields[LABEL], row.place)
        self.rejected = gathered.rejected

    def shares(self) -> dict[str, float] | None:
        """How the training files are split; None where all of their rows train."""
        if self.data.validation:
            return None  # the files say what is what
        shares = dict(SHARES)
        if self.data.test:
            shares["train"] += shares.pop("test")
        return shares

    def collect(
        self,
        part: str,
        numbers: Numbers,
        tokenise: Tokenise,
        tokenise_label: Tokenise | None = None,
    ) -> Collected:
        """tokenise_label: for labels that are texts; None leaves a text a label."""
        collector = Collector(numbers, tokenise)
        for value, label, place in self.rows(part):
            if tokenise_label is not None and isinstance(label, str):
                label = tokenise_label(label)
            collector.add(value, label, *place)
        return collector.done()

    def _gathered(
        self, paths: Sequence[str], part: str, shares: dict[str, float] | None
    ) -> Gathered:
        sources = {path: partial(self._sound, path, part, shares) for path in paths}
        return Gathered(sources, self.data.skip_bad, self.tell)

    def _sound(
        self, path: str, part: str, shares: dict[str, float] | None, tell: Tell
    ) -> Iterator[Row]:
        """Rows with INPUT and LABEL; those of other parts without fields."""
        options = read_options(self.data, self.steps, grouped=shares is not None)
        name = "features" if self.data.sequence else self.data.text
        running = runs_on(self.data) and plain_text(path, self.data.format)
        for row in read_any(path, options, tell):
            at = name
            try:
                value = self._value(row, name)
                if self.pairs and not hashed(value).strip():
                    raise Unfit(EMPTY)
                at = self.data.label
                label = self._label(row, value)
                if shares and self._part(row, value, shares, running) != part:
                    yield Row(row.place, {})
                    continue
                at = name
                given = value if self.seen is None else self.seen(row.place, value)
            except Unfit as unfit:
                tell(Problem(row.place, f"{at}: {unfit}"))
                continue
            yield Row(row.place, {INPUT: given, LABEL: label})

    def _value(self, row: Row, name: str) -> Input:
        if self.table:
            return row_cells(row, {self.data.label, self.data.group})
        return input_of(row.fields.get(name), self.steps)

    def _label(self, row: Row, value: Input) -> str | list[str] | None:
        if not self.data.label:
            return None
        if self.pairs:
            return target_of(row.fields.get(self.data.label))
        label = label_of(row.fields.get(self.data.label), self.steps, self.data.separator)
        if self.steps:
            check_steps(value, label)
        return label

    def _part(self, row: Row, value: Input, shares: dict[str, float], running: bool) -> str:
        """running: the rows are lines of one text, and blocks of them stay together."""
        if running:
            name = Path(row.place.file).name
            return part_of_line(row.place.line - 1, shares, self.data.split_seed, name)
        content = str(row.fields[self.data.group]) if self.data.group else hashed(value)
        return part_of(content, shares, self.data.split_seed)


def runs_on(data: DataSettings) -> bool:
    """Whether the lines of a plain text are one text that goes on, not rows of their own."""
    return not (data.label or data.group)


def plain_text(path: str, format: str) -> bool:
    """Whether each line of the file is a row."""
    if parallel([path]):
        return False
    return format == "text" or (format == "auto" and format_of(Path(path)) == "text")


def inputs_of(
    data: DataSettings,
    steps: bool,
    paths: Iterable[str],
    tell: Tell | None = None,
    table: bool = False,
) -> Iterator[Example]:
    """The rows of files that have no labels, or whose labels are of no interest. A plain text
    file has its one column, whatever that of the run is called; after two parallel files in
    training, one file alone is plain text."""
    lines = parallel(data.train)
    for path in paths:
        if lines and not parallel([path]):
            data = data.model_copy(update={"format": "text"})
        plain = plain_text(path, data.format)
        own = {"label": "", "group": "", "separator": "", "train": [path], "validation": [path]}
        own |= {"text": "text", "sequence": "", "features": []} if plain else {}
        yield from Reading(data.model_copy(update=own), steps, tell, table=table).rows("train")


def read_options(data: DataSettings, steps: bool = False, grouped: bool = True) -> ReadOptions:
    """steps: the label of a long table may change from line to line; grouped: the column of
    the group is needed."""
    by_line = bool(data.sequence) and steps
    wanted = [
        "" if data.sequence else data.text,
        "" if by_line else data.label,
        data.group if grouped else "",
    ]
    return ReadOptions(
        format=data.format,
        encoding=data.encoding,
        delimiter=data.delimiter or None,
        quote=False if data.no_quote else None,
        header=tuple(data.header) or True,
        columns=tuple(dict.fromkeys(name for name in wanted if name)),
        numbers=tuple(data.features),
        sequence=data.sequence or None,
        step_columns=(data.label,) if by_line and data.label else (),
    )


def digest_of(paths: Iterable[str]) -> str:
    """sha256 over the bytes of files; of a folder, over its files by name."""
    found = sha256()
    for path in (Path(side) for own in paths for side in sides_of(own)):
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        for file in files:
            with open(file, "rb") as stream:
                while block := stream.read(BLOCK):
                    found.update(block)
    return found.hexdigest()


def first_rows(paths: Iterable[str], options: ReadOptions, count: int) -> list[Row]:
    """The first rows that are sound; a file without any is an error that says why."""
    rows: Iterator[Any] = itertools.chain.from_iterable(
        iter(Gathered({path: partial(read_any, path, options)}, skip_bad=True)) for path in paths
    )
    found = list(itertools.islice(rows, count))
    if not found:
        raise DataError("expected files to read, got none")
    return found
