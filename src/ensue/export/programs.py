"""Running C and JavaScript on the cases of a grid: one process for many of them.

Both harnesses read rows from the standard input and write the results, in the machine's byte order,
until the input ends:

    in    model, steps, mode (0 run, 1 step by step), state given?   int32 each
          state, if it is given, and x                               float32
    out   steps of y  int32;  state and y  float32
"""

from __future__ import annotations

import os
import shlex
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from ensue.errors import EnsueError, OptionError
from ensue.export.grid import Case, Floats, Outcome
from ensue.export.stack import Stack

SECONDS = 600
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2")


class NoProgram(EnsueError):
    """The program that would run an export is not installed."""


def c_compiler() -> list[str]:
    words = shlex.split(os.environ.get("CC", ""))
    for command in (words, ["cc"], ["gcc"], ["clang"]):
        if command and shutil.which(command[0]):
            return command
    raise NoProgram(
        "no C compiler was found (cc, gcc, clang, or the one that CC names), so the exported C "
        "cannot be compared with Python. Install one, or export with --unchecked"
    )


def node_program() -> str:
    for name in ("node", "nodejs"):
        if program := shutil.which(name):
            return program
    raise NoProgram(
        "node was not found, so the exported JavaScript cannot be compared with Python. Install "
        "Node.js, or export with --unchecked"
    )


# --- rows in, rows out ---------------------------------------------------------------------------


def _requests(model: int, stack: Stack, case: Case, mode: int) -> bytes:
    parts = []
    for row in range(case.x.shape[1]):
        steps = len(case.x) if case.lengths is None else int(case.lengths[row])
        parts.append(struct.pack("=4i", model, steps, mode, case.state is not None))
        if case.state is not None:
            parts.append(b"".join(np.ascontiguousarray(part[row]).tobytes() for part in case.state))
        parts.append(np.ascontiguousarray(case.x[:steps, row]).tobytes())
    return b"".join(parts)


class _Answers:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def row(self, stack: Stack) -> tuple[Floats, Floats]:
        """The state and y (steps, features) of one row."""
        (steps,) = struct.unpack_from("=i", self.data, self.at)
        self.at += 4
        return self._take(stack.state_size), self._take(steps * stack.output_size)

    def _take(self, count: int) -> Floats:
        numbers = np.frombuffer(self.data, np.float32, count, self.at)
        self.at += 4 * count
        return numbers

    def outcome(self, stack: Stack, case: Case) -> Outcome:
        time = len(case.x) if stack.max_length is None else stack.max_length
        rows = [self.row(stack) for _ in range(case.x.shape[1])]
        y = np.zeros((time, len(rows), stack.output_size), np.float32)
        for number, (_, row_count) in enumerate(rows):
            filled = row_count.reshape(-1, stack.output_size)
            y[: len(filled), number] = filled
        joined = np.stack([state for state, _ in rows])
        edges = np.cumsum([0, *(width for _, width in stack.state_names)])
        parts = [joined[:, a:b] for a, b in pairwise(edges)]
        return Outcome(y, tuple(parts))


def run_rows(
    command: Sequence[str], stacks: Sequence[Stack], cases: Sequence[Sequence[Case]], mode: int
) -> list[list[Outcome]]:
    """Runs the cases of each model through one process."""
    requests = b"".join(
        _requests(number, stack, case, mode)
        for number, (stack, rows) in enumerate(zip(stacks, cases, strict=True))
        for case in rows
    )
    done = subprocess.run(command, input=requests, capture_output=True, timeout=SECONDS)
    if done.returncode:
        raise EnsueError(f"{command[0]} failed: {done.stderr.decode(errors='replace')[-2000:]}")
    answers = _Answers(done.stdout)
    return [
        [answers.outcome(stack, case) for case in rows]
        for stack, rows in zip(stacks, cases, strict=True)
    ]


# --- C -------------------------------------------------------------------------------------------

C_MAIN = """
typedef void Start(float *);
typedef void Step(const float *, float *, float *);
typedef long Run(const float *, long, float *, float *, float *);
typedef struct { Start *start; Step *step; Run *run; long input, output, state, work, most; } Model;

static const Model models[] = {
%(table)s
};

static void take(void *to, size_t bytes)
{
    if (bytes && fread(to, 1, bytes, stdin) != bytes) exit(3);
}

int main(void)
{
    int head[4];
    while (fread(head, 4, 4, stdin) == 4) {
        const Model *m = models + head[0];
        long steps = head[1], out = m->most >= 0 ? m->most : steps;
        float *state = malloc((size_t)m->state * 4), *x = malloc((size_t)(steps * m->input) * 4);
        float *y = malloc((size_t)(out * m->output) * 4);
        float *work = malloc((size_t)(out * m->work) * 4);
        if (head[3]) take(state, (size_t)m->state * 4);
        else m->start(state);
        take(x, (size_t)(steps * m->input) * 4);
        if (head[2]) {
            for (long t = 0; t < steps; t++) m->step(x + t * m->input, state, y + t * m->output);
        } else {
            steps = m->run(x, steps, state, y, work);
        }
        head[0] = (int)steps;
        fwrite(head, 4, 1, stdout);
        fwrite(state, 4, (size_t)m->state, stdout);
        fwrite(y, 4, (size_t)(steps * m->output), stdout);
        free(state); free(x); free(y); free(work);
    }
    return 0;
}
"""


def _c_harness(stacks: Sequence[Stack], names: Sequence[str], works: Sequence[int]) -> str:
    lines = ["#include <stdio.h>", "#include <stdlib.h>"]
    table = []
    for stack, name, work in zip(stacks, names, works, strict=True):
        lines += [
            f"void {name}_start(float *);",
            f"void {name}_step(const float *, float *, float *);" if stack.streams else "",
            f"long {name}_run(const float *, long, float *, float *, float *);",
        ]
        step = f"{name}_step" if stack.streams else "0"
        most = -1 if stack.max_length is None else stack.max_length
        sizes = f"{stack.input_size}, {stack.output_size}, {stack.state_size}, {work}, {most}"
        table.append(f"    {{{name}_start, {step}, {name}_run, {sizes}}},")
    return "\n".join(lines) + C_MAIN % {"table": "\n".join(table)}


class CPrograms:
    """Some exported C files, compiled into one program."""

    def __init__(
        self,
        folder: Path,
        sources: Sequence[str],
        stacks: Sequence[Stack],
        works: Sequence[int],
        flags: Sequence[str] = (),
    ) -> None:
        """Compiles the sources. sources: files whose functions have the prefixes model0, model1,
        …"""
        self.stacks = stacks
        names = [f"model{k}" for k in range(len(sources))]
        files = []
        for name, source in zip(names, sources, strict=True):
            (folder / f"{name}.c").write_text(source, encoding="utf-8")
            files.append(str(folder / f"{name}.c"))
        (folder / "main.c").write_text(_c_harness(stacks, names, works), encoding="utf-8")
        self.program = str(folder / "grid")
        compile_c([*files, str(folder / "main.c")], self.program, flags)

    def run(self, cases: Sequence[Sequence[Case]], mode: int = 0) -> list[list[Outcome]]:
        return run_rows([self.program], self.stacks, cases, mode)


def compile_c(files: Sequence[str], program: str, flags: Sequence[str] = ()) -> None:
    command = [*c_compiler(), *STRICT, *flags, *files, "-o", program, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        raise OptionError(f"{command[0]}: the exported C does not compile:\n{done.stderr[-3000:]}")


# --- JavaScript ----------------------------------------------------------------------------------

NODE_MAIN = """
import { readFileSync, writeSync } from "node:fs";
const models = [];
for (const path of process.argv.slice(2)) models.push(await import(path));
const most = JSON.parse(process.env.ENSUE_MOST_STEPS);
const data = readFileSync(0);
const bytes = data.buffer.slice(data.byteOffset, data.byteOffset + data.length);
const heads = new Int32Array(bytes, 0, data.length >> 2), values = new Float32Array(bytes);
const found = [];
for (let at = 0; at < heads.length; ) {
    const [number, length, mode, given] = heads.subarray(at, at + 4);
    const m = models[number];
    at += 4;
    const state = given ? values.slice(at, at + m.STATE) : m.start();
    at += given ? m.STATE : 0;
    const x = values.slice(at, at + length * m.INPUT);
    at += length * m.INPUT;
    const y = new Float32Array((most[number] >= 0 ? most[number] : length) * m.OUTPUT);
    let steps = length;
    if (mode) {
        for (let t = 0; t < length; t++) {
            const own = y.subarray(t * m.OUTPUT, (t + 1) * m.OUTPUT);
            m.step(x.subarray(t * m.INPUT, (t + 1) * m.INPUT), state, own);
        }
    } else {
        steps = m.run(x, length, state, y);
    }
    found.push(Buffer.from(new Int32Array([steps]).buffer), Buffer.from(state.buffer));
    found.push(Buffer.from(y.buffer, 0, 4 * steps * m.OUTPUT));
}
const all = Buffer.concat(found);
for (let sent = 0; sent < all.length; ) sent += writeSync(1, all, sent);
"""


class NodePrograms:
    """Some exported modules, in one process of Node."""

    def __init__(self, folder: Path, sources: Sequence[str], stacks: Sequence[Stack]) -> None:
        self.stacks, self.files = stacks, []
        for number, source in enumerate(sources):
            path = folder / f"model{number}.mjs"
            path.write_text(source, encoding="utf-8")
            self.files.append(str(path))
        self.main = folder / "main.mjs"
        self.main.write_text(NODE_MAIN, encoding="utf-8")

    def run(self, cases: Sequence[Sequence[Case]], mode: int = 0) -> list[list[Outcome]]:
        most = [-1 if stack.max_length is None else stack.max_length for stack in self.stacks]
        command = ["env", f"ENSUE_MOST_STEPS={most}", node_program(), str(self.main), *self.files]
        return run_rows(command, self.stacks, cases, mode)


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="ensue-export-")
