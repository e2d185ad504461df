"""A layer as one ES module: typed arrays, weights as base64, nothing else."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable

import numpy as np

from ensue.export.languages import JavaScript, indent
from ensue.export.stack import Stack
from ensue.export.stack_code import StackCode
from ensue.export.weights import Stored

LONG = re.compile(r'"([A-Za-z0-9+/]{24})[A-Za-z0-9+/=]{24,}"')  # a weight in base64
DECODERS = {
    "float32": (
        "const float32 = (text) => {\n"
        "    const data = atob(text), bytes = new Uint8Array(data.length);\n"
        "    for (let k = 0; k < data.length; k++) bytes[k] = data.charCodeAt(k);\n"
        "    return new Float32Array(bytes.buffer);\n"
        "};"
    ),
    "bf16": (
        "const bf16 = (text) => {\n"
        "    const data = atob(text), bytes = new Uint8Array(2 * data.length);\n"
        "    for (let k = 0; k < data.length; k++)\n"
        "        bytes[4 * (k >> 1) + 2 + (k & 1)] = data.charCodeAt(k);\n"
        "    return new Float32Array(bytes.buffer);\n"
        "};"
    ),
    "int8": (
        "const int8 = (text, scale) => {\n"
        "    const data = atob(text), values = new Float32Array(data.length);\n"
        "    const width = data.length / scale.length;\n"
        "    for (let k = 0; k < data.length; k++)\n"
        "        values[k] = ((data.charCodeAt(k) << 24) >> 24) * scale[Math.floor(k / width)];\n"
        "    return values;\n"
        "};"
    ),
}


def javascript_source(stack: Stack, abridged: bool = False) -> str:
    """The whole module. abridged: a version for reading, with only the beginning of each weight."""
    text = JavaScriptFile(stack).text()
    return LONG.sub(r'"\1…"', text) if abridged else text


class JavaScriptFile:
    def __init__(self, stack: Stack, watched: bool = False) -> None:
        self.stack, self.language = stack, JavaScript()
        self.code = StackCode(stack, self.language, watched)

    def text(self) -> str:
        lines = [
            "// Written by `ensue export`. One ES module.",
            f"// {self.stack.title}",
            "//",
            "//   start()                          the state before the first step",
            "//   step(x, state, y)                one step; state goes in and comes out"
            if self.stack.streams
            else "//",
            "//   run(x, steps, state, y)          a whole sequence; gives the steps of y",
            "",
            *self._sizes(),
            "",
            *self.weights(),
            *self.language.used_helpers(self.code.called),
            "",
            *[self.language.scratch(name, size) for name, size in self.code.scratch.items()],
            *self.code.functions(),
            *self._public(),
        ]
        return "\n".join(lines) + "\n"

    def _sizes(self) -> list[str]:
        sizes = {
            "INPUT": self.stack.input_size,
            "OUTPUT": self.stack.output_size,
            "STATE": self.stack.state_size,
        }
        return [f"export const {name} = {size};" for name, size in sizes.items()]

    def weights(self) -> list[str]:
        """The parameters that the steps read, with the code that turns them into numbers."""
        named: dict[str, Stored] = {}
        for cell in self.code.cells:
            named |= cell.arrays()
        return weight_lines(named)

    def _public(self) -> list[str]:
        body = ["const state = new Float32Array(STATE), stateAt = 0;", *self.code.start()]
        lines = function("start", "", [*body, "return state;"])
        begin = "const xAt = 0, stateAt = 0, yAt = 0;"
        if self.stack.streams:
            lines += function("step", "x, state, y", [begin, *self.code.step()])
        begin = "let xAt = 0;" if self.stack.max_length is not None else "const xAt = 0;"
        body = [begin, "const stateAt = 0, yAt = 0;", *self.code.cut()]
        if self.code.work_per_step:
            room = f"new Float32Array(steps * {self.code.work_per_step})"
            body.append(f"const work = {room}, workAt = 0;")
        return lines + function(
            "run", "x, steps, state, y", [*body, *self.code.run(), "return steps;"]
        )


def weight_lines(named: dict[str, Stored], decoders: bool = True) -> list[str]:
    """The lines that define the weights. decoders: includes the functions that convert base64 to
    numbers."""
    kinds = {stored.kind for stored in named.values()} | {"float32"}
    lines = [text for kind, text in DECODERS.items() if decoders and kind in kinds]
    return lines + [f"const {name} = {decoded(value)};" for name, value in named.items()]


def decoded(stored: Stored) -> str:
    """The call that returns a stored weight's numbers."""
    data = f'"{base64_of(stored.data)}"'
    if stored.scale is not None:
        data += f', float32("{base64_of(stored.scale)}")'
    return f"{stored.kind}({data})"


def base64_of(values: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> str:
    """Values as base64 in little-endian order, the order of typed arrays in all browsers."""
    data = values.astype(values.dtype.newbyteorder("<")).tobytes()
    return base64.b64encode(data).decode()


def function(name: str, arguments: str, body: Iterable[str]) -> list[str]:
    return [f"export function {name}({arguments}) {{", *indent(body), "}", ""]
