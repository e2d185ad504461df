"""The [model] table of a classifier."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from ensue.settings import Rate
from ensue.tasks.blocks.pooling import PoolingName
from ensue.tasks.settings import LabelSettings


class ClassifierSettings(LabelSettings):
    """Its encoder, and what stands on top of it."""

    pooling: PoolingName = "max"
    ngrams: Annotated[int, Field(ge=0, le=3)] = 0  # longest n-gram beside the network; 0 is none
    ngram_dropout: Rate = 0.5
    ngram_l2: float = Field(0.0, ge=0)
    # of the answer, or fitted to the validation part; the n-grams then stay what the linear model
    # learned, and the network learns without them
    ngram_share: float | Literal["fitted"] = 0.0
    several: bool = False  # several labels at once

    @field_validator("ngram_share", mode="before")
    @classmethod
    def _number_or_fitted(cls, share: object) -> object:
        number = isinstance(share, int | float) and not isinstance(share, bool)
        if share != "fitted" and not (number and 0 <= share <= 1):  # type: ignore[operator]
            raise ValueError(f"expected a number from 0 to 1, or fitted, got {share!r}")
        return share

    @model_validator(mode="after")
    def _share_of_something(self) -> Self:
        if self.ngram_share and not self.ngrams:
            raise ValueError("ngram_share: expected model.ngrams ≥ 1 beside it, got 0")
        return self
