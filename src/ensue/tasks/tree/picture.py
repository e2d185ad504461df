"""A tree with its answers and its states, as a picture and as lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ensue.drawing.colours import diverging
from ensue.drawing.svg import FAINT, GREY, INK, QUIET, Drawing, text_width

MOST_UNITS = 16  # of a state that are drawn
CELL = 5.0  # side of a unit
LEVEL, GAP, MARGIN, TOP = 74.0, 14.0, 24.0, 58.0
LONGEST_WORD = 14


@dataclass(frozen=True)
class StateTree:
    """A tree as an answer sees it, each node before those below it.

    words: "" at inner nodes; parents: −1 for the root; labels: the answered ones, "" where a node
    has none; probabilities: of these; states: the state at each node."""

    tree: str
    words: tuple[str, ...]
    parents: tuple[int, ...]
    labels: tuple[str, ...]
    probabilities: tuple[float, ...]
    states: tuple[tuple[float, ...], ...]


def tree_text(tree: StateTree) -> str:
    """One line a node, indented below its parent: label, probability, word."""
    depth = [0] * len(tree.words)
    lines = []
    for node, parent in enumerate(tree.parents):
        depth[node] = 0 if parent < 0 else depth[parent] + 1
        label, p = tree.labels[node], tree.probabilities[node]
        told = f"{label} {p:.2f}" if label else "·"
        lines.append(f"{'  ' * depth[node]}{told}  {tree.words[node]}".rstrip())
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
    told = f"first {units} units of each state: blue above zero, orange below"
    drawing.words((MARGIN, height - 16), told, 11, QUIET, "start")
    wide = MARGIN * 2 + text_width(told, 11)
    return drawing.svg(max(width, wide), height, f"Tree with states: {tree.tree}")


def _across(tree: StateTree, children: Sequence[Sequence[int]], strip: float) -> list[float]:
    """Where each node stands: leaves beside each other, parents over the middle of theirs."""
    found, at = [0.0] * len(tree.words), MARGIN
    for node in range(len(tree.words)):  # leaves come from left to right
        if not children[node]:
            wide = max(strip, text_width(_short(tree.words[node]), 13), 46)
            found[node] = at + wide / 2
            at += wide + GAP
    for node in range(len(tree.words) - 1, -1, -1):
        if children[node]:
            found[node] = (found[children[node][0]] + found[children[node][-1]]) / 2
    return found


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
    drawing.begin(f"{label} {p:.3f} {tree.words[node]}".strip() if label else tree.words[node])
    if label:
        wide = max(26.0, text_width(label, 13) + 14)
        drawing.rectangle((x, y - 8), wide, 20, 5, GREY)
        drawing.words((x, y - 8), label, 13, INK, weight=600)
        drawing.words((x + wide / 2 + 4, y - 8), f"{p:.2f}", 10, QUIET, "start")
    left = x - units * CELL / 2
    for k, value in enumerate(state):
        drawing.bar(left + k * CELL, y + 6, CELL - 0.6, 9, diverging(value / largest), 0.8)
    drawing.words((x, y + 28), _short(tree.words[node]), 13)
    drawing.end()
