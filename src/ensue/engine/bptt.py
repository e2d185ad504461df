"""Backpropagation through time, written out: the derivative graph walked backwards.

It computes the same gradient as torch's autograd of the eager loop, independently. As an engine
("bptt") it is a differentiable function, so second derivatives work.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from ensue.cells.cell import Cell
from ensue.engine.eager import Step, assembled, eager_engine, masks_at, sort_rows, steps
from ensue.engine.interpreter import Blocks, evaluate
from ensue.engine.recurrence import Constants, Recurrence, State, Tensors
from ensue.engine.rows import Rows, reverse_time
from ensue.equations import Equations, Node


@dataclass(frozen=True)
class Gradients:
    """Derivatives of a cost with respect to x (time, batch, input), the initial state and the
    parameters."""

    x: Tensor
    state: State
    parameters: dict[str, Tensor]


def bptt(
    cell: Cell,
    parameters: Tensors,
    x: Tensor,
    state: State,
    d_outputs: Tensor,
    d_final: State,
    lengths: Tensor | None = None,
    masks: Tensors | None = None,
) -> Gradients:
    """The gradients, from the cost's derivatives by outputs (time, batch, features) and by the
    final state."""
    recurrence = Recurrence(cell, parameters, x, state, lengths, masks)
    return backpropagate(recurrence, d_outputs, d_final)


def backpropagate(recurrence: Recurrence, d_outputs: Tensor, d_final: State) -> Gradients:
    """`bptt` of a `Recurrence`, in the order of time."""
    ordered, rows = sort_rows(recurrence)
    cell, _, x, _, _, masks, _ = ordered
    tape = list(steps(ordered, rows))
    walk = _Walk(ordered)
    d_outputs = rows.sort(d_outputs, 1)
    arriving = tuple(rows.sort(d, 0) for d in d_final)
    d_x: list[Tensor] = []
    for t in reversed(range(len(tape))):
        alive, old, _, _ = tape[t]
        step_masks = masks_at(cell, masks, t, alive)
        seeds = (d_outputs[t, :alive], *(d[:alive] for d in arriving))
        dx, d_old = walk.back(x[t, :alive], old, step_masks, seeds)
        # rows that ended earlier keep the adjoint of their final state
        arriving = tuple(torch.cat([d, a[alive:]]) for d, a in zip(d_old, arriving, strict=True))
        d_x.append(pad(dx, (0, 0, 0, x.shape[1] - alive)))
    dx_all = torch.stack(d_x[::-1]) if d_x else torch.zeros_like(x)
    return Gradients(
        rows.restore(dx_all, 1), tuple(rows.restore(d, 0) for d in arriving), walk.gradients()
    )


class _Walk:
    """One step of the walk, and the parameters' gradients as they add up."""

    def __init__(self, recurrence: Recurrence) -> None:
        cell, parameters = recurrence.cell, recurrence.parameters
        self.equations = cell.equations(*recurrence.sizes)
        self.blocks = Blocks(self.equations, parameters)
        derivative = self.equations.derivative
        self.derivative, self.outers = derivative, derivative.outers()
        outputs = [derivative.x, *derivative.state.values(), *derivative.vectors.values()]
        outputs += [node for _, adjoint, operand in self.outers for node in (adjoint, operand)]
        self.nodes = [node for node in outputs if node is not None]
        self.sums = {key: torch.zeros_like(b) for key, b in self._all_blocks().items()}
        self.shapes = {name: (p, cell.parameters[name].gates) for name, p in parameters.items()}

    def _all_blocks(self) -> dict[tuple[str, str], Tensor]:
        return self.blocks.matrices | self.blocks.vectors

    def back(
        self, x: Tensor, old: State, masks: Tensors | None, seeds: tuple[Tensor, ...]
    ) -> tuple[Tensor, State]:
        """Derivatives by x and the old state; those by the parameters are added to the sums."""
        leaves = step_leaves(self.equations, x, old, masks)
        leaves |= dict(zip(self.derivative.seeds, seeds, strict=True))
        value = evaluate(self.nodes, leaves, self.blocks)
        for ref, adjoint, operand in self.outers:
            outer = value[adjoint].t() @ value[operand].expand(x.shape[0], -1)
            self.sums[ref.name, ref.gate] = self.sums[ref.name, ref.gate] + outer
        for vector, node in self.derivative.vectors.items():
            key = (vector.name, vector.gate)
            self.sums[key] = self.sums[key] + value[node].sum(0)
        dx = _or_zero(self.derivative.x, value, x)
        parts = zip(self.derivative.state.values(), old, strict=True)
        return dx, tuple(_or_zero(node, value, s) for node, s in parts)

    def gradients(self) -> dict[str, Tensor]:
        return {
            name: torch.cat([self.sums[name, gate] for gate in gates])
            for name, (_, gates) in self.shapes.items()
        }


def step_leaves(
    equations: Equations, x: Tensor, old: State, masks: Tensors | None
) -> dict[Node, Tensor]:
    """Values for the leaves of a step's graph."""
    leaves = {equations.x: x, **dict(zip(equations.old.values(), old, strict=True))}
    for name in equations.masks if masks is not None else ():
        mask = equations.declarations[name]
        leaves[equations.graph.leaf("mask", name, mask.size)] = masks[name]  # type: ignore[index]
    return leaves


def _or_zero(node: Node | None, value: dict[Node, Tensor], like: Tensor) -> Tensor:
    return torch.zeros_like(like) if node is None else value[node].expand(like.shape)


class _ExplicitBPTT(torch.autograd.Function):
    """The eager loop forward, `bptt` backward. Only inputs are saved; the backward pass computes
    the states again, so that it is a differentiable function of the inputs."""

    @staticmethod
    def forward(ctx: Any, constants: Constants, x: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        ctx.constants = constants
        ctx.save_for_backward(x, *rest)
        y, final = eager_engine(constants.recurrence(x, rest))
        return y, *(s.clone() for s in final)

    @staticmethod
    def backward(ctx: Any, *adjoints: Tensor) -> tuple[Any, ...]:
        x, *rest = ctx.saved_tensors
        recurrence = ctx.constants.recurrence(x, tuple(rest))
        slopes = backpropagate(recurrence, adjoints[0], adjoints[1:])
        return None, slopes.x, *slopes.state, *slopes.parameters.values()


def explicit(recurrence: Recurrence) -> tuple[Tensor, State]:
    """The engine "bptt": as `eager`, with the derivative graph instead of autograd."""
    y, *final = _ExplicitBPTT.apply(  # type: ignore[no-untyped-call]
        recurrence.constants, *recurrence.tensors
    )
    return y, tuple(final)


@dataclass(frozen=True)
class Unrolled:
    """One recurrence with all its values, in the order of computation: in reverse, the last step
    comes first. Rows are sorted, longest first; `rows` maps them back to the batch."""

    recurrence: Recurrence
    rows: Rows
    steps: tuple[Step, ...]


_unrolled: ContextVar[list[Unrolled] | None] = ContextVar("recurrences unrolled", default=None)


@contextmanager
def recording() -> Iterator[list[Unrolled]]:
    """Recurrences inside the block run eagerly and are recorded, with their states in the graph of
    autograd."""
    runs: list[Unrolled] = []
    token = _unrolled.set(runs)
    try:
        yield runs
    finally:
        _unrolled.reset(token)


def recorder() -> list[Unrolled] | None:
    """The list that records recurrences; None if nothing records."""
    return _unrolled.get()


def record(recurrence: Recurrence, runs: list[Unrolled]) -> tuple[Tensor, State]:
    """Runs a recurrence and records it; returns outputs and final state like every engine. x is
    made part of the autograd graph, because a state may be just the previous x."""
    if not recurrence.x.requires_grad:
        recurrence = recurrence._replace(x=recurrence.x.detach().requires_grad_())
    ordered, rows = sort_rows(recurrence.forwards())
    made = tuple(steps(ordered, rows))
    runs.append(Unrolled(ordered, rows, made))
    y, final = assembled(ordered, rows, made)
    return (reverse_time(y, recurrence.lengths) if recurrence.reverse else y), final
