"""The equations of a step as a document, and their graph as a picture.

x and the old state are on the left, the new state on the right. Boxes are products with a parameter
matrix, circles are elementwise; vectors are tags of the operation that uses them. Values that come
from x, and from each part of the state, have a colour; dashed lines lead the new state back to the
input of the next step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import cycle
from math import prod, sqrt
from typing import TYPE_CHECKING

from ensue.drawing.arrange import Arrangement, Box, arrange
from ensue.drawing.document import Beside, Document, Figure, Paragraph, Section, Table
from ensue.drawing.svg import (
    BLUE,
    FAINT,
    GREY,
    INK,
    QUIET,
    STATES,
    VIOLET,
    Colour,
    Drawing,
    Point,
    name_width,
    text_width,
)
from ensue.drawing.theme import PAPER
from ensue.equations.node import Node, below
from ensue.equations.text import Plain

if TYPE_CHECKING:
    from ensue.equations.equations import Equations

# -------------------------------------------------------------------------------------------------
# The content of a picture of a step: items and the arrows between them.
#
# A product is one item, and so is a sum of any length. Operations that depend on a single value
# form one item, so that a normalisation is not ten circles. Parameter vectors, masks and numbers
# are not items; they are tags on the item that uses them.

SYMBOLS = {
    "add": "+",
    "divide": "÷",
    "maximum": "max",
    "multiply": "×",
    "negative": "−",
    "sigmoid": "σ",
    "sqrt": "√",
}
TAGS = ("vector", "mask", "constant", "count")


@dataclass(eq=False)
class Item:
    """A shape of the picture.

    part: "x" or a state part for inputs, results and products of them; name: the author's name of
    the value; inputs: the items its arrows come from, each with the mark at its arrow: "−" if it
    is subtracted, "÷" if it divides."""

    kind: str  # input, product, function (of one value), operation (of several), result
    label: str
    meaning: str
    part: str = ""
    name: str = ""
    caption: str = ""  # what a result is
    inputs: list[tuple[Item, str]] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)


class Outline:
    """The items of a traced step in topological order: `inputs` first, `results` last."""

    def __init__(self, equations: Equations) -> None:
        self._equations, self._printer = equations, Plain(equations.names)
        self._roots = set(equations.roots)
        self._made: dict[Node, Item] = {}
        self._users: dict[Node, set[Node]] = {}
        for node in below(equations.roots):
            for argument in node.args:
                self._users.setdefault(argument, set()).add(node)
        self.items: list[Item] = []
        for name, leaf in {"x": equations.x, **equations.old}.items():
            self._made[leaf] = Item("input", name, f"{name}, as it comes in", name)
            self.items.append(self._made[leaf])
        self.inputs = list(self.items)
        self.results = [self._result(part, node) for part, node in equations.state.items()]
        if equations.output not in equations.state.values():
            self.results.append(self._result("", equations.output))
        written = {
            self._made[node]: k
            for k, node in enumerate(below(equations.roots))
            if node in self._made
        }
        first = len(self.inputs)
        self.items[first:] = sorted(self.items[first:], key=lambda item: written[item])
        self.items += self.results

    def _result(self, part: str, node: Node) -> Item:
        name = f"{part}'" if part else self._equations.output_name
        item = Item("result", name, f"{name} = {self._printer.define(node)}", part)
        item.caption = "output" if node is self._equations.output else ""
        self._feed(item, node, "")
        return item

    def _feed(self, item: Item, node: Node, mark: str) -> None:
        """Adds an input to the item, or a tag."""
        node = node.args[0] if node.op == "spread" else node
        if node.op in TAGS:
            item.tags.append(mark + self._printer.leaf(node))
        else:
            item.inputs.append((self._item(node), mark))

    def _item(self, node: Node) -> Item:
        if node not in self._made:
            item = self._product(node) if node.op == "product" else self._operation(node)
            if node not in self._roots and node in self._equations.names:
                item.name = self._equations.names[node]
                item.meaning = f"{item.name} = {item.meaning}"
            self._made[node] = item
            self.items.append(item)
        return self._made[node]

    def _product(self, node: Node) -> Item:
        label = f"{node.attr.name}_{node.attr.gate}" if node.attr.gate else node.attr.name
        item = Item("product", label, self._printer.define(node))
        self._feed(item, node.args[0], "")
        if item.inputs and item.inputs[0][0].kind == "input":
            item.part = item.inputs[0][0].part
        return item

    def _operation(self, node: Node) -> Item:
        meaning = self._printer.define(node)
        source = self._only_source(node) or (node.args[0] if len(node.args) == 1 else None)
        if source is not None:
            item = Item("function", _function(node, source), meaning)
            self._feed(item, source, "")
            return item
        item = Item("operation", SYMBOLS.get(node.op, node.op), meaning)
        for argument, mark in self._terms(node):
            self._feed(item, argument, mark)
        return item

    def _only_source(self, node: Node) -> Node | None:
        """The value that this node and its nameless helpers depend on, if there is exactly one."""
        inside = {node}
        for candidate in reversed(below([node])):
            if self._serves(candidate, inside):
                inside.add(candidate)
        source = {a for n in inside for a in n.args} - inside
        source = {a for a in source if a.op not in ("constant", "count")}
        return source.pop() if len(source) == 1 else None

    def _serves(self, node: Node, users: set[Node]) -> bool:
        """Whether a node has no name and is used by these users only."""
        if node.is_leaf or node.op == "product" or node in self._equations.names:
            return False
        return node not in self._roots and self._users.get(node, set()) <= users

    def _terms(self, node: Node) -> list[tuple[Node, str]]:
        """The arguments with their marks; nested sums are flattened."""
        if node.op == "divide":
            return [(node.args[0], ""), (node.args[1], "÷")]
        if node.op != "add":
            return [(argument, "") for argument in node.args]
        terms_shown: list[tuple[Node, str]] = []
        for argument in node.args:
            mine = self._serves(argument, {node})
            if argument.op == "add" and mine and self._only_source(argument) is None:
                terms_shown += self._terms(argument)
            elif argument.op == "negative" and mine:
                terms_shown.append((argument.args[0], "−"))
            else:
                terms_shown.append((argument, ""))
        return terms_shown


def _function(node: Node, source: Node) -> str:
    """The label of an operation on one value: its symbol, or its expression with a dot for
    the value: "1−", "· − mean(·)"."""
    if node.args == (source,):
        return SYMBOLS.get(node.op, node.op)
    text = Plain({source: "·"}).define(node).replace(" - ", " − ").replace("·*·", "·²")
    for word, symbol in (("sqrt", "√"), ("maximum", "max"), ("*", " × "), ("-", "−")):
        text = text.replace(word, symbol)
    return "1−" if text == "1 − ·" else text


WHITE = Colour(QUIET, PAPER)
MARGIN, TITLE = 28.0, 72.0
LANE = 16.0  # between the lines that lead back
HALF = 15.0  # half the height of every item
TAG, TAG_GAP = 18.0, 7.0


def draw(equations: Equations) -> str:
    """The picture as SVG."""
    return _Picture(equations).svg()


def width(item: Item) -> float:
    """Width of the item itself, without its name and tags."""
    if item.kind in ("function", "operation"):
        return 30.0 if len(item.label) <= 2 else text_width(item.label, 13) + 16
    return max(38.0, name_width(item.label, 17) + 20)


def tag_width(tag: str) -> float:
    return max(TAG, name_width(tag, 13) + 11)


def box(item: Item) -> Box:
    """The space that an item takes, with its name above and its tags below."""
    tags = sum(map(tag_width, item.tags)) + 4.0 * max(0, len(item.tags) - 1)
    above = HALF + (18 if item.name else 0)
    below = HALF + (TAG + TAG_GAP if item.tags else 0) + (16 if item.caption else 0)
    return Box(max(width(item), name_width(item.name, 16), tags), above, below)


class _Picture:
    def __init__(self, equations: Equations) -> None:
        self.title = equations.title
        sizes, count = equations.graph.sizes, equations.counts().parameters
        self.subtitle = (
            f"one step with {sizes['input']} inputs, {sizes['hidden']} units: {count:,} parameters"
        )
        self.outline = Outline(equations)
        self.items = self.outline.items
        self.colours = {"x": BLUE, **dict(zip(equations.old, cycle(STATES), strict=False))}
        self.drawing = Drawing()
        number = {item: k for k, item in enumerate(self.items)}
        self.edges = [(item, k) for item in self.items for k in range(len(item.inputs))]
        links = [(number[item.inputs[k][0]], number[item]) for item, k in self.edges]
        results = [number[item] for item in self.outline.results]
        named = [number[item] for item in self.items if item.name]
        boxes, inputs = list(map(box, self.items)), len(self.outline.inputs)
        placed = arrange(boxes, links, inputs, results, named)
        self.upper, self.lower = self._lanes(placed)
        right = MARGIN + LANE * (1 + len(self.upper + self.lower))
        self.shift = (right, TITLE + LANE * (1 + len(self.upper)))
        self.size = placed.width + 2 * right, self.shift[1] + placed.height
        self.centre = {item: self._at(placed.centres[number[item]]) for item in self.items}
        self.sides = {
            item: (left + self.shift[0], right + self.shift[0])
            for item, (left, right) in zip(self.items, placed.sides, strict=True)
        }
        ways = [[self._at(point) for point in way] for way in placed.ways]
        self.ways = dict(zip(self.edges, ways, strict=True))

    def _at(self, point: Point) -> Point:
        return point[0] + self.shift[0], point[1] + self.shift[1]

    def _lanes(self, placed: Arrangement) -> tuple[list[str], list[str]]:
        """The parts whose lines lead back above the picture, and those below; innermost first."""
        height = dict(zip(self.items, (y for _, y in placed.centres), strict=True))
        level = {r.part: height[r] for r in self.outline.results if r.part}
        for item in self.outline.inputs[1:]:
            level[item.part] += height[item]
        ordered = sorted(level, key=lambda part: level[part])
        upper = [part for part in ordered if level[part] <= placed.height]
        return upper, [part for part in reversed(ordered) if part not in upper]

    # ---------------------------------------------------------------- drawing
    def svg(self) -> str:
        self.drawing.words((MARGIN, 30), self.title, 19, INK, "start", weight=600)
        self.drawing.words((MARGIN, 52), self.subtitle, 13, QUIET, "start")
        for part in self.colours:
            if part != "x":
                self._lead_back(part)
        for item, slot in self.edges:
            self._arrow(item, slot)
        for item in self.items:
            self._draw(item)
        bottom = self.size[1] + LANE * (1 + len(self.lower))
        words = max(text_width(self.title, 21), text_width(self.subtitle, 13))
        wide = max(self.size[0], words + 2 * MARGIN)
        bottom = self._legend(bottom + 22, wide)
        return self.drawing.svg(wide, bottom + 24, f"{self.title}: one step")

    def colour(self, item: Item) -> Colour:
        if item.kind in ("function", "operation"):
            return VIOLET if item.kind == "function" else WHITE
        return self.colours.get(item.part, GREY if item.kind == "product" else BLUE)

    def _draw(self, item: Item) -> None:
        centre, colour, wide = self.centre[item], self.colour(item), width(item)
        self.drawing.begin(item.meaning)
        across = 0.0
        total = sum(map(tag_width, item.tags)) + 4.0 * max(0, len(item.tags) - 1)
        for tag in item.tags:
            at = (
                centre[0] - total / 2 + across + tag_width(tag) / 2,
                centre[1] + HALF + TAG_GAP + TAG / 2,
            )
            string = [(at[0], at[1] - TAG / 2), (centre[0], centre[1] + HALF)]
            self.drawing.corners(string, FAINT, thick=1.2, arrow=False)
            self.drawing.rectangle(at, tag_width(tag), TAG, 4, Colour(FAINT, "#f8fafc"))
            self.drawing.name(at, tag, 13, INK)
            across += tag_width(tag) + 4
        if item.kind == "product":
            self.drawing.rectangle(centre, wide, 2 * HALF, 4, colour)
            self.drawing.name(centre, item.label, 17, INK)
        elif item.kind in ("input", "result"):
            self.drawing.rectangle(centre, wide, 2 * HALF, HALF, Colour(colour.line, colour.line))
            self.drawing.name(centre, item.label, 18, PAPER)
            self.drawing.words((centre[0], centre[1] + HALF + 10), item.caption, 11, QUIET)
        else:
            self.drawing.rectangle(centre, wide, 2 * HALF, HALF, colour)
            big = len(item.label) <= 2
            self.drawing.words(centre, item.label, 16 if big else 13, INK)
        if item.name:
            self.drawing.name((centre[0], centre[1] - HALF - 10), item.name, 16, VIOLET.line)
        self.drawing.end()

    def _arrow(self, item: Item, slot: int) -> None:
        """The arrow into one of an item's inputs, with its mark."""
        source, mark = item.inputs[slot]
        end = self._arrivals(item)[slot]
        x, y = self.centre[source]
        # straight to the edge of its column: next to a wide neighbour there is no space to bend
        way = [(self.sides[source][1], y), *self.ways[item, slot], (self.sides[item][0], end[1])]
        colour = self.colour(source).line if source.part else QUIET
        self.drawing.curve([(x + width(source) / 2, y), *way, end], colour)
        if mark:
            (x, y), (to_x, to_y) = way[-2:]
            at = x + 0.5 * (to_x - x), y + 0.5 * (to_y - y)
            self.drawing.rectangle(at, 14, 14, 7, Colour(FAINT, PAPER))
            self.drawing.words(at, mark, 13, INK, weight=600)

    def _arrivals(self, item: Item) -> list[Point]:
        """The ends of an item's arrows, on its left side, from the top."""
        x, y = self.centre[item]
        came = []  # the height from which each arrow arrives
        for slot, (source, _) in enumerate(item.inputs):
            way = self.ways[item, slot]
            came.append(way[-1][1] if way else self.centre[source][1])
        order = sorted(range(len(came)), key=lambda k: came[k])
        step = min(9.0, 20.0 / max(1, len(came) - 1))
        ends: dict[int, Point] = {}
        for place, k in enumerate(order):
            up = (place - (len(came) - 1) / 2) * step
            inward = 0.0 if item.kind == "product" else HALF - sqrt(HALF**2 - up**2)
            ends[k] = (x - width(item) / 2 + inward, y + up)
        return [ends[k] for k in range(len(came))]

    def _lead_back(self, part: str) -> None:
        """The dashed line from a new state part to the old state part of the next step."""
        start = next(i for i in self.outline.results if i.part == part)
        end = next(i for i in self.outline.inputs if i.part == part)
        lanes, above = (self.upper, True) if part in self.upper else (self.lower, False)
        far = LANE * (1 + lanes.index(part))
        (x, y), (to_x, to_y) = self.centre[start], self.centre[end]
        level = self.shift[1] - far if above else self.size[1] + far
        x, to_x = x + width(start) / 2, to_x - width(end) / 2
        beside = far + (0 if above else LANE * len(self.upper))
        points = [(x, y), (x + beside, y), (x + beside, level)]
        points += [(to_x - beside, level), (to_x - beside, to_y), (to_x, to_y)]
        self.drawing.corners(points, self.colours[part].line, thick=1.3, dashed=True)

    def _legend(self, y: float, wide: float) -> float:
        """Draws the legend in lines; returns the height of the last line."""
        parts = {item.part for item in self.items if item.kind == "product"}
        samples = [(self.colours[p], 4.0, f"product with {p}") for p in self.colours if p in parts]
        samples += [(GREY, 4.0, "product inside the step")] if "" in parts else []
        samples += [(VIOLET, 7.0, "function"), (WHITE, 7.0, "feature by feature")]
        at = MARGIN
        for colour, radius, text in [*samples, (None, 0.0, "to the next step")]:
            room = (21.0 if colour else 33.0) + text_width(text, 12)
            if at + room > wide - MARGIN and at > MARGIN:
                at, y = MARGIN, y + 22
            if colour:
                self.drawing.rectangle((at + 8, y), 14, 14, radius, colour)
            else:
                self.drawing.corners([(at, y), (at + 26, y)], QUIET, thick=1.3, dashed=True)
            before = 21 if colour else 33
            self.drawing.words((at + before, y), text, 12, QUIET, "start")
            at += room + 12
        return y


# --- as a document ---------------------------------------------------------------------------

HEADING = 60.0  # of the picture; its text is in the document


def equations_document(equations: Equations, about: str = "") -> Document:
    """A document with the equations. about: a sentence below the title."""
    formulas = Figure(equations.mathml(), equations.text().splitlines())
    picture = Figure(equations.svg(), above=HEADING)
    blocks = (Beside((formulas, _parameters(equations))), picture)
    return Document(equations.title, about, blocks)


def _parameters(equations: Equations) -> Section:
    """Each parameter with its shape; gates are stacked along its first axis."""
    counts, sizes = equations.counts(), equations.graph.sizes
    rows = [
        (name, " × ".join(map(str, shape)), prod(shape)) for name, shape in equations.shapes.items()
    ]
    rows.append(("all", f"{sizes['input']} inputs, {sizes['hidden']} units", counts.parameters))
    flops = counts.product_flops + counts.elementwise_flops
    what = f"{flops:,} flops for one row and step, {counts.product_flops:,} of them in products"
    table = Table(rows, ("parameter", "shape", "count"), left=2)
    return Section("", (table, Paragraph(what, quiet=True)))
