"""Pooling: one vector for a whole sequence, of its real steps only; zero for an empty row.

Each takes y (time, batch, width), final (batch, final width) and lengths (batch).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Protocol

import torch
from pydantic import AfterValidator
from torch import Tensor, nn

from ensue.errors import OptionError, unknown
from ensue.layers.lengths import step_mask
from ensue.settings import Expected
from ensue.training.processes import device_of_weights, moved


class Pool(nn.Module):
    """One way of pooling, with the width of its result."""

    def __init__(self, width: int, final_width: int) -> None:
        super().__init__()
        self.width = width


class Last(Pool):
    """The state after the last real step."""

    def __init__(self, width: int, final_width: int) -> None:
        super().__init__(final_width, final_width)

    def forward(self, y: Tensor, final: Tensor, lengths: Tensor) -> Tensor:
        return final


class Mean(Pool):
    """Σ_t y_t / length."""

    def forward(self, y: Tensor, final: Tensor, lengths: Tensor) -> Tensor:
        to = lengths.to(y.device)
        total = torch.where(step_mask(to, y.shape[0])[..., None], y, 0).sum(0)
        return total / to.clamp(min=1)[:, None]


class Max(Pool):
    """max_t y_t, feature by feature."""

    def forward(self, y: Tensor, final: Tensor, lengths: Tensor) -> Tensor:
        if not len(y):
            return y.new_zeros(y.shape[1:])
        to = lengths.to(y.device)
        real = step_mask(to, y.shape[0])[..., None]
        highest = y.masked_fill(~real, -torch.inf).amax(0)
        return torch.where((to > 0)[:, None], highest, 0)


class AttentionPooling(Pool):
    """Σ_t α_t y_t with α = softmax over t of v·tanh(W·y_t + b)."""

    def __init__(self, width: int, final_width: int) -> None:
        super().__init__(width, final_width)
        self.hidden = nn.Linear(width, width)
        self.score = nn.Linear(width, 1, bias=False)

    def weights(self, y: Tensor, lengths: Tensor) -> Tensor:
        """α (time, batch): sums to one over a row's real steps, zero at padding."""
        real = step_mask(lengths.to(y.device), y.shape[0])
        scores: Tensor = self.score(torch.tanh(self.hidden(y)))[..., 0]
        lowest = torch.finfo(scores.dtype).min  # finite: a row without steps would give 0/0
        return scores.masked_fill(~real, lowest).softmax(0) * real

    def forward(self, y: Tensor, final: Tensor, lengths: Tensor) -> Tensor:
        return (self.weights(y, lengths)[..., None] * y).sum(0)


POOLINGS: dict[str, Callable[[int, int], Pool]] = {
    "last": Last,
    "mean": Mean,
    "max": Max,
    "attention": AttentionPooling,
}


class Pooling(nn.Module):
    """Concatenated poolings by name: "max", "mean+max", "last+attention" → (batch, width)."""

    def __init__(self, names: str, width: int, final_width: int) -> None:
        super().__init__()
        self.names = names.split("+")
        for name in self.names:
            if name not in POOLINGS:
                raise unknown("pooling", name, POOLINGS)
        if len(set(self.names)) < len(self.names):
            raise OptionError(f"pooling: expected each name once, got {names!r}")
        parts = [POOLINGS[name](width, final_width) for name in self.names]
        self.parts, self.width = nn.ModuleList(parts), sum(part.width for part in parts)

    def forward(self, y: Tensor, final: Tensor, lengths: Tensor) -> Tensor:
        return torch.cat([part(y, final, lengths) for part in self.parts], -1)

    def attention(self, y: Tensor, lengths: Tensor) -> Tensor:
        """α (time, batch) of the pooling by attention."""
        for part in self.parts:
            if isinstance(part, AttentionPooling):
                return part.weights(y, lengths)
        raise OptionError(
            f"pooling: {'+'.join(self.names)} has no attention weights; use attention, or "
            f"{'+'.join([*self.names, 'attention'])}"
        )


def known_pooling(pooling: str) -> str:
    """Validates a setting such as "max" or "mean+attention"; raises ValueError if a part of it is
    unknown."""
    for name in pooling.split("+"):
        if name not in POOLINGS:
            raise ValueError(str(unknown("pooling", name, POOLINGS)))
    return pooling


PoolingName = Annotated[  # as a setting
    str,
    AfterValidator(known_pooling),
    Expected(f"{', '.join(POOLINGS)}, or several: mean+attention"),
]
POOLED = "Pooling of the steps of a sequence into one vector."


ROWS = 512  # rows for means and spreads
LEAST_SPREAD = 1e-3  # minimum spread, for nearly constant features
STANDARDISED = (
    "Standardise the pooled vector by its mean and spread over the training rows; a training "
    "that starts from a base does so."
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

    def settle(self, values: Tensor) -> None:
        """Sets mean and spread from seen (rows, width)."""
        self.mean.copy_(values.mean(0))
        self.spread.copy_(values.std(0, correction=0).clamp(min=LEAST_SPREAD))


class Batches(Protocol):
    """The training rows in batches, in an order determined by the seed."""

    def batches(self, epoch: int) -> Sequence[Any]: ...

    def batch(self, rows: Any) -> Any: ...


def settle_spreads(network: nn.Module, source: Batches) -> None:
    """Sets mean and spread of every `Standardised` in a network from its inputs over the first
    training rows, without dropout and before training."""
    if not any(isinstance(module, Standardised) for module in network.modules()):
        return
    device, rows = device_of_weights(network), 0
    with _recorded_inputs(network) as values, torch.no_grad():
        for numbers in source.batches(0):
            network(moved(source.batch(numbers), device), {})
            rows += len(numbers)
            if rows >= ROWS:
                break
    for module, tensors in values.items():
        if tensors:
            module.settle(torch.cat(tensors))


@contextmanager
def _recorded_inputs(network: nn.Module) -> Iterator[dict[Standardised, list[Tensor]]]:
    """Records the inputs of every `Standardised` of a network in evaluation mode."""
    values: dict[Standardised, list[Tensor]] = {
        module: [] for module in network.modules() if isinstance(module, Standardised)
    }
    hooks = [
        each.register_forward_pre_hook(lambda module, inputs: values[module].append(inputs[0]))
        for each in values
    ]
    learning = network.training
    network.eval()
    try:
        yield values
    finally:
        network.train(learning)
        for hook in hooks:
            hook.remove()
