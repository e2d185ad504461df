"""Differentiation of the graph. The derivative is a graph of the same kinds of nodes.

Reverse mode computes adjoints of leaves and of parameter matrices from adjoints of some nodes.
Forward mode computes tangents of the outputs from tangents of leaves or of any node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ensue.equations.functions import FUNCTIONS
from ensue.equations.node import ONE, MatrixRef, Node, below

NUMBERS = ("constant", "count")


@dataclass(frozen=True)
class Reverse:
    """Result of reverse differentiation. `leaves`: the adjoint of each leaf that was reached;
    `matrices`: for each matrix that was reached, a node a vᵀ or a sum of such nodes. The derivative
    by anything missing is zero."""

    leaves: dict[Node, Node]
    matrices: dict[MatrixRef, Node]


def reverse(seeds: Iterable[tuple[Node, Node | MatrixRef]]) -> Reverse:
    """Adjoints of all leaves, from the adjoints of outputs.

    The adjoint of an output that is a matrix (an `outer`) is a matrix: a `MatrixRef`.
    A node with several uses gets the sum of their contributions.

    >>> graph = Graph({"hidden": 16})
    >>> h, seed = (graph.leaf("given", name, "hidden") for name in ("h", "seed"))
    >>> reverse([(h * h, seed)]).leaves[h]  # 2·h·seed
    #4 add(#3, #3): hidden
    """
    seeds = list(seeds)
    back: dict[Node, list[Node]] = {}
    outers: dict[MatrixRef, list[Node]] = {}
    matrix_seeds = [(n, a) for n, a in seeds if isinstance(a, MatrixRef)]
    for node, adjoint in seeds:
        if isinstance(adjoint, Node):
            back.setdefault(node, []).append(_fit(adjoint, node))
    for node, matrix in matrix_seeds:
        for term in node.args if node.op == "add" else (node,):
            a, v = term.args
            back.setdefault(a, []).append(a.graph.product(matrix, v))
            back.setdefault(v, []).append(a.graph.product(matrix.T, a))
    leaves: dict[Node, Node] = {}
    for node in reversed(below(back)):
        if node not in back:
            continue
        adjoint = node.graph.add(*back[node])
        if node.is_leaf:
            leaves[node] = adjoint
        elif node.op == "product":
            _reverse_product(node, adjoint, back, outers)
        else:
            for argument, contribution in _contributions(node, adjoint):
                if argument.op not in NUMBERS:
                    back.setdefault(argument, []).append(_fit(contribution, argument))
    matrices = {ref: a[0].graph.add(*a) for ref, a in outers.items()}
    return Reverse(leaves, matrices)


def _reverse_product(
    node: Node,
    adjoint: Node,
    back: dict[Node, list[Node]],
    outers: dict[MatrixRef, list[Node]],
) -> None:
    matrix, operand = node.attr, node.args[0]
    pair = (operand, adjoint) if matrix.transposed else (adjoint, operand)
    outers.setdefault(matrix.upright, []).append(node.graph.outer(*pair))
    back.setdefault(operand, []).append(node.graph.product(matrix.T, adjoint))


def _contributions(node: Node, adjoint: Node) -> Iterable[tuple[Node, Node]]:
    """(argument, its contribution to the adjoint), for every kind except the product."""
    graph = node.graph
    if node.op == "add":
        yield from ((argument, adjoint) for argument in node.args)
    elif node.op == "sum":
        yield node.args[0], graph.spread(adjoint, node.args[0].size)
    elif node.op == "mean":
        size = node.args[0].size
        yield node.args[0], graph.spread(adjoint / graph.count(size), size)
    elif node.op == "spread":
        yield node.args[0], graph.sum(adjoint)
    else:
        for argument, rule in zip(node.args, FUNCTIONS[node.op].chain, strict=True):
            contribution = rule(adjoint, node, *node.args)
            if contribution is not None:
                yield argument, contribution


def _fit(adjoint: Node, node: Node) -> Node:
    """The adjoint in the size of its node: a single number that was spread over many features gets
    their sum."""
    if node.size == ONE:
        return adjoint.graph.sum(adjoint)
    return adjoint.graph.spread_to(adjoint, node.size)


def forward(
    outputs: Iterable[Node],
    tangents: Mapping[Node, Node],
    matrices: Mapping[MatrixRef, MatrixRef] | None = None,
) -> list[Node | None]:
    """Tangents of the outputs for tangents of some nodes and of parameter matrices.

    If a node that is not a leaf has a tangent here, this tangent is added to the tangent that
    follows from its arguments. The tangent of an output that does not change is None.

    >>> graph = Graph({"hidden": 16})
    >>> h, moved = (graph.leaf("given", name, "hidden") for name in ("h", "moved"))
    >>> forward([h * h], {h: moved})
    [#4 add(#3, #3): hidden]
    """
    outputs, matrices = list(outputs), matrices or {}
    moved: dict[Node, Node] = {}
    for node in below(outputs):
        terms = list(_forward_terms(node, moved, matrices))
        if node in tangents:
            terms.append(tangents[node])
        if terms:
            moved[node] = node.graph.spread_to(node.graph.add(*terms), node.size)
    return [moved.get(node) for node in outputs]


def _forward_terms(
    node: Node, moved: dict[Node, Node], matrices: Mapping[MatrixRef, MatrixRef]
) -> Iterable[Node]:
    graph = node.graph
    if node.op == "product":
        ref, operand = node.attr, node.args[0]
        if operand in moved:
            yield graph.product(ref, moved[operand])
        if ref.upright in matrices:
            tangent = matrices[ref.upright]
            yield graph.product(tangent.T if ref.transposed else tangent, operand)
    elif node.op in ("sum", "mean"):
        if node.args[0] in moved:
            reduce = graph.sum if node.op == "sum" else graph.mean
            yield reduce(moved[node.args[0]])
    elif node.op in ("add", "spread"):
        yield from (moved[a] for a in node.args if a in moved)
    elif not node.is_leaf:
        for argument, rule in zip(node.args, FUNCTIONS[node.op].chain, strict=True):
            if argument in moved:
                term = rule(moved[argument], node, *node.args)
                if term is not None:
                    yield term
