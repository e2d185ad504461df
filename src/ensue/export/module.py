"""A whole model as one ES module: its graphs, their operators, and the steps before and after
them."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ensue.errors import EnsueError
from ensue.export.graph_parts import Constant, GraphParts, Node
from ensue.export.javascript import DECODERS, decoded, function, weight_lines
from ensue.export.languages import JavaScript
from ensue.export.programs import SECONDS, node_program, temporary_folder
from ensue.export.stack import Direction, Stack
from ensue.export.stack_code import StackCode
from ensue.export.weights import store
from ensue.tasks.exported import Exported, refuse

if TYPE_CHECKING:
    import onnx

FEW_NUMBERS = 200  # shorter lists of texts are not packed, so that they can be read
PACKED = "packed"


def packed(tree: Any) -> Any:
    """The same values, with long lists of texts as {"packed": base64 of zlib of the list's JSON}.

    >>> packed({"labels": ["bad", "good"]})
    {'labels': ['bad', 'good']}
    >>> list(packed({"vocabulary": ["word"] * 300})["vocabulary"])
    ['packed']
    """
    if isinstance(tree, dict):
        return {name: packed(value) for name, value in tree.items()}
    if not isinstance(tree, (list, tuple)):
        return tree
    if len(tree) > FEW_NUMBERS and all(isinstance(text, str) for text in tree):
        small = zlib.compress(json.dumps(tree, separators=(",", ":")).encode(), 9)
        return {PACKED: base64.b64encode(small).decode()}
    return [packed(value) for value in tree]


# -------------------------------------------------------------------------------------------------
# A network as JavaScript: its graph as a list of ONNX's operators, its cells as functions.
#
# The operators are defined in `runtime/operators.js`; a cell over a sequence is printed from its
# equations, like a layer.

RUNTIME = Path(__file__).parent / "runtime"
FEW = 64  # longer constants are encoded
MOST, LEAST = np.iinfo(np.int32).max, np.iinfo(np.int32).min


def graph_text(model: onnx.ModelProto, weights: str) -> str:
    """A traced network as an expression."""
    parts = GraphParts(model, weights)
    constants = ",".join(_constant(constant, weights) for constant in parts.constants)
    cells = ",".join(cell_text(cell) for cell in parts.cells)
    nodes = ",\n".join(_node(node) for node in parts.nodes)
    return (
        f"{{inputs: {json.dumps(parts.inputs)}, outputs: {json.dumps(parts.outputs)},\n"
        f"constants: [{constants}],\ncells: [{cells}],\nnodes: [\n{nodes}\n]}}"
    )


def _constant(constant: Constant, weights: str) -> str:
    dims = json.dumps(list(constant.value.shape))
    if constant.kind != "f":
        plain = np.clip(constant.value.astype(np.int64), LEAST, MOST).ravel().tolist()
        return f"tensor({dims}, TYPES.{constant.kind}.of({','.join(map(str, plain))}))"
    real = np.ascontiguousarray(constant.value, np.float32)
    if real.size < FEW and np.isfinite(real).all() and not constant.learned:
        listed = ",".join(repr(float(v)) for v in real.ravel())
        return f"tensor({dims}, TYPES.f.of({listed}))"
    return f"tensor({dims}, {decoded(store(real, weights if constant.learned else 'float32'))})"


def _node(node: Node) -> str:
    if node.operator not in operator_names():
        raise refuse("javascript", node.operator)
    facts = ", ".join(f"{json.dumps(k)}: {_attribute(v)}" for k, v in node.attributes.items())
    places = f"{json.dumps(node.inputs)}, {json.dumps(node.outputs)}"
    return f"[{json.dumps(node.operator)}, {places}, {{{facts}}}]"


def _attribute(value: Any) -> str:
    return (
        _constant(Constant(value, False), "float32")
        if isinstance(value, np.ndarray)
        else (json.dumps(value))
    )


@cache
def operator_names() -> frozenset[str]:
    """The names of the operators in `runtime/operators.js`."""
    text = (RUNTIME / "operators.js").read_text(encoding="utf-8")
    table = text.split("const OPERATORS = {", 1)[1].split("\n};", 1)[0]
    return frozenset(re.findall(r"\b([A-Z]\w*): ", table))


def cell_text(direction: Direction) -> str:
    """One cell as an expression: `run` over a sequence, the sizes of its arguments, and the values
    of each step that it records."""
    code = StackCode(Stack("", ((direction,),)), JavaScript(), watched=True)
    (cell,) = code.cells
    room = [code.language.scratch(name, size) for name, size in code.scratch.items()]
    begin = ["const xAt = 0, stateAt = 0, yAt = 0, seenAt = 0;"]
    end, at = [], 0
    named = [(name, width) for name, _, width in cell.watched_at]
    for name, width in (*named, *direction.parts.items()):
        end.append([name, at, width])
        at += width
    lines = [
        *weight_lines(cell.arrays(), decoders=False),
        *code.language.used_helpers(code.called),
        *room,
        *code.functions(),
        *function("run", "x, steps, state, y, seen", [*begin, *code.run()]),
        f"return {{run, STATE: {direction.state_size}, OUTPUT: {direction.output_size}, "
        f"SEEN: {code.seen_size}, watched: {json.dumps(end)}}};",
    ]
    text = "\n".join(lines).replace("export function", "function")
    return f"(() => {{\n{text}\n}})()"


_LETTER, _SIGN = r"\p{L}\p{N}_\p{M}", r"[^\p{L}\p{N}_\s\p{M}]"
# Python's patterns of each tokeniser, as JavaScript writes them; \s, which stands in brackets, is
# Python's white space there (runtime/checks.js)
PATTERNS: Mapping[str, tuple[str, str]] = {
    "words": (
        rf"[{_LETTER}]+(?:['’][{_LETTER}]+|(?<=\p{{Nd}})[.,](?=\p{{Nd}})[{_LETTER}]+)*"
        rf"|{_SIGN}\p{{M}}*",
        "gu",
    ),
    "pieces": (
        rf"\p{{Nd}}+|(?:(?![\p{{Nd}}_])[\p{{L}}\p{{N}}]|\p{{M}})+|(?:_|{_SIGN})\p{{M}}*",
        "gu",
    ),
    "spaces": (r"[^\s]+", "gu"),
    "characters": (".", "gsu"),
}
# the files that a step needs in addition to those of every model; in both languages
PIECES: Mapping[str, tuple[str, ...]] = {
    "ngrams": ("ngrams",),
    "row": ("times", "row"),
    "picture": ("picture",),
    "word parts": ("words",),
    "chain features": ("words",),
    "chain": ("chain",),
    "surprise": ("next",),
    "search": ("search",),
    "series": ("times", "series"),
    "members": ("mixed",),
    "merges": ("subwords",),
    "stream": ("stream",),
    "brackets": ("tree",),
    "input": ("input",),
}
PARTS = ("members", "merges")  # options of a step that need further files
ALWAYS = ("tensors", "operators", "checks", "text", "answer")


def pieces(exported: Exported) -> list[str]:
    """The files that the steps of a model need, without repetition."""
    before = [part for step in exported.before for part in (step, *step.get("steps", ()))]
    steps = reversed([*before, *exported.after])
    needed = [
        key
        for step in steps
        for key in (
            step["step"],
            *(name_of_part for name_of_part in PARTS if step.get(name_of_part)),
        )
    ]
    names = dict.fromkeys(name for key in needed for name in PIECES.get(key, ()))
    return list(names)  # files of later steps come first: others may build on them


def module_text(exported: Exported, traced: Mapping[str, onnx.ModelProto], weights: str) -> str:
    """The module: MODEL, GRAPHS, and the functions that run them."""
    about = exported.description()
    about["before"] = [_in_javascript(step) for step in about["before"]]
    facts = json.dumps(packed(about), ensure_ascii=True).replace("<", "\\u003c")
    graphs = ",\n".join(
        f"{json.dumps(name)}: {graph_text(value, weights)}" for name, value in traced.items()
    )
    named = [*ALWAYS, *pieces(exported)]
    runtime = [(RUNTIME / f"{name}.js").read_text(encoding="utf-8") for name in named]
    return "\n".join(
        [
            "// Written by `ensue export`.",
            (RUNTIME / "packing.js").read_text(encoding="utf-8"),
            f"export const MODEL = unpacked({facts});",
            *DECODERS.values(),
            *runtime,
            f"export const GRAPHS = {{\n{graphs}\n}};",
            "",
        ]
    )


def _tokenise_in_javascript(step: Mapping[str, Any]) -> dict[str, Any]:
    if step["name"] not in PATTERNS:
        return dict(step)
    pattern, flags = PATTERNS[step["name"]]
    settings = {k: v for k, v in step.items() if not k.startswith("pattern")}
    return {**settings, "javascript": pattern, "flags": flags}


def _reads_in_javascript(reads: Mapping[str, Any]) -> dict[str, Any]:
    def written(pattern: str) -> str:
        return pattern.replace("(?P<", "(?<").replace("(?P=s)", r"\k<s>")

    return {**reads, **{key: list(map(written, reads[key])) for key in ("patterns", "either")}}


def _series_in_javascript(step: Mapping[str, Any]) -> dict[str, Any]:
    return {**step, "reads": _reads_in_javascript(step["reads"])}


def _row_in_javascript(step: Mapping[str, Any]) -> dict[str, Any]:
    features = [
        {**feature, "reads": feature["reads"] and _reads_in_javascript(feature["reads"])}
        for feature in step["features"]
    ]
    return {**step, "features": features}


def _input_in_javascript(step: Mapping[str, Any]) -> dict[str, Any]:
    return {**step, "steps": [_in_javascript(inner) for inner in step["steps"]]}


# steps with Python patterns, or with other steps inside
IN_JAVASCRIPT = {
    "tokenise": _tokenise_in_javascript,
    "series": _series_in_javascript,
    "row": _row_in_javascript,
    "input": _input_in_javascript,
}


def _in_javascript(step: Mapping[str, Any]) -> dict[str, Any]:
    """A step with its patterns converted to JavaScript."""
    return IN_JAVASCRIPT.get(step["step"], dict)(step)


# --- run to be compared --------------------------------------------------------------------------

MAIN = """
import { readFileSync, writeSync } from "node:fs";
const { GRAPHS, runGraph } = await import(process.argv[2]);
const cases = JSON.parse(readFileSync(0, "utf8"));
const found = cases.map(([name, given]) => {
    const inputs = {};
    for (const [own, [dims, data, isWhole]] of Object.entries(given))
        inputs[own] = { dims, data: (isWhole ? Int32Array : Float32Array).from(data) };
    return Object.values(runGraph(GRAPHS[name], inputs)).map(({ dims, data }) =>
        [dims, Buffer.from(Float32Array.from(data).buffer).toString("base64")]);
});
const all = Buffer.from(JSON.stringify(found));
for (let sent = 0; sent < all.length; ) sent += writeSync(1, all, sent);
"""


def run_in_node(
    source: str, cases: Sequence[tuple[str, Mapping[str, torch.Tensor]]]
) -> list[list[Any]]:
    """The outputs of graphs, by name, from one process of Node."""
    requests = [
        (name, {k: [list(v.shape), v.flatten().tolist(), not v.is_floating_point()]
                for k, v in inputs.items()})
        for name, inputs in cases
    ]  # fmt: skip
    with temporary_folder() as place:
        folder = Path(place)
        (folder / "model.mjs").write_text(source, encoding="utf-8")
        (folder / "main.mjs").write_text(MAIN, encoding="utf-8")
        done = subprocess.run(
            [node_program(), str(folder / "main.mjs"), str(folder / "model.mjs")],
            input=json.dumps(requests),
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    if done.returncode:
        raise EnsueError(f"node failed: {done.stderr[-2000:]}")
    return [
        [np.frombuffer(base64.b64decode(data), np.float32).reshape(dims) for dims, data in outputs]
        for outputs in json.loads(done.stdout)
    ]
