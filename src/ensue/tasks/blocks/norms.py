"""The norm-preserving regulariser of recurrent layers (Pascanu, Mikolov & Bengio 2013).

Ω = Σ_t (1 − ‖δ_{t+1}·∂s_{t+1}/∂s_t‖ / ‖δ_{t+1}‖)², δ_t = ∂C/∂s_t

over the transitions between the states s_1 … s_length of a row; s is the whole state of the cell
(h, and c if it has one). Ω is small if the error keeps its norm on the way back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from ensue.cells import Cell, as_tuple
from ensue.engine.eager import one_step
from ensue.engine.recurrence import State
from ensue.engine.rows import check_lengths, reverse_time
from ensue.errors import OptionError
from ensue.layers.recurrent import OneWay, Recurrent
from ensue.tasks.blocks.encoders import RecurrentEncoder

Cost = Callable[[Tensor, tuple[State, ...]], Tensor]


def norm_preserving(
    layer: Recurrent, x: Tensor, cost: Cost, lengths: Tensor | None = None
) -> Tensor:
    """Ω summed over rows, layers and directions, differentiable in the cells' parameters.

    x (time, batch, input); C = cost(y, state) of the layer's outputs. δ, the states and the inputs
    of the layers are constants, so Ω's gradient is its immediate one. Steps with δ = 0 are skipped;
    there is no dropout. Runs the cells step by step."""
    if layer.bidirectional and layer.backward_start != "zero":
        raise OptionError(
            f"norm_preserving: expected backward_start zero, got {layer.backward_start}"
        )
    known = check_lengths(lengths, *x.shape[:2])
    row_lengths = torch.full(x.shape[1:2], len(x)) if known is None else known
    with torch.enable_grad():
        runs, y, finals = _run_all(layer, x.detach(), row_lengths)
        deltas = _deltas(cost(y, finals), runs)
    total = x.new_zeros(())
    for way, run, delta in zip(layer.ways, runs, deltas, strict=True):
        total = total + _penalty(way, run, delta, row_lengths.to(x.device))
    return total


class _Run:
    """One cell over time: its inputs (time, batch, input) and the state after every step."""

    def __init__(self, way: OneWay, x: Tensor, lengths: Tensor) -> None:
        self.x, self.states = x, list[State]()
        bound, width = _bound(way), way.cell.equations(way.input_size, way.hidden_size).output.width
        state, outputs = way.start(x), []
        for t, frame in enumerate(x.unbind(0)):
            alive = (t < lengths)[:, None].to(x.device)
            new = as_tuple(bound.step(frame, *state))
            state = tuple(torch.where(alive, n, s) for n, s in zip(new, state, strict=True))
            self.states.append(state)
            y = bound.output(frame, *state)  # of the stored state: δ flows through it
            outputs.append(torch.where(alive, y, 0).expand(-1, width))
        self.y = torch.stack(outputs) if outputs else x.new_zeros(0, x.shape[1], width)
        self.final = state


def _bound(way: OneWay) -> Cell:
    return way.cell.on_tensors(dict(way.way().parameters))


def _run_all(
    layer: Recurrent, x: Tensor, lengths: Tensor
) -> tuple[list[_Run], Tensor, tuple[State, ...]]:
    runs: list[_Run] = []
    directions = 1 + layer.bidirectional
    for first in range(0, len(layer.ways), directions):
        ahead = _Run(layer.ways[first], x, lengths)
        runs.append(ahead)
        y = ahead.y
        if layer.bidirectional:
            behind = _Run(layer.ways[first + 1], reverse_time(x, lengths), lengths)
            runs.append(behind)
            y = torch.cat([y, reverse_time(behind.y, lengths)], -1)
        x = y
    return runs, x, tuple(run.final for run in runs)


def _deltas(cost: Tensor, runs: Sequence[_Run]) -> list[list[Tensor]]:
    """δ (time, batch, features) of each run and state part, after every step."""
    parts = [part for run in runs for state in run.states for part in state]
    if not parts:
        return [[] for _ in runs]
    grad = iter(torch.autograd.grad(cost, parts, materialize_grads=True))
    deltas = []
    for run in runs:
        rows = [[next(grad) for _ in state] for state in run.states]
        deltas.append([torch.stack(column) for column in zip(*rows, strict=True)])
    return deltas


def _penalty(way: OneWay, run: _Run, delta: list[Tensor], lengths: Tensor) -> Tensor:
    """Ω of one run. With states and δ constant, all its steps are rows of one step."""
    if len(run.states) < 2:
        return run.x.new_zeros(())
    before = [
        torch.stack(column[:-1]).detach().flatten(0, 1).requires_grad_()
        for column in zip(*run.states, strict=True)
    ]
    after = [d[1:].flatten(0, 1) for d in delta]
    with torch.enable_grad():
        _, new = one_step(_bound(way), run.x[1:].detach().flatten(0, 1), before, run.y.shape[2])
        product = torch.stack([(n * d).sum() for n, d in zip(new, after, strict=True)]).sum()
        back = torch.autograd.grad(product, before, create_graph=True, materialize_grads=True)
    size = torch.linalg.vector_norm(torch.cat(after, 1), dim=1)
    norms = torch.linalg.vector_norm(torch.cat(back, 1), dim=1)
    inside = torch.arange(1, len(run.states), device=lengths.device)[:, None] < lengths
    counts = inside.flatten() & (size > 0)
    return torch.where(counts, (1 - norms / torch.where(counts, size, 1)) ** 2, 0).sum()


def check_norm_weight(weight: float, encoder: nn.Module) -> None:
    """Raises an error for a weight of the regulariser below 0, or for an encoder without states."""
    if weight < 0:
        raise OptionError(f"norm_weight: expected a number ≥ 0, got {weight}")
    if weight and not isinstance(encoder, RecurrentEncoder):
        raise OptionError("norm_weight: expected a recurrent encoder, the only one with states")
