"""The settings of layers over a sequence: of cells, of every other kind, and of encoders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, PlainSerializer, PlainValidator, model_validator

from ensue.cells.initialise import SCHEMES
from ensue.cells.permission import CellPermission
from ensue.cells.reference import CellReference, as_reference
from ensue.errors import RunError
from ensue.settings import OFF, Depth, Expected, OneOf, Rate, Size, Table, Width

TableType = TypeVar("TableType", bound=Table)
Initialisation = Annotated[str, OneOf(lambda: SCHEMES)]  # as a setting


def whole_heads(width: int, heads: int) -> None:
    if width % heads:
        raise ValueError(
            f"heads: expected a divisor of model.hidden_size, the width of a transformer, {width}; "
            f"got {heads}"
        )


def known_cell(cell: Any) -> str:
    """Validates a cell: the name of a built-in cell, or a reference to a custom one."""
    return as_reference(cell)


def known_cell_or_none(cell: Any) -> str:
    """Like `known_cell`; "" means none."""
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
    """The custom cells among settings, by their keys."""
    values = {key: getattr(settings, key) for key in type(settings).model_fields}
    return {key: value for key, value in values.items() if isinstance(value, CellReference)}


def named_cells(settings: Table) -> CellPermission:
    """Permission for the files of cells in settings that the user wrote."""
    cells = cell_references(settings).values()
    return CellPermission.named(cell.file for cell in cells if cell.file and cell.cell is None)


def with_loaded_cells(settings: TableType, permission: CellPermission) -> TableType:
    """The settings with every cell loaded: files of custom cells are imported, so their code
    runs."""
    cells = {key: cell.loaded(permission) for key, cell in cell_references(settings).items()}
    return settings.model_copy(update=cells) if cells else settings


def built_in_cells_only(settings: TableType, where: str) -> TableType:
    """The settings of a saved file, after checking that they name only built-in cells."""
    for key, cell in cell_references(settings).items():
        raise RunError(
            f"{where}.{key}: expected the name of a built-in cell, got {cell}. Nothing was run; "
            "take the model from a source you trust, or train it again"
        )
    return settings


DROPOUT = ("dropout_input", "dropout_layers", "dropout_output")  # what `--dropout` sets
BACKWARD_START = (
    "Start of the backward direction: from zero, from the forward end state, or with the "
    "forward end state as its state at the last step."
)
BackwardStart = Literal["zero", "forward_end", "shared_end"]


class CellSettings(Table):
    """Recurrent layers, in every task that has any."""

    cell: CellName = Field(
        "LSTM",
        description="Recurrent cell: its name, or one with options, SimpleRNN(activation='relu').",
    )
    hidden_size: Width = Field(128, description="Size of a cell's state.")
    layers: Depth = Field(1, description="Number of layers.")
    init: Initialisation = Field("standard", description="Initial weights of the cells.")
    initial_state: Literal["zero", "learned"] = Field(
        "zero", description="State of a cell before the first step."
    )
    output_layers: bool = Field(
        False, description="A linear layer V·h + d between each two recurrent layers."
    )
    dropout_layers: Rate = Field(0.0, description="Dropout between layers.")
    dropout_recurrent: Rate = Field(0.0, description="Dropout of the state between steps.")
    zoneout: Rate = Field(
        0.0,
        description="Zoneout: probability that a unit keeps its previous value at a training step.",
    )


class LayerSettings(CellSettings):
    """Layers over the steps of a sequence, of every kind; keys of one kind do not affect the
    others."""

    hidden_size: Width = Field(
        128, description="Size of a cell's state, or the width of other layers."
    )
    heads: Width = Field(4, description="Attention heads of a transformer.")
    inner_size: Annotated[Width | None, OFF] = Field(
        None, description="Width inside a transformer's feed-forward layers; off: 4 × hidden_size."
    )
    norm: Literal["before", "after"] = Field(
        "before",
        description="Layer norm of a transformer: before each sublayer, or after each sum as "
        "in the original paper.",
    )
    dropout_attention: Rate = Field(0.0, description="Dropout of a transformer's attention.")
    filter_size: Width = Field(3, description="Filter width of a convolution, in steps.")
    dilated: bool = Field(
        False,
        description="Dilated convolution: filters see steps 1, 2, 4, … apart, layer by layer.",
    )


def _kinds() -> Mapping[str, object]:
    from ensue.tasks.blocks.encoders import ENCODERS  # which are built from these settings

    return ENCODERS


class EncoderSettings(LayerSettings):
    """Encoders, `ENCODERS[settings.encoder]`."""

    encoder: Annotated[str, OneOf(_kinds)] = Field(
        "recurrent", description="Kind of network that reads the sequence."
    )
    bidirectional: bool = Field(True, description="Read in both directions (recurrent encoders).")
    backward_start: BackwardStart = Field("zero", description=BACKWARD_START)
    directions: Literal["joined", "apart"] = Field(
        "joined",
        description="Layers of a recurrent encoder that reads in both directions: joined, each "
        "layer reads both directions of the layer below; apart, each direction has separate "
        "layers and reads its own half of every input vector, like two language models.",
    )
    final_states: Literal["top", "all"] = Field(
        "top",
        description="End states of a recurrent encoder that pooling `last` takes: the end states "
        "of the top layer, or of all layers.",
    )

    causal: bool = Field(
        False,
        description="Causal: a transformer or convolution sees no later steps, as in a "
        "language model.",
    )
    context: Size = Field(
        256, description="Context of each block of a causal transformer, in steps."
    )

    @model_validator(mode="after")
    def _whole_heads(self) -> Self:
        if self.encoder == "transformer":
            whole_heads(self.hidden_size, self.heads)
        return self
