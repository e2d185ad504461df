"""The [model] table of a model of tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

import torch
from pydantic import Field, field_validator, model_validator

from ensue.errors import OptionError
from ensue.layers.feedforward import MLP
from ensue.settings import OFF, Rate, Size, one_of
from ensue.tasks.targets.kinds import TARGETS
from ensue.tasks.targets.target import NumberSettings

AUTO = "auto"
Pair = Annotated[tuple[int, int], Field(strict=False)]  # TOML has lists


class TableSettings(NumberSettings):
    """What a row is read as, and the network that reads it."""

    renamed: ClassVar[Mapping[str, str]] = {"dropout": "dropout_layers"}

    target: str = AUTO  # what is predicted, a kind of `TARGETS`; auto: what it looks like
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
    dropout_layers: Rate = 0.0
    batch_rows: Annotated[Size | None, OFF] = 64  # of an update; off takes all

    @field_validator("target")
    @classmethod
    def _known_target(cls, target: str) -> str:
        if target not in (AUTO, *TARGETS):
            raise ValueError(one_of([AUTO, *TARGETS], target))
        return target

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
            dropout=self.dropout_layers,
        )
