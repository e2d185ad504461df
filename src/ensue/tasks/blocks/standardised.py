"""A pooled vector in units of its own spread, for a head that is to learn in few updates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from ensue.training.devices import device_of_weights, moved

ROWS = 512  # that means and spreads are taken from
LEAST_SPREAD = 1e-3  # of a feature that hardly varies
STANDARDISED = (
    "The pooled vector is standardised by its mean and spread over training rows, as the network "
    "begins; a training that begins from a base does so."
)


class Standardised(nn.Module):
    """(v − mean) / spread, feature by feature; mean and spread do not learn."""

    mean: Tensor
    spread: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("spread", torch.ones(width))

    def forward(self, v: Tensor) -> Tensor:
        return (v - self.mean) / self.spread

    def settle(self, seen: Tensor) -> None:
        """mean and spread of seen (rows, width)."""
        self.mean.copy_(seen.mean(0))
        self.spread.copy_(seen.std(0, correction=0).clamp(min=LEAST_SPREAD))


class Batches(Protocol):
    """The rows of a training, in an order that follows from its seed."""

    def batches(self, epoch: int) -> Sequence[Any]: ...

    def batch(self, rows: Any) -> Any: ...


def settle_spreads(network: nn.Module, source: Batches) -> None:
    """Every `Standardised` of a network has the mean and the spread of what reaches it, over the
    first rows of the training; without dropout, before anything has learned."""
    if not any(isinstance(module, Standardised) for module in network.modules()):
        return
    device, rows = device_of_weights(network), 0
    with _seen(network) as seen, torch.no_grad():
        for numbers in source.batches(0):
            network(moved(source.batch(numbers), device), {})
            rows += len(numbers)
            if rows >= ROWS:
                break
    for module, found in seen.items():
        if found:
            module.settle(torch.cat(found))


@contextmanager
def _seen(network: nn.Module) -> Iterator[dict[Standardised, list[Tensor]]]:
    """What reaches the `Standardised` of a network that is being evaluated."""
    found: dict[Standardised, list[Tensor]] = {
        own: [] for own in network.modules() if isinstance(own, Standardised)
    }
    hooks = [
        own.register_forward_pre_hook(lambda module, given: found[module].append(given[0]))
        for own in found
    ]
    learning = network.training
    network.eval()
    try:
        yield found
    finally:
        network.train(learning)
        for hook in hooks:
            hook.remove()
