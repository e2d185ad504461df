"""The [model] table of a classifier of trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ensue.settings import OFF, Rate, Size, Table, Width
from ensue.tasks.blocks.cell_name import CellName, Initialisation


class TreeSettings(Table):
    """The cell that goes up a tree, and how it takes the states of a node's children.

    >>> TreeSettings(combine='sum').cell
    'LSTM'
    """

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "batch_size": ("batch_rows",),
        "dropout": ("dropout_input", "dropout_output"),
    }

    combine: Literal["ordered", "sum", "mean"] = Field(
        "ordered",
        description="How children are combined: first, last and those between by a matrix each, "
        "or summed or averaged, whatever their order.",
    )
    cell: CellName = Field("LSTM", description="Cell that goes from the leaves to the root.")
    hidden_size: Width = Field(128, description="Size of a cell's state.")
    embedding_size: Width = Field(64, description="Size of the vectors of words.")
    label_size: Width = Field(
        16, description="Size of the vectors of inner labels, where these are inputs."
    )
    init: Initialisation = Field("standard", description="Initial weights of the cells.")
    dropout_input: Rate = Field(0.1, description="Dropout of the vectors of words.")
    dropout_output: Rate = Field(0.1, description="Dropout before the output layer.")
    batch_nodes: Size = Field(8000, description="Most nodes of a batch.")
    batch_rows: Annotated[Size | None, OFF] = Field(32, description="Most trees of a batch.")
