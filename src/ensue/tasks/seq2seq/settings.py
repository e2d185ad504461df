"""The [model] tables of models that generate texts: networks, batches, search."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from ensue.data.tasks.shapes import ATTRIBUTES
from ensue.settings import OFF, Expected, Rate, Size, Width
from ensue.tasks.blocks.layer_settings import (
    BACKWARD_START,
    BackwardStart,
    CellName,
    OptionalCell,
    whole_heads,
)
from ensue.tasks.pictures.settings import BLOCKS, PictureSettings
from ensue.tasks.settings import DecoderSettings, SearchSettings

LONGEST_EXTRA = 1 << 12  # tokens at which an endless translation stops


class PairSettings(DecoderSettings, SearchSettings):
    """The network, its batches and the search; keys of one family have no effect on the other.

    >>> PairSettings(family='transformer').beam
    5
    """

    family: Literal["recurrent", "transformer"] = Field("recurrent", description="Kind of network.")
    # of both
    hidden_size: Width = Field(
        256, description="Size of a cell's state, or the width of a transformer."
    )
    shared: bool = Field(
        False, description="One vocabulary, and one embedding, for both languages."
    )
    dropout_layers: Rate = Field(
        0.2, description="Dropout between layers; of a transformer 0.1 if not set."
    )
    smoothing: Rate = 0.1
    # recurrent, in addition to the keys of every decoder
    decoder_cell: OptionalCell = Field(
        "", description='Recurrent cell of the decoder; "" for the cell of the encoder.'
    )
    bidirectional: bool = Field(True, description="Read the source in both directions.")
    backward_start: BackwardStart = Field("zero", description=BACKWARD_START)
    bridge: Literal["states", "zero", "random"] = Field(
        "states",
        description="First state of the decoder: from the encoder's states, zero (or learned, with "
        "initial_state), or random, drawn once with the weights.",
    )
    reverse_source: bool = Field(False, description="Reverse the source.")
    attend_output: Literal["combined", "context"] = Field(
        "combined",
        description="Input of the output layer: state and context combined, or only the context.",
    )
    dropout_input: Rate = 0.2
    dropout_output: Rate = 0.2
    # transformer
    heads: Width = Field(4, description="Attention heads of a transformer.")
    inner_size: Annotated[Width | None, OFF] = Field(
        None, description="Width inside a transformer's feed-forward layers; off: 4 × hidden_size."
    )
    norm: Literal["before", "after"] = Field(
        "before",
        description="Layer norm of a transformer: before each sublayer, or after each sum as "
        "in the original paper.",
    )
    dropout_attention: Rate = Field(0.0, description="Dropout of a transformer's attention.")
    # batches
    batch_tokens: Size = Field(
        4000,
        description="Maximum number of tokens in a batch on its longer side, including padding.",
    )
    batch_rows: Annotated[Size | None, OFF] = Field(
        64, description="Maximum number of rows in a batch."
    )
    # search
    longest_factor: float = Field(
        2.0,
        gt=0,
        le=100,
        description="Maximum length of a translation in tokens: this × the length of its "
        "source + longest_extra.",
    )
    longest_extra: Annotated[int, Field(ge=0, le=LONGEST_EXTRA)] = Field(
        20, description="Tokens that a translation may have in addition to longest_factor × source."
    )

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_the_family(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("family") == "transformer":
            return {"dropout_layers": 0.1, **values}
        return values

    @model_validator(mode="after")
    def _whole_heads(self) -> Self:
        if self.family == "transformer":
            whole_heads(self.hidden_size, self.heads)
        return self

    @property
    def attends(self) -> bool:
        """Whether the decoder attends to the source."""
        return self.family == "transformer" or self.attention != "none"

    @property
    def longest_answer(self) -> tuple[float, int]:
        """The pair (factor, extra): an answer has at most factor·(source steps) + extra tokens."""
        return self.longest_factor, self.longest_extra

    def budget(self, longest: int) -> tuple[int, int | None]:
        """Maximum steps and rows of a batch, for rows with at most `longest` steps."""
        return self.batch_tokens, self.batch_rows


class CaptionSettings(PictureSettings, DecoderSettings, SearchSettings):
    """The shape of pictures, the regions made from them, and the decoder that describes them.

    >>> CaptionSettings(hidden_size=128).cell
    'GRU'
    """

    # pictures
    blocks: Annotated[str, Expected(BLOCKS)] = Field(
        "16x5/2 32 64x5/3 64",
        description="Convolution and pooling layers, in order; each place of the last one is "
        "a region.",
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
    batch_rows: Size = Field(32, description="Batch size, in pictures.")
    # search
    beam: Width = 3
    alpha: float = Field(0.0, ge=0)
    longest: Size = Field(40, description="Maximum length of a caption, in tokens.")
    attributes: dict[str, list[str]] = Field(
        {name: list(words) for name, words in ATTRIBUTES.items()},
        description="Words that answer the same question, by its name; `evaluate` reports "
        "their accuracy.",
    )

    @model_validator(mode="after")
    def _sees(self) -> Self:
        if self.begin == "zero" and self.attention == "none":
            raise ValueError(
                "begin: expected 'mean' without attention, got 'zero': the decoder would know "
                "nothing of the picture"
            )
        return self

    @property
    def attends(self) -> bool:
        """Whether the decoder attends to the picture."""
        return self.attention != "none"

    @property
    def longest_answer(self) -> tuple[float, int]:
        """See `PairSettings`; all pictures have one size."""
        return 0.0, self.longest

    def budget(self, longest: int) -> tuple[int, int]:
        """See `PairSettings`; only the number of rows is limited."""
        return self.batch_rows * longest, self.batch_rows
