"""A layer as one file of C99: no allocation, no dependency but math.h."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ensue.export.languages import C99, indent
from ensue.export.stack import Stack
from ensue.export.stack_code import StackCode
from ensue.export.weights import Stored

TYPES = {"float32": "float", "bf16": "unsigned short", "int8": "signed char"}
A_LINE = 12  # numbers
ZEROS = "/* The weights; zeros here, numbers in what `ensue export` writes. */"


def c_source(stack: Stack, name: str = "model") -> str:
    """The whole file. name: prefix of its functions and sizes."""
    return CFile(stack, name).text()


class CFile:
    def __init__(self, stack: Stack, name: str) -> None:
        self.stack, self.name, self.language = stack, name, C99()
        self.code = StackCode(stack, self.language)

    @property
    def flash(self) -> int:
        """Bytes of weights."""
        starts = sum(
            part.nbytes
            for direction in self.stack.directions
            for part in direction.start
            if part.any()
        )
        return starts + sum(direction.weights.nbytes for direction in self.stack.directions)

    @property
    def ram(self) -> int:
        """Bytes of the state of one stream and the maximum stack use of a call, without `work` for
        sequences."""
        room = sum(self.code.scratch.values()) + self.stack.state_size
        return 4 * (room + max(sum(cell.scratch.values()) for cell in self.code.cells))

    def text(self, weights_file: str = "") -> str:
        """The text of the file. weights_file: the file of the weights, if they are separate."""
        return self._text([f'#include "{weights_file}"', ""] if weights_file else self.weights())

    def abridged(self) -> str:
        """A version for reading: zeros replace the weights, so that it still compiles."""
        return self._text([ZEROS, *self._zeros(), ""])

    def _text(self, weights: Iterable[str]) -> str:
        lines = [
            *self._heading(),
            "#include <math.h>",
            "",
            *self._sizes(),
            "",
            *weights,
            *self.language.used_helpers(self.code.called),
            *([""] if self.language.used_helpers(self.code.called) else []),
            *self.code.functions(),
            *self._public(),
        ]
        return "\n".join(lines)

    # ---------------------------------------------------------------- above the code
    def _heading(self) -> list[str]:
        name, per_step = self.name.upper(), self.code.work_per_step
        work = f"{per_step} numbers for each step" if per_step else "not used, may be 0"
        streams = [f" *   {self.name}_step(x, state, y)               one step of a stream"]
        return [
            "/* Written by `ensue export`. C99; link with -lm.",
            f" * {self.stack.title}",
            " *",
            f" *   {self.name}_start(state)                    the state before the first step",
            *(streams if self.stack.streams else []),
            f" *   {self.name}_run(x, steps, state, y, work)   a sequence; gives the steps of y",
            " *",
            f" * x: {name}_INPUT numbers a step; y: {name}_OUTPUT; state: {name}_STATE;",
            f" * work: {work}.",
            f" * Flash: {self.flash} bytes of weights. RAM: {self.ram} bytes plus x, y and work.",
            " */",
        ]

    def _sizes(self) -> list[str]:
        name, stack = self.name.upper(), self.stack
        sizes = {
            "INPUT": stack.input_size,
            "OUTPUT": stack.output_size,
            "STATE": stack.state_size,
            "WORK": self.code.work_per_step,
            "FLASH_BYTES": self.flash,
            "RAM_BYTES": self.ram,
        }
        return [f"#define {name}_{what} {size}" for what, size in sizes.items()]

    def weights(self) -> list[str]:
        arrays = [item for cell in self.code.cells for item in cell.arrays().items()]
        return [line for name, array_name in arrays for line in array(name, array_name)]

    def _zeros(self) -> list[str]:
        arrays = [item for cell in self.code.cells for item in cell.arrays().items()]
        lines = []
        for name, values in arrays:
            lines.append(f"static const {TYPES[values.kind]} {name}[{values.data.size}] = {{0}};")
            if values.scale is not None:
                lines.append(f"static const float {name}__scale[{values.scale.size}] = {{0}};")
        return lines

    # ---------------------------------------------------------------- public functions
    def _public(self) -> list[str]:
        room = [self.language.scratch(name, size) for name, size in self.code.scratch.items()]
        fresh = [line for line in room if " fresh[" in line]
        lines = _function(f"void {self.name}_start(float *state)", self.code.start())
        if self.stack.streams:
            head = f"void {self.name}_step(const float *x, float *state, float *y)"
            lines += _function(head, [*room, *self.code.step()])
        head = (
            f"long {self.name}_run(const float *x, long steps, float *state, float *y, float *work)"
        )
        unused = [] if self.code.work_per_step else ["(void)work;"]
        body = [*fresh, *unused, *self.code.cut(), *self.code.run(), "return steps;"]
        prototypes = [line + ";" for line in lines if line.startswith("void ")] + [head + ";"]
        return [*prototypes, "", *lines, *_function(head, body)]


def _function(head: str, body: Iterable[str]) -> list[str]:
    return [head, "{", *indent(body), "}", ""]


def array(name: str, stored: Stored) -> list[str]:
    """A constant array, and its scales."""
    numbers = [NUMBERS[stored.kind](number) for number in stored.data.ravel()]
    rows = [", ".join(numbers[k : k + A_LINE]) for k in range(0, len(numbers), A_LINE)]
    lines = [
        f"static const {TYPES[stored.kind]} {name}[{len(numbers)}] = {{",
        *indent(f"{row}," for row in rows),
        "};",
    ]
    if stored.scale is not None:
        lines += array(f"{name}__scale", Stored("float32", stored.scale))
    return lines


def _float(value: np.float32) -> str:
    """A number with nine digits, which restore a float32 exactly."""
    if not np.isfinite(value):
        return "NAN" if np.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
    text = f"{float(value):.9g}"
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


def _integer(value: np.int8) -> str:
    return str(int(value))


def _hexadecimal(value: np.uint16) -> str:
    return f"0x{int(value):04x}"


NUMBERS: dict[str, Callable[[Any], str]] = {
    "float32": _float,
    "bf16": _hexadecimal,
    "int8": _integer,
}
