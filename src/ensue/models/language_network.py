"""Networks that say what comes next: of a fixed window of words, or of all before.

Both read streams: tokens (time, batch), each column a text that goes on in the next batch.
`forward` is the cost of the tokens that follow, summed; what a network remembers is carried.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, embedding

from ensue.cells import RecurrentDropout
from ensue.engine import State
from ensue.errors import OptionError, ShapeError
from ensue.layers import Recurrent
from ensue.layers.recurrent import as_cell
from ensue.models.embed import check_rates
from ensue.models.output import Output

Carried = Mapping[str, Tensor]


@dataclass(frozen=True)
class StreamBatch:
    """tokens (time, batch), and those that follow each of them; real (time, batch) says which
    targets count, None all of them."""

    tokens: Tensor
    targets: Tensor
    real: Tensor | None = None


class LanguageNetwork(nn.Module, ABC):
    """What training, scoring and decoding see of any of them: p(w_{t+1}) is read off y_t, which
    `run` finds."""

    output: Output

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
        """log p (batch, words) of what follows tokens (batch,)."""
        y, carried = self.run(tokens[None], carried)
        return self.output.log_probabilities(y[0]), carried


class RecurrentLanguage(LanguageNetwork):
    """y_t = cells(e(w_1) … e(w_t)); p(w_{t+1}) = softmax(W·y_t + b).

    tied: W is the embedding; where the cells are wider or narrower, a linear map without bias
    stands between. Dropout, each a rate: word (a word of the vocabulary is zero wherever it
    stands in a batch), input, layers, output (the same features at all steps of a batch), and
    recurrent (of the states)."""

    def __init__(
        self,
        words: int,
        *,
        cell: str,
        embedding_size: int,
        hidden_size: int,
        layers: int = 1,
        tied: bool = True,
        dropout_word: float = 0.0,
        dropout_input: float = 0.0,
        dropout_layers: float = 0.0,
        dropout_recurrent: float = 0.0,
        dropout_output: float = 0.0,
        init: str = "standard",
        engine: str = "auto",
    ) -> None:
        super().__init__()
        self.rates = {"word": dropout_word, "input": dropout_input, "output": dropout_output}
        check_rates({f"dropout_{name}": rate for name, rate in self.rates.items()})
        self.table = nn.Embedding(words, embedding_size)
        nn.init.uniform_(self.table.weight, -0.1, 0.1)
        own = as_cell(cell)
        self.recurrent = Recurrent(
            RecurrentDropout(own, dropout_recurrent) if dropout_recurrent else own,
            embedding_size,
            hidden_size,
            layers,
            dropout=dropout_layers,
            init=init,
            engine=engine,
        )
        width = self.recurrent.output_size
        self.between = (
            nn.Linear(width, embedding_size, bias=False)
            if tied and width != embedding_size
            else nn.Identity()
        )
        self.output = Output(words, embedding_size if tied else width, self.table if tied else None)

    def _embedded(self, tokens: Tensor) -> Tensor:
        weight = self.table.weight
        if self.training and self.rates["word"]:
            weight = weight * dropout(weight.new_ones(len(weight), 1), self.rates["word"])
        return _over_time(embedding(tokens, weight), self.rates["input"], self.training)

    def run(self, tokens: Tensor, carried: Carried) -> tuple[Tensor, Carried]:
        y, state = self.recurrent(self._embedded(tokens), self._state(carried))
        y = self.between(_over_time(y, self.rates["output"], self.training))
        return y, _flat(state)

    def _state(self, carried: Carried) -> list[State] | None:
        if not carried:
            return None
        counts = [len(way.cell.parts) for way in self.recurrent.ways]
        return [tuple(carried[f"{k}.{p}"] for p in range(n)) for k, n in enumerate(counts)]

    def begin(self, batch: int) -> Carried:
        like = self.table.weight.new_zeros(1, batch, self.table.embedding_dim)
        return _flat(self.recurrent(like[:0])[1])


class WindowLanguage(LanguageNetwork):
    """p(w_{t+1}) = softmax(W·tanh(H·[e(w_t); …; e(w_{t−n+1})] + d) + b): n words are seen.

    Before a text begins, the window holds the word number `before`. one_hot: e is the word's own
    unit vector, so that H is a table for each place of the window."""

    def __init__(
        self,
        words: int,
        *,
        window: int,
        embedding_size: int,
        hidden_size: int,
        before: int,
        tied: bool = False,
        one_hot: bool = False,
        dropout_input: float = 0.0,
        dropout_output: float = 0.0,
    ) -> None:
        super().__init__()
        check_rates({"dropout_input": dropout_input, "dropout_output": dropout_output})
        if window < 1:
            raise OptionError(f"window: expected a number of words ≥ 1, got {window}")
        if one_hot and tied:
            raise OptionError("tied: expected false with one_hot, which has no embedding to tie to")
        self.window, self.before, self.one_hot = window, before, one_hot
        self.rates = {"input": dropout_input, "output": dropout_output}
        if one_hot:
            self.tables = nn.ModuleList(nn.Embedding(words, hidden_size) for _ in range(window))
            self.shift = nn.Parameter(torch.zeros(hidden_size))
        else:
            self.table = nn.Embedding(words, embedding_size)
            nn.init.uniform_(self.table.weight, -0.1, 0.1)
            self.hidden = nn.Linear(window * embedding_size, hidden_size)
        self.between = (
            nn.Linear(hidden_size, embedding_size, bias=False)
            if tied and hidden_size != embedding_size
            else nn.Identity()
        )
        self.output = Output(
            words, embedding_size if tied else hidden_size, self.table if tied else None
        )

    def run(self, tokens: Tensor, carried: Carried) -> tuple[Tensor, Carried]:
        """y (time, batch, width); carried: the last window − 1 tokens."""
        past = carried["past"] if carried else self.begin(tokens.shape[1])["past"]
        if past.shape[1] != tokens.shape[1]:
            raise ShapeError(f"carried: expected {tokens.shape[1]} columns, got {past.shape[1]}")
        whole = torch.cat([past, tokens])
        count = len(tokens)
        seen = [whole[self.window - 1 - k :][:count] for k in range(self.window)]
        if self.one_hot:
            found = [table(own) for table, own in zip(self.tables, seen, strict=True)]
            z = torch.stack(found).sum(0) + self.shift
        else:
            x = torch.cat([self.table(own) for own in seen], -1)
            z = self.hidden(dropout(x, self.rates["input"], self.training))
        y = self.between(dropout(z.tanh(), self.rates["output"], self.training))
        return y, {"past": whole[count:]}

    def begin(self, batch: int) -> Carried:
        return {"past": torch.full((self.window - 1, batch), self.before, dtype=torch.int64)}


def _over_time(x: Tensor, rate: float, training: bool) -> Tensor:
    """Dropout of the same features at all steps."""
    if not training or not rate:
        return x
    return x * dropout(x.new_ones(1, *x.shape[1:]), rate)


def _flat(state: tuple[State, ...]) -> dict[str, Tensor]:
    """One name for each tensor of a state, by layer and part."""
    return {f"{k}.{p}": part for k, parts in enumerate(state) for p, part in enumerate(parts)}
