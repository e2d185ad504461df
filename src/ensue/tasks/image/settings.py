"""The [model] table of a model of pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from ensue.layers.convolution import ConvolutionNet
from ensue.settings import Rate, Size, Width
from ensue.tasks.pictures.part import Shape
from ensue.tasks.pictures.settings import PictureSettings


class ImageSettings(PictureSettings):
    """The convolutions, the layers on top of them, and how training disturbs pictures.

    >>> ImageSettings(flip=True).batch_rows
    64
    """

    renamed: ClassVar[Mapping[str, str]] = {"dropout": "dropout_layers"}

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"dropout": ("dropout_layers",)}
    instead: ClassVar[Mapping[str, str]] = {"hidden_size": "hidden", "layers": "blocks"}

    hidden: list[Width] = Field([64], description="Units of each layer after the convolutions.")
    dropout_layers: Rate = Field(0.2, description="Dropout of the layers after the convolutions.")
    shift: Rate = Field(
        0.07, description="Largest random shift in training, as a share of height and width."
    )
    rotate: Annotated[float, Field(ge=0, le=180)] = Field(
        15.0, description="Largest random rotation in training, in degrees."
    )
    zoom: Rate = Field(
        0.1, description="Largest random change of size in training, as a share of it."
    )
    flip: bool = Field(
        False, description="Half of the pictures are seen left to right in training."
    )
    batch_rows: Size = Field(64, description="Pictures of a batch.")

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
