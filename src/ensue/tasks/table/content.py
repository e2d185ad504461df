"""What of a table's row is learned from: all columns but the target and the group."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ensue.data.rows import Place, Row
from ensue.data.settings import DataSettings
from ensue.data.values import Unfit
from ensue.errors import DataError
from ensue.tasks.columns.cells import Rows, cells_of, rows_of
from ensue.tasks.rows.collect import IN_MEMORY, Example
from ensue.tasks.rows.content import Content


class TableContent(Content):
    """The cells of a row, and its target."""

    all_columns = True

    def __init__(self, left_out: Collection[str] = ()) -> None:
        """left_out: columns beside the target and the group that are no inputs."""
        self._left_out = left_out

    def value(self, row: Row, data: DataSettings) -> list[str]:
        try:
            return cells_of(row.fields, "", {data.label, data.group, *self._left_out})
        except DataError as error:
            raise Unfit(str(error).removeprefix(": ")) from None


def rows_in_memory(rows: Rows, target: str) -> Iterator[Example]:
    """Rows with the target among their columns."""
    for number, row in enumerate(rows_of(rows), 1):
        place = Place(IN_MEMORY, number)
        if target not in row:
            raise DataError(
                f"{place}: expected a column {target!r}, the target, "
                f"got {', '.join(row) or 'no column'}"
            )
        label = row[target]
        if label is None or label == "" or (isinstance(label, float) and label != label):
            raise DataError(f"{place}: expected a value of {target!r}, got {label!r}")
        yield Example(cells_of(row, str(place), (target,)), label, place)


def asked_in_memory(rows: Rows, target: str) -> Iterator[Example]:
    """Rows whose target, if they have one, is of no interest."""
    for number, row in enumerate(rows_of(rows), 1):
        place = Place(IN_MEMORY, number)
        yield Example(cells_of(row, str(place), (target,)), None, place)
