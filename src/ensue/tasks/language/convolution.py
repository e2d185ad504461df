"""Convolutions that say what comes next: each layer sees the last few steps of the one below."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor, nn
from torch.nn.functional import dropout

from ensue.errors import ShapeError
from ensue.layers.sequence_convolution import GatedConvolutions, field_of
from ensue.tasks.blocks.encoders import bridge
from ensue.tasks.language.networks import (
    NO_DROPOUT,
    DropoutRates,
    LanguageNetwork,
    embedded,
)
from ensue.tasks.language.settings import LanguageSettings
from ensue.tasks.language.softmaxes import FULL, Softmax, softmax_of
from ensue.tasks.language.streams import Carried


class ConvolutionLanguage(LanguageNetwork):
    """y = convolutions(E(w_1 … w_t)), causal; p(w_{t+1}) = softmax(W·y_t + b).

    A layer carries the last inputs that its filters still reach, (size − 1)·distance of them: a
    step costs as much as any other, however long the text, and pieces of any size give what the
    whole gives. Words further back than `convolutions.field` are not seen.

    tied: W is the embedding. Where the embedding is narrower or wider than the layers, linear
    maps stand between."""

    encoder = "convolution"
    encoder_weights: ClassVar[Mapping[str, str]] = {
        "convolutions.": "convolutions.",
        "enter.": "enter.",
    }

    def __init__(
        self,
        words: int,
        *,
        width: int,
        embedding_size: int,
        layers: int,
        size: int = 3,
        dilated: bool = True,
        tied: bool = True,
        rates: DropoutRates = NO_DROPOUT,
        softmax: Softmax = FULL,
    ) -> None:
        super().__init__()
        self.rates = rates
        self.table = softmax.table(
            words, embedding_size, lambda weight: nn.init.normal_(weight, std=embedding_size**-0.5)
        )
        self.enter = bridge(embedding_size, width)
        self.convolutions = GatedConvolutions(
            width, layers, size, dilated=dilated, causal=True, dropout=rates.layers
        )
        self.between = bridge(width, embedding_size if tied else width)
        self.output = softmax.output(words, width, self.table if tied else None)

    @classmethod
    def of(cls, settings: LanguageSettings, words: int) -> ConvolutionLanguage:
        return cls(
            words,
            width=settings.hidden_size,
            embedding_size=settings.embedding_size,
            layers=settings.layers,
            size=settings.filter_size,
            dilated=settings.dilated,
            tied=settings.tied,
            rates=DropoutRates.of(settings),
            softmax=softmax_of(settings.softmax, settings.softmax_cuts, words),
        )

    @staticmethod
    def describe(settings: LanguageSettings) -> str:
        seen = field_of(settings.layers, settings.filter_size, settings.dilated)
        return f"{settings.layers} × convolution of {settings.hidden_size}, {seen} tokens seen"

    def _embedded(self, tokens: Tensor) -> Tensor:
        x = self.enter(embedded(tokens, self.table, self.rates.word * self.training))
        return dropout(x, self.rates.input, self.training)

    def run(self, tokens: Tensor, carried: Carried) -> tuple[Tensor, Carried]:
        """y (time, batch, width)."""
        before = carried or self.begin(tokens.shape[1])
        past = tuple(before[str(k)] for k in range(len(self.convolutions.layers)))
        if past[0].shape[0] != tokens.shape[1]:
            raise ShapeError(f"carried: expected {tokens.shape[1]} columns, got {len(past[0])}")
        y, kept = self.convolutions.go_on(self._embedded(tokens), past)
        y = self.between(dropout(y, self.rates.output, self.training))
        return y, {str(k): memory for k, memory in enumerate(kept)}

    def begin(self, batch: int) -> Carried:
        return {str(k): past for k, past in enumerate(self.convolutions.begin(batch))}
