"""Trees in brackets: `(S (NP the cat) (VP sat))`, `(3 (2 It) (4 (2 is) (3 good)))`.

A bracket is a node. Its first entry, unless it is a bracket, is the node's label; the others are
its children: words and brackets. A bracket around a label and one word is one node, the word with
that label. `(cat)` is a word without a label; a bracket that begins with a bracket has no label
either. A bracket without a label around the whole tree is removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from ensue.data.values import Unfit
from ensue.files.opening import TREE_DEPTH, TREE_LENGTH

SYMBOL = re.compile(r"[()]|[^\s()]+")
BRACKET = re.compile(r"[()]")


@dataclass
class Node:
    """A node of a tree. label: "" for a node without a label; word: "" for a node with children;
    bare: whether the node is a word without its own brackets."""

    label: str = ""
    word: str = ""
    children: list[Node] = field(default_factory=list)
    bare: bool = False

    def nodes(self) -> Iterator[Node]:
        """This node and all below it, each before its children, from left to right."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.children)

    @property
    def words(self) -> list[str]:
        return [node.word for node in self.nodes() if not node.children]

    def as_text(self) -> str:
        """The tree in brackets, on one line."""
        parts: list[str] = []
        waiting: list[Node | str] = [self]
        while waiting:
            item = waiting.pop()
            if isinstance(item, str):
                parts.append(item)
                continue
            if item.bare:
                parts.append(item.word)
                continue
            inside = [item.word] if item.word else []
            parts.append("(" + " ".join([item.label, *inside] if item.label else inside))
            waiting += [")", *reversed(item.children)]
        return " ".join(parts).replace(" )", ")").replace("( ", "(")


def read_tree(text: str) -> Node:
    """The tree of a text; raises `Unfit` if its brackets are invalid, or the tree is too long or
    too deep.

    >>> tree = read_tree("(S (NP the cat) (VP sat))")
    >>> tree.label, tree.words, tree.as_text()
    ('S', ['the', 'cat', 'sat'], '(S (NP the cat) (VP sat))')
    """
    if len(text) > TREE_LENGTH:
        raise too_long(len(text))
    if text.count("(") > TREE_DEPTH and (deepest := depth(text)) > TREE_DEPTH:
        raise Unfit(
            f"expected brackets nested at most {TREE_DEPTH:,} deep, got {deepest:,}; "
            "split the tree, or leave it out"
        )
    open_nodes: list[Node] = []
    done: Node | None = None
    fresh = False  # a bracket has just been opened: a label may follow
    for match in SYMBOL.finditer(text):
        symbol, at = match.group(), match.start() + 1
        if done is not None:
            raise Unfit(f"expected one tree, got {symbol!r} after its end, at character {at}")
        if symbol == "(":
            open_nodes.append(Node())
        elif symbol == ")":
            if not open_nodes:
                raise Unfit(f"expected an opening bracket, got ')' at character {at}")
            node = closed(open_nodes.pop(), at)
            if open_nodes:
                open_nodes[-1].children.append(node)
            else:
                done = node
        elif not open_nodes:
            raise Unfit(f"expected a tree in brackets, (…), got {symbol!r} at character {at}")
        elif fresh:
            open_nodes[-1].label = symbol
        else:
            open_nodes[-1].children.append(Node(word=symbol, bare=True))
        fresh = symbol == "("
    if done is None:
        missing = f"{len(open_nodes)} closing bracket{'s' * (len(open_nodes) > 1)} missing"
        raise Unfit(f"expected a tree in brackets, got {missing if open_nodes else 'none'}")
    return _without_outer(done)


def closed(node: Node, at: int) -> Node:
    """The node at its closing bracket. A label alone becomes a word; a label with a single word
    becomes that word with a label."""
    if not node.children:
        if not node.label:
            raise Unfit(f"expected a word or a bracket inside of (), at character {at}")
        return Node(word=node.label)
    only = node.children[0]
    if len(node.children) == 1 and only.bare and node.label:
        return Node(node.label, only.word)
    return node


def _without_outer(tree: Node) -> Node:
    while not tree.label and len(tree.children) == 1 and not tree.children[0].bare:
        tree = tree.children[0]
    return tree


def balance(text: str) -> int:
    """The number of open brackets at the end of a text; negative if more are closed than opened."""
    return text.count("(") - text.count(")")


def depth(text: str) -> int:
    """The maximum number of open brackets.

    >>> depth("(S (NP the cat) (VP sat))")
    2
    """
    steps = (1 if bracket == "(" else -1 for bracket in BRACKET.findall(text))
    return max(accumulate(steps), default=0)


def too_long(length: int) -> Unfit:
    return Unfit(
        f"expected a tree of at most {TREE_LENGTH:,} characters, got {length:,}; "
        "split the tree, or leave it out"
    )


def looks_like_trees(texts: Iterable[str]) -> bool:
    """Whether most texts are non-empty trees; the others are reported as faults."""
    filled = [text.strip() for text in texts if text.strip()]
    trees = sum(t.startswith("(") and t.endswith(")") and balance(t) == 0 for t in filled)
    nested = sum(t.count("(") > 1 for t in filled)
    return bool(filled) and 2 * trees > len(filled) and 2 * nested > len(filled)
