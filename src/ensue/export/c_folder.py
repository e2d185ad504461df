"""A whole model as a folder of C99: one function for each network, and how to call them."""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ensue.errors import EnsueError
from ensue.export.forecast_c import forecast_files, is_forecast
from ensue.export.graph_c import GraphC
from ensue.export.languages import C99
from ensue.export.programs import SECONDS, compile_c, temporary_folder
from ensue.tasks.exported import Exported, Graph

if TYPE_CHECKING:
    import onnx

RUNTIME = Path(__file__).parent / "runtime_c"
LIBRARY = ("tensors.h", "shapes.h", "windows.h", "operators.h")
MEMORY = 64_000_000  # bytes that a comparison may take


def folder_files(
    exported: Exported, traced: Mapping[str, onnx.ModelProto], weights: str
) -> dict[str, bytes]:
    """By name: model.c and model.h, the operators, an example, and what stands around them."""
    graphs = {own.name: GraphC(traced[own.name], own.name, weights) for own in exported.graphs}
    flash = sum(own.flash for own in graphs.values())
    source = [
        "/* Written by `ensue export`. C99; link with -lm.",
        f" * Flash: {flash} bytes of weights. Memory is the caller's: `room`. */",
        '#include "model.h"',
        '#include "operators.h"',
        "",
        *C99().used_helpers(name for own in graphs.values() for name in own.called),
        "",
        *(own.text() for own in graphs.values()),
    ]
    files = {"model.c": "\n".join(source), "model.h": _header(exported)}
    files |= {name: (RUNTIME / name).read_text(encoding="utf-8") for name in LIBRARY}
    files["example.c"] = _example(exported.graphs[0])
    files |= forecast_files(exported) if is_forecast(exported) else {}
    files["preprocess.json"] = json.dumps(exported.description(), ensure_ascii=False)
    return {name: text.encode() for name, text in files.items()}


def _header(exported: Exported) -> str:
    lines = ["#ifndef ENSUE_MODEL", "#define ENSUE_MODEL", "", '#include "tensors.h"', ""]
    for graph in exported.graphs:
        name = graph.name.upper()
        lines += [f"#define {name}_INPUTS {len(graph.inputs)}"]
        lines += [f"#define {name}_OUTPUTS {len(graph.outputs)}", ""]
        lines += ["/* inputs, in this order:"]
        lines += [f"     {own.name} ({', '.join(map(str, own.axes))})" for own in graph.inputs]
        lines += [f"   outputs: {', '.join(graph.outputs)}; their numbers lie in the room."]
        lines += ["   Gives 0, or -1 where the room is too small. */"]
        lines += [f"int {graph.name}_run(const ensue_tensor *inputs, ensue_tensor *outputs,"]
        lines += ["    ensue_room *room);", ""]
    return "\n".join([*lines, "#endif", ""])


EXAMPLE = """/* cc -std=c99 example.c model.c -lm -o example && ./example 2 5 3
 * Runs the model on numbers of `%(first)s`; preprocess.json says what they stand for. Other inputs
 * are zero. */
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

static float memory[%(memory)d];

int main(int argc, char **argv)
{
    static float given[%(inputs)d][%(most)d];
    ensue_tensor inputs[%(inputs)d], outputs[%(outputs)d];
    ensue_room room = {memory, sizeof memory / sizeof *memory, 0, 0};
    long time = argc > 1 ? argc - 1 : 1;
    if (time > %(steps)d) time = %(steps)d;
%(shapes)s
    for (int k = 1; k < argc && k <= %(steps)d; k++) given[0][k - 1] = (float)atof(argv[k]);
    if (%(name)s_run(inputs, outputs, &room)) {
        fprintf(stderr, "the room is too small\\n");
        return 1;
    }
    for (int k = 0; k < %(outputs)d; k++) {
        long total = 1;
        for (int j = 0; j < outputs[k].rank; j++) total *= outputs[k].dims[j];
        const float *data = outputs[k].data;
        for (long n = 0; n < total && n < 20; n++) printf("%%g ", data[n]);
        printf("\\n");
    }
    return 0;
}
"""
STEPS = 256  # that the example takes at most


def _example(graph: Graph) -> str:
    fixed = [int(np.prod([n for n in own.axes if isinstance(n, int)])) for own in graph.inputs]
    shapes = []
    for k, own in enumerate(graph.inputs):
        dims = [
            "1" if axis == "batch" else "time" if isinstance(axis, str) else str(axis)
            for axis in own.axes
        ]
        tensor = f"{len(dims)}, {{{', '.join(dims)}}}, given[{k}], NULL, 'f'"
        shapes.append(f"    inputs[{k}] = (ensue_tensor){{{tensor}}};")
        if own.steps_of:
            shapes.append(f"    given[{k}][0] = (float)time;")
    return EXAMPLE % {
        "first": graph.inputs[0].name,
        "memory": 4_000_000,
        "inputs": len(graph.inputs),
        "outputs": len(graph.outputs),
        "most": max(fixed) * STEPS,
        "steps": STEPS,
        "shapes": "\n".join(shapes),
        "name": graph.name,
    }


# --- run to be compared --------------------------------------------------------------------------

MAIN = """
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

typedef int Graph(const ensue_tensor *, ensue_tensor *, ensue_room *);
static Graph *const graphs[] = {%(graphs)s};
static const int given[] = {%(inputs)s}, found[] = {%(outputs)s};

static void take(void *to, size_t bytes)
{
    if (bytes && fread(to, 1, bytes, stdin) != bytes) exit(3);
}

int main(void)
{
    int number;
    float *memory = malloc(%(memory)d);
    while (fread(&number, 4, 1, stdin) == 1) {
        ensue_tensor inputs[64], outputs[64];
        ensue_room room = {memory, %(memory)d / 4, 0, 0};
        for (int k = 0; k < given[number]; k++) {
            int head[1 + ENSUE_RANK];
            size_t size = 4;
            take(head, sizeof head);
            inputs[k] = (ensue_tensor){head[0], {0}, NULL, NULL, 'f'};
            for (int j = 0; j < head[0]; j++) size *= (size_t)(inputs[k].dims[j] = head[1 + j]);
            void *data = malloc(size ? size : 4);
            take(data, size);
            inputs[k].data = data;
        }
        if (graphs[number](inputs, outputs, &room)) return 4;
        for (int k = 0; k < found[number]; k++) {
            int head[1 + ENSUE_RANK] = {outputs[k].rank};
            size_t size = 1;
            for (int j = 0; j < outputs[k].rank; j++) {
                head[1 + j] = (int)outputs[k].dims[j];
                size *= (size_t)outputs[k].dims[j];
            }
            fwrite(head, sizeof head, 1, stdout);
            fwrite(outputs[k].data, 4, size, stdout);
        }
        for (int k = 0; k < given[number]; k++) free((void *)inputs[k].data);
    }
    free(memory);
    return 0;
}
"""
RANK = 6


def run_folder(
    exported: Exported,
    files: Mapping[str, bytes],
    cases: Sequence[tuple[str, Mapping[str, torch.Tensor]]],
    flags: Sequence[str] = (),
) -> list[list[Any]]:
    """The outputs of graphs, by name, in one process. flags: of the compiler."""
    names = [own.name for own in exported.graphs]
    counts = {own.name: len(own.outputs) for own in exported.graphs}
    with temporary_folder() as place:
        folder = Path(place)
        for name, text in files.items():
            (folder / name).write_bytes(text)
        main = MAIN % {
            "graphs": ", ".join(f"{name}_run" for name in names),
            "inputs": ", ".join(str(len(own.inputs)) for own in exported.graphs),
            "outputs": ", ".join(str(counts[name]) for name in names),
            "memory": MEMORY,
        }
        (folder / "main.c").write_text(main, encoding="utf-8")
        program = str(folder / "grid")
        sources = [name for name in ("model.c", "forecast.c", "main.c") if (folder / name).exists()]
        compile_c([str(folder / name) for name in sources], program, flags)
        requests = b"".join(_request(names.index(name), inputs) for name, inputs in cases)
        done = subprocess.run([program], input=requests, capture_output=True, timeout=SECONDS)
    if done.returncode:
        told = done.stderr.decode(errors="replace")[-2000:]
        raise EnsueError(f"the exported C failed with {done.returncode}: {told}")
    return _answers(done.stdout, [counts[name] for name, _ in cases])


def _request(number: int, inputs: Mapping[str, torch.Tensor]) -> bytes:
    parts = [struct.pack("=i", number)]
    for own in inputs.values():
        dims = [*own.shape, *([0] * (RANK - own.dim()))]
        parts.append(struct.pack(f"={1 + RANK}i", own.dim(), *dims))
        parts.append(np.ascontiguousarray(own.numpy(), np.float32).tobytes())
    return b"".join(parts)


def _answers(data: bytes, counts: Sequence[int]) -> list[list[Any]]:
    found, at = [], 0
    for count in counts:
        row = []
        for _ in range(count):
            rank, *dims = struct.unpack_from(f"={1 + RANK}i", data, at)
            at += 4 * (1 + RANK)
            size = int(np.prod(dims[:rank])) if rank else 1
            row.append(np.frombuffer(data, np.float32, size, at).reshape(dims[:rank]))
            at += 4 * size
        found.append(row)
    return found
