"""A whole model as one ES module: its graphs, the operators they are made of, and the steps around
them."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ensue.errors import EnsueError
from ensue.export.graph_code import RUNTIME, graph_text
from ensue.export.javascript import DECODERS
from ensue.export.packing import packed
from ensue.export.programs import SECONDS, node_program, temporary_folder
from ensue.tasks.exported import Exported

if TYPE_CHECKING:
    import onnx

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
# the files that a step needs beside those that every model has; of both languages
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
}
PARTS = ("members", "merges")  # of a step, that want files of their own
ALWAYS = ("tensors", "operators", "checks", "text", "answer")


def pieces(exported: Exported) -> list[str]:
    """The files that the steps of a model need, each once."""
    steps = reversed([*exported.before, *exported.after])
    needed = [
        key for step in steps for key in (step["step"], *(own for own in PARTS if step.get(own)))
    ]
    found = dict.fromkeys(name for key in needed for name in PIECES.get(key, ()))
    return list(found)  # those of the steps after come first: others may build on them


def module_text(exported: Exported, traced: Mapping[str, onnx.ModelProto], weights: str) -> str:
    """The module: MODEL, GRAPHS, and the functions that run them."""
    about = exported.description()
    about["before"] = [_in_javascript(step) for step in about["before"]]
    facts = json.dumps(packed(about), ensure_ascii=True).replace("<", "\\u003c")
    graphs = ",\n".join(
        f"{json.dumps(name)}: {graph_text(own, weights)}" for name, own in traced.items()
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
    kept = {k: v for k, v in step.items() if not k.startswith("pattern")}
    return {**kept, "javascript": pattern, "flags": flags}


def _reads_in_javascript(reads: Mapping[str, Any]) -> dict[str, Any]:
    def written(pattern: str) -> str:
        return pattern.replace("(?P<", "(?<").replace("(?P=s)", r"\k<s>")

    return {**reads, **{key: list(map(written, reads[key])) for key in ("patterns", "either")}}


def _series_in_javascript(step: Mapping[str, Any]) -> dict[str, Any]:
    return {**step, "reads": _reads_in_javascript(step["reads"])}


def _row_in_javascript(step: Mapping[str, Any]) -> dict[str, Any]:
    features = [
        {**own, "reads": own["reads"] and _reads_in_javascript(own["reads"])}
        for own in step["features"]
    ]
    return {**step, "features": features}


# steps whose patterns are Python's
IN_JAVASCRIPT = {
    "tokenise": _tokenise_in_javascript,
    "series": _series_in_javascript,
    "row": _row_in_javascript,
}


def _in_javascript(step: Mapping[str, Any]) -> dict[str, Any]:
    """A step with its patterns as JavaScript has them."""
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
    """The outputs of graphs, by name, in one process of Node."""
    given = [
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
            input=json.dumps(given),
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
