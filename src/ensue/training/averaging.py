"""The moving average of the weights, and putting other weights in a model's place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor

from ensue.training.trainee import Trainee


def copy_of(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in weights.items()}


class Average:
    """a ← d·a + (1 − d)·w after each update, where d = min(decay, (1 + n) / (10 + n)) at the n-th:
    the first weights are soon forgotten."""

    def __init__(self, weights: Mapping[str, Tensor], decay: float) -> None:
        self.decay, self.weights = decay, copy_of(weights)

    @torch.no_grad()
    def include(self, weights: Mapping[str, Tensor], update: int) -> None:
        """The weights after the update of that number (the first is 1)."""
        decay = min(self.decay, (1 + update) / (10 + update))
        for name, own in self.weights.items():
            if own.is_floating_point():
                own.lerp_(weights[name], 1 - decay)
            else:
                own.copy_(weights[name])


@contextmanager
def in_place(trainee: Trainee, weights: Mapping[str, Tensor] | None) -> Iterator[None]:
    """The model with these weights; its own, bit for bit, afterwards. None: with its own."""
    if weights is None:
        yield
        return
    own = copy_of(trainee.state_dict())
    trainee.load_state_dict(weights)
    try:
        yield
    finally:
        trainee.load_state_dict(own)
