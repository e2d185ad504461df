"""Many `ensue train` at the same moment in one folder, each with a learning rate of its own.

    python starts.py DATA RUN COUNT

prints the exit code of each as JSON; what number k printed is in RUN-k.txt."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path


def words(data: Path, run: Path, k: int) -> list[str]:
    """The command of number k."""
    settings = ["model.hidden_size=4", "model.embedding_size=4", "train.epochs=2", "train.seed=3"]
    overrides = [
        word for setting in (*settings, f"train.rate={k + 1}e-3") for word in ("--set", setting)
    ]
    return [
        "train",
        str(data),
        "--text",
        "review",
        "--label",
        "stars",
        "--run",
        str(run),
        *overrides,
    ]


def simultaneous(data: Path, run: Path, count: int) -> list[int]:
    """Their exit codes, started from a process of their own."""
    done = subprocess.run(
        [sys.executable, __file__, str(data), str(run), str(count)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    return list(json.loads(done.stdout))


def _child(data: Path, run: Path, k: int, gate: int) -> None:
    """Waits until the gate is closed, then runs the command."""
    from ensue import cli

    log = os.open(f"{run}-{k}.txt", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.read(gate, 1)
    try:
        cli.main(words(data, run, k))
    except SystemExit as ending:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(ending.code or 0))


def main(data: str, run: str, count: str) -> None:
    import ensue.runs.train  # noqa: F401  # loaded once, before the others are forked

    gate, opener = os.pipe()
    children = []
    for k in range(int(count)):
        child = os.fork()
        if not child:
            os.close(opener)
            _child(Path(data), Path(run), k, gate)
        children.append(child)
    os.close(opener)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    print(json.dumps(codes))


if __name__ == "__main__":
    main(*sys.argv[1:])
