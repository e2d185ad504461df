"""Texts as features of a linear model: TF-IDF of n-grams of words, and of letters within words.

x_n = (1 + log count_n)·idf_n, idf_n = 1 + log((1 + rows)/(1 + rows with n)), and each row of each
block is divided by its norm. N-grams are identified by a 64-bit hash.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.tasks.baselines.linear import changes, hashed_ngrams
from ensue.tasks.baselines.sparse import SparseMatrix, side_by_side
from ensue.tasks.declarations import RISING, Derived, Let, Range, Shape, Unfit

WORDS, LETTERS = "words", "letters"
LONGEST = {WORDS: 2, LETTERS: 5}
SHORTEST = {WORDS: 1, LETTERS: 2}
MOST_ENTRIES = 40_000_000  # n-grams of letters; with more, only words
MOST_COLUMNS = 2_000_000  # maximum n-grams of a block; those in more than one row come first
MOST_TELLING = 100.0  # maximum idf: 1 + log of more rows than possible
Hashes = NDArray[np.uint64]
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Texts:
    """Texts as word indices. words: the distinct words; rows: the word indices of each row."""

    words: Sequence[str]
    rows: Ragged


def joined(train: Texts, texts: Texts) -> Texts:
    """The rows of both, which share word indices."""
    values = np.concatenate([train.rows.values, texts.rows.values])
    starts = np.concatenate([train.rows.starts, train.rows.starts[-1] + texts.rows.starts[1:]])
    return Texts(texts.words, Ragged(values, starts))


@dataclass(frozen=True)
class Block:
    """The n-grams of one kind that were seen. hashes: rising; idf: one for each."""

    kind: Annotated[str, Derived("kind")]
    hashes: Annotated[Hashes, Shape(None), RISING]
    idf: Annotated[NDArray[np.float32], Shape("hashes"), Range(above=0, high=MOST_TELLING)]

    @classmethod
    def learn(cls, kind: str, texts: Texts) -> tuple[Block, SparseMatrix]:
        """The block, and the rows that it was learned from."""
        rows, hashes, counts = _NGRAMS[kind](texts)
        order = np.argsort(hashes, kind="stable")
        new = changes(hashes[order])
        numbers = np.empty(len(hashes), np.int64)
        numbers[order] = np.cumsum(new) - 1
        known, many = hashes[order[new]], len(texts.rows)
        rows, numbers, counts = _counted(rows, numbers, counts, len(known))
        in_rows = np.bincount(numbers, minlength=len(known))
        if len(known) > MOST_COLUMNS:
            often = in_rows > 1
            frequent = often[numbers]
            rows, numbers, counts = (
                rows[frequent],
                (np.cumsum(often) - 1)[numbers[frequent]],
                counts[frequent],
            )
            known, in_rows = known[often], in_rows[often]
        block = cls(kind, known, (1 + np.log((1 + many) / (1 + in_rows))).astype(np.float32))
        return block, block._weighted(rows, numbers, counts, many)

    def take(self, columns: Whole) -> Block:
        """The n-grams of these columns, rising."""
        return Block(self.kind, self.hashes[columns], self.idf[columns])

    def matrix(self, texts: Texts) -> SparseMatrix:
        rows, hashes, counts = _NGRAMS[self.kind](texts)
        place = np.minimum(np.searchsorted(self.hashes, hashes), max(len(self.hashes) - 1, 0))
        known = self.hashes[place] == hashes if len(self.hashes) else np.zeros(len(place), bool)
        counted = _counted(rows[known], place[known], counts[known], len(self.hashes))
        return self._weighted(*counted, len(texts.rows))

    def _weighted(self, rows: Whole, numbers: Whole, counts: Whole, many: int) -> SparseMatrix:
        values = (1 + np.log(counts)) * self.idf[numbers]
        norms = np.sqrt(np.bincount(rows, values**2, minlength=many))
        starts = np.zeros(many + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=many), out=starts[1:])
        scaled = (values / norms[rows]).astype(np.float32)
        return SparseMatrix(Ragged(numbers.astype(np.int32), starts), scaled, len(self.hashes))


@dataclass(frozen=True)
class TextFeatures:
    """The features of texts: the concatenation of one or both blocks."""

    words: Annotated[Block | None, Let(kind=lambda features: WORDS)] = None
    letters: Annotated[Block | None, Let(kind=lambda features: LETTERS)] = None

    def check_saved(self) -> None:
        if not self.blocks:
            raise Unfit("missing", f"{WORDS}.hashes")

    @classmethod
    def of(cls, blocks: Iterable[Block]) -> TextFeatures:
        return cls(**{block.kind: block for block in blocks})

    @classmethod
    def learn(cls, texts: Texts, kinds: Sequence[str]) -> tuple[TextFeatures, SparseMatrix]:
        learned = [Block.learn(kind, texts) for kind in kinds]
        return cls.of(block for block, _ in learned), side_by_side([x for _, x in learned])

    @property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(block for block in (self.words, self.letters) if block is not None)

    def matrix(self, texts: Texts) -> SparseMatrix:
        return side_by_side([block.matrix(texts) for block in self.blocks])

    def __len__(self) -> int:
        return sum(len(block.hashes) for block in self.blocks)


def few_enough(texts: Texts) -> bool:
    """Whether the letters of all words can be counted in memory."""
    lengths = np.fromiter(map(len, texts.words), np.int64, len(texts.words))
    sizes = LONGEST[LETTERS] - SHORTEST[LETTERS] + 1
    return int(lengths[texts.rows.values].sum()) * sizes <= MOST_ENTRIES


def spelled_ngrams(texts: Texts, hashes: Hashes) -> dict[int, str]:
    """The spellings, in the texts, of the n-grams of words with these hashes (rising)."""
    ngrams: dict[int, str] = {}
    for n, (hashed, _, at) in enumerate(hashed_ngrams(hashed_words(texts), LONGEST[WORDS]), 1):
        place = np.minimum(np.searchsorted(hashes, hashed), max(len(hashes) - 1, 0))
        matches = np.flatnonzero(hashes[place] == hashed) if len(hashes) else np.zeros(0, np.int64)
        for k in matches:
            if int(hashed[k]) not in ngrams:
                words = texts.rows.values[at[k] : at[k] + n]
                ngrams[int(hashed[k])] = " ".join(texts.words[word] for word in words)
    return ngrams


def hashed_words(texts: Texts) -> Ragged:
    """A hash for each word of the rows."""
    table = np.fromiter(map(_hash, texts.words), np.uint64, len(texts.words))
    return Ragged(table[texts.rows.values], texts.rows.starts)


def _counted(rows: Whole, numbers: Whole, counts: Whole, width: int) -> tuple[Whole, Whole, Whole]:
    """Row, index and count of every n-gram, each once per row, in rising order."""
    keys = rows * max(width, 1) + numbers
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    once = np.flatnonzero(changes(keys))
    total = np.add.reduceat(counts[order], once) if len(once) else counts
    return *np.divmod(keys[once], max(width, 1)), total


def _word_ngrams(texts: Texts) -> tuple[Whole, Hashes, Whole]:
    """Row, hash and count of every n-gram of words; equal ones are not yet merged."""
    ngrams = list(hashed_ngrams(hashed_words(texts), LONGEST[WORDS]))
    hashes = np.concatenate([part_hashes for part_hashes, _, _ in ngrams])
    rows = np.concatenate([row_numbers for _, row_numbers, _ in ngrams]).astype(np.int64)
    return rows, hashes, np.ones(len(rows), np.int64)


def _letter_ngrams(texts: Texts) -> tuple[Whole, Hashes, Whole]:
    """Row, hash and count of the n-grams of letters, for each row's distinct words with a space at
    both ends."""
    spaced = "".join(f" {word} " for word in texts.words)
    codes = np.frombuffer(spaced.encode("utf-32-le", "surrogatepass"), np.uint32)
    starts = np.cumsum([0, *(len(word) + 2 for word in texts.words)])
    sizes = enumerate(hashed_ngrams(Ragged(codes, starts), LONGEST[LETTERS]), 1)
    long_enough = [(hashes, word) for n, (hashes, word, _) in sizes if n >= SHORTEST[LETTERS]]
    word = np.concatenate([words for _, words in long_enough])
    order = np.argsort(word, kind="stable")
    counts = np.bincount(word, minlength=len(texts.words))
    ngrams = Ragged(
        np.concatenate([hashes for hashes, _ in long_enough])[order],
        np.concatenate([[0], np.cumsum(counts)]),
    )
    many = max(len(texts.words), 1)
    row = np.repeat(np.arange(len(texts.rows)), texts.rows.lengths)
    keys = np.sort(row * many + texts.rows.values)
    once = np.flatnonzero(changes(keys))
    times = np.diff(np.append(once, len(keys)))
    row, number = np.divmod(keys[once], many)
    spread = ngrams.take(number)
    return np.repeat(row, spread.lengths), spread.values, np.repeat(times, spread.lengths)


def _hash(word: str) -> int:
    """A hash that is the same on every machine."""
    encoded = word.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(encoded, digest_size=8).digest(), "little")


_NGRAMS = {WORDS: _word_ngrams, LETTERS: _letter_ngrams}
