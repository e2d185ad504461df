"""The explained value of an answer, for each kind of target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ensue.errors import OptionError, unknown

Floats = NDArray[np.float64]
Outputs = Sequence[Tensor]  # z of each member, (rows, width)
THRESHOLD = 0.5  # probability from which a label counts as present
LEAST = 1e-300  # minimum probability, so that log-odds are finite


def odds_of_scores(z: Tensor, label: int) -> Tensor:
    """Log-odds of softmax(z)[label], z (…, labels) → (…): z_k − log Σ_{j≠k} exp z_j."""
    others = [k for k in range(z.shape[-1]) if k != label]
    return z[..., label] - z[..., others].logsumexp(-1)


def odds_of(probabilities: Floats, label: int, several: bool = False) -> Floats:
    """Log-odds of probabilities (…, labels) → (…); several: labels are independent."""
    p = probabilities[..., label]
    rest = 1 - p if several else np.delete(probabilities, label, -1).sum(-1)
    return np.asarray(np.log(np.maximum(p, LEAST)) - np.log(np.maximum(rest, LEAST)))


class ExplainedOutput(NamedTuple):
    """An explained answer. number: index of its label or output; step: its number, from 0, None if
    the whole row has one answer."""

    name: str
    number: int
    probability: float | None
    step: int | None = None


class Measure(Protocol):
    """The explained value. name: its name in explanations; of_linear: the same value for a linear
    model."""

    name: str
    of_linear: str

    def explained(self, outputs: Outputs, label: str | None) -> list[ExplainedOutput]:
        """The explained answers for a row, from the outputs z (1, width) of the members; or the
        named label."""
        ...

    def whole(self, outputs: Outputs, explained: Sequence[ExplainedOutput]) -> Floats:
        """The measure of all members together; shape (rows, answers)."""
        ...

    def of_network(self, z: Tensor, explained: Sequence[ExplainedOutput]) -> Tensor:
        """The measure of the outputs z (rows, width) of one network; shape (rows, answers)."""
        ...


class ExpectedNumber:
    """The expected number. expected: maps the outputs of all members to (rows, 1), in units of the
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
    """The labels with a probability above ½, most probable first; at least one. p: (labels,)."""
    order: list[int] = np.argsort(-p, kind="stable").tolist()
    return [k for k in order if p[k] > THRESHOLD] or order[:1]


def label_number(label: str, names: Sequence[str]) -> int:
    if label not in names:
        raise unknown("label", label, names)
    return names.index(label)
