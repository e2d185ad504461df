"""The [model] table of a regressor."""

from __future__ import annotations

from pydantic import field_validator

from ensue.tasks.blocks.pooling import known_pooling
from ensue.tasks.settings import NetworkSettings
from ensue.tasks.targets.target import NumberSettings


class RegressorSettings(NetworkSettings, NumberSettings):
    """Its encoder, and the distribution of the number."""

    pooling: str = "max"

    @field_validator("pooling")
    @classmethod
    def _known_pooling(cls, pooling: str) -> str:
        return known_pooling(pooling)
