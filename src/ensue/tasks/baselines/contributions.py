"""Contributions of each word of a text to the scores of a linear model.

A feature n contributes x_n·w_n. This is divided equally among its occurrences in the text, and the
share of an occurrence among its words; letters belong to their word. So the contributions of words
and the bias sum to the score.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.tasks.baselines.linear import Ngrams, hashed_ngrams
from ensue.tasks.baselines.text_features import (
    LETTERS,
    LONGEST,
    SHORTEST,
    WORDS,
    Block,
    Texts,
    hashed_words,
)
from ensue.tasks.baselines.text_linear import TextLinear

Floats = NDArray[np.float64]


class Occurrence(NamedTuple):
    """An occurrence of a feature. column: its column of the weights; first, words: position and
    number of its words; text: its spelling."""

    column: int
    first: int
    words: int
    text: str


class Contributions(NamedTuple):
    """by_word (words, outputs); features: (outputs,) of each, by its spelling."""

    by_word: Floats
    features: Mapping[str, Floats]


def text_contributions(model: TextLinear, texts: Texts, directions: Floats) -> Contributions:
    """The contributions for the only row of texts. directions (classes, outputs): scores @
    directions are divided among words."""
    row = model.features.matrix(texts)
    values = dict(zip(row.columns.row(0).tolist(), row.values.tolist(), strict=True))
    contributions, begin = list[Occurrence](), 0
    for block in model.features.blocks:
        contributions += _PLACES[block.kind](block, texts, begin)
        begin += len(block.hashes)
    weights = model.weights.astype(np.float64) @ directions
    return _shared(contributions, {c: x * weights[c] for c, x in values.items()}, texts, directions)


def ngram_contributions(
    ngrams: Ngrams, weights: NDArray[np.float32], texts: Texts, directions: Floats
) -> Contributions:
    """The contributions for binary n-grams, weights (n-grams, classes)."""
    ngrams_found = []
    for n, (hashes, _, at) in enumerate(hashed_ngrams(texts.rows, ngrams.longest), 1):
        begin, end = ngrams.starts[n - 1], ngrams.starts[n]
        ngrams_found += list(_known(hashes, at, n, ngrams.hashes[begin:end], int(begin), texts))
    each = weights.astype(np.float64) @ directions
    return _shared(
        ngrams_found,
        {ngram.column: each[ngram.column] for ngram in ngrams_found},
        texts,
        directions,
    )


def _shared(
    ngrams: list[Occurrence], values: Mapping[int, Floats], texts: Texts, directions: Floats
) -> Contributions:
    places: dict[int, int] = {}
    for ngram in ngrams:
        places[ngram.column] = places.get(ngram.column, 0) + 1
    by_word = np.zeros((len(texts.rows.values), directions.shape[1]))
    features: dict[str, Floats] = {}
    for ngram in ngrams:
        share = values[ngram.column] / places[ngram.column]
        by_word[ngram.first : ngram.first + ngram.words] += share / ngram.words
        features[ngram.text] = features.get(ngram.text, 0.0) + share
    return Contributions(by_word, features)


# --- where features stand ------------------------------------------------------------------------


def _word_places(block: Block, texts: Texts, begin: int) -> Iterator[Occurrence]:
    for n, (hashes, _, at) in enumerate(hashed_ngrams(hashed_words(texts), LONGEST[WORDS]), 1):
        yield from _known(hashes, at, n, block.hashes, begin, texts)


def _known(
    hashes: NDArray[np.uint64],
    at: NDArray[np.int64],
    n: int,
    known: NDArray[np.uint64],
    begin: int,
    texts: Texts,
) -> Iterator[Occurrence]:
    """The known n-grams of words, from their hashes and first positions."""
    for place, first in zip(_places(hashes, known), at.tolist(), strict=True):
        if place >= 0:
            words = texts.rows.values[first : first + n]
            yield Occurrence(begin + place, first, n, " ".join(texts.words[k] for k in words))


def _letter_places(block: Block, texts: Texts, begin: int) -> Iterator[Occurrence]:
    spelled = [f" {texts.words[k]} " for k in texts.rows.values]
    codes = np.frombuffer("".join(spelled).encode("utf-32-le"), np.uint32)
    starts = np.cumsum([0, *map(len, spelled)])
    letters = Ragged(codes, starts)
    for n, (hashes, word, at) in enumerate(hashed_ngrams(letters, LONGEST[LETTERS]), 1):
        if n < SHORTEST[LETTERS]:
            continue
        for place, k, first in zip(
            _places(hashes, block.hashes), word.tolist(), at.tolist(), strict=True
        ):
            if place >= 0:
                inside = first - int(starts[k])
                text = spelled[k][inside : inside + n].replace(" ", "·")
                yield Occurrence(begin + place, k, 1, f"letters {text}")


def _places(hashes: NDArray[np.uint64], known: NDArray[np.uint64]) -> list[int]:
    """The position of each hash among the known ones, in rising order; −1 for others."""
    if not len(known):
        return [-1] * len(hashes)
    at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    places: list[int] = np.where(known[at] == hashes, at, -1).tolist()
    return places


_PLACES = {WORDS: _word_places, LETTERS: _letter_places}
