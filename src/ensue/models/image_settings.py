"""The [model] table of a model of pictures."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from ensue.errors import OptionError, ShapeError
from ensue.layers.convolution import ConvolutionBlocks, ConvolutionNet, parts_of
from ensue.models.settings import Rate, Size, Table


class ImageSettings(Table):
    """What a picture is brought to, the network that sees it, and how training disturbs it."""

    size: list[Size] = Field(default=[])  # height and width; [] takes one size as it is
    channels: Literal["auto", "grey", "colour"] = "auto"  # auto: as the pictures have
    blocks: str = "16 max 32 32 max 64 max"  # filters and pools, as `parts_of` reads them
    norm: Literal["batch", "none"] = "batch"
    hidden: list[Size] = Field(default=[64])  # units of the layers behind the blocks
    dropout: Rate = 0.2
    shift: Rate = 0.07  # of height and width, at most, drawn anew for each picture of a batch
    rotate: Annotated[float, Field(ge=0, le=180)] = 15.0  # degrees
    zoom: Rate = 0.1  # so much larger or smaller
    flip: bool = False  # left and right exchanged, half of the time
    batch_rows: Size = 64

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
        return {"auto": None, "grey": 1, "colour": 3}[self.channels]

    def network(self, shape: tuple[int, int, int], classes: int) -> ConvolutionNet:
        """With fresh weights."""
        return ConvolutionNet(
            shape,
            self.blocks,
            classes,
            hidden=self.hidden,
            dropout=self.dropout,
            norm=self.norm,
        )
