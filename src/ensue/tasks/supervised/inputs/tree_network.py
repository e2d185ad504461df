"""The network of trees in brackets, and its graph for one node for export."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import dropout

from ensue.engine.eager import one_step
from ensue.layers.recursive import Recursive
from ensue.settings import Rate, Table, Width
from ensue.tasks.blocks.layer_settings import CellName, Initialisation
from ensue.tasks.rows.batch import PADDING
from ensue.tasks.rows.source import in_batches
from ensue.tasks.supervised.network import InputEncoder, SupervisedNetwork
from ensue.tasks.trees.content import (
    Forest,
    TreeBatch,
)

WORDS, LABELS, CHILDREN = "words", "labels", "children"  # inputs of an exported node
NODE = "node"  # the graph of one


class TreeReaderSettings(Table):
    """The cell that goes up a tree, and how it combines the states of a node's children."""

    combine: Literal["ordered", "sum", "mean"] = Field(
        "ordered",
        description="Combination of the children's states. ordered: one matrix each for the first, "
        "the last and the middle children; sum, mean: in any order.",
    )
    cell: CellName = Field("LSTM", description="Cell that goes from the leaves to the root.")
    hidden_size: Width = Field(128, description="Size of a cell's state.")
    embedding_size: Width = Field(64, description="Size of the word vectors.")
    label_size: Width = Field(
        16, description="Size of the vectors of inner labels, if these are inputs."
    )
    init: Initialisation = Field("standard", description="Initial weights of the cells.")
    dropout_input: Rate = Field(0.1, description="Dropout of the word vectors.")
    dropout_output: Rate = Field(0.1, description="Dropout before the output layer.")


class TreeEncoder(InputEncoder):
    """h_n = cell([e(word_n); a(inner label_n)], states of the children of n), as `Recursive`
    combines them; the vector of a tree is the vector of its root. A node without a word has e = 0.

    inner_labels: number of node labels among the inputs, 0 for none; units: whether to return
    vectors of all nodes."""

    def __init__(
        self, words: int, settings: TreeReaderSettings, inner_labels: int = 0, units: bool = False
    ) -> None:
        super().__init__()
        self.units = units
        self.dropout_input, self.dropout_output = settings.dropout_input, settings.dropout_output
        self.words = nn.Embedding(words, settings.embedding_size, padding_idx=PADDING)
        self.inner: nn.Embedding | None = None
        width = settings.embedding_size
        if inner_labels:
            self.inner = nn.Embedding(inner_labels, settings.label_size, padding_idx=PADDING)
            width += settings.label_size
        self.recursive = Recursive(
            settings.cell,
            width,
            settings.hidden_size,
            combine=settings.combine,
            init=settings.init,
        )
        self.width = self.recursive.output_size

    def entering(self, inputs: TreeBatch) -> Tensor:
        """The inputs of the cell, x (nodes, width)."""
        x: Tensor = self.words(inputs.words)
        if self.inner is not None:
            x = torch.cat([x, self.inner(inputs.labels)], -1)
        return x

    def states(self, inputs: TreeBatch) -> Tensor:
        """The vector at each node; shape (nodes, features)."""
        x = dropout(self.entering(inputs), self.dropout_input, self.training)
        y: Tensor = self.recursive(x, inputs.parents)[0]
        return y

    def forward(self, inputs: TreeBatch) -> Tensor:
        y = self.states(inputs)
        y = y if self.units else y[inputs.roots]
        return dropout(y, self.dropout_output, self.training)

    def rows_of(self, values: Tensor, inputs: TreeBatch) -> Tensor:
        return values[inputs.roots] if self.units else values


@torch.no_grad()
def node_outputs(network: nn.Module, forest: Forest, tokens: int) -> Tensor:
    """z (nodes, outputs)."""
    assert isinstance(network, SupervisedNetwork)
    z = torch.zeros(int(forest.starts[-1]), network.head.classes)
    for rows, batch in in_batches(forest, network, tokens):
        places = [np.arange(forest.starts[row], forest.starts[row + 1]) for row in rows]
        if places:
            z[torch.from_numpy(np.concatenate(places))] = network.scores(batch).cpu()
    return z


def tree_encoders(modules: Iterable[nn.Module]) -> list[TreeEncoder]:
    """The modules that read trees."""
    return [module for module in modules if isinstance(module, TreeEncoder)]


def state_sizes(encoders: Sequence[TreeEncoder]) -> dict[str, int]:
    """Sizes of the parts of each encoder's state, by the names of the inputs from child nodes."""
    return {
        f"below_{number}_{k}": size
        for number, encoder in enumerate(encoders)
        for k, size in enumerate(encoder.recursive.inner.state_sizes)
    }


class NodeStep(nn.Module):
    """The target's answers from z of each member, for all nodes, and the state parts of each.

    below (nodes, places, features): for each part of a state, the sums over first, middle and last
    children; children (nodes, 1): their number, if they are averaged."""

    def __init__(
        self,
        members: Sequence[SupervisedNetwork],
        names: Sequence[str],
        temperature: float,
        answers: nn.Module,
    ) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.nodes = NodeStates(tree_encoders([network.reader for network in members]), names)
        self.temperature, self.answers = temperature, answers

    def forward(self, *values: Tensor) -> tuple[Tensor, ...]:
        nodes = self.nodes(*values)
        vectors, states = nodes[: len(self.members)], nodes[len(self.members) :]
        each = [
            network.output(y) / self.temperature  # type: ignore[operator]
            for network, y in zip(self.members, vectors, strict=True)
        ]
        answers = self.answers(each)
        return (*(answers if isinstance(answers, tuple) else (answers,)), *states)


class NodeStates(nn.Module):
    """The vector of each encoder and the parts of its state, for all nodes."""

    def __init__(self, encoders: Sequence[TreeEncoder], names: Sequence[str]) -> None:
        super().__init__()
        self.readers, self.names = nn.ModuleList(encoders), list(names)

    def forward(self, *values: Tensor) -> tuple[Tensor, ...]:
        named = dict(zip(self.names, values, strict=True))
        vectors, states = list[Tensor](), list[Tensor]()
        for number, encoder in enumerate(self.readers):
            assert isinstance(encoder, TreeEncoder)
            x = encoder.words(named[WORDS])
            if encoder.inner is not None:
                x = torch.cat([x, encoder.inner(named[LABELS])], -1)
            cell, parameters = encoder.recursive.inner.way()
            parts = [
                _combined(encoder, named[f"below_{number}_{k}"], k, named.get(CHILDREN))
                for k in range(len(encoder.recursive.inner.state_sizes))
            ]
            y, new = one_step(cell.on_tensors(parameters), x, parts, encoder.width)
            vectors.append(y)
            states += new
        return (*vectors, *states)


def _combined(encoder: TreeEncoder, below: Tensor, part: int, children: Tensor | None) -> Tensor:
    """One part of the children's states, as `Recursive` combines them; shape (nodes, features)."""
    if encoder.recursive.combine == "ordered" and part == 0:
        places = enumerate(encoder.recursive.places)
        return torch.stack([below[:, k] @ matrix.t() for k, matrix in places]).sum(0)
    total = below.sum(1)
    return total if children is None else total / children.clamp(min=1)
