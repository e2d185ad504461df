"""The [model] table of a captioner: its eyes, its decoder, its search."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from ensue.data.tasks.shapes import ATTRIBUTES
from ensue.models.image_settings import ImageSettings
from ensue.models.settings import Rate, Size, Table, known_cell
from ensue.training.settings import problems


class CaptionSettings(Table):
    """What a picture is brought to, the regions that are made of it, and who speaks of them."""

    # pictures, as `ImageSettings` has them
    size: list[Size] = Field([])  # height and width; [] takes pictures of one size as they are
    channels: Literal["auto", "grey", "colour"] = "auto"
    blocks: str = "16x5/2 32 64x5/3 64"  # each place of the last volume is a region
    norm: Literal["batch", "none"] = "batch"
    dropout_regions: Rate = 0.1
    # decoder
    cell: str = "GRU"
    layers: Size = 1
    embedding_size: Size = 64
    hidden_size: Size = 128
    begin: Literal["mean", "zero"] = "mean"  # its state: of the mean region, or nothing
    attention: Literal["additive", "dot", "general", "concat", "none"] = "additive"
    project: bool = False  # the regions are brought to the decoder's width, which `dot` may need
    input_feeding: bool = False
    tied: bool = True  # the output has the weights of the embedding
    dropout_input: Rate = 0.1
    dropout_layers: Rate = 0.0
    dropout_output: Rate = 0.1
    dropout_recurrent: Rate = 0.0
    smoothing: Rate = 0.0
    sampling: Annotated[float, Field(ge=0, le=1)] = 0.0  # own words among the decoder's inputs
    init: str = "standard"
    batch_rows: Size = 32
    # search
    beam: Size = 3
    length_penalty: Literal["wu", "length"] = "wu"
    alpha: float = Field(0.0, ge=0)  # its strength; 0 ranks by probability alone
    longest: Size = 40  # tokens of a caption
    # scores
    validation_search: Literal["greedy", "beam"] = "greedy"
    validation_rows: Annotated[int, Field(ge=0)] = 500  # pictures that each evaluation describes
    bleu_tokenize: Literal["13a", "none", "intl", "char"] = "13a"
    bleu_lowercase: bool = False
    # words that answer the same question: how often they are right is told by its name
    attributes: dict[str, list[str]] = Field({k: list(own) for k, own in ATTRIBUTES.items()})

    @field_validator("cell")
    @classmethod
    def _known_cell(cls, cell: str) -> str:
        return known_cell(cell)

    @model_validator(mode="after")
    def _seen(self) -> Self:
        try:
            self.pictures()
        except ValidationError as error:
            told = (own.removeprefix(".") for own in problems(error, ImageSettings, ""))
            raise ValueError("; ".join(told)) from None
        if self.begin == "zero" and self.attention == "none":
            raise ValueError(
                "begin: expected 'mean' without attention, got 'zero': the decoder would know "
                "nothing of the picture"
            )
        return self

    def pictures(self) -> ImageSettings:
        """How pictures are brought to one shape."""
        return ImageSettings(size=self.size, channels=self.channels, blocks=self.blocks)
