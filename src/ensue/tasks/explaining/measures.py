"""What of an answer is explained, for each kind of target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ensue.errors import OptionError, unknown

Floats = NDArray[np.float64]
Outputs = Sequence[Tensor]  # z of each member, (rows, width)
THRESHOLD = 0.5  # probability from which a label counts as there
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


class ExplainedOutput(NamedTuple):
    """An answer that is explained. number: of its label or output; step: from 0 on, None where the
    whole row has one answer."""

    name: str
    number: int
    probability: float | None
    step: int | None = None


class Measure(Protocol):
    """name: as explanations call it; of_linear: the same of what a linear model says of a part."""

    name: str
    of_linear: str

    def explained(self, outputs: Outputs, label: str | None) -> list[ExplainedOutput]:
        """The answer to a row, from the outputs z (1, width) of the members; or the label that is
        named."""
        ...

    def whole(self, outputs: Outputs, explained: Sequence[ExplainedOutput]) -> Floats:
        """(rows, answers) of all members together."""
        ...

    def of_network(self, z: Tensor, explained: Sequence[ExplainedOutput]) -> Tensor:
        """(rows, answers) of the outputs z (rows, width) of one."""
        ...


class ExpectedNumber:
    """The expected number. expected: (rows, 1) of the outputs of all members, in units of the
    data."""

    name = of_linear = "value"

    def __init__(self, expected: Callable[[Outputs], Tensor]) -> None:
        self._expected = expected

    def explained(self, outputs: Outputs, label: str | None) -> list[ExplainedOutput]:
        if label is not None:
            raise OptionError("--label: expected a run that predicts labels, got one of numbers")
        return [ExplainedOutput(f"{float(self._expected(outputs)[0, 0]):.6g}", 0, None)]

    def whole(self, outputs: Outputs, explained: Sequence[ExplainedOutput]) -> Floats:
        return np.asarray(self._expected(outputs).double().numpy())

    def of_network(self, z: Tensor, explained: Sequence[ExplainedOutput]) -> Tensor:
        return self._expected([z])


def labels_there(p: Floats) -> list[int]:
    """Of probabilities (labels,): those more probable than not, the most probable first; at least
    one."""
    order: list[int] = np.argsort(-p, kind="stable").tolist()
    return [k for k in order if p[k] > THRESHOLD] or order[:1]


def label_number(label: str, names: Sequence[str]) -> int:
    if label not in names:
        raise unknown("label", label, names)
    return names.index(label)
