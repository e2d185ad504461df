"""The labels of a training part, and of other parts with the same indices."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from ensue.data.vocabulary import Vocabulary
from ensue.errors import DataError
from ensue.tasks.rows.part import LabelledPart, counts_of

MOST_LISTED = 10
SHOWN_LABELS = 6  # of a summary


def learned_labels(train: LabelledPart) -> Vocabulary:
    """The labels of the training part; raises an error unless there are two or more."""
    assert train.labels is not None
    labels = Vocabulary.closed(counts_of(train.labels, train.numbers.labels))
    if len(labels) < 2:
        what = f"one label only, {labels.tokens[0]!r}" if len(labels) else "no label at all"
        raise DataError(
            f"the training part has {what}: expected at least two. Is this the right column?"
        )
    return labels


def unknown_rows(part: LabelledPart, known: Collection[str]) -> NDArray[np.int64]:
    """The rows with a label that is not among the known ones."""
    assert part.labels is not None
    new = np.array([name not in known for name in part.numbers.labels], bool)
    if not len(new):
        return np.zeros(0, np.int64)
    at = np.flatnonzero(new[part.labels.values])
    return np.unique(np.searchsorted(part.labels.starts, at, side="right") - 1)


def known_rows(part: LabelledPart, train: LabelledPart) -> NDArray[np.int64]:
    """The rows whose labels all occur in the training part."""
    if part.labels is None or train.labels is None:
        return np.arange(len(part))
    wrong = unknown_rows(part, counts_of(train.labels, part.numbers.labels).keys())
    return np.setdiff1d(np.arange(len(part)), wrong)


def with_unknown(part: LabelledPart, labels: Vocabulary) -> tuple[str, ...]:
    """The labels of training, then those only in this part, which are never predicted."""
    assert part.labels is not None
    counts = counts_of(part.labels, part.numbers.labels)
    return (*labels.tokens, *sorted(counts.keys() - set(labels.tokens)))


def label_numbers(part: LabelledPart, labels: Sequence[str]) -> NDArray[np.int64]:
    """The index of each label of the part, row by row; raises an error that names the rows of
    unknown labels."""
    assert part.labels is not None
    names, known = list(part.numbers.labels), {name: number for number, name in enumerate(labels)}
    table = np.array([known.get(name, -1) for name in names], np.int64)
    numbers = table[part.labels.values] if names else np.zeros(0, np.int64)
    wrong = np.flatnonzero(numbers < 0)
    if len(wrong):
        rows = np.searchsorted(part.labels.starts, wrong[:MOST_LISTED], side="right") - 1
        lines = [
            f"  {part.names[int(row)]}: label {names[part.labels.values[at]]!r}"
            for row, at in zip(rows, wrong, strict=False)
        ]
        more = [f"  and {len(wrong) - len(lines):,} more"] if len(wrong) > len(lines) else []
        expected = ", ".join(labels[:MOST_LISTED]) + ", …" * (len(labels) > MOST_LISTED)
        raise DataError(
            "\n".join(
                [
                    f"{len(wrong):,} label{'s' * (len(wrong) > 1)} that the training part does "
                    f"not have; expected one of: {expected}",
                    *lines,
                    *more,
                    "Correct the labels, leave these rows out, or add such rows to the "
                    "training part",
                ]
            )
        )
    return numbers


def labels_line(names: Sequence[str]) -> str:
    """The labels of a model, as a line of its summary."""
    more = ", …" if len(names) > SHOWN_LABELS else ""
    return f"{len(names)} labels: {', '.join(names[:SHOWN_LABELS])}{more}"
