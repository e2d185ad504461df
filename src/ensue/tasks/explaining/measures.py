"""What of an answer is explained, for each kind of target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.errors import OptionError, unknown
from ensue.tasks.targets.classes import THRESHOLD, ClassTarget, SeveralTarget
from ensue.tasks.targets.numbers import NumberTarget
from ensue.tasks.targets.target import Outputs

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


class Wanted(NamedTuple):
    """An answer that is explained. number: of its label or output; step: from 0 on, None where the
    whole row has one answer."""

    name: str
    number: int
    probability: float | None
    step: int | None = None


class Measure(Protocol):
    """name: as explanations call it."""

    name: str

    def wanted(self, outputs: Outputs, label: str | None) -> list[Wanted]:
        """The answer to a row, from the outputs z (1, width) of the members; or the label that is
        named."""
        ...

    def whole(self, outputs: Outputs, wanted: Sequence[Wanted]) -> Floats:
        """(rows, answers) of all members together."""
        ...

    def of_network(self, z: Tensor, wanted: Sequence[Wanted]) -> Tensor:
        """(rows, answers) of the outputs z (rows, width) of one."""
        ...


class NumberMeasure:
    """The expected number, in units of the data."""

    name = "value"

    def __init__(self, target: NumberTarget) -> None:
        self._target = target

    def wanted(self, outputs: Outputs, label: str | None) -> list[Wanted]:
        if label is not None:
            raise OptionError("--label: expected a run that predicts labels, got one of numbers")
        return [Wanted(f"{float(self._target.means(outputs)[0]):.6g}", 0, None)]

    def whole(self, outputs: Outputs, wanted: Sequence[Wanted]) -> Floats:
        return self._target.means(outputs)[:, None]

    def of_network(self, z: Tensor, wanted: Sequence[Wanted]) -> Tensor:
        return self._target.distribution.mean(z) * self._target.spread + self._target.mean


class ClassMeasure:
    """The log-odds of a class."""

    name = "log-odds"

    def __init__(self, target: ClassTarget) -> None:
        self._target = target

    def wanted(self, outputs: Outputs, label: str | None) -> list[Wanted]:
        p, names = self._target.probabilities(outputs), self._target.labels.tokens
        number = int(self._target.decided(p)[0]) if label is None else label_number(label, names)
        return [Wanted(names[number], number, float(p[0, number]))]

    def whole(self, outputs: Outputs, wanted: Sequence[Wanted]) -> Floats:
        p = self._target.probabilities(outputs)
        return np.stack([odds_of(p, own.number) for own in wanted], 1)

    def of_network(self, z: Tensor, wanted: Sequence[Wanted]) -> Tensor:
        return torch.stack([odds_of_scores(z, own.number) for own in wanted], 1)


class SeveralMeasure:
    """The log-odds of each label that is there; of the most probable one where none is."""

    name = "log-odds"

    def __init__(self, target: SeveralTarget) -> None:
        self._target = target

    def wanted(self, outputs: Outputs, label: str | None) -> list[Wanted]:
        p, names = self._target.probabilities(outputs)[0], self._target.labels.tokens
        numbers = labels_there(p) if label is None else [label_number(label, names)]
        return [Wanted(names[number], number, float(p[number])) for number in numbers]

    def whole(self, outputs: Outputs, wanted: Sequence[Wanted]) -> Floats:
        p = self._target.probabilities(outputs)
        return np.stack([odds_of(p, own.number, several=True) for own in wanted], 1)

    def of_network(self, z: Tensor, wanted: Sequence[Wanted]) -> Tensor:
        return z[:, [own.number for own in wanted]]


def labels_there(p: Floats) -> list[int]:
    """Of probabilities (labels,): those more probable than not, the most probable first; at least
    one."""
    order: list[int] = np.argsort(-p, kind="stable").tolist()
    return [k for k in order if p[k] > THRESHOLD] or order[:1]


def label_number(label: str, names: Sequence[str]) -> int:
    if label not in names:
        raise unknown("label", label, names)
    return names.index(label)


MEASURES: dict[str, Any] = {
    NumberTarget.kind: NumberMeasure,
    ClassTarget.kind: ClassMeasure,
    SeveralTarget.kind: SeveralMeasure,
}
