"""Evaluating nodes of a graph on torch tensors, differentiably."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

import torch
from torch import Tensor
from torch.nn.functional import linear

from ensue.equations import Equations, MatrixRef, Node, VectorRef, below
from ensue.equations.declare import Matrix, Parameter
from ensue.equations.functions import FUNCTIONS


class Blocks:
    """The parameters of a cell, gate by gate: the values of MatrixRef and VectorRef."""

    def __init__(self, equations: Equations, parameters: Mapping[str, Tensor]) -> None:
        self.matrices: dict[tuple[str, str], Tensor] = {}
        self.vectors: dict[tuple[str, str], Tensor] = {}
        for name, declared in equations.declarations.items():
            if isinstance(declared, Parameter):
                table = self.matrices if isinstance(declared, Matrix) else self.vectors
                for gate, block in zip(
                    declared.gates, parameters[name].chunk(len(declared.gates)), strict=True
                ):
                    table[name, gate] = block

    def matrix(self, ref: MatrixRef) -> Tensor:
        block = self.matrices[ref.name, ref.gate]
        return block.t() if ref.transposed else block

    def vector(self, ref: VectorRef) -> Tensor:
        return self.vectors[ref.name, ref.gate]


def evaluate(
    nodes: Iterable[Node], leaves: Mapping[Node, Tensor], blocks: Blocks
) -> dict[Node, Tensor]:
    """The values of the nodes, of shape (…, batch, features), for values of the leaves.

    A leaf's value may have axes in front (directions of a Jacobian); they broadcast."""
    nodes = list(nodes)
    values: dict[Node, Tensor] = dict(leaves)
    like = next(iter(leaves.values()))
    for node in below(nodes):
        if node not in values:
            values[node] = _value(node, [values[a] for a in node.args], blocks, like)
    return {node: values[node] for node in nodes}


def _value(node: Node, args: list[Tensor], blocks: Blocks, like: Tensor) -> Tensor:
    match node.op:
        case "constant":
            return like.new_tensor(node.attr)
        case "count":
            return like.new_tensor(float(node.graph.width(node.attr)))
        case "vector":
            return blocks.vector(node.attr)
        case "product":
            return linear(args[0], blocks.matrix(node.attr))
        case "outer":
            return torch.einsum("bi,bj->ij", *args)
        case "add":
            return reduce(torch.add, args)
        case "sum":
            return args[0].sum(-1, keepdim=True)
        case "mean":
            return args[0].mean(-1, keepdim=True)
        case "spread":
            rows = args[0] if args[0].dim() else args[0].reshape(1, 1)
            return rows.expand(*rows.shape[:-1], node.width)
    return FUNCTIONS[node.op].evaluate(*args)
