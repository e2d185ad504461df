"""The [model] table of a language model."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ensue.settings import Rate, Size
from ensue.tasks.blocks.cell_name import whole_heads
from ensue.tasks.blocks.encoders import LayerSettings


class LanguageSettings(LayerSettings):
    """A family, and what its models are made of; keys of one have no effect on the others."""

    family: Literal["recurrent", "window", "ngram", "transformer", "convolution"] = "recurrent"
    order: Annotated[int, Field(ge=1, le=10)] = 5  # of n-grams: so many tokens
    ngram_smoothing: Literal[
        "modified-kneser-ney", "kneser-ney", "interpolated", "add-k", "maximum-likelihood"
    ] = "modified-kneser-ney"
    add: float = Field(1.0, gt=0)  # to each count, with add-k
    window: Size = 4  # tokens that a fixed window sees
    one_hot: bool = False  # a window without embedding
    context: Size = 256  # tokens that each block of a transformer looks back at
    hidden_size: Size = 200
    layers: Size = 2
    dilated: bool = True
    embedding_size: Size = 200
    tied: bool = True  # the output has the weights of the embedding
    dropout_word: Rate = 0.0  # of words of the vocabulary, wherever they stand in a batch
    dropout_input: Rate = 0.3
    dropout_layers: Rate = 0.3
    dropout_output: Rate = 0.3
    columns: Size = 20  # streams side by side
    steps: Size = 35  # of truncated backpropagation

    @model_validator(mode="after")
    def _whole_heads(self) -> Self:
        if self.family == "transformer":
            whole_heads(self.hidden_size, self.heads)
        return self
