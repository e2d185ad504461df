"""A cell from the leaves of a tree to its root, and classes at each node."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout

from ensue.layers.recursive import Recursive
from ensue.tasks.rows.batch import PADDING
from ensue.tasks.tree.forest import NO_TARGET, TreeBatch
from ensue.tasks.tree.settings import TreeSettings


class TreeNetwork(nn.Module):
    """p(label of node n) = softmax(V·h_n + b); h_n = cell([e(word_n); a(inner label_n)], states of
    the children of n), as `Recursive` combines them. A node without a word has e = 0.

    inner_labels: how many labels of nodes there are among the inputs; 0 none."""

    def __init__(
        self, words: int, classes: int, settings: TreeSettings, inner_labels: int = 0
    ) -> None:
        super().__init__()
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
        self.output = nn.Linear(self.recursive.output_size, classes)

    def entering(self, batch: TreeBatch) -> Tensor:
        """x (nodes, width)."""
        x: Tensor = self.words(batch.words)
        if self.inner is not None:
            x = torch.cat([x, self.inner(batch.labels)], -1)
        return x

    def states(self, x: Tensor, batch: TreeBatch) -> Tensor:
        """(nodes, features): what stands at each node."""
        y: Tensor = self.recursive(dropout(x, self.dropout_input, self.training), batch.parents)[0]
        return y

    def scores_of(self, x: Tensor, batch: TreeBatch) -> Tensor:
        """(nodes, classes) of what enters the nodes."""
        y = dropout(self.states(x, batch), self.dropout_output, self.training)
        scores: Tensor = self.output(y)
        return scores

    def scores(self, batch: TreeBatch) -> Tensor:
        return self.scores_of(self.entering(batch), batch)

    def forward(
        self, batch: TreeBatch, carried: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The cost of all nodes with a target, summed; nothing is carried on."""
        cost = cross_entropy(
            self.scores(batch), batch.targets, ignore_index=NO_TARGET, reduction="sum"
        )
        return cost, {}
