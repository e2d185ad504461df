"""The [model] table of a classifier."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from ensue.settings import Expected, Rate
from ensue.tasks.blocks.pooling import POOLED, PoolingName
from ensue.tasks.blocks.standardised import STANDARDISED
from ensue.tasks.settings import BesideSettings, LabelSettings, LinearSettings


class ClassifierSettings(LabelSettings, LinearSettings, BesideSettings):
    """Its encoder, and what stands on top of it.

    >>> ClassifierSettings(pooling='mean+max').hidden_size
    128
    """

    pooling: PoolingName = Field("max", description=POOLED)
    standardise: bool = Field(False, description=STANDARDISED)
    ngrams: Annotated[int, Field(ge=0, le=3)] = Field(
        0, description="Longest n-gram that is read beside the network; 0 reads none."
    )
    ngram_dropout: Rate = Field(0.5, description="Dropout of the n-grams.")
    ngram_l2: float = Field(0.0, ge=0, description="L2 penalty on the weights of the n-grams.")
    ngram_share: Annotated[
        float | Literal["fitted"], Expected("a number from 0 to 1, or fitted")
    ] = Field(
        0.0,
        description="Share of a linear n-gram model in the answer, or fitted to the validation "
        "part; the network then learns without n-grams. 0 trains both as one.",
    )
    several: bool = Field(False, description="A row may have several labels, or none.")

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
        if self.linear == "mixed" and self.ngrams:
            raise ValueError(
                "linear: mixed has n-grams of its own; expected model.ngrams = 0, "
                f"got {self.ngrams}"
            )
        return self
