"""The [model] table of a regressor."""

from __future__ import annotations

from pydantic import Field

from ensue.tasks.blocks.pooling import POOLED, PoolingName
from ensue.tasks.settings import NetworkSettings
from ensue.tasks.targets.target import NumberSettings


class RegressorSettings(NetworkSettings, NumberSettings):
    """Its encoder, and the distribution of the number.

    >>> RegressorSettings(distribution='mixture').interval
    0.9
    """

    pooling: PoolingName = Field("max", description=POOLED)
