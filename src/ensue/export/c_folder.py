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
from ensue.export.graph_c import GraphC
from ensue.export.languages import C99
from ensue.export.programs import SECONDS, compile_c, temporary_folder
from ensue.tasks.exported import BATCH, Exported, Graph, Input

if TYPE_CHECKING:
    import onnx

WRITTEN = ("forecast.h", "forecast.c", "members.h")
FORECAST_EXAMPLE = "forecast_example.c"
RUNTIME = Path(__file__).parent / "runtime_c"
KINDS = {"repeated": "r", "ridge": "w", "smoothing": "s", "autoregression": "a", "arima": "m"}
ANCHORS = {"season": "s", "mean": "m"}
TRANSFORMS = {"none": "n", "log": "l", "log1p": "p"}


def is_forecast(exported: Exported) -> bool:
    """Whether C can forecast from the numbers of a series alone: no panel, and no inputs except the
    columns and the calendar."""
    step = exported.before[0]
    return step["step"] == "series" and not any(step[key] for key in ("ids", "static", "known"))


def forecast_files(exported: Exported) -> dict[str, str]:
    """Files by name: the code, its tables, and an example."""
    files = {name: (RUNTIME / name).read_text(encoding="utf-8") for name in WRITTEN}
    files["example.c"] = (RUNTIME / FORECAST_EXAMPLE).read_text(encoding="utf-8")
    files["forecast_facts.h"] = "\n".join(_facts(exported))
    return files


def line_of(exported: Exported) -> str:
    """The format of a line that the example reads: "<phase of month> <sales>"."""
    step = exported.before[0]
    names = [*(f"phase of {name}" for name in step["calendar"]), *step["columns"]]
    return " ".join(f"<{_plain(name)}>" for name in names)


def reads_clock(exported: Exported) -> bool:
    """Whether a solved member reads the time at which the series ends."""
    step = exported.before[0]
    facts = [{**member, **member.get("form", {})} for member in step["members"]]
    return bool(step["time"]) and any(len(fact.get("periods", [])) for fact in facts)


def forecast_remark(exported: Exported, folder: Path) -> str:
    """How to try it: the command, and the content of its input lines."""
    step = exported.before[0]
    clock = " CLOCK" if reads_clock(exported) else ""
    parts = [
        f"try it: cd {folder} && cc -std=c99 example.c forecast.c model.c -lm -o example && "
        f"./example{clock} < numbers",
        f"where each line of numbers is: {line_of(exported)}",
    ]
    if step["calendar"]:
        parts.append(
            f"with {step['horizon']} more lines, nan after their phases, for the steps ahead"
        )
    if clock:
        parts.append("and CLOCK is the time of the last step (forecast.h)")
    return ", ".join(parts)


def _plain(name: str) -> str:
    """The name of a column, made safe for comments and strings of C."""
    letters = (
        letter if letter.isascii() and (letter.isalnum() or letter in " _-.:") else "_"
        for letter in name
    )
    return "".join(letters)


def _facts(exported: Exported) -> list[str]:
    step, after = exported.before[0], exported.after[0]
    columns, targets, members = len(step["columns"]), step["targets"], step["members"]
    sizes = {
        "COLUMNS": columns,
        "TARGETS": targets,
        "CALENDAR": len(step["calendar"]),
        "WIDTH": columns + (targets if members else 0) + 2 * len(step["calendar"]),
        "LOOK_BACK": step["look_back"],
        "HORIZON": step["horizon"],
        "LEAST": step["least"],
        "LAG": step["lag"],
        "SEASON": step["season"],
        "ROOM": step["room"],
        "MEMBERS": len(members),
        "FLOORED": int(step["floor"] is not None),
        "WIDENED": int(after["widening"] is not None),
        "CLOCK": int(reads_clock(exported)),
        "LINE": f'"{line_of(exported)}"',
        "TRANSFORM": f"'{TRANSFORMS[step['transform']]}'",
    }
    return [
        "/* Written by `ensue export`: what a forecast needs besides its network. */",
        "#ifndef ENSUE_FORECAST_FACTS",
        "#define ENSUE_FORECAST_FACTS",
        "",
        '#include "members.h"',
        "",
        f"/* columns: {', '.join(map(_plain, step['columns']))} */",
        *(f"#define FORECAST_{name} {value}" for name, value in sizes.items()),
        "",
        *_array("forecast_mean", step["mean"][0]),
        *_array("forecast_spread", step["spread"][0]),
        *_array("forecast_floor", step["floor"] or [0.0]),
        *_array("forecast_widening", after["widening"] or [0.0]),
        *_members(members),
        "",
        "#endif",
        "",
    ]


def _array(name: str, values: Any) -> list[str]:
    """A table of numbers; static, because several files include forecast.h."""
    flat = np.ravel(np.asarray(values, np.float64)).tolist() or [0.0]
    lines = [", ".join(map(repr, flat[k : k + 6])) for k in range(0, len(flat), 6)]
    return [f"static const double {name}[] = {{", *(f"    {line}," for line in lines), "};"]


def _members(members: Sequence[Mapping[str, Any]]) -> list[str]:
    lines, rows = list[str](), list[str]()
    for number, member in enumerate(members):
        facts = {**member, **member.get("form", {})}
        tables = {
            "periods": facts.get("periods", []),
            "weight": member.get("weight", []),
            "bias": member.get("bias", []),
            "floor": member.get("floor", []),
            "parameters": member["parameters"][0] if "parameters" in member else [],
        }
        for name, values in tables.items():
            lines += _array(f"forecast_{name}_{number}", values)
        places = ", ".join(f"forecast_{name}_{number}" for name in tables)
        numbers = [
            max(1, int(facts.get("season", 1))),
            int(facts.get("lags", facts.get("look_back", 0))),
            int(facts.get("difference", 0)),
            np.shape(member["weight"])[-1] if "weight" in member else 0,
            len(member["weight"]) if "weight" in member else 1,
            len(facts.get("periods", [])),
            int(facts.get("transform", "none") != "none"),
            int(facts.get("multiplies", False)),
            int(facts.get("scaled", False)),
        ]
        anchor = ANCHORS.get(facts.get("anchor", ""), "l")
        kind, listed = KINDS[member["kind"]], ", ".join(map(str, numbers))
        rows.append(f"    {{'{kind}', {member['share']!r}, {listed}, '{anchor}', {places}}},")
    if not rows:
        rows = ["    {0},"]
    return [*lines, "static const ensue_member forecast_members[] = {", *rows, "};"]


LIBRARY = ("tensors.h", "shapes.h", "indices.h", "windows.h", "operators.h")
MEMORY = 64_000_000  # maximum bytes of a comparison


def folder_files(
    exported: Exported, traced: Mapping[str, onnx.ModelProto], weights: str
) -> dict[str, bytes]:
    """The files by name: model.c and model.h, the operators, an example, and the rest."""
    files = model_files(exported.graphs, traced, weights)
    files["example.c"] = _example(exported.graphs[0]).encode()
    if is_forecast(exported):
        files |= {name: text.encode() for name, text in forecast_files(exported).items()}
    files["preprocess.json"] = json.dumps(exported.description(), ensure_ascii=False).encode()
    return files


def model_files(
    graphs: Sequence[Graph], traced: Mapping[str, onnx.ModelProto], weights: str
) -> dict[str, bytes]:
    """Files by name: only the networks, and the operators that they call."""
    made = [GraphC(traced[graph.name], graph.name, weights) for graph in graphs]
    flash = sum(source.flash for source in made)
    source = [
        "/* Written by `ensue export`. C99; link with -lm.",
        f" * Flash: {flash} bytes of weights. Memory is the caller's: `room`. */",
        '#include "model.h"',
        '#include "operators.h"',
        "",
        *C99().used_helpers(name for source in made for name in source.called),
        "",
        *(source.text() for source in made),
    ]
    files = {"model.c": "\n".join(source), "model.h": _header(graphs)}
    files |= {name: (RUNTIME / name).read_text(encoding="utf-8") for name in LIBRARY}
    return {name: text.encode() for name, text in files.items()}


def _header(graphs: Sequence[Graph]) -> str:
    lines = ["#ifndef ENSUE_MODEL", "#define ENSUE_MODEL", "", '#include "tensors.h"', ""]
    for graph in graphs:
        name = graph.name.upper()
        lines += [f"#define {name}_INPUTS {len(graph.inputs)}"]
        lines += [f"#define {name}_OUTPUTS {len(graph.outputs)}", ""]
        lines += ["/* inputs, in this order:"]
        lines += [
            f"     {source.name} ({', '.join(map(str, source.axes))})" for source in graph.inputs
        ]
        lines += [f"   outputs: {', '.join(graph.outputs)}; their numbers lie in the room."]
        lines += ["   Gives 0; -1 where the room is too small, -2 where a number that stands for a"]
        lines += ["   word or a place is not a whole number, or unknown to the network. */"]
        lines += [f"int {graph.name}_run(const ensue_tensor *inputs, ensue_tensor *outputs,"]
        lines += ["    ensue_room *room);", ""]
    return "\n".join([*lines, "#endif", ""])


EXAMPLE = """/* cc -std=c99 example.c model.c -lm -o example && ./example %(words)s
 * Runs the model on numbers of `%(first)s`; preprocess.json says what they stand for. Other inputs
 * are zero. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

#define MOST_NUMBERS %(numbers)d
#define EACH_STEP %(each)d

static float memory[%(memory)d];

/* The number that is written; NAN where it is not %(expected)s. */
static double number_of(const char *word)
{
    char *end;
    double value = strtod(word, &end);
    return end == word || *end || !(%(fits)s) ? NAN : value;
}

int main(int argc, char **argv)
{
    static float given[%(inputs)d][%(most)d];
    ensue_tensor inputs[%(inputs)d], outputs[%(outputs)d];
    ensue_room room = {memory, sizeof memory / sizeof *memory, 0, 0};
    if (argc - 1 > MOST_NUMBERS) {
        fprintf(stderr, "expected at most %%d numbers, got %%d\\n", MOST_NUMBERS, argc - 1);
        return 2;
    }
    long time = argc > 1 ? (argc - 2) / EACH_STEP + 1 : 1;
    (void)time;
%(shapes)s
    for (int k = 1; k < argc; k++) {
        double value = number_of(argv[k]);
        if (isnan(value)) {
            fprintf(stderr, "number %%d: expected %(expected)s, got %%s\\n", k, argv[k]);
            return 2;
        }
        given[0][k - 1] = (float)value;
    }
    int failed = %(name)s_run(inputs, outputs, &room);
    if (failed) {
        const char *why[] = {"the room is too small", "a number is none of the network's"};
        fprintf(stderr, "%%s\\n", why[failed != -1]);
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
STEPS = 256  # maximum number of steps that the example takes
REAL = 1e30  # the largest real number that it takes


def example_words(graph: Graph) -> str:
    """Valid numbers as input of this network's example."""
    first = graph.inputs[0]
    top = first.count - 1 if isinstance(first.count, int) and first.whole else 3
    return " ".join(str(max(0, min(number, top))) for number in (2, 3)[: _most_numbers(graph)])


def _most_numbers(graph: Graph) -> int:
    free = any(isinstance(axis, str) and axis != BATCH for axis in graph.inputs[0].axes)
    return _fixed(graph.inputs[0]) * (STEPS if free else 1)


def _fixed(graph_input: Input) -> int:
    """Numbers of one step."""
    return int(np.prod([axis for axis in graph_input.axes if isinstance(axis, int)]))


def _numbers_taken(graph_input: Input) -> tuple[str, str]:
    """The check of a number in the example, in words and as C."""
    if not graph_input.whole:
        return f"a number from -{REAL:g} to {REAL:g}", f"fabs(value) <= {REAL:g}"
    if isinstance(graph_input.count, str) or graph_input.steps_of:
        return "a whole number from 0 on", "value >= 0 && value == floor(value)"
    top = graph_input.count - 1
    return (
        f"a whole number from 0 to {top}",
        f"value >= 0 && value <= {top} && value == floor(value)",
    )


def _example(graph: Graph) -> str:
    shapes = []
    for k, graph_input in enumerate(graph.inputs):
        dims = [
            "1" if axis == BATCH else "time" if isinstance(axis, str) else str(axis)
            for axis in graph_input.axes
        ]
        tensor = f"{len(dims)}, {{{', '.join(dims)}}}, given[{k}], NULL, 'f'"
        shapes.append(f"    inputs[{k}] = (ensue_tensor){{{tensor}}};")
        if graph_input.steps_of:
            shapes.append(f"    given[{k}][0] = (float)time;")
    expected, fits = _numbers_taken(graph.inputs[0])
    return EXAMPLE % {
        "words": example_words(graph),
        "first": graph.inputs[0].name,
        "memory": 4_000_000,
        "numbers": _most_numbers(graph),
        "each": _fixed(graph.inputs[0]),
        "expected": expected,
        "fits": fits,
        "inputs": len(graph.inputs),
        "outputs": len(graph.outputs),
        "most": max(map(_fixed, graph.inputs)) * STEPS,
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
    graphs: Sequence[Graph],
    files: Mapping[str, bytes],
    cases: Sequence[tuple[str, Mapping[str, torch.Tensor]]],
    flags: Sequence[str] = (),
) -> list[list[Any]]:
    """The outputs of graphs, by name, from one process. flags: the flags of the compiler."""
    names = [graph.name for graph in graphs]
    counts = {graph.name: len(graph.outputs) for graph in graphs}
    with temporary_folder() as place:
        folder = Path(place)
        for name, text in files.items():
            (folder / name).write_bytes(text)
        main = MAIN % {
            "graphs": ", ".join(f"{name}_run" for name in names),
            "inputs": ", ".join(str(len(graph.inputs)) for graph in graphs),
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
        message = done.stderr.decode(errors="replace")[-2000:]
        raise EnsueError(f"the exported C failed with {done.returncode}: {message}")
    return _answers(done.stdout, [counts[name] for name, _ in cases])


def _request(number: int, inputs: Mapping[str, torch.Tensor]) -> bytes:
    parts = [struct.pack("=i", number)]
    for value in inputs.values():
        dims = [*value.shape, *([0] * (RANK - value.dim()))]
        parts.append(struct.pack(f"={1 + RANK}i", value.dim(), *dims))
        parts.append(np.ascontiguousarray(value.numpy(), np.float32).tobytes())
    return b"".join(parts)


def _answers(data: bytes, counts: Sequence[int]) -> list[list[Any]]:
    outcomes, at = [], 0
    for count in counts:
        row = []
        for _ in range(count):
            rank, *dims = struct.unpack_from(f"={1 + RANK}i", data, at)
            at += 4 * (1 + RANK)
            size = int(np.prod(dims[:rank])) if rank else 1
            row.append(np.frombuffer(data, np.float32, size, at).reshape(dims[:rank]))
            at += 4 * size
        outcomes.append(row)
    return outcomes
