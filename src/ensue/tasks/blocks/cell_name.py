"""Settings that several kinds of network check in the same way: the cell, the heads."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import PlainSerializer, PlainValidator

from ensue.cells.initialise import SCHEMES
from ensue.cells.reference import CellReference, as_reference
from ensue.settings import Expected, OneOf, Table

TableType = TypeVar("TableType", bound=Table)
Initialisation = Annotated[str, OneOf(lambda: SCHEMES)]  # as a setting


def whole_heads(width: int, heads: int) -> None:
    if width % heads:
        raise ValueError(
            f"heads: expected a divisor of model.hidden_size, the width of a transformer, {width}; "
            f"got {heads}"
        )


def known_cell(cell: Any) -> str:
    """A cell of Ensue's by its name, or a reference to one's own."""
    return as_reference(cell)


def known_cell_or_none(cell: Any) -> str:
    """The same; "" names none."""
    return "" if cell == "" else as_reference(cell)


# A cell in settings: a name, mine.py:MyCell, or in Python the cell itself.
CellName = Annotated[
    str,
    PlainValidator(known_cell),
    PlainSerializer(str, return_type=str),
    Expected("a name of `ensue cell list`, one with options, or mine.py:MyCell"),
]
OptionalCell = Annotated[
    str,
    PlainValidator(known_cell_or_none),
    PlainSerializer(str, return_type=str),
    Expected('a name of `ensue cell list`, one with options, mine.py:MyCell, or ""'),
]


def cell_references(settings: Table) -> dict[str, CellReference]:
    """The cells of one's own among settings, by their keys."""
    values = {key: getattr(settings, key) for key in type(settings).model_fields}
    return {key: value for key, value in values.items() if isinstance(value, CellReference)}


def with_loaded_cells(settings: TableType) -> TableType:
    """The settings with every cell loaded: files of one's own are imported, so their code runs."""
    found = {key: cell.loaded() for key, cell in cell_references(settings).items()}
    return settings.model_copy(update=found) if found else settings
