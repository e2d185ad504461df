"""A tree with the answers and the states of its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from ensue.drawing.document import Drawn
from ensue.drawing.matrix import diverging
from ensue.drawing.svg import FAINT, GREY, INK, QUIET, Drawing, text_width
from ensue.errors import OptionError
from ensue.tasks.abilities import NOTHING, RequestOptions
from ensue.tasks.answers import Answer
from ensue.tasks.rows.part import Part
from ensue.tasks.supervised.inputs.tree_network import TreeEncoder
from ensue.tasks.supervised.network import SupervisedNetwork
from ensue.tasks.supervised.options import EXPLAINED_TREE
from ensue.tasks.targets.target import Classified, Estimated
from ensue.tasks.trees.content import TreeAnswer, tree_of
from ensue.training.processes import device_of_weights, moved

if TYPE_CHECKING:
    from ensue.tasks.supervised.task import SupervisedModel


@dataclass(frozen=True)
class TreeExplanation(Drawn):
    result: StateTree

    def as_text(self, width: int = 80, colour: bool = False) -> str:
        return tree_text(self.result)

    def as_svg(self) -> str:
        return tree_picture(self.result)


class ExplainTree:
    """Explains a tree by the answer and the state at each node."""

    option = EXPLAINED_TREE

    def explain(
        self, model: SupervisedModel, inputs: str, options: RequestOptions = NOTHING
    ) -> TreeExplanation:
        model.must_be_fitted()
        part = model.reader.questions([inputs])
        return TreeExplanation(state_tree(model, part, 0))


class DrawTrees:
    """The first given tree, or the first of a part."""

    def answers(self, model: SupervisedModel, part: Part, options: Any) -> str:
        if not len(part):
            raise OptionError("--picture: expected a tree to draw, got none")
        return tree_picture(state_tree(model, part, 0))

    def evaluated(self, model: SupervisedModel, part: Part) -> str:
        return self.answers(model, part, {})


@torch.no_grad()
def state_tree(model: SupervisedModel, part: Part, row: int) -> StateTree:
    """One tree of a part, with the states of the first network."""
    only = replace(part.take(torch.tensor([row]).numpy()), labels=None)
    answer = model.task.answers(only, model)[0]
    network = model.networks[0]
    assert isinstance(network, SupervisedNetwork)
    assert isinstance(network.reader, TreeEncoder)
    forest = model.learned.input.forest(only)
    batch = moved(forest.batch([0]), device_of_weights(network))
    states = network.reader.states(batch).cpu()
    tokens = [part.numbers.token_names[k] for k in only.inputs.row(0)]
    words: list[str] = []
    for token in tokens:
        if token.startswith("("):
            words.append("")
        elif token != ")":
            words[-1] = token
    text, labels, probabilities = _of_nodes(answer, tokens, len(forest.words))
    return StateTree(
        text,
        tuple(words),
        tuple(int(k) for k in forest.parents),
        labels,
        probabilities,
        tuple(tuple(round(v, 6) for v in state) for state in states.cpu().tolist()),
    )


def _of_nodes(
    answer: Answer, tokens: Sequence[str], nodes: int
) -> tuple[str, tuple[str, ...], tuple[float | None, ...]]:
    """The label and probability of each node of a tree in brackets; the root has the answer for the
    whole tree."""
    if isinstance(answer, TreeAnswer):
        if answer.labels:
            return answer.tree, answer.labels, answer.node_probabilities
        text, label, probability = answer.tree, answer.label, answer.probability
    elif isinstance(answer, Estimated):
        text, label, probability = tree_of(tokens).as_text(), f"{answer.value:.4g}", None
    elif isinstance(answer, Classified):
        text, label = tree_of(tokens).as_text(), ", ".join(answer.labels)
        chances = [answer.probabilities[name] for name in answer.labels]
        probability = min(chances, default=None)
    else:  # for targets unknown to Ensue
        text, label, probability = tree_of(tokens).as_text(), answer.as_line(""), None
    rest = nodes - 1
    return text, (label, *[""] * rest), (probability, *[None] * rest)


MOST_UNITS = 16  # maximum drawn units of a state
CELL = 5.0  # side of a unit
LEVEL, GAP, MARGIN, TOP = 74.0, 14.0, 24.0, 58.0
LONGEST_WORD = 14


@dataclass(frozen=True)
class StateTree:
    """An explained tree, each node before its descendants.

    words: "" at inner nodes; parents: −1 for the root; labels: predicted labels, "" for nodes
    without label; probabilities: the probabilities of the labels; states: the state at each
    node."""

    tree: str
    words: tuple[str, ...]
    parents: tuple[int, ...]
    labels: tuple[str, ...]
    probabilities: tuple[float | None, ...]
    states: tuple[tuple[float, ...], ...]


def tree_text(tree: StateTree) -> str:
    """One line per node, indented below its parent: label, probability, word."""
    depth = [0] * len(tree.words)
    lines = []
    for node, parent in enumerate(tree.parents):
        depth[node] = 0 if parent < 0 else depth[parent] + 1
        label, p = tree.labels[node], tree.probabilities[node]
        head = f"{label} {p:.2f}" if label and p is not None else label
        lines.append(f"{'  ' * depth[node]}{head or '·'}  {tree.words[node]}".rstrip())
    return "\n".join(lines)


def tree_picture(tree: StateTree) -> str:
    """The root on top, leaves from left to right, and at each node the first units of its state:
    blue above zero, orange below."""
    units = min(MOST_UNITS, max((len(state) for state in tree.states), default=0))
    strip = units * CELL
    children: list[list[int]] = [[] for _ in tree.words]
    depth = [0] * len(tree.words)
    for node, parent in enumerate(tree.parents):
        if parent >= 0:
            children[parent].append(node)
            depth[node] = depth[parent] + 1
    across = _across(tree, children, strip)
    drawing = Drawing()
    for node, parent in enumerate(tree.parents):
        if parent >= 0:
            below, above = (TOP + LEVEL * depth[k] for k in (node, parent))
            ends = [(across[parent], above + 20), (across[node], below - 20)]
            drawing.line(ends, FAINT, 1.2)
    largest = max((abs(v) for state in tree.states for v in state[:units]), default=1.0) or 1.0
    for node in range(len(tree.words)):
        _node(drawing, tree, node, (across[node], TOP + LEVEL * depth[node]), units, largest)
    width = max((across[k] for k in range(len(across))), default=0.0) + strip / 2 + MARGIN + 30
    height = TOP + LEVEL * max(depth, default=0) + 76
    drawing.words((MARGIN, 22), "a tree, and the states of its nodes", 13, INK, "start", 600)
    note = f"first {units} units of each state: blue above zero, orange below"
    drawing.words((MARGIN, height - 16), note, 11, QUIET, "start")
    wide = MARGIN * 2 + text_width(note, 11)
    return drawing.svg(max(width, wide), height, f"Tree with states: {tree.tree}")


def _across(tree: StateTree, children: Sequence[Sequence[int]], strip: float) -> list[float]:
    """Horizontal position of each node: leaves next to each other, parents centred over theirs."""
    across, at = [0.0] * len(tree.words), MARGIN
    for node in range(len(tree.words)):  # leaves come from left to right
        if not children[node]:
            wide = max(strip, text_width(_short(tree.words[node]), 13), 46)
            across[node] = at + wide / 2
            at += wide + GAP
    for node in range(len(tree.words) - 1, -1, -1):
        if children[node]:
            across[node] = (across[children[node][0]] + across[children[node][-1]]) / 2
    return across


def _short(word: str) -> str:
    return word if len(word) <= LONGEST_WORD else f"{word[: LONGEST_WORD - 1]}…"


def _node(
    drawing: Drawing,
    tree: StateTree,
    node: int,
    at: tuple[float, float],
    units: int,
    largest: float,
) -> None:
    (x, y), state = at, tree.states[node][:units]
    label, p = tree.labels[node], tree.probabilities[node]
    probability = "" if p is None else f" {p:.3f}"
    drawing.begin(f"{label}{probability} {tree.words[node]}".strip() if label else tree.words[node])
    if label:
        wide = max(26.0, text_width(label, 13) + 14)
        drawing.rectangle((x, y - 8), wide, 20, 5, GREY)
        drawing.words((x, y - 8), label, 13, INK, weight=600)
        if p is not None:
            drawing.words((x + wide / 2 + 4, y - 8), f"{p:.2f}", 10, QUIET, "start")
    left = x - units * CELL / 2
    for k, value in enumerate(state):
        drawing.bar(left + k * CELL, y + 6, CELL - 0.6, 9, diverging(value / largest), 0.8)
    drawing.words((x, y + 28), _short(tree.words[node]), 13)
    drawing.end()
