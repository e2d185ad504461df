"""Derivatives of one step by two ways: the graph's, and torch's of the eager step.

Everything is a flat list in the order x, state parts, parameters (`names`), or a dictionary by
these names; the graph's results are put together block by block and summed over rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from random_cells import Data
from torch import Tensor

from ensue.cells import Cell
from ensue.engine.bptt import step_leaves
from ensue.engine.eager import one_step
from ensue.engine.interpreter import Blocks, evaluate
from ensue.equations import Equations, MatrixRef, Node, VectorRef, forward, reverse
from ensue.equations.declare import Matrix


@dataclass
class OneStep:
    """One step of a cell in training on (batch, features) tensors."""

    cell: Cell
    data: Data
    equations: Equations

    @staticmethod
    def of(cell: Cell, data: Data) -> OneStep:
        """The first step of the data."""
        masks = {n: m if cell.masks[n].over == "sequence" else m[0] for n, m in data.masks.items()}
        hidden = data.state[0].shape[1]
        equations = cell.equations(data.x.shape[2], hidden, training=True)
        x = data.x[0].detach().requires_grad_()
        return OneStep(cell, Data(data.parameters, x, data.state, masks), equations)

    @property
    def names(self) -> list[str]:
        return ["x", *self.cell.parts, *(f"{n} " for n in self.data.parameters)]

    def eager(self, *leaves: Tensor) -> tuple[Tensor, ...]:
        """(output, *new state), as a function of x, state and parameters."""
        parts = len(self.cell.parts)
        x, state, rest = leaves[0], leaves[1 : 1 + parts], leaves[1 + parts :]
        parameters = dict(zip(self.data.parameters, rest, strict=True))
        bound = self.cell.on_tensors(parameters, self.data.masks)
        y, new = one_step(bound, x, state, self.equations.output.width)
        return y, *new

    def leaves(self) -> dict[Node, Tensor]:
        return step_leaves(self.equations, self.data.x, self.data.state, self.data.masks)

    def blocks(self) -> Blocks:
        return Blocks(self.equations, self.data.parameters)

    def values(self) -> list[Tensor]:
        """(output, *new state) by the interpreter."""
        evaluated = evaluate(self.equations.roots, self.leaves(), self.blocks())
        batch = self.data.x.shape[0]
        return [evaluated[r].expand(batch, r.width) for r in self.equations.roots]

    # --- parameters, block by block -----------------------------------------------------
    def refs(self, name: str) -> list[MatrixRef | VectorRef]:
        """The gates of a parameter as the graph knows them."""
        declared, of = self.cell.parameters[name], ""
        if isinstance(declared, Matrix):
            of = self.cell.size_of(declared.of)
            return [MatrixRef(name, g, declared.size, of) for g in declared.gates]
        return [VectorRef(name, g) for g in declared.gates]

    def vector(self, ref: VectorRef) -> Node:
        return self.equations.graph.leaf("vector", ref, self.cell.parameters[ref.name].size)

    def gathered(
        self,
        leaves: Mapping[Node, Node],
        matrices: Mapping[MatrixRef, Node],
        overrides: Mapping[Node, Tensor],
        blocks: Blocks,
    ) -> list[Tensor]:
        """Derivatives of x, state and parameters as tensors; zeros where one is missing."""
        batch, values = self.data.x.shape[0], {**self.leaves(), **overrides}

        def value(node: Node) -> Tensor:
            return evaluate([node], values, blocks)[node].expand(batch, node.width)

        def of_leaf(leaf: Node) -> Tensor:
            return value(leaves[leaf]) if leaf in leaves else torch.zeros(batch, leaf.width)

        def of_block(ref: MatrixRef | VectorRef) -> Tensor:
            if isinstance(ref, VectorRef):
                return of_leaf(self.vector(ref)).sum(0)
            graph = self.equations.graph
            product = torch.zeros(graph.width(ref.rows), graph.width(ref.columns))
            if ref in matrices:
                node = matrices[ref]
                for outer in node.args if node.op == "add" else (node,):
                    a, v = outer.args
                    product = product + value(a).T @ value(v)
            return product

        blocks_of_name = [
            of_leaf(leaf) for leaf in (self.equations.x, *self.equations.old.values())
        ]
        for name in self.data.parameters:
            blocks_of_name.append(torch.cat([of_block(ref) for ref in self.refs(name)]))
        return [f.double() for f in blocks_of_name]


def first(step: OneStep, seeds: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """(graph's, torch's) derivatives for seeds of output and new state."""
    derivative = step.equations.derivative
    seed_values = dict(zip(derivative.seeds, seeds, strict=True))
    leaves = {step.equations.old[p]: n for p, n in derivative.state.items() if n is not None}
    if derivative.x is not None:
        leaves[step.equations.x] = derivative.x
    leaves |= {step.vector(ref): n for ref, n in derivative.vectors.items()}
    ours = step.gathered(leaves, derivative.matrices, seed_values, step.blocks())
    inputs = step.data.leaves()
    return ours, _grad(list(step.eager(*inputs)), inputs, seeds)


def second(step: OneStep, seeds: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """(graph's, torch's) derivatives of Σ ⟨first derivative, direction⟩ by x, state, parameters
    and the seeds, for random directions: `reverse` of the result of `reverse`."""
    equations, graph = step.equations, step.equations.graph
    inputs = step.data.leaves()
    directions = [torch.randn_like(v) for v in inputs]
    by_name = dict(zip(step.names, directions, strict=True))
    derivative, blocks = equations.derivative, step.blocks()
    seed_values = dict(zip(derivative.seeds, seeds, strict=True))
    again: list[tuple[Node, Node | MatrixRef]] = []

    def along(node: Node | None, name: str, direction: Tensor) -> None:
        if node is not None:
            leaf = graph.leaf("given", f"along {name}", node.size)
            seed_values[leaf] = direction
            again.append((node, leaf))

    along(derivative.x, "x", by_name["x"])
    for part, node in derivative.state.items():
        along(node, part, by_name[part])
    for name in step.data.parameters:
        chunks = by_name[f"{name} "].chunk(len(step.refs(name)))
        for ref, direction in zip(step.refs(name), chunks, strict=True):
            if isinstance(ref, VectorRef):
                along(derivative.vectors.get(ref), f"{ref}", direction)
            elif ref in derivative.matrices:
                moved = MatrixRef(f"along {name}", ref.gate, ref.rows, ref.columns)
                blocks.matrices[moved.name, moved.gate] = direction
                again.append((derivative.matrices[ref], moved))
    back = reverse(again)
    ours = step.gathered(back.leaves, back.matrices, seed_values, blocks)
    seeds = [s.requires_grad_() for s in seeds]
    once = _grad(list(step.eager(*inputs)), inputs, seeds, create_graph=True)
    theirs = _grad(once, [*inputs, *seeds], directions)
    for seed in derivative.seeds:
        ours.append(
            _value(back.leaves.get(seed), {**step.leaves(), **seed_values}, blocks, seeds[0])
        )
        ours[-1] = ours[-1].expand(theirs[len(ours) - 1].shape)
    return ours, theirs


def _value(node: Node | None, leaves: dict[Node, Tensor], blocks: Blocks, like: Tensor) -> Tensor:
    return like.new_zeros(()) if node is None else evaluate([node], leaves, blocks)[node]


def _grad(
    outputs: list[Tensor], inputs: list[Tensor], seeds: list[Tensor], create_graph: bool = False
) -> list[Tensor]:
    """torch's derivative, zero where nothing is reached."""
    pairs = [(o, s) for o, s in zip(outputs, seeds, strict=True) if o.requires_grad]
    if not pairs:
        return [torch.zeros_like(v) for v in inputs]
    reached, adjoints = zip(*pairs, strict=True)
    gradients = torch.autograd.grad(
        reached, inputs, adjoints, create_graph=create_graph, allow_unused=True
    )
    return [torch.zeros_like(v) if g is None else g for g, v in zip(gradients, inputs, strict=True)]


def tangent(step: OneStep, directions: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """(graph's, torch's) tangents of output and new state, for tangents of x, state, parameters."""
    equations, graph, blocks = step.equations, step.equations.graph, step.blocks()
    by_name = dict(zip(step.names, directions, strict=True))
    moving = {equations.x: by_name["x"]}
    moving |= {leaf: by_name[part] for part, leaf in equations.old.items()}
    matrices = {}
    for name in step.data.parameters:
        chunks = by_name[f"{name} "].chunk(len(step.refs(name)))
        for ref, direction in zip(step.refs(name), chunks, strict=True):
            if isinstance(ref, VectorRef):
                moving[step.vector(ref)] = direction
            else:
                matrices[ref] = MatrixRef(f"d {name}", ref.gate, ref.rows, ref.columns)
                blocks.matrices[f"d {name}", ref.gate] = direction
    leaves = {n: graph.leaf("given", f"d {n.number}", n.size) for n in moving}
    moved = forward(equations.roots, leaves, matrices)
    values = {**step.leaves(), **{leaves[n]: v for n, v in moving.items()}}
    batch = step.data.x.shape[0]
    ours = [
        _value(m, values, blocks, step.data.x).expand(batch, root.width)
        for m, root in zip(moved, equations.roots, strict=True)
    ]
    _, theirs = torch.func.jvp(step.eager, tuple(step.data.leaves()), tuple(directions))
    return ours, list(theirs)


def assert_same(ours: list[Tensor], theirs: list[Tensor], tolerance: float = 1e-11) -> None:
    """Equal to the precision of float64, relative to the largest entry."""
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        scale = max(1.0, float(other.detach().abs().max())) if other.numel() else 1.0
        torch.testing.assert_close(mine, other, rtol=0, atol=tolerance * scale)


def random_seeds(step: OneStep) -> list[Tensor]:
    return [torch.randn_like(v) for v in step.eager(*step.data.leaves())]
