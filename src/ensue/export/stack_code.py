"""Layers of cells over a sequence, as the bodies of three functions: start, step and run.

    start(state)                      the state before the first step
    step(x, state, y)                 one step; of a stack that goes one way
    run(x, steps, state, y, work)     a whole sequence; state goes in and comes out

State is all parts of all layers and directions, one after the other. work: room for what lies
between layers, `work_per_step` numbers for each step.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ensue.export.languages import Language, indent
from ensue.export.stack import Direction, Stack, layer_width
from ensue.export.step_code import StepCode


@dataclass
class StackCode:
    """The parts of a program; a frame puts them together."""

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
        """Where the state of each direction begins."""
        found, at = [], 0
        for own in self.stack.directions:
            found.append(at)
            at += own.state_size
        return found

    @property
    def widest_state(self) -> int:
        return max(own.state_size for own in self.stack.directions)

    @property
    def work_per_step(self) -> int:
        """Two sequences at most are needed at once: what a layer reads and what it writes."""
        between = [layer_width(layer) for layer in self.stack.layers[:-1]]
        return sum(sorted(between)[-2:])

    @property
    def scratch(self) -> dict[str, int]:
        """Room that the functions share: for the new state, between the layers of one step, and
        where room inside of functions costs, theirs too."""
        found = {"fresh": self.widest_state}
        if self.stack.streams:
            widths = [layer_width(layer) for layer in self.stack.layers[:-1]]
            found |= {f"between{k}": width for k, width in enumerate(widths)}
        return found

    @property
    def seen_offsets(self) -> list[int]:
        """Where the watched values of each direction begin: its named values, then its state."""
        found, at = [], 0
        for cell in self.cells:
            found.append(at)
            at += sum(width for _, _, width in cell.seen) + cell.direction.state_size
        return found

    @property
    def seen_size(self) -> int:
        """How many numbers of each step are watched."""
        last = self.cells[-1]
        own = sum(width for _, _, width in last.seen) + last.direction.state_size
        return self.seen_offsets[-1] + own

    @property
    def called(self) -> set[str]:
        return {name for cell in self.cells for name in cell.called}

    # ---------------------------------------------------------------- functions
    def functions(self) -> list[str]:
        """One for each cell: room that is local stands at the beginning of its body."""
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
        for number, (own, at) in enumerate(zip(self.stack.directions, self.offsets, strict=True)):
            place = self.language.element("state", _plus(at, "j"))
            if any(part.any() for part in own.start):
                value = f"w{number}__start[j]"
            else:
                value = self.language.number(0.0)
            lines += self._loop("j", own.state_size, [f"{place} = {value};"])
        return lines

    def step(self) -> list[str]:
        """All layers, one after the other, for one step."""
        lines, given = [], self.language.address("x", "0")
        last = len(self.stack.layers) - 1
        for number, (own, at) in enumerate(zip(self.stack.directions, self.offsets, strict=True)):
            inside = self.language.whole(f"between{number}")
            out = self.language.address("y", "0") if number == last else inside
            lines += self.one(number, own, at, given, out, "0")
            given = out
        return lines

    def run(self) -> list[str]:
        """Layer by layer over the whole sequence; a layer's directions one after the other."""
        lines, given, width = [], "x", self.stack.input_size
        last = len(self.stack.layers) - 1
        between = sorted(layer_width(layer) for layer in self.stack.layers[:-1])[-2:]
        halves = ["0", f"steps * {between[-1]}" if between else "0"]
        number = 0
        for depth, layer in enumerate(self.stack.layers):
            wide = layer_width(layer)
            out, base = ("y", "0") if depth == last else ("work", halves[depth % 2])
            source = "0" if depth == 0 else halves[(depth - 1) % 2]
            lines += self._layer(number, layer, (given, source, width), (out, base, wide))
            number += len(layer)
            given, width = out, wide
        return lines

    def _layer(
        self,
        number: int,
        layer: tuple[Direction, ...],
        given: tuple[str, str, int],
        out: tuple[str, str, int],
    ) -> list[str]:
        language, (x, x_base, x_width), (y, y_base, y_width) = self.language, given, out
        at, seen = self.offsets[number], f"t * {self.seen_size}"
        lines = [language.loop("t", "steps")]
        source = language.address(x, _sum(x_base, f"t * {x_width}"))
        target = language.address(y, _sum(y_base, f"t * {y_width}"))
        lines += [*indent(self.one(number, layer[0], at, source, target, seen)), "}"]
        if len(layer) == 1:
            return lines
        first, back, start = layer[0], layer[1], self.stack.backward_start
        behind = self.offsets[number + 1]
        begin = "steps - 1"
        if start != "zero":
            ahead, own = (language.element("state", _plus(k, "j")) for k in (at, behind))
            lines += self._loop("j", back.state_size, [f"{own} = {ahead};"])
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
        return [*lines, *indent(self.one(number + 1, back, behind, source, target, seen)), "}"]

    def one(self, number: int, own: Direction, at: int, x: str, y: str, seen_at: str) -> list[str]:
        """One step of one direction: the new state takes the place of the old one."""
        language = self.language
        arguments = [x, language.address("state", str(at)), language.whole("fresh"), y]
        place = language.element("state", _plus(at, "j"))
        after = self._loop("j", own.state_size, [f"{place} = fresh[j];"])
        if self.watched:
            first = self.seen_offsets[number]
            arguments.append(language.address("seen", _sum(seen_at, str(first))))
            rest = str(first + sum(width for _, _, width in self.cells[number].seen))
            state = language.element("seen", _sum(seen_at, rest, "j"))
            after[1:1] = indent([f"{state} = fresh[j];"])
        return [f"w{number}({', '.join(arguments)});", *after]

    def _loop(self, index: str, count: int, body: list[str]) -> list[str]:
        return [self.language.loop(index, str(count)), *indent(body), "}"]

    def cut(self) -> list[str]:
        """A sequence that is longer than max_length loses steps."""
        most = self.stack.max_length
        if most is None:
            return []
        kept = [f"if (steps > {most}) {{"]
        if self.stack.cut == "start":
            kept += indent([self.language.skip("x", f"(steps - {most}) * {self.stack.input_size}")])
        return [*kept, *indent([f"steps = {most};"]), "}"]


def _plus(offset: int, index: str) -> str:
    return f"{offset} + {index}" if offset else index


def _sum(*terms: str) -> str:
    return " + ".join(term for term in terms if term != "0") or "0"
