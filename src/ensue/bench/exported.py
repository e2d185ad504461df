"""Exported layers beside the engine and torch.nn: microseconds a step, and bytes.

One sequence of `STEPS` steps, one row, one thread; the median of several runs, in processor time:
other work on the machine counts little. Bytes are those of the file that is written, of C those of
its weights.
"""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
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
    """A cell of one's own, for the bench: f = σ(W·x + U·h + b), h' = f·h + (1 − f)·tanh(V·x)."""

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


def measure(runs: int, tell: Callable[[str], None]) -> Iterator[Measured]:
    """tell: hears of forms that nothing can run here."""
    for name, (cell, peer) in CELLS.items():
        for hidden in SIZES:
            torch.manual_seed(0)
            layer = Recurrent(cell(), hidden, hidden).eval()
            own = None if peer is None else peer(hidden, hidden).eval()
            subject = Subject(layer, torch.randn(STEPS, 1, hidden), own)
            for form, run in FORMS.items():
                if form == "torch.nn" and own is None:
                    continue
                try:
                    seconds, size = run(subject, runs)
                except (NoProgram, MissingExtra) as error:
                    tell(f"{form}: {error}")
                    continue
                yield Measured(name, hidden, form, 1e6 * seconds / STEPS, size)


def _median(run: Callable[[], Any], runs: int) -> float:
    """Seconds of a run, after some that are not counted."""
    for _ in range(AT_ONCE):
        run()
    found = []
    for _ in range(runs):
        begin = time.process_time()
        for _ in range(AT_ONCE):
            run()
        found.append((time.process_time() - begin) / AT_ONCE)
    return statistics.median(found)


@torch.no_grad()
def _in_torch(layer: torch.nn.Module, x: Tensor, runs: int) -> tuple[float, int]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _median(lambda: layer(x), runs), 0
    finally:
        torch.set_num_threads(threads)


def _in_onnx(own: Subject, runs: int) -> tuple[float, int]:
    data = onnx_model(stack_of(own.layer)).SerializeToString()
    session, given = session_of(data), {"x": own.x.numpy()}
    return _median(lambda: session.run(None, given), runs), len(data)


C_MAIN = """
#include <stdio.h>
#include <time.h>
void model_start(float *);
long model_run(const float *, long, float *, float *, float *);
static float x[%(input)d], y[%(output)d], state[%(state)d];
int main(void)
{
    if (fread(x, 4, %(input)d, stdin) != %(input)d) return 3;
    for (int run = 0; run < %(runs)d; run++) {
        clock_t begin = clock();
        for (int again = 0; again < %(at_once)d; again++) {
            model_start(state);
            model_run(x, %(steps)d, state, y, 0);
        }
        printf("%%.9g\\n", (double)(clock() - begin) / CLOCKS_PER_SEC / %(at_once)d);
    }
    return y[0] > 1e30f;
}
"""


def _in_c(stack: Stack, x: Tensor, runs: int) -> tuple[float, int]:
    own = CFile(stack, "model")
    sizes = {"input": STEPS * stack.input_size, "output": STEPS * stack.output_size}
    counts = {"state": stack.state_size, "runs": runs, "steps": STEPS, "at_once": AT_ONCE}
    main = C_MAIN % {**sizes, **counts}
    with temporary_folder() as name:
        folder = Path(name)
        (folder / "model.c").write_text(own.text(), encoding="utf-8")
        (folder / "main.c").write_text(main, encoding="utf-8")
        files = [str(folder / "model.c"), str(folder / "main.c")]
        compile_c(files, str(folder / "program"), ("-O3", "-march=native", "-ffast-math"))
        return _printed([str(folder / "program")], x), own.flash


NODE_MAIN = """
import { readFileSync } from "node:fs";
const { start, run, OUTPUT } = await import(process.argv[2]);
const data = readFileSync(0), steps = Number(process.argv[3]);
const x = new Float32Array(data.buffer.slice(data.byteOffset, data.byteOffset + data.length));
const y = new Float32Array(steps * OUTPUT);
const again = Number(process.argv[5]);
for (let k = 0; k < Number(process.argv[4]) + 1; k++) {
    const begin = process.cpuUsage();
    for (let n = 0; n < again; n++) run(x, steps, start(), y);
    const { user, system } = process.cpuUsage(begin);
    if (k >= 1) console.log((user + system) / 1e6 / again);
}
"""


def _in_javascript(own: Subject, runs: int) -> tuple[float, int]:
    text = javascript_source(stack_of(own.layer))
    with temporary_folder() as name:
        folder = Path(name)
        (folder / "model.mjs").write_text(text, encoding="utf-8")
        (folder / "main.mjs").write_text(NODE_MAIN, encoding="utf-8")
        files = [str(folder / "main.mjs"), str(folder / "model.mjs")]
        words = [node_program(), *files, str(STEPS), str(runs), str(AT_ONCE)]
        return _printed(words, own.x), len(text)


def _printed(command: list[str], x: Tensor) -> float:
    """The median of the seconds that a program prints, one a line."""
    given = np.ascontiguousarray(x.numpy(), np.float32).tobytes()
    done = subprocess.run(command, input=given, capture_output=True, timeout=600)
    if done.returncode:
        raise EnsueError(f"{command[0]} failed: {done.stderr.decode(errors='replace')[-500:]}")
    return statistics.median(map(float, done.stdout.split()))


FORMS: dict[str, Callable[[Subject, int], tuple[float, int]]] = {
    "native": lambda own, runs: _in_torch(own.layer, own.x, runs),
    "ONNX Runtime": _in_onnx,
    "C99": lambda own, runs: _in_c(stack_of(own.layer), own.x, runs),
    "C99, int8": lambda own, runs: _in_c(stack_of(own.layer, "int8"), own.x, runs),
    "JavaScript": _in_javascript,
    "torch.nn": lambda own, runs: _in_torch(_known(own.peer), own.x, runs),
}


def _known(peer: torch.nn.Module | None) -> torch.nn.Module:
    assert peer is not None
    return peer


def markdown(found: list[Measured]) -> str:
    """A table with a row for each cell and size: µs a step, and bytes where a file is written."""
    forms = list(dict.fromkeys(own.form for own in found))
    rows = dict.fromkeys((own.cell, own.hidden) for own in found)
    known = {(own.cell, own.hidden, own.form): own for own in found}
    lines = [f"| µs a step (bytes) | {' | '.join(forms)} |", "|---" * (1 + len(forms)) + "|"]
    for cell, hidden in rows:
        cells = [_shown(known.get((cell, hidden, form))) for form in forms]
        lines.append(f"| {cell}, {hidden} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _shown(own: Measured | None) -> str:
    if own is None:
        return "–"
    return f"{own.microseconds:.2f}" + (f" ({own.size:,})" if own.size else "")
