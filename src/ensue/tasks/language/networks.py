"""The interface of networks that predict the next token.

They read streams: tokens (time, batch), each column a text that continues in the next batch.
`forward` is the summed cost of the next tokens; the state of a network is carried over.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import dropout

from ensue.data.ragged import Ragged
from ensue.data.vocabulary import END_NUMBER
from ensue.errors import check_rates
from ensue.tasks.language.settings import LanguageSettings
from ensue.tasks.language.softmaxes import WordOutput, WordTable
from ensue.tasks.language.streams import (
    COLUMNS,
    STEPS,
    Carried,
    StreamBatch,
    Tokens,
    pieces,
    scored_columns,
    stream_of,
)
from ensue.training.processes import device_of_weights, moved


@dataclass(frozen=True)
class DropoutRates:
    """word: of a word of the vocabulary, zero at all its places in a batch; input: of
    embeddings; layers: of the outputs of layers; recurrent: of the states of cells; attention: of
    its weights; output: of the inputs of the scores; carried: of the whole state of a column, which
    then starts fresh. Networks do not use all of them."""

    word: float = 0.0
    input: float = 0.0
    layers: float = 0.0
    recurrent: float = 0.0
    attention: float = 0.0
    output: float = 0.0
    carried: float = 0.0

    def __post_init__(self) -> None:
        check_rates({f"dropout_{field.name}": getattr(self, field.name) for field in fields(self)})

    @classmethod
    def of(cls, settings: LanguageSettings) -> DropoutRates:
        return cls(*(getattr(settings, f"dropout_{field.name}") for field in fields(cls)))


NO_DROPOUT = DropoutRates()


class LanguageNetwork(nn.Module, ABC):
    """What training, scoring and decoding see of any of them: p(w_{t+1}) is read off y_t, which
    `run` finds."""

    output: WordOutput
    encoder: ClassVar[str | None] = None  # the kind in ENCODERS that computes y as it does
    # how the names of its weights begin, and how they do in that encoder
    encoder_weights: ClassVar[Mapping[str, str]] = {}
    two_ways: ClassVar[bool] = False  # that encoder reads from the right too
    first = END_NUMBER  # all texts are read as one: before a text is the end of another

    @classmethod
    @abstractmethod
    def of(cls, settings: LanguageSettings, words: int) -> Self:
        """A network with fresh weights, for a vocabulary of `words` words."""

    @staticmethod
    @abstractmethod
    def describe(settings: LanguageSettings) -> str:
        """In a few words: "2 × LSTM of 200"."""

    @abstractmethod
    def run(self, tokens: Tensor, carried: Carried) -> tuple[Tensor, Carried]:
        """y (time, batch, width) of tokens (time, batch), and what is carried on."""

    @abstractmethod
    def begin(self, batch: int) -> Carried:
        """What is carried before the first token."""

    def forward(self, batch: StreamBatch, carried: Carried) -> tuple[Tensor, Carried]:
        """The cost of the targets that are real, summed."""
        y, carried = self.run(batch.tokens, carried)
        return self.output.cost(y, batch.targets, batch.real), carried

    @torch.no_grad()
    def costs(self, batch: StreamBatch, carried: Carried) -> tuple[Tensor, Carried]:
        """−log p of each target (time, batch)."""
        y, carried = self.run(batch.tokens, carried)
        return self.output.costs(y, batch.targets), carried

    @torch.no_grad()
    def step(self, tokens: Tensor, carried: Carried) -> tuple[Tensor, Carried]:
        """log p (batch, words) of what follows tokens (batch,), both on the CPU, where a search
        is; what is carried stays with the weights."""
        y, carried = self.run(tokens[None].to(device_of_weights(self)), carried)
        return self.output.log_probabilities(y[0]).cpu(), carried

    def reorder(self, carried: Carried, order: Tensor) -> Carried:
        """What is carried, with the rows of the batch in this order."""
        return {name: part.index_select(0, order.to(part.device)) for name, part in carried.items()}

    def score(self, rows: Ragged) -> Ragged:
        """log p of every token of rows, and of the end after each row; the rows are read as one
        text, in their order."""
        values = self.score_stream(stream_of(rows, END_NUMBER), scored_columns(rows))
        return Ragged(values, rows.starts + np.arange(len(rows) + 1))

    def score_stream(self, stream: Tokens, columns: int = COLUMNS) -> NDArray[np.float64]:
        """log p of every token except the first, given all before it in its column. The text is
        cut into `columns` columns, each with a fresh state, unless it is short."""
        columns = 1 if len(stream) < columns * STEPS else columns
        bits = np.zeros(len(stream) - 1)
        carried: Carried = {}
        for batch, places in pieces(stream, columns, STEPS):
            costs, carried = self.costs(moved(batch, device_of_weights(self)), carried)
            assert batch.real is not None
            real = batch.real.numpy()
            bits[places[real]] = -costs.cpu().numpy()[real]
        return bits


def embedded(tokens: Tensor, table: WordTable, rate: float) -> Tensor:
    """The vectors of tokens; each word of the vocabulary is zero with probability `rate`."""
    vectors: Tensor = table(tokens)
    if rate:
        vectors = vectors * dropout(vectors.new_ones(table.num_embeddings, 1), rate)[tokens]
    return vectors
