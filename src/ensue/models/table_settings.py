"""The [model] table of a model of tables."""

from __future__ import annotations

from typing import Annotated, Literal, Self

import torch
from pydantic import Field, model_validator

from ensue.errors import OptionError
from ensue.layers.feedforward import MLP
from ensue.models.settings import OFF, Rate, Size, Table

Pair = Annotated[tuple[int, int], Field(strict=False)]  # TOML has lists


class TableSettings(Table):
    """What a row is read as, and the network that reads it."""

    target: Literal["auto", "number", "class", "several"] = "auto"  # what is predicted
    numeric: list[str] = Field([])  # columns of numbers, where their cells do not tell
    categorical: list[str] = Field([])  # columns of names, though they look like numbers
    leave_out: list[str] = Field([])
    missing: Literal["error", "indicator"] = "error"  # empty cells; or the mean, and a column of 1
    categories: Literal["embedding", "one-hot"] = "embedding"
    embedding_size: Annotated[Size | None, OFF] = None  # off: by the number of categories
    min_count: Size = 2  # rarer categories are one, which stands for unknown ones too
    hidden: list[Size] = Field([64, 64])  # units of each hidden layer; [] is a linear model
    activations: list[str] = Field(["relu"])  # one for all hidden layers, or one for each
    skips: list[Pair] = Field([])  # (from, to), 0 the input
    init: str = "standard"
    dropout: Rate = 0.0
    distribution: Literal["gaussian", "mixture"] = "gaussian"  # of a number
    components: Size = 3  # of a mixture
    interval: Annotated[float, Field(gt=0, lt=1)] = 0.9  # the share that answers' intervals hold
    batch_rows: Annotated[Size | None, OFF] = 64  # of an update; off takes all

    @model_validator(mode="after")
    def _sound(self) -> Self:
        twice = sorted({*self.numeric} & {*self.categorical})
        if twice:
            raise ValueError(f"categorical: expected columns that numeric has not, got {twice}")
        try:
            with torch.device("meta"):  # nothing is drawn, and nothing takes memory
                self.network(1, 1)
        except OptionError as error:
            raise ValueError(str(error)) from None
        return self

    def network(self, inputs: int, outputs: int) -> MLP:
        """With fresh weights."""
        return MLP(
            [inputs, *self.hidden, outputs],
            self.activations,
            skips=self.skips,
            init=self.init,
            dropout=self.dropout,
        )
