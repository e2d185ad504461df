"""A network as JavaScript: its graph as a list of ONNX's operators, its cells as functions.

The operators are those of `runtime/operators.js`; a cell over a sequence is printed from its own
equations, as a layer is.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ensue.export.graph_parts import Constant, GraphParts, Node
from ensue.export.javascript import decoded, function, weight_lines
from ensue.export.languages import JavaScript
from ensue.export.stack import Direction, Stack
from ensue.export.stack_code import StackCode
from ensue.export.weights import store
from ensue.tasks.exported import refuse

if TYPE_CHECKING:
    import onnx

RUNTIME = Path(__file__).parent / "runtime"
FEW = 64  # numbers of a constant that are spelled out
MOST, LEAST = np.iinfo(np.int32).max, np.iinfo(np.int32).min


def graph_text(model: onnx.ModelProto, weights: str) -> str:
    """A traced network as an expression."""
    parts = GraphParts(model, weights)
    constants = ",".join(_constant(own, weights) for own in parts.constants)
    cells = ",".join(cell_text(own) for own in parts.cells)
    nodes = ",\n".join(_node(own) for own in parts.nodes)
    return (
        f"{{inputs: {json.dumps(parts.inputs)}, outputs: {json.dumps(parts.outputs)},\n"
        f"constants: [{constants}],\ncells: [{cells}],\nnodes: [\n{nodes}\n]}}"
    )


def _constant(own: Constant, weights: str) -> str:
    dims = json.dumps(list(own.value.shape))
    if own.kind != "f":
        plain = np.clip(own.value.astype(np.int64), LEAST, MOST).ravel().tolist()
        return f"tensor({dims}, TYPES.{own.kind}.of({','.join(map(str, plain))}))"
    real = np.ascontiguousarray(own.value, np.float32)
    if real.size < FEW and np.isfinite(real).all() and not own.learned:
        listed = ",".join(repr(float(v)) for v in real.ravel())
        return f"tensor({dims}, TYPES.f.of({listed}))"
    return f"tensor({dims}, {decoded(store(real, weights if own.learned else 'float32'))})"


def _node(own: Node) -> str:
    if own.operator not in operator_names():
        raise refuse("javascript", own.operator)
    facts = ", ".join(f"{json.dumps(k)}: {_attribute(v)}" for k, v in own.attributes.items())
    places = f"{json.dumps(own.inputs)}, {json.dumps(own.outputs)}"
    return f"[{json.dumps(own.operator)}, {places}, {{{facts}}}]"


def _attribute(value: Any) -> str:
    return (
        _constant(Constant(value, False), "float32")
        if isinstance(value, np.ndarray)
        else (json.dumps(value))
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
    named = [(name, width) for name, _, width in cell.seen]
    for name, width in (*named, *direction.parts.items()):
        seen.append([name, at, width])
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
