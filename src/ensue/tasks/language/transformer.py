"""A Transformer that says what comes next: a decoder alone, looking back at what it has read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from ensue.errors import ShapeError
from ensue.layers.positions import placed
from ensue.layers.transformer import CausalBlocks, Design
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


class TransformerLanguage(LanguageNetwork):
    """y = blocks(√width·E(w_1 … w_t) + positions); p(w_{t+1}) = softmax(W·y_t + b).

    Each block looks at the last `context` tokens, the present one included, and carries the keys
    and values of all but the first of them. Positions are counted modulo `context` from the token
    that nothing was carried to: no two tokens that a block sees stand at the same one, and a text
    of any length stays among positions that were trained. So stepping and pieces of any size give
    what the whole gives; a text no longer than the context is seen as by a Transformer without
    such a window.

    tied: W is the embedding. Where the embedding is narrower or wider than the blocks, linear maps
    stand between. The input that dropout is applied to is the sum of embeddings and positions,
    the layers are the sublayers of the blocks."""

    encoder = "transformer"
    encoder_weights: ClassVar[Mapping[str, str]] = {"blocks.": "blocks.", "enter.": "enter."}

    def __init__(
        self,
        words: int,
        *,
        width: int,
        embedding_size: int,
        heads: int,
        layers: int,
        context: int,
        inner: int | None = None,
        norm: str = "before",
        tied: bool = True,
        rates: DropoutRates = NO_DROPOUT,
        softmax: Softmax = FULL,
    ) -> None:
        super().__init__()
        self.width, self.context, self.rates = width, context, rates
        self.table = softmax.table(
            words, embedding_size, lambda weight: nn.init.normal_(weight, std=width**-0.5)
        )
        self.enter = bridge(embedding_size, width)
        design = Design(width, heads, inner, norm, rates.layers, rates.attention)
        self.blocks = CausalBlocks(layers, design, context)
        self.between = bridge(width, embedding_size if tied else width)
        self.output = softmax.output(words, width, self.table if tied else None)

    @classmethod
    def of(cls, settings: LanguageSettings, words: int) -> TransformerLanguage:
        return cls(
            words,
            width=settings.hidden_size,
            embedding_size=settings.embedding_size,
            heads=settings.heads,
            layers=settings.layers,
            context=settings.context,
            inner=settings.inner_size,
            norm=settings.norm,
            tied=settings.tied,
            rates=DropoutRates.of(settings),
            softmax=softmax_of(settings.softmax, settings.softmax_cuts, words),
        )

    @staticmethod
    def describe(settings: LanguageSettings) -> str:
        return (
            f"{settings.layers} × transformer of {settings.hidden_size}, {settings.heads} heads, "
            f"{settings.context} tokens back"
        )

    def _embedded(self, tokens: Tensor, first: int | Tensor) -> Tensor:
        x = self.enter(embedded(tokens, self.table, self.rates.word * self.training))
        x = placed(x * math.sqrt(self.width), first, self.context)
        return dropout(x, self.rates.input, self.training)

    def run(self, tokens: Tensor, carried: Carried) -> tuple[Tensor, Carried]:
        """y (time, batch, width). carried: for each block, keys and values (batch, before,
        2·width); position (batch,), the same in all rows, of the token to come."""
        before = carried or self.begin(tokens.shape[1])
        position = before["position"]
        if position.shape[0] != tokens.shape[1]:
            raise ShapeError(
                f"carried: expected {tokens.shape[1]} columns, got {position.shape[0]}"
            )
        first = position[0] if position.shape[0] else 0
        past = tuple(before[str(k)] for k in range(len(self.blocks.layers)))
        y, kept = self.blocks(self._embedded(tokens, first), past)
        y = self.between(dropout(y, self.rates.output, self.training))
        memories = {str(k): memory for k, memory in enumerate(kept)}
        return y, {**memories, "position": (position + tokens.shape[0]) % self.context}

    def begin(self, batch: int) -> Carried:
        weight = self.output.bias
        nothing = weight.new_zeros(batch, 0, 2 * self.width)
        position = torch.zeros(batch, dtype=torch.int64, device=weight.device)
        memories = {str(k): nothing for k in range(len(self.blocks.layers))}
        return {**memories, "position": position}
