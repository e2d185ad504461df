"""The order in which a step is computed: independent products first, then stage by stage.

Products of x alone do not depend on the state, so they are hoisted out of the loop over time. So
are products of a part that holds the previous x, p' = x, and, for a single step, products of the
old state. Inside the loop, the level of a value is the number of products and reductions between it
and the values in memory when the step begins. All products of one level are one stage; products of
the same operand form one matrix, and products that are summed are concatenated. The elementwise
rest of the level follows.

    level 0   U_r·h, U_z·h          one matrix of h
              r, z, r*h             elementwise
    level 1   U_n·(r*h)
              n, h'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ensue.equations.node import ONE, Node, below

MOST = 8  # operands of one dot
REDUCTIONS = ("sum", "mean")
CHEAP = ("add", "multiply", "negative", "spread", "copy")

IsConstant = Callable[[Node], bool]  # whether a leaf is known before the loop, for all steps


def of_x(leaf: Node) -> bool:
    """Only x is known before the loop."""
    return leaf.op == "x"


def of_nothing(leaf: Node) -> bool:
    """Nothing is known before the loop, so no product is hoisted."""
    return False


def of_x_and_shifts(old: Mapping[str, Node], new: Mapping[str, Node]) -> IsConstant:
    """x, and the parts of the old state whose new value is x: they hold the previous x."""
    shifted = {old[part] for part, node in new.items() if of_x(node)}
    return lambda leaf: of_x(leaf) or leaf in shifted


def is_hoisted(node: Node, is_given: IsConstant = of_x) -> bool:
    """Whether a product reads only leaves that are known before the loop: it becomes one large
    product for all steps."""
    return node.op == "product" and is_given(node.args[0])


def as_operand(node: Node) -> Node:
    """The operand of a dot. x, a state and computed values are rows in memory; other leaves are
    copied."""
    return node.graph.copy(node) if node.is_leaf and node.op not in ("x", "state") else node


def lower(roots: Iterable[Node], is_given: IsConstant = of_x) -> dict[Node, Node]:
    """The same values with products as `dot` nodes, sums of matrix · operand.

    Products that are only added to each other become one dot. Hoisted products stay."""
    roots = list(roots)
    nodes = below(roots)
    uses = Counter(a for n in nodes for a in n.args) + Counter(roots)
    lowered: dict[Node, Node] = {}
    for node in nodes:
        args = tuple(lowered[a] for a in node.args)
        if node.op == "product" and not is_hoisted(node, is_given):
            lowered[node] = node.graph.dot(((node.attr, as_operand(args[0])),))
        elif node.op == "add":
            lowered[node] = _lower_sum(node, args, uses)
        else:
            lowered[node] = node.graph.rebuild(node, args)
    return lowered


def _lower_sum(node: Node, args: tuple[Node, ...], uses: Counter[Node]) -> Node:
    """Joins the dots of a sum that no other node reads, unless one is a single number and the sum
    has many features."""
    alone = [
        new.op == "dot" and uses[old] == 1 and (new.size == ONE) == (node.size == ONE)
        for old, new in zip(node.args, args, strict=True)
    ]
    if sum(alone) < 2:
        return node.graph.rebuild(node, args)
    dots = [a for a, joined in zip(args, alone, strict=True) if joined]
    terms = [term for dot in dots for term in zip(dot.attr, dot.args, strict=True)]
    rest = [a for a, joined in zip(args, alone, strict=True) if not joined]
    joins = [node.graph.dot(tuple(terms[k : k + MOST])) for k in range(0, len(terms), MOST)]
    return node.graph.add(*rest, *joins)


@dataclass
class Phase:
    """One sweep over the features of one size: products, then elementwise work, then sums.

    `loads` come from memory, `scalars` are single numbers of each row, `stores` go to memory,
    `reductions` are taken over the sweep."""

    level: int
    size: str
    dots: list[Node] = field(default_factory=list)
    body: dict[Node, None] = field(default_factory=dict)
    loads: dict[Node, None] = field(default_factory=dict)
    scalars: dict[Node, None] = field(default_factory=dict)
    stores: dict[Node, None] = field(default_factory=dict)
    reductions: dict[Node, None] = field(default_factory=dict)

    @property
    def groups(self) -> list[list[Node]]:
        """The product nodes (dots), grouped by equal operands. The matrices of a group become one
        matrix."""
        by_operand: dict[tuple[Node, ...], list[Node]] = {}
        for dot in sorted(self.dots, key=lambda n: n.number):
            by_operand.setdefault(dot.args, []).append(dot)
        return list(by_operand.values())


@dataclass
class Stage:
    """One level: first the single numbers of a row that its sweeps need, then a sweep for each
    size."""

    level: int
    scalars: dict[Node, None] = field(default_factory=dict)
    phases: dict[str, Phase] = field(default_factory=dict)


class Schedule:
    """The stages that compute the roots, given the values that are `in_memory` when the step
    begins."""

    def __init__(self, roots: Iterable[Node], in_memory: Callable[[Node], bool]) -> None:
        self.in_memory = in_memory
        self.roots = list(dict.fromkeys(roots))
        self.level: dict[Node, int] = {}
        for node in below(self.roots, in_memory):
            if in_memory(node) or node.is_leaf:
                self.level[node] = 0
            else:
                costly = node.op == "dot" or node.op in REDUCTIONS
                self.level[node] = max(map(self._level_after, node.args)) + costly
        top = max((self.level[n] for n in self.roots), default=0)
        self._stages = [Stage(k) for k in range(top + 1)]
        self.first = 0 if top == 0 or self._works_before_products() else 1
        for root in self.roots:
            if root.size == ONE and root.op != "dot" and not in_memory(root):
                self._scalar(root)
            else:
                self._phase(max(self.level[root], self.first), root.size).stores[root] = None
        for stage in reversed(self._stages):
            for phase in list(stage.phases.values()):
                for node in [*phase.stores, *(r.args[0] for r in phase.reductions)]:
                    self._visit(node, phase)
        self.stages = [s for s in self._stages if s.phases or s.scalars]

    @property
    def phases(self) -> list[Phase]:
        """All sweeps, in the order in which they run."""
        return [phase for stage in self.stages for phase in stage.phases.values()]

    @property
    def reads(self) -> dict[Node, None]:
        """The values that the stages read but do not compute: leaves, and values in memory when the
        step begins. They are swept over, read as single numbers of a row, or multiplied by a
        matrix."""
        nodes: dict[Node, None] = {}
        for stage in self.stages:
            for number in stage.scalars:
                if number.op not in REDUCTIONS:  # a sweep reads its operand
                    nodes.update(dict.fromkeys(number.args))
            for phase in stage.phases.values():
                operands = [operand for dot in phase.dots for operand in dot.args]
                nodes.update(dict.fromkeys([*phase.loads, *phase.scalars, *operands]))
        return {node: None for node in nodes if self._at_hand(node)}

    def _level_after(self, node: Node) -> int:
        """The first level that can read the node. A dot with a single number as result can only be
        read on the next level."""
        late = node.op == "dot" and node.size == ONE and not self._at_hand(node)
        return self.level[node] + late

    def _works_before_products(self) -> bool:
        """Whether some product or reduction reads a value of level 0 that is not in memory."""
        return any(
            self.level[a] == 0 and (node.op in REDUCTIONS or not self._at_hand(a))
            for node in self.level
            if not self._at_hand(node) and (node.op == "dot" or node.op in REDUCTIONS)
            for a in node.args
        )

    def _at_hand(self, node: Node) -> bool:
        return node.is_leaf or self.in_memory(node)

    def _phase(self, level: int, size: str) -> Phase:
        return self._stages[level].phases.setdefault(size, Phase(level, size))

    def _visit(self, node: Node, phase: Phase) -> None:
        """Makes the phase compute or load the node."""
        if node in phase.body or node in phase.loads or node in phase.scalars:
            return
        if node.size == ONE and self._is_number_of_row(node, phase):
            phase.scalars[node] = None
            self._scalar(node)
            return
        if self._at_hand(node):
            phase.loads[node] = None
        elif node.op == "dot" and self.level[node] == phase.level:
            phase.dots.append(node)
            phase.body[node] = None
            for operand in node.args:
                self._keep(operand)
        elif self.level[node] < phase.level and self._worth_keeping(node):
            self._keep(node)
            phase.loads[node] = None
        else:
            for argument in node.args:
                self._visit(argument, phase)
            phase.body[node] = None

    def _is_number_of_row(self, node: Node, phase: Phase) -> bool:
        """Whether a value of size one is computed when the phase begins."""
        in_this_phase = node.op == "dot" and self.level[node] == phase.level
        return not in_this_phase and (not node.is_leaf or self.in_memory(node))

    def _worth_keeping(self, node: Node) -> bool:
        if self.level[node] < self.first:
            return False
        return node in self._phase_of(node).stores or node.op not in CHEAP

    def _phase_of(self, node: Node) -> Phase:
        level = self.level[node]
        return self._stages[level].phases.get(node.size) or Phase(level, node.size)

    def _keep(self, node: Node) -> None:
        """Stores the node in memory, in its phase, for a later phase."""
        if node.size == ONE:
            self._scalar(node)
        elif not self._at_hand(node):
            self._phase(self.level[node], node.size).stores[node] = None

    def _scalar(self, node: Node) -> None:
        """Adds a single number of each row, computed at the beginning of its level."""
        if self._at_hand(node):
            return
        if node.op == "dot":
            self._phase(self.level[node], ONE).stores[node] = None
            return
        stage = self._stages[self.level[node]]
        if node in stage.scalars:
            return
        if node.op in REDUCTIONS:
            operand = node.args[0]
            self._phase(self.level[node] - 1, operand.size).reductions[node] = None
        else:
            for argument in node.args:
                self._scalar(argument)
        stage.scalars[node] = None
