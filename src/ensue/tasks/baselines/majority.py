"""Majority baselines: the most frequent class, or the most frequent label of each word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged
from ensue.errors import DataError
from ensue.tasks.declarations import AS_ARRAY, Range, Shape


def majority_class(targets: NDArray[np.int64]) -> int:
    """The most frequent class; among equals, the first."""
    if not len(targets):
        raise DataError("targets: expected at least one row to find the most frequent class, got 0")
    return int(np.bincount(targets).argmax())


@dataclass(frozen=True)
class MajorityLabel:
    """The most frequent label of each word in the training data; unseen words get the most frequent
    label overall."""

    by_word: Annotated[
        NDArray[np.int64],
        Shape("word_count"),
        Range(low=0, high=lambda model: len(model.labels) - 1),
    ]
    overall: Annotated[int, AS_ARRAY, Range(low=0, high=lambda model: len(model.labels) - 1)]

    @classmethod
    def fitted(cls, words: Ragged, targets: Ragged, word_count: int) -> MajorityLabel:
        """Fits the baseline. words: indices below word_count; targets: a label for each word."""
        overall = majority_class(targets.values)
        labels = int(targets.values.max()) + 1
        pairs, times = np.unique(
            words.values.astype(np.int64) * labels + targets.values, return_counts=True
        )
        word, label = np.divmod(pairs, labels)
        order = np.lexsort((-label, times, word))  # for each word, the most frequent comes last
        by_word = np.full(word_count, overall, np.int64)
        by_word[word[order]] = label[order]
        return cls(by_word, overall)

    def label(self, words: Ragged) -> Ragged:
        """The labels of these words."""
        return Ragged(self.by_word[words.values], words.starts)
