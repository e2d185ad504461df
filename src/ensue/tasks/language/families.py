"""The families of language models: counted, or trained."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from ensue.data.ragged import Ragged
from ensue.data.vocabulary import END_NUMBER
from ensue.errors import OptionError, ShapeError
from ensue.layers.convolution import GatedConvolutions, field_of
from ensue.layers.transformer import CausalBlocks, Design, placed
from ensue.tasks.blocks.encoders import bridge
from ensue.tasks.language.both_sides import BothSidesLanguage
from ensue.tasks.language.learned import LearnedLanguage, NgramDesign
from ensue.tasks.language.networks import NO_DROPOUT, DropoutRates, LanguageNetwork, embedded
from ensue.tasks.language.recurrent import RecurrentLanguage
from ensue.tasks.language.settings import LanguageSettings
from ensue.tasks.language.softmaxes import FULL, Softmax, small, softmax_of
from ensue.tasks.language.streams import Carried, read_from, scored_columns, stream_of
from ensue.tasks.model import Model
from ensue.tasks.rows.part import Part
from ensue.tasks.search.ranges import Choice, Searched, Sizes, Space
from ensue.tasks.task import Family, Solved


class WindowLanguage(LanguageNetwork):
    """p(w_{t+1}) = softmax(W·tanh(H·[e(w_t); …; e(w_{t−n+1})] + d) + b): n words are seen.

    At the start of a text, the window is filled with the word `before`. one_hot: e is the unit
    vector of the word, so H is a table for each position of the window."""

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
        rates: DropoutRates = NO_DROPOUT,
        softmax: Softmax = FULL,
    ) -> None:
        super().__init__()
        if window < 1:
            raise OptionError(f"window: expected a number of words ≥ 1, got {window}")
        if one_hot and tied:
            raise OptionError("tied: expected false with one_hot, which has no embedding to tie to")
        self.window, self.before, self.one_hot, self.rates = window, before, one_hot, rates
        if one_hot:
            self.tables = nn.ModuleList(nn.Embedding(words, hidden_size) for _ in range(window))
            self.shift = nn.Parameter(torch.zeros(hidden_size))
        else:
            self.table = softmax.table(words, embedding_size, small)
            self.hidden = nn.Linear(window * embedding_size, hidden_size)
        self.between = bridge(hidden_size, embedding_size if tied else hidden_size)
        self.output = softmax.output(words, hidden_size, self.table if tied else None)

    @classmethod
    def of(cls, settings: LanguageSettings, words: int) -> WindowLanguage:
        return cls(
            words,
            window=settings.window,
            embedding_size=settings.embedding_size,
            hidden_size=settings.hidden_size,
            before=END_NUMBER,
            tied=settings.tied and not settings.one_hot,
            one_hot=settings.one_hot,
            rates=DropoutRates.of(settings),
            softmax=softmax_of(settings.softmax, settings.softmax_cuts, words),
        )

    @staticmethod
    def describe(settings: LanguageSettings) -> str:
        return f"window of {settings.window} tokens, {settings.hidden_size} hidden units"

    def run(self, tokens: Tensor, carried: Carried) -> tuple[Tensor, Carried]:
        """y (time, batch, width); carried: the last window − 1 tokens (window − 1, batch)."""
        past = carried["past"] if carried else self.begin(tokens.shape[1])["past"]
        if past.shape[1] != tokens.shape[1]:
            raise ShapeError(f"carried: expected {tokens.shape[1]} columns, got {past.shape[1]}")
        whole = torch.cat([past, tokens])
        count = tokens.shape[0]
        windows = [whole[self.window - 1 - k :][:count] for k in range(self.window)]
        if self.one_hot:
            vectors = [table(words) for table, words in zip(self.tables, windows, strict=True)]
            z = torch.stack(vectors).sum(0) + self.shift
        else:
            x = torch.cat([self.table(words) for words in windows], -1)
            z = self.hidden(dropout(x, self.rates.input, self.training))
        y = self.between(dropout(z.tanh(), self.rates.output, self.training))
        return y, {"past": whole[count:]}

    def begin(self, batch: int) -> Carried:
        device = self.output.bias.device
        past = torch.full((self.window - 1, batch), self.before, dtype=torch.int64, device=device)
        return {"past": past}

    def reorder(self, carried: Carried, order: Tensor) -> Carried:
        return {"past": carried["past"].index_select(1, order.to(carried["past"].device))}


class ConvolutionLanguage(LanguageNetwork):
    """y = convolutions(E(w_1 … w_t)), causal; p(w_{t+1}) = softmax(W·y_t + b).

    A layer carries the last inputs within reach of its filters, (size − 1)·distance of them. So
    every step has the same cost, and pieces of any size give the same result as the whole. Words
    further back than `convolutions.field` are not seen.

    tied: W is the embedding. Linear maps connect an embedding whose width differs from the
    layers."""

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
        field = field_of(settings.layers, settings.filter_size, settings.dilated)
        return f"{settings.layers} × convolution of {settings.hidden_size}, {field} tokens seen"

    def _embedded(self, tokens: Tensor) -> Tensor:
        x = self.enter(embedded(tokens, self.table, self.rates.word * self.training))
        return dropout(x, self.rates.input, self.training)

    def run(self, tokens: Tensor, carried: Carried) -> tuple[Tensor, Carried]:
        """y (time, batch, width)."""
        before = carried or self.begin(tokens.shape[1])
        past = tuple(before[str(k)] for k in range(len(self.convolutions.layers)))
        if past[0].shape[0] != tokens.shape[1]:
            raise ShapeError(f"carried: expected {tokens.shape[1]} columns, got {len(past[0])}")
        y, on = self.convolutions.go_on(self._embedded(tokens), past)
        y = self.between(dropout(y, self.rates.output, self.training))
        return y, {str(k): memory for k, memory in enumerate(on)}

    def begin(self, batch: int) -> Carried:
        return {str(k): past for k, past in enumerate(self.convolutions.begin(batch))}


class TransformerLanguage(LanguageNetwork):
    """y = blocks(√width·E(w_1 … w_t) + positions); p(w_{t+1}) = softmax(W·y_t + b).

    Each block attends to the last `context` tokens, including the current one, and carries the keys
    and values of all of them except the first. Positions are modulo `context`, counted from the
    first token of a stream. So no two tokens seen by a block have the same position, and texts of
    any length use trained positions. Steps and pieces of any size give the same result as the
    whole. A text no longer than the context is processed as by a Transformer without such a window.

    tied: W is the embedding. Linear maps connect an embedding whose width differs from the blocks.
    Input dropout applies to the sum of embeddings and positions, layer dropout to the sublayers of
    blocks."""

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
        2·width); and the position of the next token (batch,), the same in all rows."""
        before = carried or self.begin(tokens.shape[1])
        position = before["position"]
        if position.shape[0] != tokens.shape[1]:
            raise ShapeError(
                f"carried: expected {tokens.shape[1]} columns, got {position.shape[0]}"
            )
        first = position[0] if position.shape[0] else 0
        past = tuple(before[str(k)] for k in range(len(self.blocks.layers)))
        y, blocks = self.blocks(self._embedded(tokens, first), past)
        y = self.between(dropout(y, self.rates.output, self.training))
        memories = {str(k): memory for k, memory in enumerate(blocks)}
        return y, {**memories, "position": (position + tokens.shape[0]) % self.context}

    def begin(self, batch: int) -> Carried:
        weight = self.output.bias
        nothing = weight.new_zeros(batch, 0, 2 * self.width)
        position = torch.zeros(batch, dtype=torch.int64, device=weight.device)
        memories = {str(k): nothing for k in range(len(self.blocks.layers))}
        return {**memories, "position": position}


class FromTheRight:
    """p(text) = Π p(token | tokens after it), including the border before the text, so a text has
    as many factors as from the left. `step` goes to the left."""

    def __init__(self, network: LanguageNetwork) -> None:
        self.network = network
        self.first = network.first

    def begin(self, batch: int) -> Carried:
        return self.network.begin(batch)

    def step(self, tokens: Tensor, carried: Carried) -> tuple[Tensor, Carried]:
        return self.network.step(tokens, carried)

    def reorder(self, carried: Carried, order: Tensor) -> Carried:
        return self.network.reorder(carried, order)

    def score(self, rows: Ragged) -> Ragged:
        """log p of every token of rows, given those after it, and of the border before each row,
        which comes last."""
        stream = read_from(stream_of(rows, END_NUMBER), "backward")
        scores = self.network.score_stream(stream, scored_columns(rows))
        values = scores[::-1]  # the border before a row, then the row
        starts = rows.starts + np.arange(len(rows) + 1)
        order = np.arange(1, len(values) + 1)
        order[starts[1:] - 1] = starts[:-1]
        return Ragged(values[order], starts)


class NextToken(Protocol):
    """The interface of n-grams and networks: a text begins with `begin` and the token `first`, and
    continues with `step`."""

    @property
    def first(self) -> int:
        """The token before a text."""
        ...

    def begin(self, batch: int) -> Any:
        """The state before any token."""
        ...

    def step(self, tokens: Tensor, state: Any, /) -> tuple[Tensor, Any]:
        """log p (batch, words) of what follows tokens (batch,), and the state after them."""
        ...

    def reorder(self, state: Any, order: Tensor, /) -> Any:
        """The rows of a state in this order; for searches."""
        ...

    def score(self, rows: Ragged) -> Ragged:
        """log p of every token of rows, and of the end after each row."""
        ...


class Ensemble:
    """p is the mean of the members' p; a state is the tuple of their states."""

    def __init__(self, members: Sequence[NextToken]) -> None:
        self.members = members

    @property
    def first(self) -> int:
        return self.members[0].first

    def begin(self, batch: int) -> tuple[Any, ...]:
        return tuple(member.begin(batch) for member in self.members)

    def step(self, tokens: Tensor, state: tuple[Any, ...]) -> tuple[Tensor, tuple[Any, ...]]:
        pairs = zip(self.members, state, strict=True)
        logs, states = zip(*(member.step(tokens, part) for member, part in pairs), strict=True)
        return torch.logsumexp(torch.stack(logs), 0) - math.log(len(logs)), states

    def reorder(self, state: tuple[Any, ...], order: Tensor) -> tuple[Any, ...]:
        pairs = zip(self.members, state, strict=True)
        return tuple(member.reorder(part, order) for member, part in pairs)

    def score(self, rows: Ragged) -> Ragged:
        scores = [member.score(rows) for member in self.members]
        logs = np.logaddexp.reduce([scored.values for scored in scores]) - math.log(len(scores))
        return Ragged(logs, scores[0].starts)


AnyLanguageModel = Model[LanguageSettings, Part, LearnedLanguage]
BASELINE = NgramDesign(3, "kneser-ney")  # the baseline of networks


class LanguageFamily(Family[LanguageSettings]):
    """A family of models that predict the next token. looks_ahead: in training they also read the
    tokens after a piece of the text."""

    looks_ahead: bool = False

    @abstractmethod
    def ngrams(self, settings: LanguageSettings) -> NgramDesign:
        """The n-grams to count in the training part."""

    @abstractmethod
    def members(self, model: AnyLanguageModel) -> Sequence[NextToken]:
        """The members of a fitted model."""

    @abstractmethod
    def baselines(self, rows: Ragged, model: AnyLanguageModel) -> dict[str, float]:
        """Perplexities of simpler models."""


class NgramFamily(LanguageFamily):
    """N-grams: counted and smoothed."""

    solved: ClassVar[bool] = True

    def ngrams(self, settings: LanguageSettings) -> NgramDesign:
        return NgramDesign(settings.order, settings.ngram_smoothing, settings.add)

    def members(self, model: AnyLanguageModel) -> Sequence[NextToken]:
        return [model.learned.ngrams]

    def baselines(self, rows: Ragged, model: AnyLanguageModel) -> dict[str, float]:
        return {}

    def build(self, model: AnyLanguageModel) -> nn.Module:
        raise OptionError("model.family = ngram is estimated by counting and has no network")

    def describe(self, settings: LanguageSettings) -> str:
        return f"{settings.order}-grams, {settings.ngram_smoothing}"

    def solve(self, train: Part, validation: Part, model: AnyLanguageModel) -> Solved:
        """Returns no networks: the learned n-grams are the model."""
        perplexity = model.learned.ngrams.perplexity(model.learned.rows(validation))
        return Solved([], "counted", {"perplexity": perplexity})


class NetworkFamily(LanguageFamily):
    """Networks of one kind, trained."""

    def __init__(self, kind: type[LanguageNetwork], looks_ahead: bool = False) -> None:
        self._kind, self.looks_ahead = kind, looks_ahead

    def ngrams(self, settings: LanguageSettings) -> NgramDesign:
        return BASELINE

    def members(self, model: AnyLanguageModel) -> Sequence[NextToken]:
        networks = cast(list[LanguageNetwork], model.networks)
        if model.settings.direction == "backward":
            return [FromTheRight(network) for network in networks]
        return networks

    def baselines(self, rows: Ragged, model: AnyLanguageModel) -> dict[str, float]:
        return {f"{BASELINE.order}-grams": model.learned.ngrams.perplexity(rows)}

    def build(self, model: AnyLanguageModel) -> nn.Module:
        return self._kind.of(model.settings, len(model.learned.words))

    def describe(self, settings: LanguageSettings) -> str:
        return self._kind.describe(settings)


FAMILIES: dict[str, LanguageFamily] = {
    "recurrent": NetworkFamily(RecurrentLanguage),
    "both": NetworkFamily(BothSidesLanguage, looks_ahead=True),
    "window": NetworkFamily(WindowLanguage),
    "ngram": NgramFamily(),
    "transformer": NetworkFamily(TransformerLanguage),
    "convolution": NetworkFamily(ConvolutionLanguage),
}

TRAINED = ("recurrent", "window", "transformer", "convolution")
# Predicting a word between others is another task than predicting the next one, so these families
# are not mixed.
RANGES: Space = {
    "model.family": Searched(Choice((*TRAINED, "ngram"))),
    "model.order": Searched(Choice((3, 4, 5, 6), ordered=True), {"model.family": ("ngram",)}),
    "model.window": Searched(Sizes(1), {"model.family": ("window",)}),
    "model.columns": Searched(Sizes(1, 4), {"model.family": TRAINED}),
}


def ensemble_of(model: AnyLanguageModel) -> Ensemble:
    """All members of a fitted model as one ensemble."""
    model.must_be_fitted()
    return Ensemble(FAMILIES[model.settings.family].members(model))
