"""Rows that are trees, as tokens: brackets, words, and where the labels stand.

    (+    a node whose label is to be learned      (=NP  a node whose label NP is an input
    (     a node without a label                   )     its end
    (-    a word without brackets of its own, which has no label

Words have no brackets in them. What is to be learned are the labels of the nodes, that of the root
first; or, where a row has a label beside its tree, that one, and the labels of the nodes are
inputs, but for the root's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ensue.data.rows import Row
from ensue.data.settings import DataSettings
from ensue.data.trees.tree import Node, read_tree
from ensue.data.values import Unfit
from ensue.tasks.rows.collect import Example
from ensue.tasks.rows.content import Content, label_of, named, shown

LEARNED, INPUT, BARE, PLAIN, END = "(+", "(=", "(-", "(", ")"


def tokens_of(tree: Node, whole: bool) -> list[str]:
    """whole: what is learned is a label of the whole tree."""
    found: list[str] = []
    waiting: list[Node | str] = [tree]
    while waiting:
        own = waiting.pop()
        if isinstance(own, str):
            found.append(own)
            continue
        inner = INPUT + own.label if own is not tree else PLAIN
        without = BARE if own.bare else PLAIN
        found.append((inner if whole else LEARNED) if own.label else without)
        found += [own.word] if own.word else []
        waiting += [END, *reversed(own.children)]
    return found


def labels_of(tree: Node) -> list[str] | None:
    """The labels of the nodes, the root's first; None of a tree without labels."""
    labels = [node.label for node in tree.nodes() if node.label]
    if labels and not tree.label:
        raise Unfit(f"expected a label at the root of the tree too, got {tree.as_text()[:60]}")
    return labels or None


def tree_of(tokens: Sequence[str], labels: Sequence[str] = ()) -> Node:
    """The tree that tokens stand for; labels: of all nodes, in their order, in place of its own."""
    given, open_nodes, root = iter(labels), list[Node](), Node()
    for token in tokens:
        if token == END:
            open_nodes.pop()
        elif token.startswith(PLAIN):
            inner = token.removeprefix(INPUT) if token.startswith(INPUT) else ""
            node = Node(next(given, "") or inner, bare=token == BARE)
            if open_nodes:
                open_nodes[-1].children.append(node)
            else:
                root = node
            open_nodes.append(node)
        else:
            open_nodes[-1].word = token
    return root


class TreeContent(Content):
    """A tree in brackets. whole: its inner labels are inputs, also where its label is not known."""

    def __init__(self, whole: bool = False) -> None:
        self.whole = whole

    def example(self, row: Row, data: DataSettings) -> Example:
        tree = named(data.text, self.tree, row, data)
        beside = data.label if data.label != data.text else ""
        if beside or self.whole:
            label = named(beside, self.label, row, data, tree) if beside else None
            return Example(tokens_of(tree, True), label, row.place)
        return Example(tokens_of(tree, False), named(data.text, _labels, row, tree), row.place)

    def tree(self, row: Row, data: DataSettings) -> Node:
        given = row.fields.get(data.text)
        if not isinstance(given, str):
            raise Unfit(f"expected a tree in brackets, (…), got {shown(given)}")
        return read_tree(given)

    def label(self, row: Row, data: DataSettings, value: Any) -> Any:
        return label_of(row.fields.get(data.label), "")


def _labels(row: Row, tree: Node) -> list[str] | None:
    return labels_of(tree)
