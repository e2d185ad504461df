"""Settings that several tasks share, on texts and networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ensue.settings import OFF, Rate, Size, Table, Width
from ensue.tasks.blocks.layer_settings import DROPOUT, CellName, CellSettings, EncoderSettings


class TextSettings(Table):
    """How a text becomes tokens and numbers. Sequences of vectors ignore this table.

    >>> TextSettings(level='characters').lower
    True
    """

    level: Literal["auto", "words", "pieces", "spaces", "characters", "subwords"] = Field(
        "words",
        description="Unit of tokens: words (apostrophes inside, punctuation one by one), pieces "
        "(runs of letters, runs of digits), text between spaces, characters, or subwords "
        "learned from the training part; auto: characters for short texts whose words are nearly "
        "all different, such as names, else words.",
    )
    lower: bool = Field(True, description="Convert texts to lower case.")
    numbers: Literal["keep", "digit", "tag"] = Field(
        "keep", description="Numbers: as they are, every digit as 0, or each as one token."
    )
    breaks: Literal["keep", "space"] = Field(
        "space", description="HTML line breaks, <br />: as they are, or as a space."
    )
    min_count: Size = Field(
        2, description="Minimum count of a token in the training part; rarer tokens are unknown."
    )
    max_words: Annotated[Size | None, OFF] = Field(
        None, description="Maximum size of the vocabulary, by frequency; off: no limit."
    )
    max_length: Annotated[Size | None, OFF] = Field(
        None, description="Maximum length of a text in tokens; longer texts are cut; off: no limit."
    )
    cut: Literal["end", "start"] = Field("end", description="Side at which a long text is cut.")
    subword_count: Size = Field(8000, description="Number of subwords, with level subwords.")


class SequenceSettings(EncoderSettings):
    """How a network reads a sequence of words or vectors."""

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"dropout": DROPOUT}

    embedding_size: Width = Field(100, description="Size of the word vectors.")
    vectors: str = Field("", description="File of pretrained word vectors.")
    freeze_vectors: bool = Field(False, description="Freeze the pretrained vectors.")
    dropout_input: Rate = Field(0.3, description="Dropout of the encoder's inputs.")
    dropout_output: Rate = Field(0.3, description="Dropout before the output layer.")
    word_dropout: Rate = Field(
        0.0, description="Word dropout: share of words that training replaces by the unknown word."
    )
    norm_weight: float = Field(
        0.0, ge=0, description="Weight of the norm-preserving regulariser of recurrent encoders."
    )


class NetworkSettings(SequenceSettings):
    """Networks that read a sequence of words or vectors.

    >>> NetworkSettings(layers=2).cell
    'LSTM'
    """

    batch_tokens: Size = Field(
        16000, description="Maximum number of tokens in a batch, including padding."
    )
    batch_rows: Annotated[Size | None, OFF] = Field(
        32, description="Maximum number of rows in a batch."
    )


class LinearSettings(Table):
    """The linear model next to a network of texts."""

    linear: Literal["alone", "mixed"] = Field(
        "alone",
        description="Linear model of texts: alone, for comparison; or mixed, TF-IDF of words "
        "and letters in an ensemble with the network, weighted by the validation "
        "part.",
    )


class BesideSettings(Table):
    """The columns that are read next to a text, `data.columns`."""

    numeric: list[str] = Field(
        [], description="Columns next to the text to read as numbers, if their values are unclear."
    )
    categorical: list[str] = Field(
        [], description="Columns next to the text to read as categories, even if they hold numbers."
    )
    column_units: Annotated[int, Field(ge=0)] = Field(
        32, description="Hidden units for the columns next to the text; 0 uses them directly."
    )


class LabelSettings(NetworkSettings):
    """Networks that choose among labels."""

    smoothing: Rate = Field(0.0, description="Label smoothing: probability spread over all labels.")
    class_weights: Literal["none", "balanced"] = Field(
        "none", description="Weights of the classes in the cost; balanced: rare classes count more."
    )


class SearchSettings(Table):
    """The search for the words of an answer, and the scores of answers."""

    beam: Width = Field(5, description="Beam width; 1 is greedy search.")
    length_penalty: Literal["wu", "length"] = Field(
        "wu", description="Length normalisation of the beam's scores: of Wu et al., or by length."
    )
    alpha: float = Field(
        0.6, ge=0, description="Strength of the length penalty; 0 ranks by probability alone."
    )
    validation_search: Literal["greedy", "beam"] = Field(
        "greedy", description="Search on the validation part during training."
    )
    validation_rows: Annotated[int, Field(ge=0)] = Field(
        500, description="Number of validation rows to decode at each evaluation."
    )
    bleu_tokenize: Literal["13a", "none", "intl", "char"] = Field(
        "13a", description="Tokenisation for BLEU, as sacrebleu names it; none for tokenised text."
    )
    bleu_lowercase: bool = Field(False, description="Ignore case in BLEU.")


class DecoderSettings(CellSettings):
    """Settings of recurrent decoders that generate word by word, with attention to a memory."""

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"dropout": DROPOUT}

    cell: CellName = Field("GRU", description="Recurrent cell of the encoder and the decoder.")
    hidden_size: Width = 256
    embedding_size: Width = Field(256, description="Size of the word vectors.")
    attention: Literal["additive", "dot", "general", "concat", "none"] = Field(
        "additive", description="Score of the attention; none: the decoder sees no memory."
    )
    project: bool = Field(
        False, description="Project the memory to the decoder's width, which `dot` may need."
    )
    input_feeding: bool = Field(
        False,
        description="Input feeding: feed the attention's result into the decoder's next step.",
    )
    first_word: Literal["learned", "zero"] = Field(
        "learned", description="Input of the decoder before its first word: a vector, or zero."
    )
    tied: bool = Field(True, description="Tie the weights of the output layer to the embedding.")
    dropout_input: Rate = Field(0.0, description="Dropout of the inputs.")
    dropout_output: Rate = Field(0.0, description="Dropout before the output layer.")
    smoothing: Rate = Field(0.0, description="Label smoothing: probability spread over all words.")
    sampling: Annotated[float, Field(ge=0, le=1)] = Field(
        0.0,
        description="Scheduled sampling: share of the decoder's inputs that are its own words.",
    )
