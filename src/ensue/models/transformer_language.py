"""A Transformer that says what comes next: a decoder alone, looking back at what it has read."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, embedding

from ensue.errors import ShapeError
from ensue.layers.positions import placed
from ensue.layers.transformer import CausalBlocks, Design
from ensue.models.embed import check_rates
from ensue.models.language_network import Carried, LanguageNetwork
from ensue.models.output import Output


class TransformerLanguage(LanguageNetwork):
    """y = blocks(√width·E(w_1 … w_t) + positions); p(w_{t+1}) = softmax(W·y_t + b).

    Each block looks at the last `context` tokens, the present one included, and carries the keys
    and values of all but the first of them. Positions are counted modulo `context` from the token
    that nothing was carried to: no two tokens that a block sees stand at the same one, and a text
    of any length stays among positions that were trained. So stepping and pieces of any size give
    what the whole gives; a text no longer than the context is seen as by a Transformer without
    such a window.

    tied: W is the embedding. Where the embedding is narrower or wider than the blocks, linear maps
    stand between. Dropout, each a rate: word (a word of the vocabulary is zero wherever it stands
    in a batch), input (embeddings and positions), layers (each sublayer's output), attention (the
    weights), output."""

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
        dropout_word: float = 0.0,
        dropout_input: float = 0.0,
        dropout_layers: float = 0.0,
        dropout_attention: float = 0.0,
        dropout_output: float = 0.0,
    ) -> None:
        super().__init__()
        self.rates = {"word": dropout_word, "input": dropout_input, "output": dropout_output}
        check_rates({f"dropout_{name}": rate for name, rate in self.rates.items()})
        self.width, self.context = width, context
        same = embedding_size == width
        self.table = nn.Embedding(words, embedding_size)
        nn.init.normal_(self.table.weight, std=width**-0.5)
        self.enter = nn.Identity() if same else nn.Linear(embedding_size, width, bias=False)
        design = Design(width, heads, inner, norm, dropout_layers, dropout_attention)
        self.blocks = CausalBlocks(layers, design, context)
        self.between = (
            nn.Linear(width, embedding_size, bias=False) if tied and not same else nn.Identity()
        )
        self.output = Output(words, embedding_size if tied else width, self.table if tied else None)

    def _embedded(self, tokens: Tensor, first: int) -> Tensor:
        weight = self.table.weight
        if self.training and self.rates["word"]:
            weight = weight * dropout(weight.new_ones(len(weight), 1), self.rates["word"])
        x = self.enter(embedding(tokens, weight)) * math.sqrt(self.width)
        return dropout(placed(x, first, self.context), self.rates["input"], self.training)

    def run(self, tokens: Tensor, carried: Carried) -> tuple[Tensor, Carried]:
        """y (time, batch, width). carried: for each block, keys and values (batch, before,
        2·width); position (batch,), the same in all rows, of the token to come."""
        own = carried or self.begin(tokens.shape[1])
        position = own["position"]
        if len(position) != tokens.shape[1]:
            raise ShapeError(f"carried: expected {tokens.shape[1]} columns, got {len(position)}")
        first = int(position[0]) if len(position) else 0
        past = tuple(own[str(k)] for k in range(len(self.blocks.layers)))
        y, kept = self.blocks(self._embedded(tokens, first), past)
        y = self.between(dropout(y, self.rates["output"], self.training))
        memories = {str(k): memory for k, memory in enumerate(kept)}
        return y, {**memories, "position": (position + len(tokens)) % self.context}

    def begin(self, batch: int) -> Carried:
        weight = self.table.weight
        nothing = weight.new_zeros(batch, 0, 2 * self.width)
        position = torch.zeros(batch, dtype=torch.int64, device=weight.device)
        memories = {str(k): nothing for k in range(len(self.blocks.layers))}
        return {**memories, "position": position}
