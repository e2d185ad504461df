"""What metrics are computed from: answers beside gold, by kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.data.ragged import Ragged


class ClassAnswers(NamedTuple):
    """gold, predicted: class numbers (rows,), or zeros and ones (rows, labels) where there may be
    several labels at once; probabilities (rows, classes)."""

    gold: NDArray[np.int64]
    predicted: NDArray[np.int64]
    probabilities: NDArray[np.float64]


class StepAnswers(NamedTuple):
    """gold, predicted: a label number for each step; names: of the labels; cost: mean of a step."""

    gold: Ragged
    predicted: Ragged
    names: Sequence[str]
    cost: float


class NumberAnswers(NamedTuple):
    """gold, predicted (rows,), in the units of the data; costs (rows,): −log p of each."""

    gold: NDArray[np.float64]
    predicted: NDArray[np.float64]
    costs: NDArray[np.float64]


class TokenAnswers(NamedTuple):
    """cost: the mean −log p of a token."""

    cost: float


class TextAnswers(NamedTuple):
    """predicted, references: texts; tokenize, lowercase: as sacrebleu has them; cost: the mean
    −log p of a token."""

    predicted: Sequence[str]
    references: Sequence[str]
    tokenize: str
    lowercase: bool
    cost: float
