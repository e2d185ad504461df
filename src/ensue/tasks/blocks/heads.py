"""Output distributions: logits to probabilities, and the cost of targets under them.

Costs are negative log-likelihoods, one for each target, not yet summed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    logsigmoid,
)

from ensue.errors import ShapeError, check_rates


class OutputHead(nn.Module, ABC):
    """The meaning of a network's output z. classes: size of z."""

    classes: int

    @abstractmethod
    def cost(self, logits: Tensor, targets: Tensor) -> Tensor:
        """−log p of the targets; shape (rows,)."""


class TargetHead(OutputHead):
    """The cost of any target, such as a number with a predicted variance."""

    def __init__(self, width: int, cost: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.classes, self._cost = width, cost

    def cost(self, logits: Tensor, targets: Tensor) -> Tensor:
        return self._cost(logits, targets)


class Head(OutputHead):
    """The base of heads for classes; smoothing applies only in training."""

    class_weights: Tensor | None

    def __init__(
        self, classes: int, *, smoothing: float = 0.0, class_weights: Tensor | None = None
    ) -> None:
        super().__init__()
        check_rates({"smoothing": smoothing})
        _check_weights(classes, class_weights)
        self.classes, self.smoothing = classes, smoothing
        self.register_buffer("class_weights", class_weights, persistent=False)

    @abstractmethod
    def log_probabilities(self, logits: Tensor) -> Tensor:
        """log p of each class (rows, classes)."""


class CategoricalHead(Head):
    """One class of several: p = softmax(z).

    cost = −Σ_k q_k·w_k·log p_k, with q_k = (1 − ε)·[k = target] + ε/classes for label smoothing ε,
    and w the class weights."""

    def cost(self, logits: Tensor, targets: Tensor) -> Tensor:
        """logits (rows, classes), targets (rows,) → (rows,)."""
        return cross_entropy(
            logits,
            targets,
            self.class_weights,
            reduction="none",
            label_smoothing=self.smoothing if self.training else 0.0,
        )

    def log_probabilities(self, logits: Tensor) -> Tensor:
        return logits.log_softmax(-1)


class BernoulliHead(Head):
    """Several labels, each present or not: p_k = σ(z_k).

    cost = −Σ_k [w_k·q_k·log p_k + (1 − q_k)·log(1 − p_k)], q_k = (1 − ε)·target_k + ε/2."""

    def cost(self, logits: Tensor, targets: Tensor) -> Tensor:
        """logits and targets (rows, labels) → (rows,)."""
        smoothing = self.smoothing if self.training else 0.0
        smoothed = targets * (1 - smoothing) + smoothing / 2
        return binary_cross_entropy_with_logits(
            logits, smoothed, pos_weight=self.class_weights, reduction="none"
        ).sum(-1)

    def log_probabilities(self, logits: Tensor) -> Tensor:
        return logsigmoid(logits)


def _check_weights(classes: int, weights: Tensor | None) -> None:
    if weights is None:
        return
    known = not weights.is_meta  # a network built only for its shapes has no numbers
    if weights.shape != (classes,) or (known and bool((weights <= 0).any())):
        raise ShapeError(
            f"class_weights: expected {classes} numbers > 0, one for each class, "
            f"got {weights.tolist()}"
        )


HEADS: dict[str, type[CategoricalHead] | type[BernoulliHead]] = {
    "categorical": CategoricalHead,
    "bernoulli": BernoulliHead,
}


def balanced(counts: Tensor) -> Tensor:
    """Class weights total/(classes·count), so that all classes have equal weight; a missing class
    has 1."""
    present = counts > 0
    even = counts.sum() / (len(counts) * counts.clamp(min=1))
    return torch.where(present, even, 1.0).to(torch.get_default_dtype())
