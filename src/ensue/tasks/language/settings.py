"""The [model] table of a language model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from ensue.settings import Depth, Rate, Size, Width
from ensue.tasks.blocks.layer_settings import DROPOUT, LayerSettings, whole_heads


class LanguageSettings(LayerSettings):
    """The family, and the parts of its models; keys of one family do not affect the others.

    >>> LanguageSettings(family='ngram').order
    5
    """

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "batch_size": ("columns",),
        "dropout": DROPOUT,
    }

    family: Literal["recurrent", "both", "window", "ngram", "transformer", "convolution"] = Field(
        "recurrent",
        description="Kind of language model; both: forward and backward cells, for `ensue fill`.",
    )
    direction: Literal["forward", "backward"] = Field(
        "forward",
        description="Direction of reading; backward: from the last token of a text to its first, "
        "for a base together with a forward model.",
    )
    order: Annotated[int, Field(ge=1, le=10)] = Field(
        5, description="n of the n-grams, counting the predicted token."
    )
    ngram_smoothing: Literal[
        "modified-kneser-ney", "kneser-ney", "interpolated", "add-k", "maximum-likelihood"
    ] = Field("modified-kneser-ney", description="Smoothing of the n-grams.")
    add: float = Field(1.0, gt=0, description="k of the smoothing add-k.")
    window: Width = Field(4, description="Size of a fixed window, in tokens.")
    one_hot: bool = Field(False, description="Read a fixed window without an embedding.")
    context: Size = Field(256, description="Context of each transformer block, in tokens.")
    hidden_size: Width = 200
    layers: Depth = 2
    dilated: bool = True
    embedding_size: Width = Field(200, description="Size of the word vectors.")
    tied: bool = Field(True, description="Tie the weights of the output layer to the embedding.")
    softmax: Literal["full", "adaptive"] = Field(
        "full",
        description="Probabilities over the vocabulary; adaptive: in clusters of words by "
        "frequency, exact and several times as fast for a large vocabulary.",
    )
    softmax_cuts: list[Size] = Field(
        [],
        description="First word of each cluster after the most frequent words, by its number in "
        "the vocabulary; none: 600 and 6,000.",
    )
    dropout_word: Rate = Field(
        0.0,
        description="Embedding dropout: drops whole words of the vocabulary, wherever a "
        "batch has them.",
    )
    dropout_input: Rate = Field(0.3, description="Dropout of the inputs.")
    dropout_layers: Rate = 0.3
    dropout_output: Rate = Field(0.3, description="Dropout before the output layer.")
    dropout_weights: Rate = Field(
        0.0,
        description="Weight dropout of the recurrent matrices, with the same mask at all "
        "steps of a batch, as in AWD-LSTM.",
    )
    dropout_carried: Rate = Field(
        0.02,
        description="Share of the streams that begin a piece of the text with a fresh state, "
        "as every separate text does; for families recurrent and both.",
    )
    columns: Size = Field(
        20, description="Batch size: number of streams of the text that are read in parallel."
    )
    steps: Size = Field(
        35, description="Steps of truncated backpropagation: tokens of a stream in one batch."
    )

    @model_validator(mode="after")
    def _whole_heads(self) -> Self:
        if self.family == "transformer":
            whole_heads(self.hidden_size, self.heads)
        return self

    @model_validator(mode="after")
    def _direction_of_cells(self) -> Self:
        if self.direction == "backward" and self.family != "recurrent":
            raise ValueError(
                f"direction: expected forward with family {self.family}, got backward; a backward "
                "model is of family recurrent"
            )
        return self
