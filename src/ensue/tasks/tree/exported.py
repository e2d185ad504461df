"""A classifier of trees for export: one node at a time, from its word and the states of its
children to its class and its own state. The walk from the leaves to the root is a step after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ensue.engine.eager import one_step
from ensue.files.caps import TREE_DEPTH, TREE_LENGTH
from ensue.layers.recursive import PLACES
from ensue.tasks.exported import BATCH, Exported, Graph, Input
from ensue.tasks.model import Model
from ensue.tasks.tree.learned import LearnedTrees
from ensue.tasks.tree.network import TreeNetwork

WORDS, LABELS, CHILDREN = "words", "labels", "children"


class NodeStep(nn.Module):
    """p (nodes, classes), the mean over the members, and the state parts of each.

    below (nodes, places, features): of each part of a state the sums over the children that are
    first, between and last; children (nodes, 1): how many there are, where they are averaged."""

    def __init__(self, members: Sequence[TreeNetwork], names: Sequence[str]) -> None:
        super().__init__()
        self.members, self.names = nn.ModuleList(members), list(names)

    def forward(self, *given: Tensor) -> tuple[Tensor, ...]:
        named = dict(zip(self.names, given, strict=True))
        each, states = list[Tensor](), list[Tensor]()
        for number, own in enumerate(self.members):
            assert isinstance(own, TreeNetwork)
            x = own.words(named[WORDS])
            if own.inner is not None:
                x = torch.cat([x, own.inner(named[LABELS])], -1)
            cell, parameters = own.recursive.inner.way()
            count = len(own.recursive.inner.state_sizes)
            parts = [
                _combined(own, named[f"below_{number}_{k}"], k, named.get(CHILDREN))
                for k in range(count)
            ]
            width = own.recursive.output_size
            y, new = one_step(cell.on_tensors(parameters), x, parts, width)
            each.append(own.output(y).softmax(-1))
            states += new
        return (torch.stack(each).mean(0), *states)


def _combined(own: TreeNetwork, below: Tensor, part: int, children: Tensor | None) -> Tensor:
    """(nodes, features): one part of the children's states, as `Recursive` combines them."""
    if own.recursive.combine == "ordered" and part == 0:
        places = enumerate(own.recursive.places)
        return torch.stack([below[:, k] @ matrix.t() for k, matrix in places]).sum(0)
    total = below.sum(1)
    return total if children is None else total / children.clamp(min=1)


def exported(model: Model[Any, Any, Any]) -> Exported:
    learned: LearnedTrees = model.learned
    members = [own for own in model.networks if isinstance(own, TreeNetwork)]
    inputs = [Input(WORDS, (BATCH,), len(learned.words))]
    if learned.inner is not None:
        inputs.append(Input(LABELS, (BATCH,), len(learned.inner)))
    if model.model.combine == "mean":
        inputs.append(Input(CHILDREN, (BATCH, 1)))
    states = {
        f"below_{number}_{k}": size
        for number, own in enumerate(members)
        for k, size in enumerate(own.recursive.inner.state_sizes)
    }
    inputs += [Input(name, (BATCH, len(PLACES), size)) for name, size in states.items()]
    outputs = ("probabilities", *(name.replace("below", "state") for name in states))
    network = NodeStep(members, [own.name for own in inputs])
    step = {
        "step": "brackets",
        "from": "question",
        "words": list(learned.words.tokens),
        "lower": learned.lower,
        "inner": None if learned.inner is None else list(learned.inner.tokens),
        "states": states,
        "longest": TREE_LENGTH,
        "deepest": TREE_DEPTH,
    }
    after = {"step": "nodes", "labels": list(learned.labels.tokens)}
    return Exported("tree", (Graph("node", network, tuple(inputs), outputs),), (step,), (after,))
