"""A classifier as one ES module: words in, probabilities out, by the JavaScript of its cells."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from ensue.errors import EnsueError
from ensue.export.javascript import function, weight_lines
from ensue.export.languages import JavaScript
from ensue.export.programs import SECONDS, node_program, temporary_folder
from ensue.export.stack import Stack, numbers, stack_of
from ensue.export.stack_code import StackCode
from ensue.export.weights import Stored, store
from ensue.tasks.blocks.embeddings import Words
from ensue.tasks.blocks.encoders import RecurrentEncoder
from ensue.tasks.exported import Exported, refuse

RUNTIME = Path(__file__).parent / "runtime.js"
_LETTER, _SIGN = r"\p{L}\p{N}_\p{M}", r"[^\p{L}\p{N}_\s\p{M}]"
# Python's patterns of each tokeniser, as JavaScript writes them
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
    "spaces": (r"\S+", "gu"),
    "characters": (".", "gsu"),
}


def classifier_module(exported: Exported, weights: str) -> str:
    """The module: MODEL, and the functions of `runtime.js`."""
    return f"{model_text(exported, weights)}\n{RUNTIME.read_text(encoding='utf-8')}"


def model_text(exported: Exported, weights: str) -> str:
    """MODEL: what the members are made of, and the steps around them."""
    steps = {own["step"]: dict(own) for own in (*exported.before, *exported.after)}
    if "tokenise" not in steps:
        raise refuse(exported.task, "a model of vectors as JavaScript", "export it as ONNX")
    how = steps["tokenise"]
    how["pattern"], how["flags"] = PATTERNS[how["name"]]
    for key in ("pattern_ascii", "step"):
        del how[key]
    about = {
        "tokenise": how,
        "cut": {key: steps["cut"][key] for key in ("max_length", "cut")},
        "vocabulary": steps["look up"]["vocabulary"],
        "labels": steps["labels"]["labels"],
        "several": steps["labels"]["several"],
        "threshold": steps["labels"]["threshold"],
    }
    members = ",\n".join(_member(exported.task, own, weights) for own in exported.members)
    facts = json.dumps(about, ensure_ascii=True).replace("<", "\\u003c")
    return (
        f"// Written by `ensue export`.\nconst MODEL = {{...{facts},\nmembers: [\n{members}\n]}};\n"
    )


def _member(task: str, network: nn.Module, weights: str) -> str:
    """One network as an expression: its weights and functions, with names of their own."""
    encoder, feature = network.encoder, network.embed.features[0]  # type: ignore[union-attr, index]
    if not isinstance(encoder, RecurrentEncoder) or not isinstance(feature, Words):
        raise refuse(task, "an encoder that is not recurrent as JavaScript", "export it as ONNX")
    stack = stack_of(encoder.recurrent, weights)
    code = StackCode(stack, JavaScript(), watched=True)
    named = {name: own for cell in code.cells for name, own in cell.arrays().items()}
    named |= _around(network, feature, weights)
    room = [code.language.scratch(name, size) for name, size in code.scratch.items()]
    begin = ["const xAt = 0, stateAt = 0, yAt = 0, seenAt = 0;"]
    if code.work_per_step:
        size = f"new Float32Array(steps * {code.work_per_step})"
        begin.append(f"const work = {size}, workAt = 0;")
    start = ["const state = new Float32Array(STATE), stateAt = 0;", *code.start(), "return state;"]
    lines = [
        f"const STATE = {stack.state_size};",
        *weight_lines(named),
        *code.language.used_helpers(code.called),
        *room,
        *code.functions(),
        *function("start", "", start),
        *function("run", "x, steps, state, y, seen", [*begin, *code.run()]),
        f"return {{start, run, {_facts(network, stack, code)}}};",
    ]
    text = "\n".join(lines).replace("export function", "function")
    return f"(() => {{\n{text}\n}})()"


def _around(network: Any, feature: Words, weights: str) -> dict[str, Stored]:
    """What stands before and after the recurrent layers."""
    found = {
        "embedding": store(numbers(feature.table.weight), weights),
        "output": store(numbers(network.output.weight), weights),
        "bias": Stored("float32", numbers(network.output.bias)),
    }
    for name, part in zip(network.pooling.names, network.pooling.parts, strict=True):
        if name == "attention":
            found["attention_hidden"] = store(numbers(part.hidden.weight), weights)
            found["attention_bias"] = Stored("float32", numbers(part.hidden.bias))
            found["attention_score"] = store(numbers(part.score.weight), weights)
    return found


def _facts(network: Any, stack: Stack, code: StackCode) -> str:
    """The rest of a member: sizes, where final states lie, and what is seen of each step."""
    offsets, directions = code.offsets, stack.directions
    last = network.encoder.last
    final = [
        [at, next(iter(own.parts.values()))]
        for at, own in list(zip(offsets, directions, strict=True))[-last:]
    ]
    seen = []
    for number, (cell, first) in enumerate(zip(code.cells, code.seen_offsets, strict=True)):
        both = len(stack.layers[0]) == 2
        way = "" if not both else " ←" if number % 2 else " →"
        layer = number // len(stack.layers[0]) + 1
        where = f"{f'layer {layer} ' if len(stack.layers) > 1 else ''}"
        at = first
        for name, _, width in cell.seen:
            seen.append([f"{where}{name}{way}", at, width])
            at += width
        for part, width in cell.direction.parts.items():
            seen.append([f"{where}{part}{way}", at, width])
            at += width
    attention = (
        "attention: {hidden: attention_hidden, bias: attention_bias, score: attention_score}, "
        if "attention" in network.pooling.names
        else ""
    )
    return (
        f"INPUT: {stack.input_size}, OUTPUT: {stack.output_size}, SEEN: {code.seen_size}, "
        f"embedding, output, bias, {attention}final: {json.dumps(final)}, "
        f"poolings: {json.dumps(network.pooling.names)}, watched: {json.dumps(seen)}"
    )


# --- compared ------------------------------------------------------------------------------------

MAIN = """
import { readFileSync } from "node:fs";
const { forward } = await import(process.argv[2]);
const rows = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(rows.map((ids) => forward(ids).probabilities)));
"""


def run_in_node(source: str, batches: Sequence[Mapping[str, torch.Tensor]]) -> list[Any]:
    """The probabilities (batch, classes) of batches of words, in one process of Node."""
    rows = [
        given["words"][:length, row].tolist()
        for given in batches
        for row, length in enumerate(given["lengths"].tolist())
    ]
    with temporary_folder() as name:
        folder = Path(name)
        (folder / "model.mjs").write_text(source, encoding="utf-8")
        (folder / "main.mjs").write_text(MAIN, encoding="utf-8")
        done = subprocess.run(
            [node_program(), str(folder / "main.mjs"), str(folder / "model.mjs")],
            input=json.dumps(rows),
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    if done.returncode:
        raise EnsueError(f"node failed: {done.stderr[-2000:]}")
    found = iter(json.loads(done.stdout))
    return [
        np.array([next(found) for _ in given["lengths"].tolist()], np.float32) for given in batches
    ]
