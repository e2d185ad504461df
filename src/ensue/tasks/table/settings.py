"""The [model] table of a model of tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator

from ensue.errors import OptionError
from ensue.layers.activations import ACTIVATIONS
from ensue.layers.feedforward import MLP, STARTS
from ensue.settings import OFF, Expected, OneOf, Rate, Size, Width
from ensue.tasks.columns.feature_text import EXAMPLE as FEATURE_EXAMPLE
from ensue.tasks.columns.feature_text import FEATURES, features_of
from ensue.tasks.targets.kinds import TARGETS
from ensue.tasks.targets.target import NumberSettings

AUTO = "auto"
Pair = Annotated[tuple[int, int], Field(strict=False)]  # TOML has lists


class TableSettings(NumberSettings):
    """What a row is read as, and the network that reads it.

    >>> TableSettings(hidden=[32]).batch_rows
    64
    """

    renamed: ClassVar[Mapping[str, str]] = {"dropout": "dropout_layers"}

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"dropout": ("dropout_layers",)}
    instead: ClassVar[Mapping[str, str]] = {"hidden_size": "hidden", "layers": "hidden"}

    target: Annotated[str, OneOf(lambda: (AUTO, *TARGETS))] = Field(
        AUTO, description="What is predicted; auto: what the label's column looks like."
    )
    numeric: list[str] = Field(
        [], description="Columns of numbers, where their values do not tell."
    )
    categorical: list[str] = Field(
        [], description="Columns of categories, though they look like numbers."
    )
    leave_out: list[str] = Field([], description="Columns that are not read.")
    features: Annotated[list[str], Expected(f"a list of features, {FEATURE_EXAMPLE}")] = Field(
        [],
        description="Features of columns, which are then read by them alone: "
        f"{', '.join(FEATURES)}.",
    )
    missing: Literal["error", "indicator"] = Field(
        "error",
        description="Empty cells: an error, or the column's mean beside a column that marks them.",
    )
    categories: Literal["embedding", "one-hot"] = Field(
        "embedding", description="How a category is read."
    )
    embedding_size: Annotated[Width | None, OFF] = Field(
        None, description="Size of a category's vector; off: by the number of categories."
    )
    min_count: Size = Field(
        2, description="Categories that are rarer in the training part are read as unknown."
    )
    hidden: list[Width] = Field(
        [64, 64], description="Units of each hidden layer; [] is a linear model."
    )
    activations: Annotated[
        list[str], Expected(f"a list of {', '.join(ACTIVATIONS)}, or of groups, tanh*3 + relu")
    ] = Field(["relu"], description="Activation of all hidden layers, or one for each.")
    skips: Annotated[list[Pair], Expected("a list of pairs, [[0, 2]]")] = Field(
        [], description="Layers, from and to, that are joined beside their order; 0 is the input."
    )
    init: Annotated[str, Expected(", ".join(STARTS))] = Field(
        "standard", description="Initial weights."
    )
    dropout_layers: Rate = Field(0.0, description="Dropout of the hidden layers.")
    linear_share: Annotated[
        Literal["fitted"] | Rate, Expected('"fitted", or a number ≥ 0 and < 1')
    ] = Field(
        0.0,
        description="Weight of a linear model of all columns in the answer of classes or labels, "
        "beside the network; fitted: to the validation part.",
    )
    threshold: Annotated[
        Literal["auto"] | Annotated[float, Field(gt=0, lt=1)] | None,
        OFF,
        Expected("auto, a number > 0 and < 1, or off"),
    ] = Field(
        None,
        description="Of two classes, the probability from which the rarer one is answered; auto: "
        "that of the highest macro-F1 on the validation part, or of a small table by "
        "cross-validation of a linear model; off: the more probable class.",
    )
    batch_rows: Annotated[Size | None, OFF] = Field(
        64, description="Rows of a batch; off takes all of them at once."
    )

    @model_validator(mode="after")
    def _sound(self) -> Self:
        twice = sorted({*self.numeric} & {*self.categorical})
        if twice:
            raise ValueError(f"categorical: expected columns that numeric has not, got {twice}")
        try:
            features = features_of(self.features)
        except OptionError as error:
            raise ValueError(f"features: {error}") from None
        read = {name for feature in features for name in feature.columns}
        for key in ("numeric", "categorical", "leave_out"):
            if twice := sorted(read & {*getattr(self, key)}):
                raise ValueError(f"{key}: expected columns that no feature reads, got {twice}")
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
