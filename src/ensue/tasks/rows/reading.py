"""The rows of a run's files: read, split and checked one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from ensue.data.frames.origin import FILES, Origin
from ensue.data.parallel import parallel, read_any
from ensue.data.read import Gathered
from ensue.data.recognise.format import LOOKED_AT, TEXT, format_of
from ensue.data.rows import Problem, Row, Tell
from ensue.data.settings import DataSettings
from ensue.data.split import hashed_content, part_of, part_of_line
from ensue.data.values import Unfit
from ensue.errors import DataError, EnsueError
from ensue.tasks.reader import QuestionFiles
from ensue.tasks.rows.collect import Content, Example

EXAMPLE = "example"
LABELLED = "labelled"  # the format whose lines begin with a label
FOREIGN = 0.9  # first words that are no labels of a model: more, and the lines have no labels
SHOWN = 3  # of them
AT_ONCE = 1000  # rows that are answered together

T = TypeVar("T")


@dataclass
class Reading:
    """The rows of files that belong to a part. content: what of a row is learned from;
    on_bad_row: callback for rejected rows; origin: what the rows are read from, if not files."""

    data: DataSettings
    content: Content
    on_bad_row: Tell | None = None
    origin: Origin = FILES
    rejected: int = field(default=0, init=False)  # rows of the last part that were left out

    def rows(self, part: str) -> Iterator[Example]:
        """In the order of the files. Rows of other parts are looked at for faults, so that those
        of a whole file are told at once, and for nothing else."""
        shares = self.data.shares(part)
        sources = {path: partial(self._sound, path, part, shares) for path in self.data.files(part)}
        gathered = Gathered(sources, self.data.skip_bad, self.on_bad_row, self.origin.mend)
        for row in gathered:
            if row.fields:
                yield row.fields[EXAMPLE]
        self.rejected = gathered.rejected

    def _sound(
        self, path: str, part: str, shares: Mapping[str, float] | None, tell: Tell
    ) -> Iterator[Row]:
        """Rows with their example; those of other parts without fields."""
        data, content = self.data, self.content
        options = data.read_options(
            content.by_step, grouped=shares is not None, others=content.all_columns
        )
        in_blocks = self.origin.files and continues(data) and plain_text(path, data.format)
        for row in self.origin.read(path, options, tell):
            try:
                example = content.example(row, data)
                if shares and self._part(example, row, shares, in_blocks) != part:
                    yield Row(row.place, {})
                    continue
                yield Row(row.place, {EXAMPLE: content.looked_up(example, data)})
            except Unfit as unfit:
                tell(Problem(row.place, str(unfit)))

    def _part(
        self, example: Example, row: Row, shares: Mapping[str, float], in_blocks: bool
    ) -> str:
        """in_blocks: the rows are lines of one text, and blocks of them stay together."""
        seed = self.data.split_seed
        if in_blocks:
            return part_of_line(row.place.line - 1, shares, seed, Path(row.place.file).name)
        group: Any = row.fields[self.data.group] if self.data.group else None
        if group is not None:
            return part_of(str(group), shares, seed)
        content = hashed_content(self.content.hashed(example), row.place)
        return part_of(content, shares, seed)


def continues(data: DataSettings) -> bool:
    """Whether the lines of a plain text are one text that goes on, not rows of their own."""
    return not (data.label or data.group)


def plain_text(path: str, format: str) -> bool:
    """Whether each line of the file is a row."""
    return not parallel([path]) and format_of(Path(path), format) == TEXT


def asked_rows(
    content: Content,
    files: QuestionFiles,
    is_label: Callable[[str], bool] = lambda text: True,
) -> Iterator[Example]:
    """The rows of files that have no labels, or whose labels are of no interest. A plain text
    file has its one column, whatever that of the run is called; after two parallel files in
    training, one file alone is plain text. is_label: whether a text can be a label of the model."""
    data, origin = files.data, files.origin
    lines = parallel(data.train)
    for path in files.paths:
        if origin.files and data.format == LABELLED:
            _refuse_texts_alone(path, data, is_label)
        plain = origin.files and ((lines and not parallel([path])) or plain_text(path, data.format))
        asked = data.asked([path], plain)
        yield from Reading(asked, content, files.on_bad_row, origin).rows("train")


def _refuse_texts_alone(path: str, data: DataSettings, is_label: Callable[[str], bool]) -> None:
    """An error where the first words of the lines are no labels: they would be lost."""
    options = data.asked([path]).read_options()
    rows = islice(read_any(path, options, lambda problem: None), LOOKED_AT)
    words = [row.fields["label"] for row in rows]
    foreign = [word for word in words if not is_label(word)]
    if words and len(foreign) > FOREIGN * len(words):
        shown = ", ".join(map(repr, foreign[:SHOWN]))
        raise DataError(
            f"{path}: read as in training, a line begins with a label; the first words here are "
            f"no labels of this model: {shown}, …; if the lines are texts alone, use --format text"
        )


def together(rows: Iterable[T], count: int) -> Iterator[list[T]]:
    """So many rows at a time; those before an error come first, then the error."""
    waiting = iter(rows)
    while True:
        batch: list[T] = []
        try:
            batch.extend(islice(waiting, count))
        except EnsueError:
            if batch:
                yield batch
            raise
        if not batch:
            return
        yield batch
