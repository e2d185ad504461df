"""What a picture of a step shows: items and the arrows between them.

A product is an item, a sum of any length is one, and what depends on one value alone is one:
a normalisation is not ten circles. Parameter vectors, masks and numbers are no items; they
are tags on the item that uses them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ensue.equations.node import Node, below
from ensue.equations.text import Plain

if TYPE_CHECKING:
    from ensue.equations.equations import Equations

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
    """One thing of the picture.

    `part` is "x" or a state part for inputs, results and products of them; `name` what the
    author calls the value; `inputs` the items its arrows come from, each with the mark that
    stands at its arrow: "−" where it is subtracted, "÷" where it divides."""

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
        """One more input for the item, or one more tag."""
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
        """The one value that this node and its nameless helpers depend on, if it is one."""
        inside = {node}
        for candidate in reversed(below([node])):
            if self._serves(candidate, inside):
                inside.add(candidate)
        source = {a for n in inside for a in n.args} - inside
        source = {a for a in source if a.op not in ("constant", "count")}
        return source.pop() if len(source) == 1 else None

    def _serves(self, node: Node, users: set[Node]) -> bool:
        """Whether a node is a nameless step on the way to these users and no others."""
        if node.is_leaf or node.op == "product" or node in self._equations.names:
            return False
        return node not in self._roots and self._users.get(node, set()) <= users

    def _terms(self, node: Node) -> list[tuple[Node, str]]:
        """The arguments with their marks; a sum inside a sum is part of it."""
        if node.op == "divide":
            return [(node.args[0], ""), (node.args[1], "÷")]
        if node.op != "add":
            return [(argument, "") for argument in node.args]
        found: list[tuple[Node, str]] = []
        for argument in node.args:
            mine = self._serves(argument, {node})
            if argument.op == "add" and mine and self._only_source(argument) is None:
                found += self._terms(argument)
            elif argument.op == "negative" and mine:
                found.append((argument.args[0], "−"))
            else:
                found.append((argument, ""))
        return found


def _function(node: Node, source: Node) -> str:
    """The label of an operation on one value: its symbol, or its expression with a dot for
    the value: "1−", "· − mean(·)"."""
    if node.args == (source,):
        return SYMBOLS.get(node.op, node.op)
    text = Plain({source: "·"}).define(node).replace(" - ", " − ").replace("·*·", "·²")
    for word, symbol in (("sqrt", "√"), ("maximum", "max"), ("*", " × "), ("-", "−")):
        text = text.replace(word, symbol)
    return "1−" if text == "1 − ·" else text
