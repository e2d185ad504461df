"""The [model] table of a regressor."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from ensue.tasks.blocks.pooling import POOLED, PoolingName
from ensue.tasks.blocks.standardised import STANDARDISED
from ensue.tasks.settings import BesideSettings, LinearSettings, NetworkSettings
from ensue.tasks.targets.target import NumberSettings


class RegressorSettings(NetworkSettings, NumberSettings, LinearSettings, BesideSettings):
    """Its encoder, and the distribution of the number.

    >>> RegressorSettings(distribution='mixture').interval
    0.9
    """

    pooling: PoolingName = Field("max", description=POOLED)
    standardise: bool = Field(False, description=STANDARDISED)

    @model_validator(mode="after")
    def _mixed_gaussians(self) -> Self:
        if self.linear == "mixed" and self.distribution != "gaussian":
            raise ValueError(
                "linear: a gaussian alone can be mixed; expected model.distribution = gaussian, "
                f"got {self.distribution}"
            )
        return self
