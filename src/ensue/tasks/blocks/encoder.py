"""The settings of encoders, and what networks see of one.

Each is called as (x (time, batch, input), lengths (batch)) and gives y (time, batch,
output_size), zero beyond a row's end, and final (batch, final_size).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator
from torch import Tensor, nn

from ensue.layers.lengths import step_mask
from ensue.settings import OFF, OneOf, Rate, Size, Width
from ensue.tasks.blocks.cell_name import whole_heads
from ensue.tasks.blocks.recurrent_layers import BACKWARD_START, BackwardStart, CellSettings

DROPOUT = ("dropout_input", "dropout_layers", "dropout_output")  # what `--dropout` sets


class LayerSettings(CellSettings):
    """What layers over the steps of a sequence are made of, of every kind; keys of one kind have
    no effect on the others."""

    renamed: ClassVar[Mapping[str, str]] = {"norm_place": "norm"}

    hidden_size: Width = Field(
        128, description="Size of a cell's state, or the width of other layers."
    )
    heads: Width = Field(4, description="Attention heads of a transformer.")
    inner_size: Annotated[Width | None, OFF] = Field(
        None, description="Width inside a transformer's feed-forward layers; off: 4 × hidden_size."
    )
    norm: Literal["before", "after"] = Field(
        "before",
        description="Layer norm of a transformer: before each sublayer, or after each sum as in "
        "the first paper.",
    )
    dropout_attention: Rate = Field(0.0, description="Dropout of a transformer's attention.")
    filter_size: Width = Field(3, description="Steps that a convolution's filters see.")
    dilated: bool = Field(
        False, description="A convolution's filters see steps 1, 2, 4, … apart, layer by layer."
    )


def _kinds() -> Mapping[str, object]:
    from ensue.tasks.blocks.encoders import ENCODERS  # which are made of these settings

    return ENCODERS


class EncoderSettings(LayerSettings):
    """What encoders are made of, `ENCODERS[settings.encoder]`."""

    encoder: Annotated[str, OneOf(_kinds)] = Field(
        "recurrent", description="Kind of network that reads the sequence."
    )
    bidirectional: bool = Field(True, description="A recurrent encoder reads in both directions.")
    backward_start: BackwardStart = Field("zero", description=BACKWARD_START)
    directions: Literal["joined", "apart"] = Field(
        "joined",
        description="Layers of a recurrent encoder that reads in both directions: joined, each "
        "reads both directions of the one below; apart, each direction has layers of its own, over "
        "its own half of a step's numbers, as two language models have.",
    )
    final_states: Literal["top", "all"] = Field(
        "top",
        description="What pooling `last` takes of a recurrent encoder: the end states of the top "
        "layer, or of all layers.",
    )

    causal: bool = Field(
        False,
        description="A transformer or convolution sees no later steps, as in a language model.",
    )
    context: Size = Field(
        256, description="Steps that each block of a causal transformer looks back at."
    )

    @model_validator(mode="after")
    def _whole_heads(self) -> Self:
        if self.encoder == "transformer":
            whole_heads(self.hidden_size, self.heads)
        return self


class Encoder(nn.Module, ABC):
    """What networks see of an encoder: a new one is a class here and a row of `ENCODERS`.

    keys: the settings that its weights and what they compute follow from, the number of layers
    aside; entrance: how the names of weights begin that stand before the lowest layer."""

    keys: ClassVar[tuple[str, ...]] = ()
    entrance: ClassVar[tuple[str, ...]] = ()
    output_size: int
    final_size: int

    @staticmethod
    def layer(number: int) -> tuple[str, ...]:
        """How the names of the weights of a layer begin, the lowest being 0."""
        return ()

    @classmethod
    @abstractmethod
    def of(cls, settings: EncoderSettings, input_size: int) -> Encoder:
        """As the settings say, with fresh weights, for steps of that width."""

    @staticmethod
    @abstractmethod
    def describe(settings: EncoderSettings) -> str:
        """In a few words: "2 × LSTM of 200"."""

    @abstractmethod
    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """y (time, batch, output_size) and final (batch, final_size) of x (time, batch, input)."""


def last_step(y: Tensor, lengths: Tensor) -> Tensor:
    """(batch, width) of y (time, batch, width): at each row's last real step."""
    return (y * step_mask(lengths.to(y.device), y.shape[0], first=-1)[..., None]).sum(0)
