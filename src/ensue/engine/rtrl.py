"""Real-time recurrent learning: exact gradients carried forward in time.

For each row, J = ∂state/∂parameters is carried along with the state:

J' = ∂state'/∂state · J + ∂state'/∂parameters

The gradient of a cost at this step then needs no earlier steps. A step costs state² · parameters
(BPTT: state²). Memory is constant over time, which suits endless streams. If parameters change
between steps, J still contains contributions from their old values. Learned initial states are
parameters too; their block of J begins as the identity.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ensue.cells.cell import Cell
from ensue.engine.bptt import step_leaves
from ensue.engine.eager import State, Tensors, hidden_size, one_step
from ensue.engine.interpreter import Blocks, evaluate
from ensue.equations import Equations, Node, VectorRef, below


def jacobian(
    equations: Equations, wrt: Node, leaves: Mapping[Node, Tensor], blocks: Blocks
) -> Tensor:
    """∂(output, new state)/∂wrt, (batch, features of output and state, features of wrt).

    `wrt` may be a leaf or an inner node; for the latter, the derivative is by a change added to the
    node."""
    tangent, moved = equations.moved_by(wrt)
    like = leaves[equations.x]
    directions = torch.eye(wrt.width, dtype=like.dtype, device=like.device)[:, None, :]
    needed = [m for m in moved if m is not None]
    value = evaluate(needed, {**leaves, tangent: directions}, blocks) if needed else {}
    rows = []
    for node, m in zip(equations.roots, moved, strict=True):
        change = like.new_zeros(()) if m is None else value[m]
        rows.append(change.expand(wrt.width, like.shape[0], node.width).permute(1, 2, 0))
    return torch.cat(rows, 1)


@dataclass
class _Layer:
    """One layer: its cell and parameters, its state, and the influence of all parameters. starts:
    the initial values of the parts of its state, if learned."""

    cell: Cell
    parameters: Tensors
    starts: Tensors
    state: State
    first: int  # column of its first parameter among all
    influence: Tensor = field(repr=False)  # (batch, state features, parameters)

    def columns(self) -> dict[str, int]:
        """The first column of each of its parameters: first the cell's, then the starts."""
        at, parts = self.first, {}
        for name, p in self.learned.items():
            parts[name] = at
            at += p.numel()
        return parts

    @property
    def learned(self) -> Tensors:
        return {**self.parameters, **self.starts}

    def begin(self) -> None:
        """Sets the influence before the first step: state = start, so ∂state/∂start = 1."""
        self.influence.zero_()
        columns, at = self.columns(), 0
        for name, start in self.starts.items():
            features = torch.arange(start.numel(), device=start.device)
            self.influence[:, at + features, columns[name] + features] = 1
            at += start.numel()


class RTRL:
    """RTRL over a stream: call `step` with an input, then `gradient`.

    layers: (cell, parameters) from the bottom up. state: a tuple of parts for each layer. starts:
    for each layer with a learned initial state, the parameter (features,) of each part, by name;
    either all parts in order, or none."""

    def __init__(
        self,
        layers: Sequence[tuple[Cell, Tensors]],
        state: Sequence[State],
        starts: Sequence[Tensors] | None = None,
    ) -> None:
        starts = [{} for _ in layers] if starts is None else starts
        self.layers: list[_Layer] = []
        first = 0
        for (cell, parameters), begun, parts in zip(layers, starts, state, strict=True):
            detached, begin = ({n: p.detach() for n, p in of.items()} for of in (parameters, begun))
            parts = tuple(s.detach() for s in parts)
            self.layers.append(_Layer(cell, detached, begin, parts, first, parts[0].new_zeros(())))
            first += sum(p.numel() for p in self.layers[-1].learned.values())
        self.total = first
        for layer in self.layers:
            features = sum(s.shape[1] for s in layer.state)
            layer.influence = layer.state[0].new_zeros(len(layer.state[0]), features, self.total)
            layer.begin()
        self._output_influence: Tensor | None = None

    @torch.no_grad()
    def step(self, x: Tensor, masks: Sequence[Tensors | None] | None = None) -> Tensor:
        """One step for every row: x (batch, input) → output (batch, features)."""
        below_influence: Tensor | None = None
        for k, layer in enumerate(self.layers):
            step_masks = masks[k] if masks is not None else None
            x, below_influence = self._advance(layer, x, below_influence, step_masks)
        self._output_influence = below_influence
        return x

    @torch.no_grad()
    def gradient(self, d_output: Tensor) -> list[dict[str, Tensor]]:
        """∂cost/∂parameters, layer by layer, for a cost of the last step's output alone."""
        if self._output_influence is None:
            raise RuntimeError("RTRL.gradient: call step first: the gradient is of its output")
        flat = torch.einsum("bm,bmp->p", d_output, self._output_influence)
        parts = []
        for layer in self.layers:
            columns = layer.columns()
            parts.append(
                {
                    name: flat[columns[name] : columns[name] + p.numel()].view_as(p)
                    for name, p in layer.learned.items()
                }
            )
        return parts

    def _advance(
        self, layer: _Layer, x: Tensor, x_influence: Tensor | None, masks: Tensors | None
    ) -> tuple[Tensor, Tensor]:
        """Advances one layer: returns its output, and the influence of all parameters on that
        output."""
        cell, training = layer.cell, masks is not None
        equations = cell.equations(x.shape[1], hidden_size(cell, layer.parameters), training)
        blocks = Blocks(equations, layer.parameters)
        leaves = step_leaves(equations, x, layer.state, masks)
        by_state = [jacobian(equations, part, leaves, blocks) for part in equations.old.values()]
        influence = torch.cat(by_state, 2) @ layer.influence  # (batch, outputs, parameters)
        if x_influence is not None:
            influence = influence + jacobian(equations, equations.x, leaves, blocks) @ x_influence
        self._add_immediate(layer, equations, leaves, blocks, influence)
        bound = cell.on_tensors(layer.parameters, masks)
        y, layer.state = one_step(bound, x, layer.state, equations.output.width)
        layer.influence = influence[:, y.shape[1] :]
        return y, influence[:, : y.shape[1]]

    def _add_immediate(
        self, layer: _Layer, equations: Equations, leaves: Any, blocks: Blocks, influence: Tensor
    ) -> None:
        """Adds ∂outputs/∂parameters of this step alone: through each product, Wv changes by
        dW·v, so ∂/∂W_ij = ∂/∂(Wv)_i · v_j; vectors directly."""
        columns, batch = layer.columns(), influence.shape[0]
        for node in below(equations.roots):
            if node.op not in ("product", "vector"):
                continue
            ref = node.attr
            by_node = jacobian(equations, node, leaves, blocks)
            if not isinstance(ref, VectorRef):
                operand = evaluate(node.args, leaves, blocks)[node.args[0]].expand(batch, -1)
                by_node = (by_node[..., None] * operand[:, None, None, :]).flatten(2)
            gates = layer.cell.parameters[ref.name].gates
            size = math.prod(layer.parameters[ref.name].shape) // len(gates)
            at = columns[ref.name] + gates.index(ref.gate) * size
            influence[:, :, at : at + size] += by_node
