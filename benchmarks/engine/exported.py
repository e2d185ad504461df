"""Exported layers against the engine and torch.nn: microseconds a step, and bytes.

One sequence of `STEPS` steps, one row, one thread; the median of several rounds in which every form
runs once, in processor time: other work on the machine counts little. Bytes are those of the file
that is written, of C those of its weights.
"""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ensue.cells import GRU, LSTM, Cell
from ensue.equations import Matrix, Vector, sigmoid, tanh
from ensue.errors import EnsueError, MissingExtra
from ensue.export.c import CFile
from ensue.export.javascript import javascript_source
from ensue.export.onnx.layer import onnx_model
from ensue.export.onnx.run import session_of
from ensue.export.programs import NoProgram, compile_c, node_program, temporary_folder
from ensue.export.stack import Stack, stack_of
from ensue.layers.recurrent import Recurrent

STEPS, SIZES = 200, (32, 128)
AT_ONCE = 10  # runs that are timed together


class OneGate(Cell):
    """A custom cell, for the bench: f = σ(W·x + U·h + b), h' = f·h + (1 − f)·tanh(V·x)."""

    W, V, U, b = Matrix("x"), Matrix("x"), Matrix("h"), Vector()

    def step(self, x: Any, h: Any) -> Any:
        f = sigmoid(self.W @ x + self.U @ h + self.b)
        return f * h + (1 - f) * tanh(self.V @ x)


CELLS: dict[str, tuple[type[Cell], type[torch.nn.Module] | None]] = {
    "LSTM": (LSTM, torch.nn.LSTM),
    "GRU": (GRU, torch.nn.GRU),
    "own cell": (OneGate, None),
}


@dataclass(frozen=True)
class Measured:
    """Of one cell in one form. microseconds: of a step; size: bytes, 0 where nothing is written."""

    cell: str
    hidden: int
    form: str
    microseconds: float
    size: int


@dataclass(frozen=True)
class Subject:
    """A layer that is measured, what it reads, and torch's own, where there is one."""

    layer: torch.nn.Module
    x: Tensor
    peer: torch.nn.Module | None


@dataclass(frozen=True)
class ReadyForm:
    """One form of a layer, ready to run. seconds: of one sequence, measured now; size: bytes of
    what is written."""

    seconds: Callable[[], float]
    size: int = 0


def measure(runs: int, tell: Callable[[str], None]) -> Iterator[Measured]:
    """tell: hears of forms that nothing can run here."""
    for name, (cell, peer) in CELLS.items():
        for hidden in SIZES:
            torch.manual_seed(0)
            layer = Recurrent(cell(), hidden, hidden).eval()
            module = None if peer is None else peer(hidden, hidden).eval()
            subject = Subject(layer, torch.randn(STEPS, 1, hidden), module)
            with ExitStack() as open_ones:
                ready = _ready(subject, open_ones, tell)
                times = _interleaved(ready, runs)
            for form, seconds in times.items():
                yield Measured(name, hidden, form, 1e6 * seconds / STEPS, ready[form].size)


def _ready(
    subject: Subject, open_ones: ExitStack, tell: Callable[[str], None]
) -> dict[str, ReadyForm]:
    forms = {}
    for form, started in FORMS.items():
        if form == "torch.nn" and subject.peer is None:
            continue
        try:
            forms[form] = open_ones.enter_context(started(subject))
        except (NoProgram, MissingExtra) as error:
            tell(f"{form}: {error}")
    return forms


def _interleaved(ready: Mapping[str, ReadyForm], runs: int) -> dict[str, float]:
    """The median of each one's seconds: in every round each runs once, so that what else the
    machine does falls on all of them. One round is not counted."""
    rounds = [
        {form: form_ready.seconds() for form, form_ready in ready.items()} for _ in range(runs + 1)
    ]
    return {form: statistics.median(times[form] for times in rounds[1:]) for form in ready}


def _timed(run: Callable[[], Any]) -> float:
    """Seconds of a run."""
    begin = time.process_time()
    for _ in range(AT_ONCE):
        run()
    return (time.process_time() - begin) / AT_ONCE


@contextmanager
def _in_torch(layer: torch.nn.Module, x: Tensor) -> Iterator[ReadyForm]:
    @torch.no_grad()
    def seconds() -> float:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return _timed(lambda: layer(x))
        finally:
            torch.set_num_threads(threads)

    yield ReadyForm(seconds)


@contextmanager
def _in_onnx(subject: Subject) -> Iterator[ReadyForm]:
    data = onnx_model(stack_of(subject.layer)).SerializeToString()
    session, inputs = session_of(data), {"x": subject.x.numpy()}
    yield ReadyForm(lambda: _timed(lambda: session.run(None, inputs)), len(data))


C_MAIN = """
#include <stdio.h>
#include <time.h>
void model_start(float *);
long model_run(const float *, long, float *, float *, float *);
static float x[%(input)d], y[%(output)d], state[%(state)d];
int main(void)
{
    if (fread(x, 4, %(input)d, stdin) != %(input)d) return 3;
    while (getchar() != EOF) {
        clock_t begin = clock();
        for (int again = 0; again < %(at_once)d; again++) {
            model_start(state);
            model_run(x, %(steps)d, state, y, 0);
        }
        printf("%%.9g\\n", (double)(clock() - begin) / CLOCKS_PER_SEC / %(at_once)d);
        fflush(stdout);
    }
    return y[0] > 1e30f;
}
"""


@contextmanager
def _in_c(stack: Stack, x: Tensor) -> Iterator[ReadyForm]:
    file = CFile(stack, "model")
    sizes = {"input": STEPS * stack.input_size, "output": STEPS * stack.output_size}
    main = C_MAIN % {**sizes, "state": stack.state_size, "steps": STEPS, "at_once": AT_ONCE}
    with temporary_folder() as name:
        folder = Path(name)
        (folder / "model.c").write_text(file.text(), encoding="utf-8")
        (folder / "main.c").write_text(main, encoding="utf-8")
        files = [str(folder / "model.c"), str(folder / "main.c")]
        compile_c(files, str(folder / "program"), ("-O3", "-march=native", "-ffast-math"))
        with _program([str(folder / "program")], x) as seconds:
            yield ReadyForm(seconds, file.flash)


NODE_MAIN = """
import { readSync, writeSync } from "node:fs";
const { start, run, INPUT, OUTPUT } = await import(process.argv[2]);
const steps = Number(process.argv[3]), again = Number(process.argv[4]);
const x = new Float32Array(steps * INPUT), y = new Float32Array(steps * OUTPUT);
const bytes = new Uint8Array(x.buffer), asked = new Uint8Array(1);
for (let at = 0; at < bytes.length; ) at += readSync(0, bytes, at, bytes.length - at, null);
while (readSync(0, asked, 0, 1, null)) {
    const begin = process.cpuUsage();
    for (let n = 0; n < again; n++) run(x, steps, start(), y);
    const { user, system } = process.cpuUsage(begin);
    writeSync(1, `${(user + system) / 1e6 / again}\\n`);
}
"""


@contextmanager
def _in_javascript(subject: Subject) -> Iterator[ReadyForm]:
    text, node = javascript_source(stack_of(subject.layer)), node_program()
    with temporary_folder() as name:
        folder = Path(name)
        (folder / "model.mjs").write_text(text, encoding="utf-8")
        (folder / "main.mjs").write_text(NODE_MAIN, encoding="utf-8")
        files = [str(folder / "main.mjs"), str(folder / "model.mjs")]
        with _program([node, *files, str(STEPS), str(AT_ONCE)], subject.x) as seconds:
            yield ReadyForm(seconds, len(text))


@contextmanager
def _program(command: list[str], x: Tensor) -> Iterator[Callable[[], float]]:
    """A program that reads x and then, for each byte that it is sent, prints the seconds of one
    run."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        to_program, from_program = process.stdin, process.stdout
        assert to_program is not None
        assert from_program is not None
        to_program.write(np.ascontiguousarray(x.numpy(), np.float32).tobytes())

        def seconds() -> float:
            to_program.write(b"\n")
            to_program.flush()
            line = from_program.readline()
            if not line:
                _, why = process.communicate()
                raise EnsueError(f"{command[0]} failed: {why.decode(errors='replace')[-500:]}")
            return float(line)

        yield seconds
        process.communicate()


FORMS: dict[str, Callable[[Subject], AbstractContextManager[ReadyForm]]] = {
    "native": lambda subject: _in_torch(subject.layer, subject.x),
    "ONNX Runtime": _in_onnx,
    "C99": lambda subject: _in_c(stack_of(subject.layer), subject.x),
    "C99, int8": lambda subject: _in_c(stack_of(subject.layer, "int8"), subject.x),
    "JavaScript": _in_javascript,
    "torch.nn": lambda subject: _in_torch(_known(subject.peer), subject.x),
}


def _known(peer: torch.nn.Module | None) -> torch.nn.Module:
    assert peer is not None
    return peer


def markdown(measurements: list[Measured]) -> str:
    """A table with a row for each cell and size: µs a step, and bytes where a file is written."""
    forms = list(dict.fromkeys(row.form for row in measurements))
    rows = dict.fromkeys((row.cell, row.hidden) for row in measurements)
    known = {(row.cell, row.hidden, row.form): row for row in measurements}
    lines = [f"| µs a step (bytes) | {' | '.join(forms)} |", "|---" * (1 + len(forms)) + "|"]
    for cell, hidden in rows:
        cells = [_cell_text(known.get((cell, hidden, form))) for form in forms]
        lines.append(f"| {cell}, {hidden} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell_text(measurement: Measured | None) -> str:
    if measurement is None:
        return "–"
    return f"{measurement.microseconds:.2f}" + (
        f" ({measurement.size:,})" if measurement.size else ""
    )
