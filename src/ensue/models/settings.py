"""The tables of a configuration that say how text is read and what the model is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from ensue.cells import CELLS
from ensue.errors import ConfigError, unknown
from ensue.models.pooling import POOLINGS
from ensue.training.settings import problems, together

OFF = BeforeValidator(lambda value: None if value == "off" else value)  # TOML has no null
Size = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(ge=0, lt=1)]


def whole_heads(width: int, heads: int) -> None:
    if width % heads:
        raise ValueError(
            f"heads: expected a divisor of model.hidden_size, the width of a transformer, {width}; "
            f"got {heads}"
        )


def known_cell(cell: str) -> str:
    if cell not in CELLS:
        raise ValueError(str(unknown("cell", cell, CELLS)))
    return cell


class Table(BaseModel):
    """One table of config.toml. Every key has its default here, and only here."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @classmethod
    def of(cls, values: Mapping[str, Any], where: str) -> Self:
        """From a table as read from TOML, with every problem in one message."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise ConfigError(together(problems(error, cls, where))) from None

    def table(self) -> dict[str, Any]:
        """The complete table, as TOML can hold it: `of` reads it back."""
        return {k: "off" if v is None else v for k, v in self.model_dump(mode="json").items()}


class TextSettings(Table):
    """How a text becomes tokens and numbers; for sequences of vectors nothing of it is used."""

    level: Literal["words", "pieces", "spaces", "characters", "subwords"] = "words"
    lower: bool = True
    numbers: Literal["keep", "digit", "tag"] = "keep"
    breaks: Literal["keep", "space"] = "space"  # an HTML <br />
    min_count: Size = 2  # rarer words are unknown
    max_words: Annotated[Size | None, OFF] = None
    max_length: Annotated[Size | None, OFF] = None  # tokens; longer texts are cut
    cut: Literal["end", "start"] = "end"  # where tokens are lost
    subword_count: Size = 8000


class NetworkSettings(Table):
    """What classifiers and labellers have in common."""

    encoder: Literal["recurrent", "plain", "transformer", "convolution"] = "recurrent"
    cell: str = "LSTM"
    hidden_size: Size = 128  # of a cell's state, or the width of other layers
    layers: Size = 1
    heads: Size = 4  # of a transformer's attention, as the next three
    inner_size: Annotated[Size | None, OFF] = None  # of its feed-forward layers; off is 4 × width
    norm_place: Literal["before", "after"] = "before"  # after each sum is the first paper's way
    dropout_attention: Rate = 0.0
    filter_size: Size = 3  # steps that a convolution's filters see
    dilated: bool = False  # these steps are 1, 2, 4, … apart, by layer
    bidirectional: bool = True
    init: str = "standard"
    embedding_size: Size = 100
    vectors: str = ""  # a file of word vectors to begin with
    freeze_vectors: bool = False
    dropout_input: Rate = 0.3
    dropout_layers: Rate = 0.0
    dropout_recurrent: Rate = 0.0
    dropout_output: Rate = 0.3
    word_dropout: Rate = 0.0
    smoothing: Rate = 0.0
    class_weights: Literal["none", "balanced"] = "none"
    norm_weight: float = Field(0.0, ge=0)  # of the norm-preserving regulariser
    batch_tokens: Size = 16000  # of a batch, padding counted
    batch_rows: Annotated[Size | None, OFF] = 32

    @field_validator("cell")
    @classmethod
    def _known_cell(cls, cell: str) -> str:
        return known_cell(cell)

    @model_validator(mode="after")
    def _whole_heads(self) -> Self:
        if self.encoder == "transformer":
            whole_heads(self.hidden_size, self.heads)
        return self


class ClassifierSettings(NetworkSettings):
    """The [model] table of a classifier."""

    pooling: str = "max"
    ngrams: Annotated[int, Field(ge=0, le=3)] = 0  # longest n-gram beside the network; 0 is none
    ngram_dropout: Rate = 0.5
    ngram_l2: float = Field(0.0, ge=0)
    # of the answer, or fitted to the validation part; the n-grams then stay what the linear model
    # learned, and the network learns without them
    ngram_share: float | Literal["fitted"] = 0.0
    several: bool = False  # several labels at once

    @field_validator("ngram_share", mode="before")
    @classmethod
    def _number_or_fitted(cls, share: object) -> object:
        number = isinstance(share, int | float) and not isinstance(share, bool)
        if share != "fitted" and not (number and 0 <= share <= 1):  # type: ignore[operator]
            raise ValueError(f"expected a number from 0 to 1, or fitted, got {share!r}")
        return share

    @model_validator(mode="after")
    def _share_of_something(self) -> Self:
        if self.ngram_share and not self.ngrams:
            raise ValueError("ngram_share: expected model.ngrams ≥ 1 beside it, got 0")
        return self

    @field_validator("pooling")
    @classmethod
    def _known_pooling(cls, pooling: str) -> str:
        for name in pooling.split("+"):
            if name not in POOLINGS:
                raise ValueError(str(unknown("pooling", name, POOLINGS)))
        return pooling


class LabellerSettings(NetworkSettings):
    """The [model] table of a labeller."""

    character_size: Annotated[int, Field(ge=0)] = 32  # of a letter's vector; 0 leaves letters out
    character_hidden: Size = 64  # of the cell that reads a word's letters, each direction
    affixes: Annotated[int, Field(ge=0, le=6)] = 4  # longest prefix and suffix; 0 leaves them out
    shapes: bool = True
    once_dropout: Rate = 0.3  # of words seen once, in place of word_dropout
    output: Literal["stepwise", "crf", "previous"] = "stepwise"
    previous_cell: str = ""  # joins the previous label by a cell of this name; "" by a layer
    previous_start: Literal["learned", "zero"] = "learned"
    search: Literal["exact", "beam", "greedy"] = "exact"
    beam: Size = 8
    legal_only: bool = False  # only legal sequences of span tags


class LanguageSettings(Table):
    """The [model] table of a language model."""

    family: Literal["recurrent", "window", "ngram", "transformer", "convolution"] = "recurrent"
    order: Annotated[int, Field(ge=1, le=10)] = 5  # of n-grams: so many tokens
    ngram_smoothing: Literal[
        "modified-kneser-ney", "kneser-ney", "interpolated", "add-k", "maximum-likelihood"
    ] = "modified-kneser-ney"
    add: float = Field(1.0, gt=0)  # to each count, with add-k
    window: Size = 4  # tokens that a fixed window sees
    one_hot: bool = False  # a window without embedding
    cell: str = "LSTM"
    hidden_size: Size = 200  # of a cell's state, or the width of other layers
    layers: Size = 2
    heads: Size = 4  # of a transformer's attention, as the next four
    inner_size: Annotated[Size | None, OFF] = None  # of its feed-forward layers; off is 4 × width
    norm_place: Literal["before", "after"] = "before"  # after each sum is the first paper's way
    dropout_attention: Rate = 0.0
    context: Size = 256  # tokens that each block looks back at
    filter_size: Size = 3  # tokens that a convolution's filters see
    dilated: bool = True  # these are 1, 2, 4, … apart, by layer
    embedding_size: Size = 200
    tied: bool = True
    init: str = "standard"
    dropout_word: Rate = 0.0
    dropout_input: Rate = 0.3
    dropout_layers: Rate = 0.3
    dropout_recurrent: Rate = 0.0
    dropout_output: Rate = 0.3
    columns: Size = 20  # streams side by side
    steps: Size = 35  # of truncated backpropagation

    @field_validator("cell")
    @classmethod
    def _known_cell(cls, cell: str) -> str:
        return known_cell(cell)

    @model_validator(mode="after")
    def _whole_heads(self) -> Self:
        if self.family == "transformer":
            whole_heads(self.hidden_size, self.heads)
        return self
