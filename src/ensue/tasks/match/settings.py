"""The [model] table of a matcher."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ensue.settings import Width
from ensue.tasks.blocks.pooling import POOLED, PoolingName
from ensue.tasks.blocks.standardised import STANDARDISED
from ensue.tasks.settings import LabelSettings
from ensue.tasks.targets.target import NumberSettings


class MatcherSettings(LabelSettings, NumberSettings):
    """The encoder that both sides share, and how they are compared.

    compare: "vectors" pools each side to u and v and reads [u; v; |u − v|; u * v]; "attention"
    lets every step look at the other side first.

    >>> MatcherSettings(compare='attention').pooling
    'max'
    """

    compare: Literal["vectors", "attention"] = Field(
        "vectors",
        description="How the two sides are compared: as vectors, or every step of one with the "
        "steps of the other.",
    )
    compared_size: Width = Field(64, description="Width of the layer above what is compared.")
    pooling: PoolingName = Field("max", description=POOLED)
    standardise: bool = Field(False, description=STANDARDISED)
    target: Literal["auto", "class", "number"] = Field(
        "auto",
        description="What is predicted: a class or a score; auto: what the labels look like.",
    )
