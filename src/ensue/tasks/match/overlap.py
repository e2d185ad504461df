"""What a linear model reads of two texts: the words of each side, words that both have, and how
much they overlap — as the words of one text, so that n-grams of it are features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.data.vocabulary import Vocabulary
from ensue.tasks.rows.inputs import vocabulary_rows
from ensue.tasks.rows.part import Part, renumbered

BINS = 10  # of a share


def overlap_numbers(words: Vocabulary) -> int:
    """How many token numbers `overlap_rows` gives."""
    return 3 * len(words) + 3 + 2 * BINS


def overlap_rows(part: Part, words: Vocabulary) -> Ragged:
    """Token numbers of both sides behind one another. With V words: those of the first side as
    they are, of the second + V, in both + 2·V, and then the borders and the shares of words that
    the other side has, in steps of a tenth."""
    assert part.second is not None
    first = vocabulary_rows(part, words.numbers)
    second = renumbered(part.second, part.numbers.tokens, words.numbers)
    count = len(words)
    rows = [_row(first.row(k), second.row(k), count) for k in range(len(part))]
    return Ragged.of(rows, np.int32)


def _row(first: NDArray[np.int32], second: NDArray[np.int32], count: int) -> list[int]:
    both = np.intersect1d(first, second)
    border = 3 * count
    shares = [border + 1 + _bin(len(both), len(np.unique(first)))]
    shares.append(border + 2 + BINS + _bin(len(both), len(np.unique(second))))
    return [
        *first.tolist(),
        border,
        *(second + count).tolist(),
        border,
        *(both + 2 * count).tolist(),
        border,
        *shares,
    ]


def _bin(part: int, whole: int) -> int:
    return round(BINS * part / whole) if whole else 0
