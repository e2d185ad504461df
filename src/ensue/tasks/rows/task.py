"""`RowTask`: shared code of tasks whose rows are sequences from tables, lines or memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ensue.data.rows import Place
from ensue.data.settings import DataSettings
from ensue.errors import OptionError
from ensue.tasks.abilities import Deals
from ensue.tasks.any_model import AnyModel
from ensue.tasks.model import Model
from ensue.tasks.reader import DatasetReader, QuestionFiles, Questions
from ensue.tasks.rows.collect import Example
from ensue.tasks.rows.part import Part
from ensue.tasks.rows.reader import RowReader, continues, plain_text
from ensue.tasks.search.ranges import Space
from ensue.tasks.search.usual import text_space
from ensue.tasks.splits import HashSplit, Split
from ensue.tasks.task import L, S, Task

ARRAY, TYPE = "array", "type"  # of vectors (steps, n)


class DealtRows:
    """The rows of a `RowTask`, each answered separately."""

    def shares(self, model: AnyModel, files: QuestionFiles) -> Iterator[list[Any]]:
        if model.inputs:
            raise OptionError(
                "--workers: a run with several inputs answers in one process; leave it out"
            )
        for rows in _reader(model).question_rows(files):
            yield [_as_json(row) for row in rows]

    def questions(self, model: AnyModel, share: Sequence[Any]) -> Questions[Any]:
        return _reader(model).questions_about([_example(row) for row in share])

    def names(self, share: Sequence[Any]) -> list[str]:
        return [str(Place(*row[0])) for row in share]


def _reader(model: AnyModel) -> RowReader[Any]:
    reader = model.reader
    assert isinstance(reader, RowReader)
    return reader


def _as_json(row: Example) -> list[Any]:
    value = row.value
    if isinstance(value, np.ndarray):
        value = {ARRAY: value.tolist(), TYPE: value.dtype.str}
    return [row.place, value, row.second, row.cells]


def _example(row: Sequence[Any]) -> Example:
    place, value, second, cells = row
    if isinstance(value, dict):
        value = np.array(value[ARRAY], value[TYPE])
    return Example(value, None, Place(*place), second, cells)


class LineSplit(HashSplit):
    """A split by the hash of each row's content; lines of one text are split in blocks."""

    def line(self, data: DataSettings, settings: Any) -> str:
        line = super().line(data, settings)
        if continues(data) and all(plain_text(path, data.format) for path in data.train):
            blocks = "by blocks of lines, so that related lines stay together"
            line = line.replace(f"by the hash of {self.unit}", blocks)
        return line

    def moves_with_files(self, data: DataSettings) -> bool:
        return continues(data) and any(plain_text(path, data.format) for path in data.train)


class RowTask(Task[S, Part, L]):
    """A task whose rows are sequences with labels. reader_class: the reader of rows."""

    columns: ClassVar[Mapping[str, str]] = {
        "text": "data.text",
        "label": "data.label",
        "sequence": "data.sequence",
        "features": "data.features",
    }
    reader_class: ClassVar[type[RowReader[Any]]] = RowReader
    deals: Deals | None = DealtRows()
    split: ClassVar[Split] = LineSplit()

    def reader(self, model: AnyModel) -> DatasetReader[Any]:
        return self.reader_class(model)

    def search_space(self, train: Part, model: Model[S, Part, L]) -> Space:
        return text_space(super().search_space(train, model), train)
