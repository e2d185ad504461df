"""Rows that are trees, as tokens: brackets, words and labels.

    (+    a node whose label is a target           (=NP  a node whose label NP is an input
    (     a node without a label                   )     its end
    (-    a word without brackets, which has no label.

Words contain no brackets. The targets are the labels of the nodes, that of the root first. If a row
has a label next to its tree, that label is the target, and the labels of all nodes except the root
are inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.data.ragged import Ragged
from ensue.data.rows import Row
from ensue.data.settings import DataSettings
from ensue.data.trees.tree import Node, read_tree
from ensue.data.values import Unfit
from ensue.tasks.answers import Answer, Columns, share_bar, tabbed
from ensue.tasks.rows.collect import Content, Example, label_of, named, value_text


@dataclass(frozen=True)
class TreeAnswer(Answer):
    """The answer to a tree. label, probability: label and probability of the whole tree; tree: the
    tree in brackets, with the predicted label at each node; labels, node_probabilities: labels and
    probabilities of the nodes, each before its descendants, "" for words without brackets; empty if
    only whole trees are learned. probabilities: the probabilities of the whole tree's classes, most
    probable first.

    >>> TreeAnswer("4", 0.75, "(4 good)", ("4",), (0.75,), {"4": 0.75, "3": 0.25}).as_line("")
    '4\\t0.7500\\t(4 good)'
    """

    label: str
    probability: float
    tree: str
    labels: tuple[str, ...]
    node_probabilities: tuple[float, ...]
    probabilities: Mapping[str, float]

    def as_line(self, inputs: object) -> str:
        return tabbed(self.label, f"{self.probability:.4f}", self.tree)

    def as_row(self) -> dict[str, Any]:
        return {"label": self.label, "probability": self.probability, "tree": self.tree}

    def shows_input(self) -> bool:
        return True

    @classmethod
    def as_columns(cls, answers: Sequence[Self]) -> Columns:
        return {
            "tree": [answer.tree for answer in answers],
            "label": [answer.label for answer in answers],
            "probability": [share_bar(answer.probability) for answer in answers],
        }


Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class TreeBatch:
    """A batch of trees. words, labels (nodes,): of each node, 0 for none; parents (nodes,): −1 for
    a root; roots (trees,)."""

    words: Tensor
    labels: Tensor
    parents: Tensor
    roots: Tensor

    def __len__(self) -> int:
        return len(self.roots)


@dataclass(frozen=True)
class Forest:
    """Trees one after another, each node before its descendants. starts (trees + 1,): the first
    node of each tree; parents: the index of the parent in its tree."""

    starts: Numbers
    words: Numbers
    labels: Numbers
    parents: Numbers

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Numbers:
        """The number of nodes of each tree."""
        return np.diff(self.starts)

    @property
    def roots(self) -> Numbers:
        return self.starts[:-1]

    def take(self, rows: Sequence[int] | Numbers) -> Forest:
        numbers = np.asarray(rows, np.int64)
        by_name = {
            name: Ragged(values, self.starts).take(numbers)
            for name, values in vars(self).items()
            if name != "starts"
        }
        starts = by_name["words"].starts
        return Forest(starts, **{name: array.values for name, array in by_name.items()})

    def batch(self, rows: Sequence[int] | Numbers) -> TreeBatch:
        forest = self.take(rows)
        parents = forest.parents + np.repeat(forest.roots, forest.lengths) * (forest.parents >= 0)
        arrays = (forest.words, forest.labels, parents, forest.roots)
        return TreeBatch(*(torch.from_numpy(np.ascontiguousarray(a, np.int64)) for a in arrays))

    def arrays(self) -> dict[str, Any]:
        return dict(vars(self))


LEARNED, INPUT, BARE, PLAIN, END = "(+", "(=", "(-", "(", ")"


def tokens_of(tree: Node, whole: bool) -> list[str]:
    """The tokens of a tree. whole: whether the target is a label of the whole tree."""
    tokens: list[str] = []
    waiting: list[Node | str] = [tree]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            tokens.append(item)
            continue
        inner = INPUT + item.label if item is not tree else PLAIN
        without = BARE if item.bare else PLAIN
        tokens.append((inner if whole else LEARNED) if item.label else without)
        tokens += [item.word] if item.word else []
        waiting += [END, *reversed(item.children)]
    return tokens


def labels_of(tree: Node) -> list[str] | None:
    """The labels of the nodes, the root's first; None for a tree without labels."""
    labels = [node.label for node in tree.nodes() if node.label]
    if labels and not tree.label:
        raise Unfit(f"expected a label at the root of the tree too, got {tree.as_text()[:60]}")
    return labels or None


def tree_of(tokens: Sequence[str], labels: Sequence[str] = ()) -> Node:
    """The tree of these tokens. labels: the labels of all nodes, in order, instead of the labels in
    the tokens."""
    next_labels, open_nodes, root = iter(labels), list[Node](), Node()
    for token in tokens:
        if token == END:
            open_nodes.pop()
        elif token.startswith(PLAIN):
            inner = token.removeprefix(INPUT) if token.startswith(INPUT) else ""
            node = Node(next(next_labels, "") or inner, bare=token == BARE)
            if open_nodes:
                open_nodes[-1].children.append(node)
            else:
                root = node
            open_nodes.append(node)
        else:
            open_nodes[-1].word = token
    return root


class TreeContent(Content):
    """A tree in brackets. whole: whether its inner labels are inputs, even if its own label is
    unknown."""

    def __init__(self, whole: bool = False) -> None:
        self.whole = whole

    def example(self, row: Row, data: DataSettings) -> Example:
        tree = named(data.text_column, self.tree, row, data)
        beside = data.label if data.label != data.text_column else ""
        if beside or self.whole:
            label = named(beside, self.label, row, data, tree) if beside else None
            return Example(tokens_of(tree, True), label, row.place)
        return Example(
            tokens_of(tree, False), named(data.text_column, _labels, row, tree), row.place
        )

    def tree(self, row: Row, data: DataSettings) -> Node:
        cell = row.fields.get(data.text_column)
        if not isinstance(cell, str):
            raise Unfit(f"expected a tree in brackets, (…), got {value_text(cell)}")
        return read_tree(cell)

    def label(self, row: Row, data: DataSettings, value: Any) -> Any:
        return label_of(row.fields.get(data.label), "")


def _labels(row: Row, tree: Node) -> list[str] | None:
    return labels_of(tree)
