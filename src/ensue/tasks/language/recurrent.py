"""Recurrent language models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import dropout

from ensue.engine.recurrence import State
from ensue.layers.recurrent import Recurrent
from ensue.tasks.blocks.encoders import bridge
from ensue.tasks.blocks.recurrent_layers import layers_of
from ensue.tasks.language.networks import (
    NO_DROPOUT,
    DropoutRates,
    LanguageNetwork,
    embedded,
)
from ensue.tasks.language.settings import LanguageSettings
from ensue.tasks.language.softmaxes import FULL, Softmax, small, softmax_of
from ensue.tasks.language.streams import Carried


class RecurrentLanguage(LanguageNetwork):
    """y_t = cells(e(w_1) … e(w_t)); p(w_{t+1}) = softmax(W·y_t + b).

    layers: the cells; their input has the width of the embedding. tied: W is the embedding, after a
    linear map without bias if the width of the cells differs. Dropout of input and output is the
    same at all steps of a batch."""

    encoder = "recurrent"
    encoder_weights: ClassVar[Mapping[str, str]] = {"recurrent.": "recurrent."}

    def __init__(
        self,
        words: int,
        layers: Recurrent,
        *,
        tied: bool = True,
        rates: DropoutRates = NO_DROPOUT,
        softmax: Softmax = FULL,
    ) -> None:
        super().__init__()
        embedding_size = layers.input_size
        self.rates = rates
        self.table = softmax.table(words, embedding_size, small)
        self.recurrent = layers
        width = self.recurrent.output_size
        self.between = bridge(width, embedding_size if tied else width)
        self.output = softmax.output(words, width, self.table if tied else None)

    @classmethod
    def of(cls, settings: LanguageSettings, words: int) -> RecurrentLanguage:
        layers = language_layers(settings)
        return cls(
            words,
            layers,
            tied=settings.tied,
            rates=DropoutRates.of(settings),
            softmax=softmax_of(settings.softmax, settings.softmax_cuts, words),
        )

    @staticmethod
    def describe(settings: LanguageSettings) -> str:
        way = ", from the right" if settings.direction == "backward" else ""
        return f"{settings.layers} × {settings.cell} of {settings.hidden_size}{way}"

    def run(self, tokens: Tensor, carried: Carried) -> tuple[Tensor, Carried]:
        """y and the carried state: the parts of each layer's state, by layer and part."""
        y, carried = self.states(tokens, carried)
        return self.between(y), carried

    def states(self, tokens: Tensor, carried: Carried) -> tuple[Tensor, Carried]:
        """y of the cells (time, batch, hidden), and the carried state."""
        y, state = self.recurrent(self.entering(tokens), self._state(self._partly_reset(carried)))
        return over_time(y, self.rates.output * self.training), _flat(state)

    def entering(self, tokens: Tensor) -> Tensor:
        """The vectors of tokens, as input of the cells."""
        x = embedded(tokens, self.table, self.rates.word * self.training)
        return over_time(x, self.rates.input * self.training)

    def _partly_reset(self, carried: Carried) -> Carried:
        """The carried state, with some columns reset in training. Without resets, only the
        first update would begin a text, and the network might not learn to."""
        if not (self.training and self.rates.carried and carried):
            return carried
        some = next(iter(carried.values()))
        anew = (torch.rand(len(some), 1) < self.rates.carried).to(some.device)
        begun = self.begin(len(some))
        return {name: torch.where(anew, begun[name], state) for name, state in carried.items()}

    def _state(self, carried: Carried) -> list[State] | None:
        if not carried:
            return None
        counts = [len(way.cell.parts) for way in self.recurrent.ways]
        return [tuple(carried[f"{k}.{p}"] for p in range(n)) for k, n in enumerate(counts)]

    def begin(self, batch: int) -> Carried:
        like = self.output.bias.new_zeros(1, batch, self.table.embedding_dim)
        return _flat(self.recurrent(like[:0])[1])


def language_layers(settings: LanguageSettings) -> Recurrent:
    """The cells of a language model; their input has the width of the embedding."""
    return layers_of(settings, settings.embedding_size, weight_dropout=settings.dropout_weights)


def over_time(x: Tensor, rate: float) -> Tensor:
    """Dropout of the same features at all steps."""
    return x * dropout(x.new_ones(1, *x.shape[1:]), rate) if rate else x


def _flat(state: tuple[State, ...]) -> dict[str, Tensor]:
    """One name for each tensor of a state, by layer and part."""
    return {f"{k}.{p}": part for k, parts in enumerate(state) for p, part in enumerate(parts)}
