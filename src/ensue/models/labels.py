"""The labels of a training part, and those of other parts by the same numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ensue.data.vocabulary import Vocabulary
from ensue.errors import DataError
from ensue.models.collect import Collected, Numbers, counts_of

MOST_LISTED = 10


def learned_labels(train: Collected, numbers: Numbers) -> Vocabulary:
    """The labels that the training part has: two or more."""
    assert train.labels is not None
    labels = Vocabulary.closed(counts_of(train.labels, numbers.labels))
    if len(labels) < 2:
        found = f"one label only, {labels.tokens[0]!r}" if len(labels) else "no label at all"
        raise DataError(
            f"the training part has {found}: expected at least two. Is this the right column?"
        )
    return labels


def label_numbers(part: Collected, numbers: Numbers, labels: Vocabulary) -> NDArray[np.int64]:
    """The number of each label of the part, row behind row; a label that training has not seen
    is an error that names its rows."""
    assert part.labels is not None
    names = list(numbers.labels)
    table = np.array([labels.numbers.get(name, -1) for name in names], np.int64)
    found = table[part.labels.values] if names else np.zeros(0, np.int64)
    wrong = np.flatnonzero(found < 0)
    if len(wrong):
        rows = np.searchsorted(part.labels.starts, wrong[:MOST_LISTED], side="right") - 1
        lines = [
            f"  {part.names[int(row)]}: label {names[part.labels.values[at]]!r}"
            for row, at in zip(rows, wrong, strict=False)
        ]
        more = [f"  and {len(wrong) - len(lines):,} more"] if len(wrong) > len(lines) else []
        known = ", ".join(labels.tokens[:MOST_LISTED]) + ", …" * (len(labels) > MOST_LISTED)
        raise DataError(
            "\n".join(
                [
                    f"{len(wrong):,} label{'s' * (len(wrong) > 1)} that the training part does "
                    f"not have; expected one of: {known}",
                    *lines,
                    *more,
                    "Correct the labels, leave these rows out, or add such rows to the "
                    "training part",
                ]
            )
        )
    return found
