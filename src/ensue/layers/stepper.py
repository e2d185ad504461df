"""A recurrent layer one step at a time, for serving and decoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from ensue.cells import Cell
from ensue.engine.eager import hidden_size, one_step
from ensue.engine.native import NativeStep, why_not_native
from ensue.engine.recurrence import State


class CellStep(Protocol):
    """One cell as a step function: x (batch, input) and state in, output and new state out."""

    def step(self, x: Tensor, state: Sequence[Tensor]) -> tuple[Tensor, State]: ...


class EagerStep:
    """A cell's `step` in torch; used if no kernel can be compiled."""

    def __init__(self, cell: Cell, parameters: Mapping[str, Tensor], input_size: int) -> None:
        hidden = hidden_size(cell, parameters)
        self.bound = cell.on_tensors({n: p.detach().clone() for n, p in parameters.items()})
        self.width = cell.equations(input_size, hidden, training=False).output.width

    @torch.no_grad()
    def step(self, x: Tensor, state: Sequence[Tensor]) -> tuple[Tensor, State]:
        return one_step(self.bound, x, state, self.width)


class Stepper:
    """A stack of cells for `batch` rows, whose weights are prepared once.

    Steps give the same outputs as the layer for the whole sequence in evaluation. The state is a
    value: store it, pass it back, or reorder its rows. Weights are read at construction, and no
    gradients are recorded. Several threads may use one stepper, each with its own states.

    >>> stepper = Recurrent("GRU", 8, 16).eval().stepper(batch=1)
    >>> y, state = stepper.step(torch.zeros(1, 8), stepper.start())
    >>> y.shape
    torch.Size([1, 16])
    """

    def __init__(
        self,
        layers: Sequence[tuple[Cell, Mapping[str, Tensor], int]],
        start: Sequence[State],
        batch: int,
    ) -> None:
        self._start = tuple(tuple(s.detach().clone() for s in parts) for parts in start)
        self.batch = batch
        self._steps: list[CellStep] = []
        for cell, parameters, input_size in layers:
            like = next(iter(parameters.values()))
            if why_not_native(like.device, like.dtype) or like.dtype == torch.bfloat16:
                self._steps.append(EagerStep(cell, parameters, input_size))
            else:
                self._steps.append(NativeStep(cell, parameters, input_size, batch))

    def start(self) -> tuple[State, ...]:
        """The state before the first step."""
        return self._start

    def step(self, x: Tensor, state: Sequence[State]) -> tuple[Tensor, tuple[State, ...]]:
        """One step of every layer: x (batch, input) → output (batch, features), new state."""
        new: list[State] = []
        for layer, parts in zip(self._steps, state, strict=True):
            x, end = layer.step(x, parts)
            new.append(end)
        return x, tuple(new)
