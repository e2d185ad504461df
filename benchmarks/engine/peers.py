"""JAX and ONNX Runtime, where `make bench-peers` has installed them: a process of their own.

They are measured there, in turns with the contenders of this process."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.engine.case import TORCH_CELLS, Case
from benchmarks.engine.loop import write_loop
from benchmarks.engine.spelling import Jax
from benchmarks.engine.timing import Runner
from ensue.cells import Cell
from ensue.engine import run
from ensue.errors import EnsueError

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "peers.py"
PYTHON = ROOT / ".venv-peers" / "bin" / "python"
PAUSE = 0.005  # seconds that idle threads of this process keep a core busy
Request = dict[str, Any]


class PeerFailed(EnsueError):
    """The peers' process has ended, or says that something does not work there."""


class Peers:
    """The process; `versions` lists the peers found: "jax", "onnx"."""

    def __init__(self, python: Path, threads: int) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed by `close`
        self._process = subprocess.Popen(
            [str(python), str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,  # Ctrl-C is ours; the end of its stdin ends it
        )
        self._checked: set[tuple[str, str, str]] = set()
        try:
            self.versions: dict[str, str] = self.ask({"do": "hello", "threads": threads})
        except PeerFailed as problem:
            self.close()
            raise PeerFailed(f"{problem}; make bench-peers, or remove .venv-peers") from problem

    def close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # what it did not live to read
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:  # in the middle of a long run
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.close()

    def ask(self, request: Request) -> Any:
        """The answer to a request; `PeerFailed` if it is an error or does not come."""
        to, answers = self._process.stdin, self._process.stdout
        assert to is not None
        assert answers is not None
        try:
            print(json.dumps(request), file=to, flush=True)
            line = answers.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._errors.seek(0)
            last = self._errors.read().strip().splitlines()[-1:]
            raise PeerFailed(f"benchmarks/peers.py has ended: {''.join(last)}")
        reply = json.loads(line)
        if "error" in reply:
            raise PeerFailed(reply["error"])
        return reply

    def runners(self, case: Case, cell: Cell, against: frozenset[str]) -> dict[str, Runner]:
        """Those peers that can run the case, ready."""
        runner_by_peer = {}
        for who in self.versions:
            can = who != "onnx" or (case.mode == "infer" and case.cell in TORCH_CELLS)
            if can and who in against:
                self._check(who, case, cell)
                self.ask({"do": "prepare", **request_for(who, case, cell)})
                runner_by_peer[who] = self._runner(who)
        return runner_by_peer

    def _runner(self, who: str) -> Runner:
        def measured(times: int) -> float:
            time.sleep(PAUSE)
            seconds: float = self.ask({"do": "run", "who": who, "times": times})["seconds"]
            return seconds

        return measured

    def _check(self, who: str, case: Case, cell: Cell) -> None:
        """Once for each cell and mode: outputs and gradients are those of the eager engine."""
        key = (who, case.cell, case.mode)
        if key in self._checked:
            return
        small = Case("dense", case.cell, 4, 3, 5, case.mode)
        request = request_for(who, small, cell)
        torch.manual_seed(1)
        parameters = {n: 0.4 * torch.randn(shape) for n, shape in request["parameters"].items()}
        x, d_y = torch.randn(small.shape), torch.randn(4, 3, request["output"])
        arrays = {"x": x, "d_y": d_y, **parameters}
        request["values"] = {n: v.flatten().tolist() for n, v in arrays.items()}
        answer = self.ask({"do": "compute", **request})
        inputs = [v.requires_grad_() for v in (x, *parameters.values())]
        state = tuple(torch.zeros(3, n) for n in request["state"])
        y, _ = run(cell, parameters, x, state, engine="eager")
        pairs = [(answer["y"], y.detach())]
        if case.mode == "train":
            gradients = torch.autograd.grad(y, inputs, d_y, materialize_grads=True)
            pairs += zip(answer["gradients"], gradients, strict=True)
        for got, expected in pairs:
            if not torch.allclose(torch.tensor(got), expected.flatten(), atol=1e-4):
                raise PeerFailed(f"{who} computes another {case.cell} than the eager engine")
        self._checked.add(key)


def request_for(who: str, case: Case, cell: Cell) -> Request:
    """What a peer has to know about a case."""
    steps, batch, hidden = case.shape
    request: Request = {"who": who, "cell": case.cell, "mode": case.mode}
    request |= {"steps": steps, "batch": batch, "hidden": hidden}
    request["parameters"] = {n: list(s) for n, s in cell.shapes(hidden, hidden).items()}
    equations = cell.equations(hidden, hidden, training=False)
    request["output"] = equations.output.width
    request["state"] = list(cell.state_sizes(hidden, hidden))
    if who == "jax":
        request["source"] = write_loop(equations, Jax())
    return request
