"""Settings that several tasks share: how text is read, what networks are made of."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ensue.settings import OFF, Rate, Size, Table
from ensue.tasks.blocks.cell_name import CellName
from ensue.tasks.blocks.encoders import EncoderSettings


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


class NetworkSettings(EncoderSettings):
    """What networks have that read a sequence of words or vectors."""

    embedding_size: Size = 100
    vectors: str = ""  # a file of word vectors to begin with
    freeze_vectors: bool = False
    dropout_input: Rate = 0.3
    dropout_output: Rate = 0.3
    word_dropout: Rate = 0.0
    norm_weight: float = Field(0.0, ge=0)  # of the norm-preserving regulariser
    batch_tokens: Size = 16000  # of a batch, padding counted
    batch_rows: Annotated[Size | None, OFF] = 32


class LabelSettings(NetworkSettings):
    """What networks have that choose among labels."""

    smoothing: Rate = 0.0
    class_weights: Literal["none", "balanced"] = "none"


class SearchSettings(Table):
    """How the words of an answer are searched for, and how answers are scored."""

    beam: Size = 5
    length_penalty: Literal["wu", "length"] = "wu"
    alpha: float = Field(0.6, ge=0)  # its strength; 0 ranks by probability alone
    validation_search: Literal["greedy", "beam"] = "greedy"
    validation_rows: Annotated[int, Field(ge=0)] = 500  # that each evaluation answers
    bleu_tokenize: Literal["13a", "none", "intl", "char"] = "13a"
    bleu_lowercase: bool = False


class DecoderSettings(Table):
    """What recurrent decoders are made of that say one word after another, looking at a memory."""

    cell: CellName = "GRU"
    layers: Size = 1
    embedding_size: Size = 256
    hidden_size: Size = 256
    attention: Literal["additive", "dot", "general", "concat", "none"] = "additive"
    project: bool = False  # the memory is brought to the decoder's width, which `dot` may need
    input_feeding: bool = False
    tied: bool = True  # the output has the weights of the embedding
    dropout_input: Rate = 0.0
    dropout_layers: Rate = 0.0
    dropout_output: Rate = 0.0
    dropout_recurrent: Rate = 0.0
    smoothing: Rate = 0.0
    sampling: Annotated[float, Field(ge=0, le=1)] = 0.0  # own words among the decoder's inputs
    init: str = "standard"
