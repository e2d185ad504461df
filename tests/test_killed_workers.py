"""A process that is killed in the middle of a training: the others, or the next, go on to the same
bits."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from children import usual_signals

pytestmark = pytest.mark.slow
COLUMNS = ("--text", "text", "--label", "label")
SMALL = ("--hidden-size", "4", "--set", "model.embedding_size=4", "--set", "model.batch_tokens=64")
OFTEN = ("--epochs", "6", "--set", "train.checkpoint_updates=2")
LONGEST = 600  # seconds


@pytest.fixture
def place(tmp_path: Path) -> Path:
    rows = [f"{'all is well' if k % 2 else 'bad news'} {k},{k % 2}" for k in range(300)]
    (tmp_path / "train.csv").write_text("\n".join(["text,label", *rows]))
    return tmp_path


def started(place: Path, words: Sequence[str]) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    return subprocess.Popen(
        [sys.executable, "-m", *words], cwd=place, env=environment, preexec_fn=usual_signals
    )


def below(process: int) -> list[int]:
    """The processes that a process has started, and those that they have."""
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    children = [int(number) for task in tasks for number in task.read_text().split()]
    return [process for child in children for process in (child, *below(child))]


def variable(process: int, name: str) -> str:
    pairs = Path(f"/proc/{process}/environ").read_bytes().decode(errors="replace").split("\0")
    return dict(entry.partition("=")[::2] for entry in pairs).get(name, "")


def kill_in_the_middle(
    process: subprocess.Popen[bytes], checkpoints: Path, which: Callable[[int], bool]
) -> None:
    """With SIGKILL, once two checkpoints are there."""
    until = time.monotonic() + LONGEST
    while len([*checkpoints.glob("step-*[0-9]")]) < 2:
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    assert not [*checkpoints.glob("step-*-final")], "it was too late"
    victim = next(candidate for candidate in below(process.pid) if which(candidate))
    os.kill(victim, signal.SIGKILL)


def weights(run: Path) -> list[bytes]:
    return [file.read_bytes() for file in sorted((run / "model").glob("*.safetensors"))]


def torchrun(run: str) -> list[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return [
        "torch.distributed.run",
        *("--nnodes", "1:1", "--nproc-per-node", "4", "--max-restarts", "3"),
        *("--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}"),
        *("-m", "--", "ensue", "train", "train.csv", *COLUMNS, *SMALL, *OFTEN, "--run", run),
    ]


def test_torchrun_goes_on_without_the_process_that_was_killed(place: Path) -> None:
    assert started(place, torchrun("whole")).wait(LONGEST) == 0
    process = started(place, torchrun("killed"))
    checkpoints = place / "killed" / "checkpoints"
    kill_in_the_middle(process, checkpoints, lambda process: variable(process, "RANK") == "2")
    assert process.wait(LONGEST) == 0
    assert weights(place / "killed") == weights(place / "whole")


def members(run: str, *more: str) -> list[str]:
    words = ("train", "train.csv", *COLUMNS, *SMALL, *OFTEN, "--members", "2", "--run", run)
    return ["ensue", *words, *more]


def test_the_members_of_an_ensemble_go_on_when_a_worker_is_killed(place: Path) -> None:
    assert started(place, members("alone")).wait(LONGEST) == 0
    process = started(place, members("killed", "--workers", "2"))
    kill_in_the_middle(
        process, place / "killed" / "members" / "2" / "checkpoints", lambda process: True
    )
    assert process.wait(LONGEST) == 0
    assert weights(place / "killed") == weights(place / "alone")
