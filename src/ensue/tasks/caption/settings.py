"""The [model] table of a captioner: its pictures, its decoder, its search."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from ensue.data.tasks.shapes import ATTRIBUTES
from ensue.settings import Rate, Size
from ensue.tasks.pictures.settings import PictureSettings
from ensue.tasks.settings import DecoderSettings, SearchSettings


class CaptionSettings(PictureSettings, DecoderSettings, SearchSettings):
    """What a picture is brought to, the regions that are made of it, the decoder that describes
    them."""

    # pictures
    blocks: str = "16x5/2 32 64x5/3 64"  # each place of the last volume is a region
    dropout_regions: Rate = 0.1
    # decoder
    embedding_size: Size = 64
    hidden_size: Size = 128
    begin: Literal["mean", "zero"] = "mean"  # its state: of the mean region, or nothing
    dropout_input: Rate = 0.1
    dropout_output: Rate = 0.1
    batch_rows: Size = 32
    # search
    beam: Size = 3
    alpha: float = Field(0.0, ge=0)  # its strength; 0 ranks by probability alone
    longest: Size = 40  # tokens of a caption
    # words that answer the same question: how often they are right is told by its name
    attributes: dict[str, list[str]] = Field(
        {name: list(words) for name, words in ATTRIBUTES.items()}
    )

    @model_validator(mode="after")
    def _sees(self) -> Self:
        if self.begin == "zero" and self.attention == "none":
            raise ValueError(
                "begin: expected 'mean' without attention, got 'zero': the decoder would know "
                "nothing of the picture"
            )
        return self
