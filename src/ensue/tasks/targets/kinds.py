"""The kinds of target by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensue.data.series import is_number, number_of
from ensue.tasks.rows.part import LabelledPart, counts_of
from ensue.tasks.targets.classes import ClassTarget, SeveralTarget
from ensue.tasks.targets.numbers import NumberTarget
from ensue.tasks.targets.target import Target

FEW_NUMBERS = 20  # maximum different integers of a target that may be classes

TARGETS: dict[str, type[Target]] = {
    target.kind: target for target in (NumberTarget, ClassTarget, SeveralTarget)
}


def numeric_kinds() -> list[str]:
    """The targets whose labels are numbers."""
    return [kind for kind, target in TARGETS.items() if target.numeric]


def target_kind(train: LabelledPart) -> str:
    """The kind of target that fits the labels."""
    assert train.labels is not None
    if (train.labels.lengths != 1).any():
        return SeveralTarget.kind
    texts = list(counts_of(train.labels, train.numbers.labels))
    return NumberTarget.kind if look_like_numbers(texts) else ClassTarget.kind


def look_like_numbers(texts: Sequence[str]) -> bool:
    """Whether labels are numbers to predict: all are numbers, with more than a few different ones
    or some that are not integers."""
    if not all(map(is_number, texts)):
        return False
    values = [number_of(text) for text in texts]
    whole = all(value is not None and np.float64(value).is_integer() for value in values)
    return len(values) > FEW_NUMBERS or not whole
