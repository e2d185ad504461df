"""What theory says of a step: ‖∂s'/∂s‖₂ ≤ λ·σ_max(U), read off the graph.

Each operation multiplies the bound of its arguments by the steepest slope that it can have: tanh,
ReLU and sums by 1, the logistic function by λ = ¼, a matrix by its largest singular value. Where
two values that both depend on the state are multiplied, as by a gate, no such number exists.

    < 1    suffices for vanishing: ‖∂s_t/∂s_k‖ ≤ bound^(t−k), whatever is read
    > 1    is only necessary for explosion: slopes may be smaller than λ
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ensue.diagnose.jacobians import spectral_norm
from ensue.diagnose.observe import Track
from ensue.engine.interpreter import Blocks, evaluate
from ensue.equations import Node, below
from ensue.equations.declare import Matrix

SLOPES = {"tanh": 1.0, "relu": 1.0, "softplus": 1.0, "sigmoid": 0.25, "negative": 1.0}
LEAVES = ("x", "state")


@dataclass(frozen=True)
class Spectrum:
    """A recurrent matrix: its largest singular value, and its spectral radius, the largest absolute
    value of its eigenvalues; None where it is not square."""

    name: str
    singular: float
    radius: float | None


def spectra(track: Track) -> list[Spectrum]:
    """Of every block of every recurrent matrix."""
    found = []
    for name, declared in track.cell.parameters.items():
        if not isinstance(declared, Matrix) or declared.of == "x":
            continue
        for gate in declared.gates:
            block = track.blocks.matrices[name, gate]
            square = block.shape[0] == block.shape[1]
            radius = float(torch.linalg.eigvals(block).abs().max()) if square else None
            shown = f"{name}_{gate}" if gate else name
            found.append(Spectrum(shown, spectral_norm(block), radius))
    return found


def step_bound(track: Track) -> float | None:
    """The most that ‖∂s'/∂s‖₂ can be at any state and input; None where gates multiply."""
    equations = track.equations
    rows = []
    for part in equations.state.values():
        row = [_bound(part, leaf, track.blocks, {}) for leaf in equations.old.values()]
        if None in row:
            return None
        rows.append([own for own in row if own is not None])
    return spectral_norm(torch.tensor(rows, dtype=torch.float64))


def _bound(node: Node, leaf: Node, blocks: Blocks, known: dict[Node, float | None]) -> float | None:
    """Of ‖∂node/∂leaf‖₂; None where there is none."""
    if node not in known:
        known[node] = _bound_of(node, leaf, blocks, known)
    return known[node]


def _bound_of(
    node: Node, leaf: Node, blocks: Blocks, known: dict[Node, float | None]
) -> float | None:
    if node is leaf:
        return 1.0
    if leaf not in below([node]):
        return 0.0
    inside = [_bound(argument, leaf, blocks, known) for argument in node.args]
    if None in inside:
        return None
    given = [own for own in inside if own is not None]
    if node.op == "add":
        return sum(given)
    if node.op == "product":
        return spectral_norm(blocks.matrix(node.attr)) * given[0]
    if node.op == "maximum":
        return math.hypot(*given)
    if node.op in SLOPES:
        return SLOPES[node.op] * given[0]
    fixed = [k for k, own in enumerate(given) if own == 0.0]
    if node.op == "multiply" and fixed:
        factor = _size(node.args[fixed[0]], blocks)
        return None if factor is None else factor * given[1 - fixed[0]]
    if node.op == "divide" and given[1] == 0.0:
        factor = _size(node.graph.constant(1.0) / node.args[1], blocks)
        return None if factor is None else factor * given[0]
    return None


def _size(node: Node, blocks: Blocks) -> float | None:
    """The largest absolute value of what is the same at every step; None if it is not."""
    if any(own.op in (*LEAVES, "mask") for own in below([node])):
        return None
    like: Tensor = next(iter({**blocks.matrices, **blocks.vectors}.values()))
    nothing = {node.graph.leaf("given", "none", "one"): like.new_zeros(())}
    return float(evaluate([node], nothing, blocks)[node].abs().max())
