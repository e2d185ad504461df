"""Runs of language models: how a text is split, and what a kill cannot change."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from children import usual_signals

from ensue.data.settings import DataSettings
from ensue.runs.config import RunConfig
from ensue.runs.infer import infer
from ensue.runs.train import settle, train_run
from ensue.tasks.language.streams import StreamSource
from ensue.tasks.language.task import TASK, LanguageModel
from ensue.tasks.rows.reader import Reading
from ensue.training import RunFolder

LINES = [
    f"the {animal} {verb} the {thing}"
    for animal in ("cat", "dog", "bird", "fish")
    for verb in ("sees", "likes", "takes")
    for thing in ("house", "ball", "tree", "river", "boat")
]
SMALL = {"hidden_size": 8, "embedding_size": 8, "layers": 1, "columns": 4, "steps": 7}
FAMILIES: dict[str, dict[str, Any]] = {
    "ngram": {"family": "ngram", "order": 3},
    "window": {"family": "window", "window": 2, **SMALL},
    "recurrent": {"family": "recurrent", "cell": "LSTM", **SMALL},
}
NETWORKS = ("window", "recurrent")
TRAIN = {"epochs": 3, "rate": 0.02, "checkpoint_updates": 3}
TRIED = 1  # batches that preflight asks for before the first update
NO_RESULT = {"timing.jsonl", "lock"}  # of a run folder: what is not compared


# --- parts ---------------------------------------------------------------------------------


def parts_of(path: Path, **more: Any) -> dict[str, list[int]]:
    """The lines of each part."""
    data = DataSettings(train=[str(path)], text="text", **more)
    reading = Reading(data, TASK.reader_class.content)
    parts = ("train", "validation", "test")
    return {part: [row.place.line for row in reading.rows(part)] for part in parts}


def blocks(lines: list[int]) -> int:
    """How many pieces without a gap."""
    return 1 + sum(b != a + 1 for a, b in pairwise(lines))


def test_a_text_is_split_in_blocks(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{'' if k % 3 else k}\n" for k in range(5000)))
    split = parts_of(path)
    assert sorted(k for rows in split.values() for k in rows) == list(range(1, 5001))
    assert 400 <= len(split["validation"]) <= 700
    assert 400 <= len(split["test"]) <= 700
    # ten blocks a cycle, nine cycles, one of them in each part; by their hash, hundreds
    assert blocks(split["validation"]) <= 10
    assert parts_of(path, split_seed=1) != split


@pytest.mark.parametrize("more", [{"format": "text"}, {}], ids=["said", "guessed"])
def test_more_lines_move_none_of_the_others(tmp_path: Path, more: dict[str, str]) -> None:
    path = tmp_path / "text.txt"
    path.write_text("same\n" * 100)
    before = parts_of(path, **more)
    path.write_text("same\n" * 3000)
    after = parts_of(path, **more)
    assert all(before[part] == [k for k in after[part] if k <= 100] for part in before)
    assert all(before.values())


def test_rows_that_are_no_running_text_are_split_by_their_content(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("text\n" + "same\n" * 50)
    assert sorted(map(len, parts_of(tmp_path / "rows.csv").values())) == [0, 0, 50]


# --- kills ------------------------------------------------------------------------------------


def live(job: Mapping[str, Any]) -> None:
    """Trains as the command does. `batch` and `sync`: SIGKILL to itself when a batch is asked
    for, or a file written, the so-many-th time."""
    plain_batch, plain_sync = StreamSource.batch, os.fsync
    counts = {"batch": 0, "sync": 0}

    def counted(what: str) -> None:
        counts[what] += 1
        if counts[what] == job.get(what):
            os.kill(os.getpid(), signal.SIGKILL)

    def batch(self: StreamSource, rows: Any) -> Any:
        counted("batch")
        return plain_batch(self, rows)

    def sync(file: int) -> None:
        counted("sync")
        plain_sync(file)

    StreamSource.batch, os.fsync = batch, sync  # type: ignore[method-assign]
    data = {"train": [job["file"]], "text": "text"}
    tables = {"task": "language", "data": data, "model": FAMILIES[job["family"]], "train": TRAIN}
    folder, config = RunFolder(job["folder"]), RunConfig.of(tables)
    settle(folder, config)
    train_run(config, folder)


def nursery() -> None:
    """Forks a life for each job on its standard input and prints its id; for a bare id, waits
    for it and prints its exit code. Torch, which loads parts of itself when they are first used,
    and the kernels are loaded once."""
    for family in NETWORKS:
        LanguageModel(model=FAMILIES[family], train={"epochs": 1}).fit(LINES, LINES)
    print("ready", flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        if isinstance(job, int):
            answer = os.waitstatus_to_exitcode(os.waitpid(job, 0)[1])
        else:
            answer = os.fork()
            if not answer:
                code = 1
                try:
                    live(job)
                    code = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(code)
        print(answer, flush=True)


class Lives:
    """Runs of families in processes of their own."""

    def __init__(self, folder: Path, file: Path) -> None:
        """file: the text of all runs, so far from each that its full path is written down."""
        self.folder, self.file = folder, file
        self.file.write_text("\n".join(LINES) + "\n")
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            preexec_fn=usual_signals,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"
        self.undisturbed = cache(self._undisturbed)

    def _ask(self, question: object) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def start(self, place: Path, family: str, **more: int) -> int:
        job = {"folder": str(place / "run"), "file": str(self.file), "family": family, **more}
        return self._ask(job)

    def wait(self, process: int) -> int:
        return self._ask(process)

    def run(self, place: Path, family: str, **more: int) -> int:
        return self.wait(self.start(place, family, **more))

    def _undisturbed(self, family: str) -> tuple[dict[str, str], float]:
        """Digests and seconds of a run that nothing has stopped."""
        began = time.monotonic()
        assert self.run(self.folder / family, family) == 0
        return digests(self.folder / family), time.monotonic() - began

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lives]:
    text = tmp_path_factory.mktemp("text") / "lines.txt"
    started = Lives(tmp_path_factory.mktemp("lives"), text)
    yield started
    started.close()


def digests(place: Path) -> dict[str, str]:
    """sha256 of every file that a run leaves, except times and what a kill left half written."""
    run = place / "run"
    paths = [path for path in run.rglob("*") if path.is_file() and path.name not in NO_RESULT]
    files = [path for path in paths if not path.name.startswith(".tmp-")]
    return {str(file.relative_to(run)): sha256(file.read_bytes()).hexdigest() for file in files}


@pytest.mark.parametrize("family", FAMILIES)
def test_killed_at_random_moments(lives: Lives, tmp_path: Path, family: str) -> None:
    draw, (expected, seconds) = random.Random(family), lives.undisturbed(family)
    hits = 0
    for number in range(2):
        place = tmp_path / str(number)
        for _ in range(3):
            process = lives.start(place, family)
            time.sleep(draw.uniform(0, seconds))
            os.kill(process, signal.SIGKILL)
            hits += lives.wait(process) == -signal.SIGKILL
        assert lives.run(place, family) == 0
        assert same(expected, digests(place))
    assert hits


@pytest.mark.parametrize("family", NETWORKS)
def test_killed_twice_in_every_epoch(lives: Lives, tmp_path: Path, family: str) -> None:
    """A life asks for at most seven batches; an epoch has ten, a checkpoint comes every three."""
    count, place = 1, tmp_path / "killed"
    while lives.run(place, family, batch=TRIED + 7) == -signal.SIGKILL:
        count += 1
        assert count < 30
    assert count > 2 * TRAIN["epochs"] - 2
    assert same(lives.undisturbed(family)[0], digests(place))


def test_counting_killed_at_each_file_that_is_written(lives: Lives, tmp_path: Path) -> None:
    expected, _ = lives.undisturbed("ngram")
    sync = 1
    while lives.run(tmp_path / str(sync), "ngram", sync=sync) == -signal.SIGKILL:
        assert lives.run(tmp_path / str(sync), "ngram") == 0
        assert same(expected, digests(tmp_path / str(sync)))
        sync += 1
    assert sync > 5


def same(expected: dict[str, str], actual: dict[str, str]) -> bool:
    """The same files with the same bytes. Which earlier checkpoints are kept next to the final
    one depends on the clock and on kills."""

    def results(files: dict[str, str]) -> dict[str, str]:
        earlier = "checkpoints/step-"
        return {n: v for n, v in files.items() if not n.startswith(earlier) or "-final" in n}

    return results(expected) == results(actual)


if __name__ == "__main__":
    nursery()


def test_a_text_is_split_in_blocks_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"line {k}\n" for k in range(400)), encoding="utf-8")
    inferred = infer({"train": [str(path)]}, "language", [])
    assert inferred.messages[-1].text == (
        "split: 80 % train, 10 % validation, 10 % test, by blocks of lines, so that related "
        "lines stay together"
    )
