"""Small models and their data, for the tests of training; also run in processes that are killed."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ensue.errors import EnsueError
from ensue.layers import Recurrent
from ensue.training import RunFolder, Stopped, TrainSettings, fit, processes
from ensue.training.trainee import Carried

ROWS, BATCH, TIME, FEATURES, HIDDEN, CLASSES = 48, 4, 3, 5, 6, 3


class Classes(nn.Module):
    """Classifies (time, batch, features) by `body`, whose outputs are averaged over time."""

    def __init__(self, body: nn.Module, width: int) -> None:
        super().__init__()
        self.body, self.dropout, self.top = body, nn.Dropout(0.3), nn.Linear(width, CLASSES)

    def forward(self, batch: tuple[Tensor, Tensor], carried: Carried) -> tuple[Tensor, Carried]:
        x, y = batch
        h = self.body(x)
        h = h[0] if isinstance(h, tuple) else h
        scores = self.top(self.dropout(torch.tanh(h.mean(0))))
        return nn.functional.cross_entropy(scores, y, reduction="sum"), {}


class Carrying(nn.Module):
    """Hands the state of its rows from batch to batch."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.top = nn.GRUCell(FEATURES, HIDDEN), nn.Linear(HIDDEN, CLASSES)

    def forward(self, batch: tuple[Tensor, Tensor], carried: Carried) -> tuple[Tensor, Carried]:
        x, y = batch
        h = carried.get("h", torch.zeros(x.shape[1], HIDDEN))
        for step in x:
            h = self.cell(step, h)
        return nn.functional.cross_entropy(self.top(h), y, reduction="sum"), {"h": h}


def build(kind: str, seed: int = 0) -> nn.Module:
    """linear, carrying, or the name of a cell."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if kind == "linear":
            return Classes(nn.Linear(FEATURES, HIDDEN), HIDDEN)
        if kind == "carrying":
            return Carrying()
        return Classes(Recurrent(kind, FEATURES, HIDDEN), HIDDEN)


class Rows:
    """Random sequences whose class follows from their first feature; shuffled each epoch."""

    fingerprint = "the rows of trainees.py"

    def __init__(self, rows: int = ROWS, batch: int = BATCH, seed: int = 0) -> None:
        draw = np.random.default_rng(seed)
        self.x = torch.from_numpy(draw.normal(size=(rows, TIME, FEATURES)).astype("float32"))
        noise = torch.from_numpy(draw.normal(size=rows).astype("float32"))
        mean = self.x[:, :, 0].mean(1) + 0.3 * noise
        self.y = (mean > -0.3).long() + (mean > 0.3).long()
        self.size = batch

    def batches(self, epoch: int) -> Sequence[Sequence[int]]:
        order = np.random.default_rng([7, epoch]).permutation(len(self.x))
        return [order[k : k + self.size].tolist() for k in range(0, len(order), self.size)]

    def batch(self, rows: Sequence[int]) -> tuple[Tensor, Tensor]:
        return self.x[list(rows)].transpose(0, 1).contiguous(), self.y[list(rows)]

    def targets(self, rows: Sequence[int]) -> float:
        return float(len(rows))

    def tokens(self, rows: Sequence[int]) -> float:
        return float(len(rows) * TIME)

    def name(self, row: int) -> str:
        return f"rows.csv:{row + 1}"


class Judge:
    """Cost and accuracy on other rows."""

    def __init__(self, model: nn.Module, rows: Rows | None = None) -> None:
        self.model, self.rows = model, rows or Rows(20, seed=1)
        self.calls = 0

    def __call__(self) -> Mapping[str, float]:
        self.calls += 1
        assert not self.model.training
        assert not torch.is_grad_enabled()
        everything = list(range(len(self.rows.x)))
        cost, _ = self.model(self.rows.batch(everything), {})
        cost = float(cost) / len(everything)
        return {"cost": cost, "accuracy": 1 / (1 + cost)}


class Fickle:
    """A cost that follows from the weights and jumps about, so that some waits are long."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def __call__(self) -> Mapping[str, float]:
        total = sum(float(weight.double().sum()) for weight in self.model.state_dict().values())
        return {"cost": 1e4 * total % 1}


# --- in a process of its own ---------------------------------------------------------------


def run(job: Mapping[str, Any]) -> int:
    """One run in a folder, as a command would do it; returns the exit code. `kill_at`: SIGKILL
    to itself when a batch is asked for the so-many-th time; `delay`: seconds for each batch."""
    torch.seed()  # no two processes begin with the same random state
    model, rows, updates = build(job["kind"]), Rows(), [0]
    plain = rows.batch

    def batch(numbers: Sequence[int]) -> tuple[Tensor, Tensor]:
        updates[0] += 1
        if updates[0] == job.get("kill_at"):
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(job.get("delay", 0.0))
        return plain(numbers)

    rows.batch = batch  # type: ignore[method-assign]
    while job.get("gate") and not os.path.exists(job["gate"]):
        time.sleep(0.001)
    try:
        s = TrainSettings.of(job["settings"])
        fit(model, rows, Judge(model), s, RunFolder(job["folder"]))
    except Stopped as stopped:
        return stopped.code
    except EnsueError as error:
        print(error)
        return 2
    return 0


def nursery() -> None:
    """Forks a process for each job on its standard input and prints its id; for a bare id, waits
    for that process and prints its exit code. Torch is loaded once instead of every time."""
    warm = build("linear")  # torch loads parts of itself when they are first used
    fit(warm, Rows(), None, TrainSettings.of({"most_updates": 1}))
    print("ready", flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        if isinstance(job, int):
            answer = os.waitstatus_to_exitcode(os.waitpid(job, 0)[1])
        else:
            answer = os.fork()
            if not answer:
                _child(job)
        print(answer, flush=True)


def _child(job: Mapping[str, Any]) -> None:
    """Never returns, whatever happens: the nursery's standard input is not the child's."""
    out, code = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 1
    os.dup2(out, 1)
    os.dup2(out, 2)
    try:
        code = run(job)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def state(folder: Path | str) -> dict[str, str]:
    """sha256 of what must not depend on how often a run was stopped: every file of the final
    checkpoint, and the history."""
    folder = Path(folder)
    (final,) = (folder / "checkpoints").glob("step-*-final")
    files = [*final.iterdir(), folder / "history.jsonl"]
    return {file.name: sha256(file.read_bytes()).hexdigest() for file in files}


def dealt(folder: str) -> None:
    """Run by several processes, as torchrun starts them: the first prints its weights."""
    team = processes.begin()
    model, rows = build("linear"), Rows(rows=45, batch=3)
    s = TrainSettings.of(json.loads(os.environ["SETTINGS"]))
    allow = os.environ.get("ALLOW", "").split()
    fit(model, rows, Judge(model), s, RunFolder(folder), allow=allow)
    if team.first:
        print(json.dumps({name: weight.tolist() for name, weight in model.state_dict().items()}))
    processes.end()


if __name__ == "__main__":
    nursery() if sys.argv[1] == "nursery" else dealt(sys.argv[1])
