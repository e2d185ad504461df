"""Rows as JSON, so that other processes can answer them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ensue.data.rows import Place, Tell
from ensue.data.settings import DataSettings
from ensue.tasks.rows.collect import Example
from ensue.tasks.task import Questions

if TYPE_CHECKING:
    from ensue.tasks.rows.part import Part

ARRAY, TYPE = "array", "type"  # of vectors (steps, n)


class DealtRows:
    """The rows of a `RowTask`, each of which is answered by itself."""

    def shares(
        self, model: Any, paths: Sequence[str], data: DataSettings, on_bad_row: Tell | None = None
    ) -> Iterator[list[Any]]:
        for rows in model.task.asked_rows(paths, data, model, on_bad_row):
            yield [_as_json(row) for row in rows]

    def questions(self, model: Any, share: Sequence[Any]) -> Questions[Part]:
        found: Questions[Part] = model.task.questions_about([_example(row) for row in share], model)
        return found

    def names(self, share: Sequence[Any]) -> list[str]:
        return [str(Place(*row[0])) for row in share]


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
