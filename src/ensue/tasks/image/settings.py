"""The [model] table of a model of pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from ensue.layers.convolution import ConvolutionNet
from ensue.settings import Rate, Size
from ensue.tasks.pictures.part import Shape
from ensue.tasks.pictures.settings import PictureSettings


class ImageSettings(PictureSettings):
    """The layers on top of the convolutions, and how training disturbs pictures."""

    renamed: ClassVar[Mapping[str, str]] = {"dropout": "dropout_layers"}

    hidden: list[Size] = Field(default=[64])  # units of the layers after the blocks
    dropout_layers: Rate = 0.2
    shift: Rate = 0.07  # of height and width, at most, drawn anew for each picture of a batch
    rotate: Annotated[float, Field(ge=0, le=180)] = 15.0  # degrees
    zoom: Rate = 0.1  # so much larger or smaller
    flip: bool = False  # left and right exchanged, half of the time
    batch_rows: Size = 64

    def network(self, shape: Shape, classes: int) -> ConvolutionNet:
        """With fresh weights."""
        return ConvolutionNet(
            shape,
            self.blocks,
            classes,
            hidden=self.hidden,
            dropout=self.dropout_layers,
            norm=self.norm,
        )
