"""Recurrent layers from settings: the cell with options and wrappers, its initial state, and the
connections between layers."""

from __future__ import annotations

from ensue.cells import Cell, RecurrentDropout, Zoneout
from ensue.layers.recurrent import Recurrent, as_cell
from ensue.tasks.blocks.layer_settings import BackwardStart, CellSettings


def cell_of(settings: CellSettings) -> Cell:
    """The cell with its wrappers."""
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
    """Recurrent layers with fresh weights, for steps of this width."""
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
