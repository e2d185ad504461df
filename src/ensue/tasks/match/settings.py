"""The [model] table of a matcher."""

from __future__ import annotations

from typing import Literal

from ensue.tasks.blocks.pooling import PoolingName
from ensue.tasks.settings import LabelSettings
from ensue.tasks.targets.target import NumberSettings


class MatcherSettings(LabelSettings, NumberSettings):
    """The encoder that both sides share, and how they are compared.

    compare: "vectors" pools each side to u and v and reads [u; v; |u − v|; u * v]; "attention"
    lets every step look at the other side first."""

    compare: Literal["vectors", "attention"] = "vectors"
    compared_size: int = 64  # of the layer above what is compared
    pooling: PoolingName = "max"
    target: Literal["auto", "class", "number"] = "auto"  # a class, or a score
