"""Counts of the n-grams of a text.

Order k is sorted from the numbers of order k − 1. For each token of the text this needs a key of 8
bytes, in addition to the token (4) and its number (4); each stored n-gram costs 12 bytes, and 12
more while its order is counted. For random words, whose longer n-grams nearly all differ, orders
1 … 5 need at most 64 bytes per token.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.errors import DataError, OptionError
from ensue.tasks.language.ngram.symbols import Bounded, NgramSymbols, bounded

Numbers = NDArray[np.int64]
BLOCK = 1 << 20


def placed(keys: Numbers, numbers: Numbers) -> Numbers:
    """The position of each given key among the rising keys, −1 if it is missing."""
    if not len(keys):
        return np.full(numbers.shape, -1, np.int64)
    # searched in rising order, which is five times as fast because of the cache
    flat = numbers.ravel()
    rising = np.argsort(flat)
    ordered = flat[rising]
    positions = np.minimum(np.searchsorted(keys, ordered), len(keys) - 1)
    positions[keys[positions] != ordered] = -1
    places = np.empty(len(flat), np.int64)
    places[rising] = positions
    return places.reshape(numbers.shape)


def picked(values: NDArray[Any], numbers: Numbers) -> NDArray[np.float64]:
    """The values at these indices, 0 for the index −1."""
    known = numbers >= 0
    result = np.zeros(numbers.shape)
    result[known] = values[numbers[known]]
    return result


@dataclass(frozen=True)
class NgramIndex:
    """An index of n-grams. keys: the keys of the orders 2, 3, …"""

    symbols: NgramSymbols
    keys: tuple[Numbers, ...]

    @property
    def order(self) -> int:
        return len(self.keys) + 1

    def size(self, order: int) -> int:
        """The number of n-grams of an order; order 0 is the empty context."""
        return (1, self.symbols.width, *map(len, self.keys))[order]

    def upto(self, order: int) -> NgramIndex:
        return NgramIndex(self.symbols, self.keys[: order - 1])

    def contexts(self, order: int) -> Numbers:
        """The number of each n-gram's context, which is all its tokens except the last."""
        if order == 1:
            return np.zeros(self.symbols.width, np.int64)
        return self.keys[order - 2] // self.symbols.width

    def words(self, order: int) -> Numbers:
        """The last token of each n-gram."""
        if order == 1:
            return np.arange(self.symbols.width)
        return self.keys[order - 2] % self.symbols.width

    def find(self, order: int, contexts: Numbers, words: NDArray[Any]) -> Numbers:
        """Numbers of the n-grams "context word", −1 for missing ones; a context −1 has none."""
        if order == 1:
            return words.astype(np.int64)
        # the key of context −1 is below 0, and no key is
        return placed(self.keys[order - 2], contexts * self.symbols.width + words)

    def following(self, order: int, text: Bounded, shorter: Numbers) -> tuple[Numbers, Numbers]:
        """Two numbers for each token of a text, −1 if there is none: of its context (the order − 1
        tokens before it), and of the n-gram that ends with it. shorter: numbers of the n-grams of
        order − 1 that end with each token."""
        contexts = np.full(len(text.tokens), -1, np.int64)
        contexts[1:] = shorter[:-1]  # across two rows too: no n-gram ends with a start
        return contexts, self.find(order, contexts, text.tokens)

    def tails(self) -> list[NDArray[np.int32]]:
        """A list over orders 1, 2, …: the number of each n-gram without its first token."""
        tails = [np.zeros(self.symbols.width, np.int32)]
        for order in range(2, self.order + 1):
            numbers_of_tails = np.empty(self.size(order), np.int32)
            keys, width = self.keys[order - 2], self.symbols.width
            for at in range(0, len(keys), BLOCK):
                contexts, words = np.divmod(keys[at : at + BLOCK], width)
                shorter = tails[-1][contexts].astype(np.int64)
                numbers_of_tails[at : at + BLOCK] = self.find(order - 1, shorter, words)
            tails.append(numbers_of_tails)
        return tails

    def spelled(self, order: int, numbers: Numbers) -> NDArray[np.int32]:
        """The tokens of each n-gram (n-grams, order)."""
        tokens = np.empty((len(numbers), order), np.int32)
        for k in range(order, 1, -1):
            numbers, tokens[:, k - 1] = np.divmod(self.keys[k - 2][numbers], self.symbols.width)
        tokens[:, 0] = numbers
        return tokens


MOST_TOKENS = 2**31 - 1
Counts = NDArray[np.int32]


@dataclass(frozen=True)
class NgramCounts:
    """Counts of n-grams: counts[k − 1][number] is the count of an n-gram of k tokens. The start of
    a row is only context: as a single token its count is 0."""

    index: NgramIndex
    counts: tuple[Counts, ...]

    @classmethod
    def of(cls, rows: Ragged, symbols: NgramSymbols, order: int) -> NgramCounts:
        """All n-grams of 1 … `order` tokens, none of them across two rows."""
        check_order(order)
        if len(rows.values) + 2 * len(rows) > MOST_TOKENS:
            raise DataError(
                f"expected at most {MOST_TOKENS:,} tokens with the boundaries of rows, got "
                f"{len(rows.values) + 2 * len(rows):,}: count a part of the text"
            )
        text = bounded(rows, symbols)
        single = np.bincount(text.tokens, minlength=symbols.width).astype(np.int32)
        single[symbols.start] = 0
        keys, counts = list[Numbers](), [single]
        numbers = text.tokens.copy()
        buffer = np.empty(len(numbers) if order > 1 else 0, np.int64)
        for k in range(2, order + 1):
            counted, often = _counted(_keys(numbers, text, symbols, buffer))
            keys.append(counted)
            counts.append(often)
            if k < order:
                _renumber(numbers, text, symbols, counted)
        return cls(NgramIndex(symbols, tuple(keys)), tuple(counts))

    @property
    def order(self) -> int:
        return self.index.order

    def upto(self, order: int) -> NgramCounts:
        """Only the orders 1 … `order`."""
        if not 1 <= order <= self.order:
            raise OptionError(f"order: expected 1 … {self.order}, got {order}")
        return NgramCounts(self.index.upto(order), self.counts[:order])

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of distinct n-grams of 1, 2, … tokens."""
        return (int(np.count_nonzero(self.counts[0])), *map(len, self.index.keys))


def check_order(order: int) -> None:
    if order < 1:
        raise OptionError(f"order: expected a number ≥ 1, got {order}")


def totals(index: NgramIndex, order: int, values: NDArray[Any]) -> NDArray[np.float64]:
    """Sums of values over the n-grams that continue a context, for each context of an order."""
    contexts = index.contexts(order)
    sums = np.bincount(contexts, weights=values, minlength=index.size(order - 1))
    return sums.astype(np.float64, copy=False)


def _keys(numbers: Counts, text: Bounded, symbols: NgramSymbols, buffer: Numbers) -> Numbers:
    """Writes the key of every n-gram in the text into the buffer. numbers: for each token, the
    number of the n-gram, one token shorter, that ends there; −1 for none."""
    filled = 0
    for first, stop in _blocks(len(numbers)):
        contexts = numbers[first - 1 : stop - 1]
        words = text.tokens[first:stop]
        present = (contexts >= 0) & (words != symbols.start)
        keys = contexts[present].astype(np.int64) * symbols.width + words[present]
        buffer[filled : filled + len(keys)] = keys
        filled += len(keys)
    return buffer[:filled]


def _counted(keys: Numbers) -> tuple[Numbers, Counts]:
    """The distinct keys, rising, and their counts. Sorts in place."""
    keys.sort()
    new = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=new[1:])
    first = np.flatnonzero(new)
    often = np.full(len(first), len(keys), np.int32)
    often[:-1] = first[1:]
    often -= first.astype(np.int32)
    return keys[first], often


def _renumber(numbers: Counts, text: Bounded, symbols: NgramSymbols, keys: Numbers) -> None:
    """Replaces these numbers by numbers of the next order, from the last block to the first,
    because a token needs the number before it."""
    for first, stop in reversed(_blocks(len(numbers))):
        contexts = numbers[first - 1 : stop - 1].astype(np.int64)
        numbers[first:stop] = placed(keys, contexts * symbols.width + text.tokens[first:stop])
    numbers[:1] = -1  # the first token is a start


def _blocks(count: int) -> list[tuple[int, int]]:
    """Ranges that cover 1 … count − 1."""
    return list(pairwise([*range(1, count, BLOCK), count]))
