"""Settings of all models that read pictures."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from ensue.errors import OptionError, ShapeError
from ensue.layers.convolution import ConvolutionBlocks, parts_of
from ensue.settings import Expected, Size, Table

BLOCKS = "filters and pools: 16x5/2 are 16 filters of 5 × 5 with stride 2, max a pool"


class PictureSettings(Table):
    """The shape to which pictures are converted, and the convolutions that read them."""

    size: Annotated[list[Size], Expected("[height, width], or []")] = Field(
        [], description="Size to resize pictures to; [] keeps them, all of one size."
    )
    channels: Literal["auto", "grey", "colour"] = Field(
        "auto", description="Colours to convert pictures to; auto: keep them."
    )
    blocks: Annotated[str, Expected(BLOCKS)] = Field(
        "16 max 32 32 max 64 max", description="Convolution and pooling layers, in order."
    )
    norm: Literal["batch", "none"] = Field(
        "batch", description="Normalisation after each convolution."
    )

    @field_validator("blocks")
    @classmethod
    def _known_blocks(cls, blocks: str) -> str:
        try:
            parts_of(blocks)
        except OptionError as error:
            raise ValueError(str(error)) from None
        return blocks

    @field_validator("size")
    @classmethod
    def _two(cls, size: list[int]) -> list[int]:
        if len(size) not in (0, 2):
            raise ValueError(f"expected height and width, [28, 28], or [], got {size}")
        return size

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.size:
            try:
                ConvolutionBlocks(1, self.blocks).shape(*self.size)
            except ShapeError as error:
                raise ValueError(f"blocks {self.blocks!r}: {error}") from None
        return self

    @property
    def wanted_channels(self) -> int | None:
        """The number of channels; None: as many as the pictures have."""
        return {"auto": None, "grey": 1, "colour": 3}[self.channels]
