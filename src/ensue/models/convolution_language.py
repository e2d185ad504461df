"""Convolutions that say what comes next: each layer sees the last few steps of the one below."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import dropout, embedding

from ensue.errors import ShapeError
from ensue.layers.sequence_convolution import GatedConvolutions
from ensue.models.embed import check_rates
from ensue.models.language_network import Carried, LanguageNetwork
from ensue.models.output import Output


class ConvolutionLanguage(LanguageNetwork):
    """y = convolutions(E(w_1 … w_t)), causal; p(w_{t+1}) = softmax(W·y_t + b).

    A layer carries the last inputs that its filters still reach, (size − 1)·distance of them: a
    step costs as much as any other, however long the text, and pieces of any size give what the
    whole gives. Words further back than `convolutions.field` are not seen.

    tied: W is the embedding. Where the embedding is narrower or wider than the layers, linear
    maps stand between. Dropout, each a rate: word (a word of the vocabulary is zero wherever it
    stands in a batch), input, layers (each layer's output), output."""

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
        dropout_word: float = 0.0,
        dropout_input: float = 0.0,
        dropout_layers: float = 0.0,
        dropout_output: float = 0.0,
    ) -> None:
        super().__init__()
        self.rates = {"word": dropout_word, "input": dropout_input, "output": dropout_output}
        check_rates({f"dropout_{name}": rate for name, rate in self.rates.items()})
        same = embedding_size == width
        self.table = nn.Embedding(words, embedding_size)
        nn.init.normal_(self.table.weight, std=embedding_size**-0.5)
        self.enter = nn.Identity() if same else nn.Linear(embedding_size, width, bias=False)
        self.convolutions = GatedConvolutions(
            width, layers, size, dilated=dilated, causal=True, dropout=dropout_layers
        )
        self.between = (
            nn.Linear(width, embedding_size, bias=False) if tied and not same else nn.Identity()
        )
        self.output = Output(words, embedding_size if tied else width, self.table if tied else None)

    def _embedded(self, tokens: Tensor) -> Tensor:
        weight = self.table.weight
        if self.training and self.rates["word"]:
            weight = weight * dropout(weight.new_ones(len(weight), 1), self.rates["word"])
        return dropout(self.enter(embedding(tokens, weight)), self.rates["input"], self.training)

    def run(self, tokens: Tensor, carried: Carried) -> tuple[Tensor, Carried]:
        """y (time, batch, width)."""
        own = carried or self.begin(tokens.shape[1])
        past = tuple(own[str(k)] for k in range(len(self.convolutions.layers)))
        if len(past[0]) != tokens.shape[1]:
            raise ShapeError(f"carried: expected {tokens.shape[1]} columns, got {len(past[0])}")
        y, kept = self.convolutions.go_on(self._embedded(tokens), past)
        y = self.between(dropout(y, self.rates["output"], self.training))
        return y, {str(k): memory for k, memory in enumerate(kept)}

    def begin(self, batch: int) -> Carried:
        return {str(k): own for k, own in enumerate(self.convolutions.begin(batch))}
