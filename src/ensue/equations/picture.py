"""The graph of a step as a picture: x and the old state on the left, the new on the right.

Boxes are products, circles elementwise operations; parameter vectors, masks and numbers hang
as tags on the operation that uses them. What depends on one value alone is drawn as one
operation, so that a normalisation is not ten circles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ensue.equations.arrange import Box, arrange
from ensue.equations.drawing import (
    BLUE,
    FAINT,
    GREY,
    INK,
    PAPER,
    QUIET,
    STATES,
    VIOLET,
    Colour,
    Drawing,
    Point,
    name_width,
    text_width,
)
from ensue.equations.node import Node, below
from ensue.equations.text import Plain

if TYPE_CHECKING:
    from ensue.equations.equations import Equations

SYMBOLS = {"sigmoid": "σ", "multiply": "×", "add": "+", "divide": "÷", "maximum": "max"}
TAGS = ("vector", "mask", "constant", "count")
WHITE = Colour(QUIET, PAPER)
MARGIN, TITLE, LEGEND, LANE = 30.0, 46.0, 44.0, 15.0


@dataclass(eq=False)
class Item:
    """One thing of the picture; `inputs` are the items its arrows come from, each with the
    mark that stands at its arrow: "−" where it is subtracted, "÷" where it divides."""

    kind: str  # input, product, operation, result
    label: str
    colour: Colour
    tooltip: str
    name: str = ""
    inputs: list[tuple[Item, str]] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)

    @property
    def width(self) -> float:
        if self.kind == "operation":
            return 30.0 if len(self.label) <= 2 else text_width(self.label, 13) + 18
        return max(36.0, name_width(self.label, 16) + 18)

    @property
    def height(self) -> float:
        return 30.0

    @property
    def tag_width(self) -> float:
        return max([0.0, *(name_width(tag, 13) + 12 for tag in self.tags)])

    @property
    def box(self) -> Box:
        above = self.height / 2 + (17 if self.name else 0)
        under = self.height / 2 + 24 * len(self.tags)
        room = max(self.width, name_width(self.name, 15), self.tag_width)
        return Box(room, above, under + (14 if self.kind in ("input", "result") else 0))


# -------------------------------------------------------------------- from nodes to items
class _Items:
    """The items of a traced step, in topological order: inputs first, results last."""

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        self.items: list[Item] = []
        self._made: dict[Node, Item] = {}
        self._users: dict[Node, set[Node]] = {}
        for node in below(equations.roots):
            for argument in node.args:
                self._users.setdefault(argument, set()).add(node)
        self._roots = set(equations.roots)
        self.colours = dict(zip(equations.old, STATES * len(equations.old), strict=False))
        self._printer = Plain(equations.names)
        self._input(equations.x, "x", BLUE)
        for part, leaf in equations.old.items():
            self._input(leaf, part, self.colours[part])
        self.inputs = len(self.items)
        results = [self._result(part, node) for part, node in equations.state.items()]
        if equations.output not in equations.state.values():
            results.append(self._result("", equations.output))
        self.items += results

    def _input(self, node: Node, name: str, colour: Colour) -> None:
        self._made[node] = Item("input", name, colour, "x: the input" if node.op == "x" else "")
        self._made[node].tooltip = f"{name}: {'the input' if node.op == 'x' else 'the old state'}"
        self.items.append(self._made[node])

    def _result(self, part: str, node: Node) -> Item:
        name = f"{part}'" if part else "y"
        colour = self.colours[part] if part else BLUE
        said = f"{name} = {self._printer.define(node)}"
        item = Item("result", name, colour, said)
        self._feed(item, node, "")
        return item

    def _feed(self, item: Item, node: Node, mark: str) -> None:
        """Gives the item one more input, or a tag."""
        node = node.args[0] if node.op == "spread" else node
        if node.op in TAGS:
            sign = {"": "", "−": "−", "÷": "1/"}[mark]
            item.tags.append(sign + self._printer.leaf(node))
        else:
            item.inputs.append((self._item(node), mark))

    def _item(self, node: Node) -> Item:
        if node not in self._made:
            name = "" if node in self._roots else self.equations.names.get(node, "")
            item = self._product(node) if node.op == "product" else self._operation(node)
            item.name, self._made[node] = name, item
            item.tooltip = f"{name} = {item.tooltip}" if name else item.tooltip
            self.items.append(item)
        return self._made[node]

    def _product(self, node: Node) -> Item:
        ref = node.attr
        operand = self._item(node.args[0])
        said = self._printer.define(node)
        colour = operand.colour if operand.kind == "input" else GREY
        label = f"{ref.name}_{ref.gate}" if ref.gate else ref.name
        return Item("product", label, colour, said, inputs=[(operand, "")])

    def _operation(self, node: Node) -> Item:
        said = self._printer.define(node)
        region = self._region(node)
        source = {a for n in region for a in n.args if a not in region}
        source -= {a for a in source if a.op in ("constant", "count")}
        if len(source) == 1:
            (one,) = source
            item = Item("operation", _function(node, one), VIOLET, said)
            self._feed(item, one, "")
            return item
        item = Item("operation", SYMBOLS.get(node.op, node.op), WHITE, said)
        for argument, mark in _terms(node, self._is_own):
            self._feed(item, argument, mark)
        return item

    def _is_own(self, node: Node, of: set[Node]) -> bool:
        """Whether a node is a nameless step on the way to these nodes alone."""
        named = node in self.equations.names or node in self._roots
        free = not node.is_leaf and node.op != "product" and not named
        return free and self._users[node] <= of

    def _region(self, node: Node) -> set[Node]:
        """The node and all nameless nodes that serve it alone."""
        region = {node}
        for candidate in reversed(below([node])):
            if candidate is not node and self._is_own(candidate, region):
                region.add(candidate)
        return region


def _terms(node: Node, is_own: object) -> list[tuple[Node, str]]:
    """The arguments of an operation with their marks; a sum of sums is one sum."""
    if node.op == "divide":
        return [(node.args[0], ""), (node.args[1], "÷")]
    if node.op != "add":
        return [(argument, "") for argument in node.args]
    found: list[tuple[Node, str]] = []
    for argument in node.args:
        if argument.op == "add" and is_own(argument, {node}):  # type: ignore[operator]
            found += _terms(argument, is_own)
        elif argument.op == "negative" and is_own(argument, {node}):  # type: ignore[operator]
            found.append((argument.args[0], "−"))
        else:
            found.append((argument, ""))
    return found


def _function(node: Node, source: Node) -> str:
    """The label of an operation on one value, which is written as a dot."""
    if node.args == (source,):
        return {"negative": "−"}.get(node.op, SYMBOLS.get(node.op, node.op))
    text = Plain({source: "·"}).define(node).replace("·*·", "·²").replace(" - ", " − ")
    text = text.replace("sqrt", "√").replace("maximum", "max")
    if text.endswith(" − ·"):
        return text.removesuffix(" − ·") + "−"
    return text.replace("*", "×")
