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
    """Dropout rates; each network uses only some of them.

    word drops a word at all its positions in a batch, input drops embeddings, and layers the
    outputs of layers. recurrent drops states of cells, attention drops attention weights, and
    output the inputs of the scores. carried drops the whole state of a column, which then starts
    fresh."""

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
    """The interface for training, scoring and decoding: `run` computes y_t, from which p(w_{t+1})
    follows."""

    output: WordOutput
    encoder: ClassVar[str | None] = None  # the kind in ENCODERS that computes the same y
    # prefixes of its weights, with their prefixes in that encoder
    encoder_weights: ClassVar[Mapping[str, str]] = {}
    two_ways: ClassVar[bool] = False  # whether that encoder also reads from the right
    first = END_NUMBER  # all texts are read as one: the end of another precedes a text

    @classmethod
    @abstractmethod
    def of(cls, settings: LanguageSettings, words: int) -> Self:
        """A network with fresh weights, for a vocabulary of `words` words."""

    @staticmethod
    @abstractmethod
    def describe(settings: LanguageSettings) -> str:
        """A short description: "2 × LSTM of 200"."""

    @abstractmethod
    def run(self, tokens: Tensor, carried: Carried) -> tuple[Tensor, Carried]:
        """y (time, batch, width) for tokens (time, batch), and the carried state."""

    @abstractmethod
    def begin(self, batch: int) -> Carried:
        """The carried state before the first token."""

    def forward(self, batch: StreamBatch, carried: Carried) -> tuple[Tensor, Carried]:
        """The summed cost of the real targets."""
        y, carried = self.run(batch.tokens, carried)
        return self.output.cost(y, batch.targets, batch.real), carried

    @torch.no_grad()
    def costs(self, batch: StreamBatch, carried: Carried) -> tuple[Tensor, Carried]:
        """−log p of each target (time, batch)."""
        y, carried = self.run(batch.tokens, carried)
        return self.output.costs(y, batch.targets), carried

    @torch.no_grad()
    def step(self, tokens: Tensor, carried: Carried) -> tuple[Tensor, Carried]:
        """log p (batch, words) of what follows tokens (batch,), both on the CPU, for searches; the
        carried state stays on the device of the weights."""
        y, carried = self.run(tokens[None].to(device_of_weights(self)), carried)
        return self.output.log_probabilities(y[0]).cpu(), carried

    def reorder(self, carried: Carried, order: Tensor) -> Carried:
        """The carried state with the rows of the batch in this order."""
        return {name: part.index_select(0, order.to(part.device)) for name, part in carried.items()}

    def score(self, rows: Ragged) -> Ragged:
        """log p of every token of rows, and of the end after each row; rows are read in order as
        one text."""
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
