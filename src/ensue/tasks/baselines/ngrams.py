"""The n-grams of encoded texts: listed, and which of them each row has.

An n-gram is known by a 64-bit hash of its word numbers, one list for each n; that two of ten
million share one has a chance of 3 in a million.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.errors import OptionError
from ensue.tasks import checks

Hashes = NDArray[np.uint64]
LONGEST = 8  # words of an n-gram in a file


@dataclass(frozen=True)
class Ngrams:
    """hashes (count,): those of 1 word in rising order, then those of 2, …; the k-th n's stand at
    starts[k] … starts[k + 1]. words (count, longest): the words of each, −1 behind the last."""

    hashes: Hashes
    starts: NDArray[np.int64]
    words: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def longest(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def listed(cls, texts: Ragged, longest: int, min_rows: int = 1) -> tuple[Ngrams, Ragged]:
        """All n-grams of 1 … `longest` words that stand in at least `min_rows` rows, and which
        of them each row has (as `present` gives them)."""
        if longest < 1 or min_rows < 1:
            raise OptionError(
                f"expected longest ≥ 1 and min_rows ≥ 1, got {longest} and {min_rows}"
            )
        hashes, words, places, total = list[Hashes](), [], [], 0
        for n, (own, rows, at) in enumerate(hashed_ngrams(texts, longest), 1):
            order = np.argsort(own, kind="stable")  # equal ones by row, for rows rise
            own, rows = own[order], rows[order]
            new = changes(own)
            once = np.flatnonzero(new | changes(rows))  # each n-gram once in a row
            group = np.cumsum(new)[once] - 1
            kept = np.bincount(group, minlength=int(new.sum())) >= min_rows
            numbers = np.cumsum(kept) - 1 + total
            chosen = kept[group]
            places.append((rows[once[chosen]], numbers[group[chosen]]))
            first = np.flatnonzero(new)[kept]
            hashes.append(own[first])
            words.append(_columns(texts.values, at[order[first]], n, longest))
            total += len(first)
        starts = np.concatenate([[0], np.cumsum([len(h) for h in hashes])])
        found = cls(np.concatenate(hashes), starts, np.concatenate(words))
        return found, found._by_row(places, len(texts))

    def present(self, texts: Ragged) -> Ragged:
        """The numbers of the listed n-grams in each row, rising, each once (int32)."""
        places = []
        for n, (own, rows, _) in enumerate(hashed_ngrams(texts, self.longest)):
            known = self.hashes[self.starts[n] : self.starts[n + 1]]
            if len(known):
                place = np.minimum(np.searchsorted(known, own), len(known) - 1)
                found = known[place] == own
                places.append((rows[found], place[found] + self.starts[n]))
        return self._by_row(places, len(texts))

    def _by_row(
        self, places: list[tuple[NDArray[np.int32], NDArray[np.int64]]], rows: int
    ) -> Ragged:
        """From the row and the number of each n-gram found."""
        size = max(1, len(self))
        keys = np.concatenate(
            [np.empty(0, np.int64), *(size * row.astype(np.int64) + n for row, n in places)]
        )
        keys.sort()
        own, numbers = np.divmod(keys[changes(keys)], size)
        starts = np.zeros(rows + 1, np.int64)
        np.cumsum(np.bincount(own, minlength=rows), out=starts[1:])
        return Ragged(numbers.astype(np.int32), starts)

    def spelled(self, number: int) -> tuple[int, ...]:
        """The word numbers of an n-gram."""
        return tuple(int(w) for w in self.words[number] if w >= 0)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that it is, to be stored by name."""
        return {"hashes": self.hashes, "starts": self.starts, "words": self.words}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], name: str, words: int) -> Ngrams:
        """The inverse of `arrays`. name: what messages call them; words: how many there are."""
        hashes = checks.array((None,), ("uint64",))(arrays.get("hashes"), f"{name}.hashes")
        starts = checks.array((None,), ("int64",), 0, len(hashes))(
            arrays.get("starts"), f"{name}.starts"
        )
        checks.rising(starts, f"{name}.starts", strictly=False)
        if not 2 <= len(starts) <= LONGEST + 1 or starts[0] or starts[-1] != len(hashes):
            raise checks.Unfit(f"{name}.starts: expected 0 … {len(hashes):,}, one for each length")
        for first, last in pairwise(starts.tolist()):
            checks.rising(hashes[first:last], f"{name}.hashes")
        spelled = checks.array((len(hashes), len(starts) - 1), ("int32",), -1, words - 1)
        return cls(hashes, starts, spelled(arrays.get("words"), f"{name}.words"))


def changes(v: NDArray[Any]) -> NDArray[np.bool_]:
    """True where a value is not the one before it; np.unique's hashing is far slower than a sort
    and this."""
    return np.concatenate([np.ones(min(1, len(v)), bool), v[1:] != v[:-1]])


def _columns(words: NDArray[Any], at: NDArray[np.int64], n: int, longest: int) -> NDArray[np.int32]:
    """(n-grams, longest): the n words from each place on, −1 behind them."""
    columns = np.full((len(at), longest), -1, np.int32)
    columns[:, :n] = words[at[:, None] + np.arange(n)]
    return columns


def hashed_ngrams(
    texts: Ragged, longest: int
) -> Iterator[tuple[Hashes, NDArray[np.int32], NDArray[np.int64]]]:
    """For n = 1 … longest: the hash of every n-gram, its row, and where it begins."""
    words = texts.values.astype(np.uint64)
    rows = np.repeat(np.arange(len(texts), dtype=np.int32), texts.lengths)
    at = np.arange(len(words))
    own = np.zeros(len(words), np.uint64)
    for n in range(1, longest + 1):
        inside = at + n - 1 < texts.starts[rows + 1]
        own, rows, at = own[inside], rows[inside], at[inside]
        own = _mixed(own ^ _mixed(words[at + n - 1]))
        yield own, rows, at


def _mixed(v: Hashes) -> Hashes:
    """The finishing steps of splitmix64: every bit of v reaches every bit of the result."""
    v = v + np.uint64(0x9E3779B97F4A7C15)
    v = (v ^ (v >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    v = (v ^ (v >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return v ^ (v >> np.uint64(31))
