"""How many words or letters must change to make one sequence of another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged

BLOCK = 256  # rows compared at once


def edit_distances(found: Ragged, wanted: Ragged) -> NDArray[np.int64]:
    """Levenshtein's distance of each row of numbers to its counterpart: insertions, deletions and
    replacements cost 1 each.

    d(i, j) = min(d(i−1, j) + 1, d(i−1, j−1) + (f_i ≠ w_j), d(i, j−1) + 1); for a fixed i the last
    choice is a running minimum over j, so that only i is a loop."""
    distances = np.zeros(len(found), np.int64)
    order = np.argsort(wanted.lengths, kind="stable")
    for first in range(0, len(order), BLOCK):
        rows = order[first : first + BLOCK]
        distances[rows] = _block(found, wanted, rows)
    return distances


def _block(found: Ragged, wanted: Ragged, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    ours, theirs = found.padded(rows, -1), wanted.padded(rows, -2).T  # (time, rows), (rows, time)
    ends, lengths = found.lengths[rows], wanted.lengths[rows]
    columns = np.arange(theirs.shape[1] + 1)
    before = np.broadcast_to(columns, (len(rows), len(columns))).copy()
    distances = np.where(ends == 0, lengths, 0)
    for step, words in enumerate(ours, 1):
        now = before + 1
        now[:, 1:] = np.minimum(now[:, 1:], before[:, :-1] + (theirs != words[:, None]))
        before = np.minimum.accumulate(now - columns, axis=1) + columns
        over = ends == step
        distances[over] = before[over, lengths[over]]
    return distances


def letters_of(texts: Sequence[str]) -> Ragged:
    """Each text as the numbers of its characters."""
    return Ragged.of([[ord(letter) for letter in text] for text in texts], np.int32)
