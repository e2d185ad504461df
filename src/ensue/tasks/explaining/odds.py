"""Log-odds, log p/(1 − p): what explanations of labels are in, since they do not saturate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]
LEAST = 1e-300  # a probability counts as no less, so that log-odds are numbers


def odds_of_scores(z: Tensor, label: int) -> Tensor:
    """Of softmax(z)[label], z (…, labels) → (…): z_k − log Σ_{j≠k} exp z_j."""
    others = [k for k in range(z.shape[-1]) if k != label]
    return z[..., label] - z[..., others].logsumexp(-1)


def odds_of(probabilities: Floats, label: int, several: bool = False) -> Floats:
    """Of probabilities (…, labels) → (…); several: each label is there or not by itself."""
    p = probabilities[..., label]
    rest = 1 - p if several else np.delete(probabilities, label, -1).sum(-1)
    return np.asarray(np.log(np.maximum(p, LEAST)) - np.log(np.maximum(rest, LEAST)))


def against_others(labels: int, wanted: Sequence[int], several: bool = False) -> Floats:
    """(labels, wanted): what takes the score of a label, less the mean of all others, from scores
    (…, labels); of several labels the score alone."""
    found = np.zeros((labels, len(wanted)))
    if not several and labels > 1:
        found -= 1 / (labels - 1)
    found[list(wanted), range(len(wanted))] = 1
    return found
