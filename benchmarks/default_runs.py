"""What the benchmarks of defaults share: `ensue train FILE` as a user runs it, its figures, and the
paired bootstrap of two sets of answers."""

from __future__ import annotations

import gzip
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

DRAWS, SEED = 2000, 1
DATA = Path(os.environ.get("ENSUE_DATA", "data"))
Score = Callable[[np.ndarray], float]  # of sums over rows (columns,)


@dataclass
class Peer:
    """rows: what each row adds to the score, (rows, columns)."""

    name: str
    rows: np.ndarray
    seconds: float


@dataclass
class Default:
    """What the default command gave. baselines: its parts alone, as `evaluate` prints them."""

    rows: np.ndarray
    seconds: float
    baselines: Mapping[str, float]
    model: str


def opened(path: Path, encoding: str = "utf-8") -> list[str]:
    """The lines of a file, packed or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding=encoding) as file:
        return file.read().split("\n")


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="defaults-") as folder:
        yield Path(folder)


def ensue(*words: object, folder: Path) -> str:
    """Runs a command, and gives its standard output."""
    command = [sys.executable, "-m", "ensue", *map(str, words)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def trained(folder: Path, *words: object) -> float:
    """Processor seconds of `ensue train`."""
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    ensue("train", *words, "--run", "run", "--quiet", folder=folder)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (end.ru_utime + end.ru_stime) - (begin.ru_utime + begin.ru_stime)


def evaluated(folder: Path, *words: object) -> dict[str, Any]:
    scores: dict[str, Any] = json.loads(ensue("evaluate", "run", *words, "--json", folder=folder))
    return scores


def described(folder: Path) -> str:
    """The weights of the mixture, as `ensue runs` has them."""
    text = (folder / "run" / "card.md").read_text() if (folder / "run" / "card.md").exists() else ""
    match = re.search(r"weights ([\d.]+) and ([\d.]+)", text)
    return "" if match is None else f"{match[1]}/{match[2]}"


@contextmanager
def clocked() -> Iterator[list[float]]:
    """Processor seconds of what is inside."""
    times: list[float] = []
    begin = time.process_time()
    yield times
    times.append(time.process_time() - begin)


def mean(sums: np.ndarray) -> float:
    """Of a row's right (or error) and its count."""
    return float(sums[0] / sums[1])


def paired(one: np.ndarray, other: np.ndarray, score: Score) -> tuple[float, float, float]:
    """The difference of two scores over the same rows, and its 95 % bootstrap interval."""
    draw = np.random.default_rng(SEED)
    rows = len(one)
    differences = []
    for _ in range(DRAWS):
        counts = np.bincount(draw.integers(0, rows, rows), minlength=rows).astype(np.float64)
        differences.append(score(counts @ one) - score(counts @ other))
    low, high = np.quantile(differences, [0.025, 0.975])
    return score(one.sum(0)) - score(other.sum(0)), float(low), float(high)


def report(
    name: str,
    default: Default,
    peers: Sequence[Peer],
    score: Score = mean,
    scale: float = 100.0,
    better: int = 1,
) -> None:
    """One block of the table: the default, its parts, each peer, and the difference to the best of
    them. better: 1 where more is better, −1 where less is."""
    default_score = scale * score(default.rows.sum(0))
    parts = ", ".join(f"{key} {scale * score:.2f}" for key, score in default.baselines.items())
    print(
        f"{name}: default {default_score:.2f} ({default.seconds:.0f} s) {default.model}", flush=True
    )
    print(f"    parts: {parts}")
    best = max(peers, key=lambda peer: better * score(peer.rows.sum(0)))
    for peer in peers:
        mark = "*" if peer is best else " "
        value = scale * score(peer.rows.sum(0))
        print(f"  {mark} {peer.name}: {value:.2f} ({peer.seconds:.0f} s)")
    off, low, high = (scale * bound for bound in paired(default.rows, best.rows, score))
    worse = (high < 0) if better > 0 else (low > 0)
    verdict = "WORSE" if worse else "not worse"
    print(f"    default − best peer: {off:+.2f} [{low:+.2f}, {high:+.2f}] {verdict}", flush=True)
