"""N-gram language models: probabilities of next tokens and of texts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.data.ragged import Ragged
from ensue.errors import DataError, ShapeError
from ensue.tasks.language.ngram.counts import NgramCounts, NgramIndex, Numbers, picked
from ensue.tasks.language.ngram.smoothing import ADD_K, MODIFIED_KNESER_NEY, logarithms, smoother
from ensue.tasks.language.ngram.symbols import NgramSymbols, bounded

Floats = NDArray[np.float64]
LOG_10 = float(np.log(10))


@dataclass(frozen=True)
class NgramModel:
    """Probabilities of n-grams in back-off form, as ARPA files have them, in log₁₀.

    log_p[k − 1]: log P(last token | those before it) of each n-gram of k tokens seen. back_off[k −
    1]: the factor of P(w | shorter context) for words w never seen after this n-gram; for all
    orders except the highest. occurring (width,): tokens that occurred in the text."""

    index: NgramIndex
    log_p: tuple[Floats, ...]
    back_off: tuple[Floats, ...]
    occurring: NDArray[np.bool_]
    smoothing: str

    @classmethod
    def fit(
        cls,
        rows: Ragged,
        symbols: NgramSymbols,
        *,
        order: int = 5,
        smoothing: str = MODIFIED_KNESER_NEY,
        k: float = 1.0,
        held_out: Ragged | None = None,
    ) -> NgramModel:
        """Fits a model. rows: sentences or pieces of a stream, without boundaries. k: the number
        that "add-k" adds. held_out: rows on which "interpolated" estimates its weights."""
        counts = NgramCounts.of(rows, symbols, order)
        return cls.smoothed(counts, smoothing, k=k, held_out=held_out)

    @classmethod
    def smoothed(
        cls,
        counts: NgramCounts,
        smoothing: str = MODIFIED_KNESER_NEY,
        *,
        k: float = 1.0,
        held_out: Ragged | None = None,
    ) -> NgramModel:
        """A model from existing counts."""
        tails = counts.index.tails()
        parts = smoother(counts, smoothing, tails, k, held_out)
        tables = logarithms(counts.index, parts, tails, to_uniform=smoothing == ADD_K)
        log_p, left = zip(*tables, strict=True)
        return cls(counts.index, log_p, left[1:], counts.counts[0] > 0, smoothing)

    @property
    def symbols(self) -> NgramSymbols:
        return self.index.symbols

    @property
    def order(self) -> int:
        return self.index.order

    # --- facts -----------------------------------------------------------------------------

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of distinct n-grams of 1, 2, … tokens."""
        return (int(self.occurring.sum()), *map(len, self.index.keys))

    @property
    def bytes(self) -> int:
        """The memory of all arrays."""
        return sum(
            a.nbytes for a in (*self.index.keys, *self.log_p, *self.back_off, self.occurring)
        )

    def unseen(self, rows: Ragged) -> tuple[float, ...]:
        """The share of unseen n-grams among the rows' n-grams of 1, 2, … tokens; 0 if rows have
        none of that length."""
        text = bounded(rows, self.symbols)
        offsets, numbers = text.offsets, text.tokens.astype(np.int64)
        missing = ~self.occurring[numbers]
        shares = []
        for order in range(1, self.order + 1):
            if order > 1:
                _, numbers = self.index.following(order, text, numbers)
                missing = numbers < 0
            complete = offsets >= max(1, order - 1)
            shares.append(float(missing[complete].sum() / max(1, complete.sum())))
        return tuple(shares)

    # --- how likely ------------------------------------------------------------------------

    def score(self, rows: Ragged) -> Ragged:
        """log P (natural) of every token given the tokens before it. In sentences, the last value
        of a row belongs to the end token."""
        text = bounded(rows, self.symbols)
        numbers = text.tokens.astype(np.int64)
        log_p = self.log_p[0][numbers]
        for order in range(2, self.order + 1):
            contexts, numbers = self.index.following(order, text, numbers)
            if self._to_uniform:
                log_p[text.offsets >= order - 1] = self._uniform
            log_p += picked(self.back_off[order - 2], contexts)
            log_p[numbers >= 0] = self.log_p[order - 1][numbers[numbers >= 0]]
        starts = text.starts - np.arange(len(text.starts))
        return Ragged(log_p[text.inside] * LOG_10, starts)

    def perplexity(self, rows: Ragged) -> float:
        """exp of the mean of −log P over all tokens, including ends; ∞ if one has P = 0."""
        values = self.score(rows).values
        if not len(values):
            raise DataError("perplexity: expected a text with at least one token, got none")
        with np.errstate(over="ignore"):
            return float(np.exp(-values.mean()))

    @property
    def _to_uniform(self) -> bool:
        """Whether the mass left for unseen n-grams goes to the uniform distribution."""
        return self.smoothing == ADD_K

    @property
    def _uniform(self) -> float:
        return -float(np.log10(self.symbols.predicted.sum()))

    # --- what follows ----------------------------------------------------------------------

    def log_probabilities(self, prefixes: Ragged) -> Floats:
        """log P of every next token (batch, vocabulary), −∞ for the start and for padding. Each row
        is a sentence's beginning without its start, and may be empty."""
        text = bounded(prefixes, self.symbols)
        ends = text.starts[1:] - (self.symbols.end is not None)
        length = min(self.order - 1, int((ends - text.starts[:-1]).max(initial=0)))
        places = ends[:, None] - np.arange(length, 0, -1)
        inside = places >= text.starts[:-1, None]
        before = np.where(inside, text.tokens[np.maximum(places, 0)], -1)
        return self._following(before.astype(np.int64))

    @property
    def first(self) -> int:
        """The token before a text: its start."""
        return self.symbols.start

    def begin(self, batch: int) -> Tensor:
        """The state before any token: (batch, order − 1), the tokens last read, −1 for none."""
        return torch.full((batch, self.order - 1), -1)

    def step(self, tokens: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Reads one token for each row, `first` before all others; returns log P of every next
        token (batch, vocabulary) and the new state."""
        if tokens.ndim != 1 or state.shape != (len(tokens), self.order - 1):
            raise ShapeError(
                f"step: expected tokens (batch,) and a state (batch, {self.order - 1}), got "
                f"{tuple(tokens.shape)} and {tuple(state.shape)}"
            )
        if len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < self.symbols.width:
            raise DataError(
                f"step: expected tokens 0 … {self.symbols.width - 1}, got "
                f"{int(tokens.min())} … {int(tokens.max())}"
            )
        state = torch.cat([state, tokens[:, None].to(state)], dim=1)[:, 1:]
        return torch.from_numpy(self._following(state.numpy())), state

    def reorder(self, state: Tensor, order: Tensor) -> Tensor:
        """The rows of a state in this order."""
        return state.index_select(0, order)

    def _following(self, before: Numbers) -> Floats:
        """log P of the next token after `before` (batch, length), in which −1
        means none; shape (batch, vocabulary)."""
        batch, length = before.shape
        log_p = np.tile(self.log_p[0][: self.symbols.size], (batch, 1))
        following = before.copy()  # numbers of the n-grams that end at each token
        for order in range(2, length + 2):
            if order > 2:
                following = self.index.find(order - 1, following[:, :-1], before[:, order - 2 :])
            contexts = following[:, -1]
            if self._to_uniform:
                present = before[:, length + 1 - order] >= 0
                log_p[present] = np.where(
                    self.symbols.predicted[: self.symbols.size], self._uniform, -np.inf
                )
            log_p += picked(self.back_off[order - 2], contexts)[:, None]
            rows, numbers = self._continuing(order, contexts)
            words = self.index.keys[order - 2][numbers] % self.symbols.width
            log_p[rows, words] = self.log_p[order - 1][numbers]
        return log_p * LOG_10

    def _continuing(self, order: int, contexts: Numbers) -> tuple[Numbers, Numbers]:
        """The n-grams that continue each context: the index of the context, and the number of the
        n-gram."""
        keys, width = self.index.keys[order - 2], self.symbols.width
        first = np.searchsorted(keys, contexts * width)
        count = np.searchsorted(keys, (contexts + 1) * width) - first
        rows = np.repeat(np.arange(len(contexts)), count)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
        return rows, np.repeat(first, count) + within
