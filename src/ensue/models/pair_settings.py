"""The [model] table of a translator: its network, its batches, its search."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from ensue.models.settings import OFF, Rate, Size, Table, known_cell

SEARCHED_SCORES = ("bleu", "chrf", "exact")  # what only translations can be scored by


class PairSettings(Table):
    """Keys of one family have no effect on the other."""

    family: Literal["recurrent", "transformer"] = "recurrent"
    # of both
    layers: Size = 1
    tied: bool = True  # the output has the weights of the target's embedding
    shared: bool = False  # one vocabulary, and one embedding, for both sides
    smoothing: Rate = 0.1
    # recurrent
    cell: str = "GRU"
    decoder_cell: str = ""  # "" is the encoder's
    embedding_size: Size = 256
    hidden_size: Size = 256
    bidirectional: bool = True
    bridge: Literal["states", "zero"] = "states"  # what the decoder begins with
    reverse_source: bool = False
    attention: Literal["additive", "dot", "general", "concat", "none"] = "additive"
    project: bool = False  # the memory is brought to the decoder's width, which `dot` may need
    input_feeding: bool = False
    attend_output: Literal["combined", "context"] = "combined"
    dropout_input: Rate = 0.2
    dropout_layers: Rate = 0.2
    dropout_output: Rate = 0.2
    dropout_recurrent: Rate = 0.0
    sampling: Annotated[float, Field(ge=0, le=1)] = 0.0  # own words among the decoder's inputs
    init: str = "standard"
    # transformer
    width: Size = 256
    heads: Size = 4
    inner: Annotated[Size | None, OFF] = None  # of the feed-forward layers; off: 4 × width
    norm: Literal["before", "after"] = "before"
    dropout: Rate = 0.1
    dropout_attention: Rate = 0.0
    # batches
    batch_tokens: Size = 4000  # of the longer side, padding counted
    batch_rows: Annotated[Size | None, OFF] = 64
    # search
    beam: Size = 5
    length_penalty: Literal["wu", "length"] = "wu"
    alpha: float = Field(0.6, ge=0)  # its strength; 0 ranks by probability alone
    longest_factor: float = Field(2.0, gt=0)  # a translation has at most this times the tokens
    longest_extra: Annotated[int, Field(ge=0)] = 20  # of its source, and so many more
    # scores
    validation_search: Literal["greedy", "beam"] = "greedy"
    validation_rows: Annotated[int, Field(ge=0)] = 500  # that each evaluation translates
    bleu_tokenize: Literal["13a", "none", "intl", "char"] = "13a"
    bleu_lowercase: bool = False

    @field_validator("cell", "decoder_cell")
    @classmethod
    def _known_cell(cls, cell: str) -> str:
        return known_cell(cell) if cell else cell

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if not self.cell:
            raise ValueError("cell: expected the name of a cell, got ''")
        if self.width % self.heads:
            raise ValueError(
                f"width: expected a multiple of model.heads, {self.heads}, got {self.width}"
            )
        return self
