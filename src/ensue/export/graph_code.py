"""A network as JavaScript: its graph as a list of ONNX's operators, its cells as functions.

The operators are those of `runtime/operators.js`; a cell over a sequence is printed from its own
equations, as a layer is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ensue.errors import OptionError
from ensue.export.javascript import decoded, function, weight_lines
from ensue.export.languages import JavaScript
from ensue.export.onnx.builder import load_onnx
from ensue.export.onnx.network import DOMAIN, parameter_names, recurrence_of
from ensue.export.stack import Direction, Stack
from ensue.export.stack_code import StackCode
from ensue.export.weights import store

if TYPE_CHECKING:
    import onnx

RUNTIME = Path(__file__).parent / "runtime"
FEW = 64  # numbers of a constant that are spelled out
MOST, LEAST = np.iinfo(np.int32).max, np.iinfo(np.int32).min
Array = NDArray[Any]


class GraphCode:
    """The parts of one graph; `text` puts them together. model: as `traced` gives it."""

    def __init__(self, model: onnx.ModelProto, weights: str) -> None:
        self.weights = weights
        self.known: dict[Any, int] = {}
        self.constants: list[str] = []
        self.numbers: dict[str, int] = {"": -1}
        self.cells: list[str] = []
        self.cell_numbers: dict[Any, int] = {}
        self.nodes: list[list[Any]] = []
        to_array = load_onnx().numpy_helper.to_array
        graph, learned = model.graph, parameter_names(model)
        tensors = {own.name: own for own in graph.initializer}
        read = _read(graph)
        for name, tensor in tensors.items():
            if name in read:
                self.numbers[name] = self.constant(to_array(tensor), name in learned)
        for node in graph.node:
            if node.op_type == "Constant":
                self.numbers[node.output[0]] = self.constant(_value(node))
        self.count = len(self.constants)
        self.inputs = [[own.name, self.number(own.name)] for own in graph.input]
        for node in graph.node:
            if node.domain == DOMAIN:
                self.recurrence(node, tensors)
            elif node.op_type != "Constant":
                self.add(node)
        self.outputs = [[own.name, self.number(own.name)] for own in graph.output]

    def number(self, name: str) -> int:
        """A value's place: constants come first."""
        if name not in self.numbers:
            self.numbers[name] = self.count
            self.count += 1
        return self.numbers[name]

    def constant(self, array: Array, learned: bool = False) -> int:
        """The number of a constant; equal ones are one."""
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.known:
            self.known[key] = len(self.constants)
            self.constants.append(self._spelled(array, learned))
        return self.known[key]

    def _spelled(self, array: Array, learned: bool) -> str:
        dims = json.dumps(list(array.shape))
        kind = "f" if array.dtype.kind == "f" else "b" if array.dtype.kind == "b" else "i"
        if kind != "f":
            plain = np.clip(array.astype(np.int64), LEAST, MOST).ravel().tolist()
            return f"tensor({dims}, TYPES.{kind}.of({','.join(map(str, plain))}))"
        real = np.ascontiguousarray(array, np.float32)
        if real.size < FEW and np.isfinite(real).all() and not learned:
            listed = ",".join(repr(float(v)) for v in real.ravel())
            return f"tensor({dims}, TYPES.f.of({listed}))"
        own = store(real, self.weights if learned else "float32")
        return f"tensor({dims}, {decoded(own)})"

    def add(self, node: Any) -> None:
        if node.op_type not in operator_names():
            raise OptionError(f"export: JavaScript has no operator {node.op_type} of ONNX yet")
        own = {given.name: self._attribute(given) for given in node.attribute}
        given = [self.number(name) for name in node.input]
        found = [self.number(name) for name in node.output]
        self.nodes.append([node.op_type, given, found, own])

    def _attribute(self, given: Any) -> Any:
        value = load_onnx().helper.get_attribute_value(given)
        if isinstance(value, bytes):
            return value.decode()
        if given.name == "value":  # of ConstantOfShape
            array = np.asarray(load_onnx().numpy_helper.to_array(value))
            kind = "f" if array.dtype.kind == "f" else "b" if array.dtype.kind == "b" else "i"
            return {"kind": kind, "data": array.ravel().tolist()}
        return (
            list(value) if isinstance(value, (list, tuple)) or hasattr(value, "append") else value
        )

    def recurrence(self, node: Any, tensors: Mapping[str, Any]) -> None:
        own = recurrence_of(node, tensors, self.weights)
        names = [name for name in node.input if name in tensors]
        key = (tuple(names), type(own.direction.equations).__name__, len(own.state))
        if key not in self.cell_numbers:
            self.cell_numbers[key] = len(self.cells)
            self.cells.append(cell_text(own.direction))
        facts = {
            "cell": self.cell_numbers[key],
            "states": len(own.state),
            "reverse": int(own.reverse),
            "with_lengths": int(bool(own.lengths)),
        }
        given = [own.x, *own.state, *([own.lengths] if own.lengths else [])]
        self.nodes.append(
            [
                "Recurrence",
                [self.number(n) for n in given],
                [self.number(n) for n in node.output],
                facts,
            ]
        )

    def text(self) -> str:
        """The graph as an expression."""
        nodes = ",\n".join(json.dumps(node) for node in self.nodes)
        nodes = re.sub(
            r'\{"kind": "(\w)", "data": (\[[^\]]*\])\}', r"tensor([1], TYPES.\1.from(\2))", nodes
        )
        return (
            f"{{inputs: {json.dumps(self.inputs)}, outputs: {json.dumps(self.outputs)},\n"
            f"constants: [{','.join(self.constants)}],\ncells: [{','.join(self.cells)}],\n"
            f"nodes: [\n{nodes}\n]}}"
        )


@cache
def operator_names() -> frozenset[str]:
    """Those that `runtime/operators.js` has."""
    text = (RUNTIME / "operators.js").read_text(encoding="utf-8")
    table = text.split("const OPERATORS = {", 1)[1].split("\n};", 1)[0]
    return frozenset(re.findall(r"\b([A-Z]\w*): ", table))


def cell_text(direction: Direction) -> str:
    """One cell as an expression: `run` over a sequence, with the sizes of what it takes, and what
    is seen of each step."""
    code = StackCode(Stack("", ((direction,),)), JavaScript(), watched=True)
    (cell,) = code.cells
    room = [code.language.scratch(name, size) for name, size in code.scratch.items()]
    begin = ["const xAt = 0, stateAt = 0, yAt = 0, seenAt = 0;"]
    seen, at = [], 0
    for name, _, width in cell.seen:
        seen.append([name, at, width])
        at += width
    for part, width in direction.parts.items():
        seen.append([part, at, width])
        at += width
    lines = [
        *weight_lines(cell.arrays(), decoders=False),
        *code.language.used_helpers(code.called),
        *room,
        *code.functions(),
        *function("run", "x, steps, state, y, seen", [*begin, *code.run()]),
        f"return {{run, STATE: {direction.state_size}, OUTPUT: {direction.output_size}, "
        f"SEEN: {code.seen_size}, watched: {json.dumps(seen)}}};",
    ]
    text = "\n".join(lines).replace("export function", "function")
    return f"(() => {{\n{text}\n}})()"


def _read(graph: Any) -> set[str]:
    """The values that something reads."""
    found = {name for node in graph.node for name in node.input}
    return found | {own.name for own in graph.output}


def _value(node: Any) -> Array:
    """Of a node Constant."""
    (given,) = node.attribute
    value = load_onnx().helper.get_attribute_value(given)
    if given.name == "value":
        return np.asarray(load_onnx().numpy_helper.to_array(value))
    return np.asarray(value, np.int64 if given.name.startswith("value_int") else np.float32)
