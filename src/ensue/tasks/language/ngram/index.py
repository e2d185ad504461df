"""Where n-grams stand in sorted arrays.

An n-gram of k tokens has the key (number of its first k − 1 tokens) · width + last token, and its
number is the place of that key among all of order k, in rising order; a single token's number is
the token itself. So orders nest without hashing, the n-grams that continue a context are
neighbours, and a text is looked up one order after another, all its tokens at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.tasks.language.ngram.symbols import Bounded, NgramSymbols

Numbers = NDArray[np.int64]
BLOCK = 1 << 20


def placed(keys: Numbers, wanted: Numbers) -> Numbers:
    """The place of each wanted key among the rising keys, −1 where it is not there."""
    if not len(keys):
        return np.full(wanted.shape, -1, np.int64)
    # looked for in rising order: what is read is then in the cache, five times as fast
    flat = wanted.ravel()
    rising = np.argsort(flat)
    ordered = flat[rising]
    found = np.minimum(np.searchsorted(keys, ordered), len(keys) - 1)
    found[keys[found] != ordered] = -1
    places = np.empty(len(flat), np.int64)
    places[rising] = found
    return places.reshape(wanted.shape)


def picked(values: NDArray[Any], numbers: Numbers) -> NDArray[np.float64]:
    """The values of these numbers, 0 for the number −1."""
    known = numbers >= 0
    found = np.zeros(numbers.shape)
    found[known] = values[numbers[known]]
    return found


@dataclass(frozen=True)
class NgramIndex:
    """keys: of the orders 2, 3, …"""

    symbols: NgramSymbols
    keys: tuple[Numbers, ...]

    @property
    def order(self) -> int:
        return len(self.keys) + 1

    def size(self, order: int) -> int:
        """How many n-grams have a number; order 0 is the empty context."""
        return (1, self.symbols.width, *map(len, self.keys))[order]

    def upto(self, order: int) -> NgramIndex:
        return NgramIndex(self.symbols, self.keys[: order - 1])

    def contexts(self, order: int) -> Numbers:
        """For each n-gram, the number of all its tokens but the last."""
        if order == 1:
            return np.zeros(self.symbols.width, np.int64)
        return self.keys[order - 2] // self.symbols.width

    def words(self, order: int) -> Numbers:
        """The last token of each n-gram."""
        if order == 1:
            return np.arange(self.symbols.width)
        return self.keys[order - 2] % self.symbols.width

    def find(self, order: int, contexts: Numbers, words: NDArray[Any]) -> Numbers:
        """Numbers of the n-grams "context word", −1 for those that are not there; a context −1
        has none."""
        if order == 1:
            return words.astype(np.int64)
        # the key of context −1 is below 0, and no key is
        return placed(self.keys[order - 2], contexts * self.symbols.width + words)

    def following(self, order: int, text: Bounded, shorter: Numbers) -> tuple[Numbers, Numbers]:
        """For each token of a text: the number of the order − 1 tokens before it, and that of the
        n-gram it ends, −1 where there is none. shorter: the n-grams of order − 1 ended there."""
        contexts = np.full(len(text.tokens), -1, np.int64)
        contexts[1:] = shorter[:-1]  # across two rows too: no n-gram ends with a start
        return contexts, self.find(order, contexts, text.tokens)

    def tails(self) -> list[NDArray[np.int32]]:
        """For order 1, 2, …: the number of each n-gram without its first token."""
        tails = [np.zeros(self.symbols.width, np.int32)]
        for order in range(2, self.order + 1):
            own = np.empty(self.size(order), np.int32)
            keys, width = self.keys[order - 2], self.symbols.width
            for at in range(0, len(keys), BLOCK):
                contexts, words = np.divmod(keys[at : at + BLOCK], width)
                shorter = tails[-1][contexts].astype(np.int64)
                own[at : at + BLOCK] = self.find(order - 1, shorter, words)
            tails.append(own)
        return tails

    def spelled(self, order: int, numbers: Numbers) -> NDArray[np.int32]:
        """(n-grams, order): the tokens of each."""
        tokens = np.empty((len(numbers), order), np.int32)
        for k in range(order, 1, -1):
            numbers, tokens[:, k - 1] = np.divmod(self.keys[k - 2][numbers], self.symbols.width)
        tokens[:, 0] = numbers
        return tokens
