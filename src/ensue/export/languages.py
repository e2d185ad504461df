"""C99 and JavaScript as tables of their syntax, for the printers of loops.

An array argument of a function is a pointer in C, and a typed array with an offset in JavaScript.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from ensue.equations.functions import Spelling


class Language(ABC):
    """A language of exports. name: its name on the command line; spelling: the spelling of a
    graph's operations; helpers: the source of functions that the language lacks."""

    name: ClassVar[str]
    spelling: ClassVar[Spelling]
    helpers: ClassVar[Mapping[str, str]]
    scales_rows: ClassVar[bool]  # reads int8 as it is stored; else all weights become float32
    local_scratch: ClassVar[bool]  # arrays inside of functions cost nothing
    counter: ClassVar[str]  # keyword that declares the index of a loop

    # ---------------------------------------------------------------- values
    @abstractmethod
    def number(self, value: float) -> str: ...

    def weight(self, element: str, kind: str) -> str:
        """The value of an element of stored weights."""
        return element

    @abstractmethod
    def constant(self, name: str, value: str) -> str:
        """A constant."""

    @abstractmethod
    def variable(self, names: Sequence[str]) -> str:
        """Variables that begin at zero."""

    def loop(self, index: str, count: str, begin: str = "0") -> str:
        """The head of a loop over 0 … count − 1."""
        return f"for ({self.counter} {index} = {begin}; {index} < {count}; {index}++) {{"

    def loop_down(self, index: str, first: str) -> str:
        """The head of a loop over first … 0."""
        return f"for ({self.counter} {index} = {first}; {index} >= 0; {index}--) {{"

    @abstractmethod
    def scratch(self, name: str, size: int) -> str:
        """A local array for one call."""

    # ---------------------------------------------------------------- arrays that are given
    @abstractmethod
    def element(self, array: str, index: str) -> str:
        """An element of an array that a function was given."""

    @abstractmethod
    def address(self, array: str, offset: str) -> str:
        """The part of a function's array argument from an offset on, as an argument."""

    @abstractmethod
    def whole(self, array: str) -> str:
        """A local array, as an argument."""

    @abstractmethod
    def skip(self, array: str, count: str) -> str:
        """A statement that drops `count` numbers from the start of a function's array argument."""

    @abstractmethod
    def function(
        self, name: str, read: Sequence[str], written: Sequence[str], body: Iterable[str]
    ) -> list[str]:
        """A function without result; its arguments are arrays that it reads or writes."""

    # ---------------------------------------------------------------- the rest
    def comment(self, text: str) -> str:
        return f"/* {text.replace('*/', '* /')} */"

    def used_helpers(self, called: Iterable[str]) -> list[str]:
        """The text of the helpers that are called, in the order of the table."""
        needed = set(called)
        return [text for name, text in self.helpers.items() if name in needed]


def indent(lines: Iterable[str], by: str = "    ") -> list[str]:
    return [by + line if line else line for line in lines]


class C99(Language):
    """C99: float32 throughout; math.h is the only header."""

    name = "c"
    scales_rows = True
    local_scratch = True
    counter = "long"
    spelling = Spelling(
        {
            "sigmoid": "sigmoidf",
            "tanh": "tanhf",
            "relu": "reluf",
            "exp": "expf",
            "log": "logf",
            "softplus": "softplusf",
            "sqrt": "sqrtf",
            "maximum": "maximumf",
            "greater": "greaterf",
        }
    )
    helpers: ClassVar[Mapping[str, str]] = {
        "bf16": (
            "static float bf16(unsigned short half)\n{\n"
            "    union { unsigned int bits; float value; } own;\n"
            "    own.bits = (unsigned int)half << 16;\n    return own.value;\n}"
        ),
        "sigmoidf": "static float sigmoidf(float v) { return 1.0f / (1.0f + expf(-v)); }",
        "reluf": "static float reluf(float v) { return v < 0.0f ? 0.0f : v; }",
        "softplusf": (
            "static float softplusf(float v) "
            "{ return (v > 0.0f ? v : 0.0f) + log1pf(expf(-fabsf(v))); }"
        ),
        "maximumf": ("static float maximumf(float a, float b) { return b > a || b != b ? b : a; }"),
        "greaterf": (
            "static float greaterf(float a, float b) { return a > b || a != a ? 1.0f : 0.0f; }"
        ),
    }

    def number(self, value: float) -> str:
        if not np.isfinite(value):
            return "NAN" if np.isnan(value) else "INFINITY" if value > 0 else "(-INFINITY)"
        text = repr(float(np.float32(value)))
        written = f"{text}f" if "." in text or "e" in text else f"{text}.0f"
        return f"({written})" if value < 0 else written

    def weight(self, element: str, kind: str) -> str:
        return f"bf16({element})" if kind == "bf16" else element

    def constant(self, name: str, value: str) -> str:
        return f"const float {name} = {value};"

    def variable(self, names: Sequence[str]) -> str:
        return f"float {', '.join(f'{name} = 0.0f' for name in names)};"

    def scratch(self, name: str, size: int) -> str:
        return f"float {name}[{size}];"

    def element(self, array: str, index: str) -> str:
        return f"{array}[{index}]"

    def address(self, array: str, offset: str) -> str:
        return array if offset == "0" else f"{array} + {offset}"

    def whole(self, array: str) -> str:
        return array

    def skip(self, array: str, count: str) -> str:
        return f"{array} += {count};"

    def function(
        self, name: str, read: Sequence[str], written: Sequence[str], body: Iterable[str]
    ) -> list[str]:
        arguments = [f"const float *{name}" for name in read] + [
            f"float *{name}" for name in written
        ]
        return [f"static void {name}({', '.join(arguments)})", "{", *indent(body), "}", ""]


class JavaScript(Language):
    """JavaScript: numbers are float64 until they are stored in a typed array."""

    name = "javascript"
    scales_rows = False
    local_scratch = False
    counter = "let"
    spelling = Spelling(
        {
            "sigmoid": "sigmoid",
            "tanh": "Math.tanh",
            "relu": "relu",
            "exp": "Math.exp",
            "log": "Math.log",
            "softplus": "softplus",
            "sqrt": "Math.sqrt",
            "maximum": "maximum",
            "greater": "greater",
        }
    )
    helpers: ClassVar[Mapping[str, str]] = {
        "sigmoid": "const sigmoid = (v) => 1 / (1 + Math.exp(-v));",
        "relu": "const relu = (v) => (v < 0 ? 0 : v);",
        "softplus": "const softplus = (v) => Math.max(v, 0) + Math.log1p(Math.exp(-Math.abs(v)));",
        "maximum": "const maximum = (a, b) => (b > a || b !== b ? b : a);",
        "greater": "const greater = (a, b) => (a > b || a !== a ? 1 : 0);",
    }

    def number(self, value: float) -> str:
        if not np.isfinite(value):
            return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "(-Infinity)"
        return f"({value!r})" if value < 0 else repr(float(value))

    def constant(self, name: str, value: str) -> str:
        return f"const {name} = {value};"

    def variable(self, names: Sequence[str]) -> str:
        return f"let {', '.join(f'{name} = 0' for name in names)};"

    def scratch(self, name: str, size: int) -> str:
        return f"const {name} = new Float32Array({size});"

    def element(self, array: str, index: str) -> str:
        return f"{array}[{array}At + {index}]"

    def address(self, array: str, offset: str) -> str:
        return f"{array}, {array}At" + ("" if offset == "0" else f" + {offset}")

    def whole(self, array: str) -> str:
        return f"{array}, 0"

    def skip(self, array: str, count: str) -> str:
        return f"{array}At += {count};"

    def function(
        self, name: str, read: Sequence[str], written: Sequence[str], body: Iterable[str]
    ) -> list[str]:
        arguments = [f"{name}, {name}At" for name in (*read, *written)]
        return [f"function {name}({', '.join(arguments)}) {{", *indent(body), "}", ""]
