"""Layers of cells as settings say: the cell with its options and wrappers, where it starts, what
stands between the layers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ensue.cells import Cell, RecurrentDropout, Zoneout
from ensue.layers.recurrent import Recurrent, as_cell
from ensue.settings import Depth, Rate, Table, Width
from ensue.tasks.blocks.cell_name import CellName, Initialisation

BACKWARD_START = (
    "Where the backward direction begins: from zero, from the forward end state, or with the "
    "forward end state as its state at the last step."
)
BackwardStart = Literal["zero", "forward_end", "shared_end"]


class CellSettings(Table):
    """What recurrent layers are made of, in every task that has any."""

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
        0.0, description="Probability that a unit keeps its old value at a step of training."
    )


def cell_of(settings: CellSettings) -> Cell:
    """The cell with what is wrapped around it."""
    cell = as_cell(settings.cell)
    if settings.dropout_recurrent:
        cell = RecurrentDropout(cell, settings.dropout_recurrent)
    return Zoneout(cell, settings.zoneout) if settings.zoneout else cell


def layers_of(
    settings: CellSettings,
    input_size: int,
    *,
    bidirectional: bool = False,
    backward_start: BackwardStart = "zero",
    weight_dropout: float = 0.0,
    engine: str = "auto",
) -> Recurrent:
    """With fresh weights, for steps of that width."""
    return Recurrent(
        cell_of(settings),
        input_size,
        settings.hidden_size,
        settings.layers,
        bidirectional=bidirectional,
        backward_start=backward_start,
        dropout=settings.dropout_layers,
        weight_dropout=weight_dropout,
        initial=settings.initial_state,
        init=settings.init,
        output_layers=settings.output_layers,
        engine=engine,
    )
