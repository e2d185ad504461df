"""The [model] table of a captioner: its pictures, its decoder, its search."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ensue.data.tasks.shapes import ATTRIBUTES
from ensue.settings import Expected, Rate, Size, Width
from ensue.tasks.blocks.layer_settings import CellName
from ensue.tasks.pictures.settings import BLOCKS, PictureSettings
from ensue.tasks.settings import DecoderSettings, SearchSettings


class CaptionSettings(PictureSettings, DecoderSettings, SearchSettings):
    """What a picture is brought to, the regions that are made of it, the decoder that describes
    them.

    >>> CaptionSettings(hidden_size=128).cell
    'GRU'
    """

    # pictures
    blocks: Annotated[str, Expected(BLOCKS)] = Field(
        "16x5/2 32 64x5/3 64",
        description="Layers of convolutions and pools, in their order; each place of the last one "
        "is a region.",
    )
    dropout_regions: Rate = Field(0.1, description="Dropout of the regions.")
    # decoder
    embedding_size: Width = 64
    hidden_size: Width = 128
    cell: CellName = Field("GRU", description="Recurrent cell of the decoder.")
    begin: Literal["mean", "zero"] = Field(
        "mean",
        description="First state of the decoder: from the mean of all regions, or zero (or "
        "learned, with initial_state).",
    )
    dropout_input: Rate = 0.1
    dropout_output: Rate = 0.1
    batch_rows: Size = Field(32, description="Pictures of a batch.")
    # search
    beam: Width = 3
    alpha: float = Field(0.0, ge=0)
    longest: Size = Field(40, description="Most tokens of a caption.")
    attributes: dict[str, list[str]] = Field(
        {name: list(words) for name, words in ATTRIBUTES.items()},
        description="Words that answer the same question, by its name; `evaluate` says how often "
        "they are right.",
    )

    @model_validator(mode="after")
    def _sees(self) -> Self:
        if self.begin == "zero" and self.attention == "none":
            raise ValueError(
                "begin: expected 'mean' without attention, got 'zero': the decoder would know "
                "nothing of the picture"
            )
        return self
