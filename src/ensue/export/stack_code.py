"""Layers of cells over a sequence, as the bodies of three functions: start, step and run.

    start(state)                      the state before the first step
    step(x, state, y)                 one step, of a stack with one direction
    run(x, steps, state, y, work)     a whole sequence; state goes in and comes out

State is all parts of all layers and directions, one after another. work: memory for values between
layers, `work_per_step` numbers for each step.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

from ensue.engine.native.emission.buffers import gate_number
from ensue.equations import Equations, Node
from ensue.equations.node import ONE, MatrixRef
from ensue.equations.schedule import REDUCTIONS, Phase, Schedule, Stage, lower, of_nothing
from ensue.export.languages import Language, indent
from ensue.export.stack import Direction, Stack, layer_width
from ensue.export.weights import Stored

# -------------------------------------------------------------------------------------------------
# One step of a cell as loops over its features, in any language of `languages.py`.
#
# The loops follow the order of `equations.schedule`, as in the native engine: for each stage the
# single numbers of a row, then one sweep over the features of each size, products first.
#
#     for (long j = 0; j < 4; j++) {
#         float d9 = 0.0f, d12 = 0.0f;
#         for (long k = 0; k < 3; k++) {
#             const float o = x[k];
#             d9 += w0_W[(0 + j) * 3 + k] * o; …

CALLED = re.compile(r"([A-Za-z_][A-Za-z0-9_.]*)\(")


class StepCode:
    """The function `NAME(x, old; next, y)`. With `watched` it also has `seen`, to which the named
    values inside the step are written, one after another.

    scratch: arrays that the function needs, by name; seen: (name, offset, width) of each watched
    value; called: the names of all functions that its text calls."""

    def __init__(
        self, name: str, direction: Direction, language: Language, watched: bool = False
    ) -> None:
        self.name, self.language, self.direction = name, language, direction
        equations = direction.equations
        named = _named(equations) if watched else {}
        low = lower([*equations.roots, *named], of_nothing)
        self._names = {low[node]: name for node, name in equations.names.items() if node in low}
        self.output = _stored(low[equations.output])
        self.state = {part: _stored(low[node]) for part, node in equations.state.items()}
        self.watched = {label: _stored(low[node]) for node, label in named.items()}
        roots = [self.output, *self.state.values(), *self.watched.values()]
        self.schedule = Schedule(roots, lambda _: False)
        self.watched_at = _offsets({label: node.width for label, node in self.watched.items()})
        self._offset = {part: at for part, at, _ in _offsets(direction.parts)}
        self._read_after = self._read_later()
        self._in_phase: set[Node] = set()
        body = self._body()
        self.scratch = {
            f"{name}__{node.number}": node.width
            for node in sorted(self._read_after, key=lambda n: n.number)
            if node not in roots
        }
        arrays = ["next", "y", *(["seen"] if watched else [])]
        self.lines = language.function(name, ["x", "old"], arrays, body)
        self.called = set(CALLED.findall("\n".join(body)))

    def label(self, parameter: str) -> str:
        """The name of a parameter's array; the parameter's name may be in any alphabet."""
        if parameter.isascii():
            return f"{self.name}_{parameter}"
        return f"{self.name}__p{list(self.direction.weights).index(parameter)}"

    def arrays(self) -> dict[str, Stored]:
        """The parameters that the step reads, and the initial state, by label."""
        text = "\n".join(self.lines)
        by_label = {
            self.label(name): self.direction.weights[name] for name in self.direction.weights
        }
        by_label = {label: value for label, value in by_label.items() if f"{label}[" in text}
        start = np.concatenate(self.direction.start)
        if start.any():
            by_label[f"{self.name}__start"] = Stored("float32", start)
        return by_label

    # ---------------------------------------------------------------- where values are
    def _read_later(self) -> set[Node]:
        """Values with one number per feature that a later sweep reads."""
        read: set[Node] = set()
        for phase in self.schedule.phases:
            read |= {n for n in phase.loads if not n.is_leaf}
            read |= {n for dot in phase.dots for n in dot.args if not n.is_leaf}
        return {n for n in read if n.size != ONE}

    def _places(self, node: Node) -> list[tuple[str, int]]:
        """The arrays that a value of the step is written to, each with its offset."""
        places = [
            ("next", self._offset[part]) for part, value in self.state.items() if value is node
        ]
        if node is self.output:
            places.append(("y", 0))
        known = {label: at for label, at, _ in self.watched_at}
        places += [("seen", known[label]) for label, value in self.watched.items() if value is node]
        return places

    def _place(self, node: Node, index: str) -> str:
        """The place of a value that is stored for later sweeps."""
        for array, offset in self._places(node):
            return self.language.element(array, _step_plus(offset, index))
        return f"{self.name}__{node.number}[{index}]"

    def _leaf(self, node: Node, index: str) -> str:
        language = self.language
        at = "0" if node.size == ONE else index
        if node.op == "constant":
            return language.number(node.attr)
        if node.op == "count":
            return language.number(float(node.graph.width(node.attr)))
        if node.op == "vector":
            first = gate_number(self.direction.equations, node.attr) * node.width
            return f"{self.label(node.attr.name)}[{_step_plus(first, at)}]"
        if node.op == "state":
            return language.element("old", _step_plus(self._offset[node.attr], at))
        assert node.op == "x", node.op
        return language.element("x", at)

    def _value(self, node: Node, index: str = "j") -> str:
        """The expression that reads a value: in its own sweep, as a number of the row, or from
        memory."""
        if node.is_leaf:
            return self._leaf(node, index)
        if node in self._in_phase:
            return f"v{node.number}"
        return f"n{node.number}" if node.size == ONE else self._place(node, index)

    def _expression(self, node: Node) -> str:
        return self.language.spelling.expression(node.op, [self._value(a) for a in node.args])

    # ---------------------------------------------------------------- the body
    def _body(self) -> list[str]:
        numbers = sorted(self._numbers(), key=lambda n: n.number)
        lines = [self.language.variable([f"n{n.number}" for n in numbers])] if numbers else []
        for stage in self.schedule.stages:
            lines += self._scalars(stage)
            for phase in stage.phases.values():
                lines += self._phase(phase)
        return lines

    def _numbers(self) -> set[Node]:
        """Single numbers of the row that are used after the sweep that computes them."""
        scalars = {n for stage in self.schedule.stages for n in stage.scalars}
        for phase in self.schedule.phases:
            scalars |= set(phase.reductions)
            scalars |= {n for n in phase.stores if n.size == ONE and not n.is_leaf}
        return scalars

    def _scalars(self, stage: Stage) -> list[str]:
        lines: list[str] = []
        self._in_phase = set()
        for node in sorted(stage.scalars, key=lambda n: n.number):
            if node.op not in REDUCTIONS:
                lines.append(f"n{node.number} = {self._expression(node)};")
            lines += self._writes(node, f"n{node.number}")
        return lines

    def _phase(self, phase: Phase) -> list[str]:
        """Writes one sweep."""
        self._in_phase = set()
        body: list[str] = []
        for group in phase.groups:
            body += self._products(group)
        self._in_phase = set(phase.dots)
        for node in sorted(phase.body, key=lambda n: n.number):
            if node in phase.dots:
                continue
            value = self._expression(node)
            self._in_phase.add(node)
            body.append(self.language.constant(f"v{node.number}", value) + self._remark(node))
        for node in phase.stores:
            value = self._value(node)
            if node.size == ONE and not node.is_leaf:
                body.append(f"n{node.number} = {value};")
            body += self._writes(node, value)
            if node in self._read_after and not self._places(node):
                body.append(f"{self._place(node, 'j')} = {value};")
        width = self._width(phase)
        lines = [self.language.loop("j", str(width)), *indent(body)]
        lines += indent(f"n{n.number} += {self._value(n.args[0])};" for n in phase.reductions)
        lines.append("}")
        lines += [
            f"n{n.number} = n{n.number} / {self.language.number(float(width))};"
            for n in phase.reductions
            if n.op == "mean"
        ]
        self._in_phase = set()
        return lines

    def _width(self, phase: Phase) -> int:
        return self.direction.equations.graph.width(phase.size)

    def _writes(self, node: Node, value: str) -> list[str]:
        """Writes a value of the step to all arrays that need it; a single number is repeated for
        all features."""
        index = "0" if node.size == ONE else "j"
        return [
            f"{self.language.element(array, _step_plus(offset, index))} = {value};"
            for array, offset in self._places(node)
        ]

    def _remark(self, node: Node) -> str:
        return f" {self.language.comment(self._names[node])}" if node in self._names else ""

    # ---------------------------------------------------------------- products
    def _products(self, dots: list[Node]) -> list[str]:
        """Dots with the same operands, each a sum over its terms, in one loop per operand."""
        lines = [self.language.variable([f"v{dot.number}" for dot in dots])]
        for number, operand in enumerate(dots[0].args):
            terms = [(dot, dot.attr[number]) for dot in dots]
            lines += self._term(operand, terms)
        return lines

    def _term(self, operand: Node, terms: list[tuple[Node, MatrixRef]]) -> list[str]:
        """One operand of several dots. A row of int8 is summed separately, and scaled once."""
        language, width = self.language, operand.width
        body, after, sums = [language.constant("o", self._value(operand, "k"))], [], []
        for dot, ref in terms:
            array, row = self.label(ref.name), self._row(ref)
            begin = row if row.isalnum() else f"({row})"
            weight = f"{array}[{begin} * {width} + k]" if width > 1 else f"{array}[{row}]"
            kind = self.direction.weights[ref.name].kind
            if kind == "int8" and language.scales_rows:
                total = f"q{dot.number}"
                sums.append(total)
                after.append(f"v{dot.number} += {array}__scale[{row}] * {total};")
                body.append(f"{total} += {weight} * o;")
            else:
                body.append(f"v{dot.number} += {language.weight(weight, kind)} * o;")
        loop = [language.loop("k", str(width)), *indent(body), "}"]
        if not sums:
            return loop
        return ["{", *indent([language.variable(sums), *loop, *after]), "}"]

    def _row(self, ref: MatrixRef) -> str:
        """The index of the row of a stacked matrix for feature j."""
        height = self.direction.equations.graph.width(ref.rows)
        first = gate_number(self.direction.equations, ref) * height
        return _step_plus(first, "0" if ref.rows == ONE else "j")


def _named(equations: Equations) -> dict[Node, str]:
    """Values inside the step that its author named: gates and candidates."""
    roots = {*equations.state.values(), equations.output}
    return {
        node: name
        for node, name in equations.names.items()
        if not node.is_leaf and node not in roots and node.size != ONE
    }


def _stored(node: Node) -> Node:
    """A computed node. A single number that the step returns unchanged is copied, so that it is
    stored."""
    return node.graph.copy(node) if node.is_leaf and node.size == ONE else node


def _offsets(widths: dict[str, int]) -> list[tuple[str, int, int]]:
    offsets, at = [], 0
    for name, width in widths.items():
        offsets.append((name, at, width))
        at += width
    return offsets


def _step_plus(offset: int, index: str) -> str:
    if not offset:
        return index
    return str(offset) if index == "0" else f"{offset} + {index}"


@dataclass
class StackCode:
    """The parts of a program, such as bodies of functions. A template puts the parts together."""

    stack: Stack
    language: Language
    watched: bool = False
    cells: list[StepCode] = field(init=False)

    def __post_init__(self) -> None:
        self.cells = [
            StepCode(f"w{number}", direction, self.language, self.watched)
            for number, direction in enumerate(self.stack.directions)
        ]

    # ---------------------------------------------------------------- sizes
    @property
    def offsets(self) -> list[int]:
        """The offset of each direction's state."""
        places, at = [], 0
        for direction in self.stack.directions:
            places.append(at)
            at += direction.state_size
        return places

    @property
    def widest_state(self) -> int:
        return max(direction.state_size for direction in self.stack.directions)

    @property
    def work_per_step(self) -> int:
        """The size of `work` per step: at most two sequences at a time, a layer's input and
        output."""
        between = [layer_width(layer) for layer in self.stack.layers[:-1]]
        return sum(sorted(between)[-2:])

    @property
    def scratch(self) -> dict[str, int]:
        """Arrays that the functions share: one for the new state, and some between the layers of a
        step; also the functions' own arrays, in languages where local arrays are costly."""
        sizes = {"fresh": self.widest_state}
        if self.stack.streams:
            widths = [layer_width(layer) for layer in self.stack.layers[:-1]]
            sizes |= {f"between{k}": width for k, width in enumerate(widths)}
        return sizes

    @property
    def seen_offsets(self) -> list[int]:
        """The offset of each direction's recorded values: its named values, then its state."""
        offsets, at = [], 0
        for cell in self.cells:
            offsets.append(at)
            at += sum(width for _, _, width in cell.watched_at) + cell.direction.state_size
        return offsets

    @property
    def seen_size(self) -> int:
        """The number of watched numbers per step."""
        last = self.cells[-1]
        width_of_last = sum(width for _, _, width in last.watched_at) + last.direction.state_size
        return self.seen_offsets[-1] + width_of_last

    @property
    def called(self) -> set[str]:
        return {name for cell in self.cells for name in cell.called}

    # ---------------------------------------------------------------- functions
    def functions(self) -> list[str]:
        """One function for each cell; local memory is at the beginning of its body."""
        lines: list[str] = []
        for cell in self.cells:
            room = [self.language.scratch(name, size) for name, size in cell.scratch.items()]
            if self.language.local_scratch:
                head = cell.lines.index("{") + 1
                lines += [*cell.lines[:head], *indent(room), *cell.lines[head:]]
            else:
                lines += [*room, *cell.lines]
        return lines

    def start(self) -> list[str]:
        lines = []
        for number, (direction, at) in enumerate(
            zip(self.stack.directions, self.offsets, strict=True)
        ):
            place = self.language.element("state", _plus(at, "j"))
            if any(part.any() for part in direction.start):
                value = f"w{number}__start[j]"
            else:
                value = self.language.number(0.0)
            lines += self._loop("j", direction.state_size, [f"{place} = {value};"])
        return lines

    def step(self) -> list[str]:
        """All layers, one after the other, for one step."""
        lines, address = [], self.language.address("x", "0")
        last = len(self.stack.layers) - 1
        for number, (direction, at) in enumerate(
            zip(self.stack.directions, self.offsets, strict=True)
        ):
            inside = self.language.whole(f"between{number}")
            out = self.language.address("y", "0") if number == last else inside
            lines += self.one(number, direction, at, address, out, "0")
            address = out
        return lines

    def run(self) -> list[str]:
        """All layers over the whole sequence, one after another; a layer's directions also one
        after another."""
        lines, origin, width = [], "x", self.stack.input_size
        last = len(self.stack.layers) - 1
        between = sorted(layer_width(layer) for layer in self.stack.layers[:-1])[-2:]
        halves = ["0", f"steps * {between[-1]}" if between else "0"]
        number = 0
        for depth, layer in enumerate(self.stack.layers):
            wide = layer_width(layer)
            out, base = ("y", "0") if depth == last else ("work", halves[depth % 2])
            source = "0" if depth == 0 else halves[(depth - 1) % 2]
            lines += self._layer(number, layer, (origin, source, width), (out, base, wide))
            number += len(layer)
            origin, width = out, wide
        return lines

    def _layer(
        self,
        number: int,
        layer: tuple[Direction, ...],
        origin: tuple[str, str, int],
        out: tuple[str, str, int],
    ) -> list[str]:
        language, (x, x_base, x_width), (y, y_base, y_width) = self.language, origin, out
        at, seen_offset = self.offsets[number], f"t * {self.seen_size}"
        lines = [language.loop("t", "steps")]
        source = language.address(x, _sum(x_base, f"t * {x_width}"))
        target = language.address(y, _sum(y_base, f"t * {y_width}"))
        lines += [*indent(self.one(number, layer[0], at, source, target, seen_offset)), "}"]
        if len(layer) == 1:
            return lines
        first, back, start = layer[0], layer[1], self.stack.backward_start
        behind = self.offsets[number + 1]
        begin = "steps - 1"
        if start != "zero":
            ahead, behind_state = (language.element("state", _plus(k, "j")) for k in (at, behind))
            lines += self._loop("j", back.state_size, [f"{behind_state} = {ahead};"])
        if start == "shared_end":
            begin = "steps - 2"
            one, other = (
                language.element(y, _sum(y_base, f"(steps - 1) * {y_width}", _plus(k, "j")))
                for k in (0, first.output_size)
            )
            copied = self._loop("j", back.output_size, [f"{other} = {one};"])
            lines += ["if (steps > 0) {", *indent(copied), "}"]
        target = language.address(y, _sum(y_base, f"t * {y_width}", str(first.output_size)))
        lines += [language.loop_down("t", begin)]
        return [
            *lines,
            *indent(self.one(number + 1, back, behind, source, target, seen_offset)),
            "}",
        ]

    def one(
        self, number: int, direction: Direction, at: int, x: str, y: str, seen_at: str
    ) -> list[str]:
        """One step of one direction: the new state replaces the old one."""
        language = self.language
        arguments = [x, language.address("state", str(at)), language.whole("fresh"), y]
        place = language.element("state", _plus(at, "j"))
        after = self._loop("j", direction.state_size, [f"{place} = fresh[j];"])
        if self.watched:
            first = self.seen_offsets[number]
            arguments.append(language.address("seen", _sum(seen_at, str(first))))
            rest = str(first + sum(width for _, _, width in self.cells[number].watched_at))
            state = language.element("seen", _sum(seen_at, rest, "j"))
            after[1:1] = indent([f"{state} = fresh[j];"])
        return [f"w{number}({', '.join(arguments)});", *after]

    def _loop(self, index: str, count: int, body: list[str]) -> list[str]:
        return [self.language.loop(index, str(count)), *indent(body), "}"]

    def cut(self) -> list[str]:
        """The code that cuts a sequence longer than max_length."""
        most = self.stack.max_length
        if most is None:
            return []
        lines = [f"if (steps > {most}) {{"]
        if self.stack.cut == "start":
            lines += indent(
                [self.language.skip("x", f"(steps - {most}) * {self.stack.input_size}")]
            )
        return [*lines, *indent([f"steps = {most};"]), "}"]


def _plus(offset: int, index: str) -> str:
    return f"{offset} + {index}" if offset else index


def _sum(*terms: str) -> str:
    return " + ".join(term for term in terms if term != "0") or "0"
