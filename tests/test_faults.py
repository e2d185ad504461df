"""Runs that are killed, stopped, started twice, changed, or fed with what is not a number.

The process is killed, the disk fills up, a checkpoint is damaged, settings or data change, the run
is started twice, signals arrive, numbers become NaN or Inf."""

from __future__ import annotations

import errno
import io
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from children import usual_signals
from torch import nn
from trainees import BATCH, ROWS, Judge, Rows, build, state

from ensue.cells import CELLS
from ensue.errors import OptionError, RunError, TrainingError
from ensue.files import run_folder
from ensue.files.chain import present
from ensue.training import (
    CheckpointSaved,
    Notice,
    Progress,
    RunFolder,
    Stopped,
    TrainSettings,
    Update,
    Validated,
    fit,
    run,
)
from ensue.training.checkpoint import newest
from ensue.training.facts import differences
from ensue.training.rows import Row

SUBJECT = Path(__file__).with_name("trainees.py")
PER_EPOCH = ROWS // BATCH
TRIED = 1  # batches that preflight asks for before the first update
PLAN: dict[str, Any] = {
    "epochs": 3, "rate": 0.02, "check_every": 7, "checkpoint_updates": 5, "averaging": 0.9,
    "schedule": "plateau", "decay_patience": 0,
}  # fmt: skip


class Nursery:
    """Starts runs in processes of their own, quickly: see trainees.nursery."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, SUBJECT, "nursery"],
            preexec_fn=usual_signals,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def _ask(self, question: object) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def start(self, folder: Path, kind: str = "linear", plan: Any = None, **more: Any) -> int:
        log = f"{folder}.log"
        return self._ask(
            {"folder": str(folder), "kind": kind, "settings": plan or PLAN, "log": log, **more}
        )

    def wait(self, process: int) -> int:
        return self._ask(process)

    def run(self, folder: Path, kind: str = "linear", plan: Any = None, **more: Any) -> int:
        return self.wait(self.start(folder, kind, plan, **more))

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    nursery_of_test = Nursery()
    yield nursery_of_test
    nursery_of_test.close()


@pytest.fixture(scope="module")
def undisturbed(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """(state, seconds) of a run that nothing has stopped, by kind."""

    @cache
    def run(kind: str) -> tuple[dict[str, str], float]:
        folder = tmp_path_factory.mktemp("undisturbed") / "run"
        began = time.monotonic()
        assert nursery.run(folder, kind) == 0
        return state(folder), time.monotonic() - began

    return run


def reached(folder: Path, process: int, seconds: float = 20.0) -> None:
    """Waits until the process holds the run folder."""
    until = time.monotonic() + seconds
    while f'"pid": {process},' not in (_read(folder / "lock")):
        assert time.monotonic() < until, "the run did not begin"
        time.sleep(0.001)


def _read(file: Path) -> str:
    return file.read_text() if file.is_file() else ""


# --- killed --------------------------------------------------------------------------------


def survive(
    nursery: Nursery, folder: Path, kind: str, draw: random.Random, kills: int, seconds: float
) -> int:
    """A run killed so often at random moments, then left alone. Returns how often it was hit."""
    hit = 0
    for _ in range(kills):
        process = nursery.start(folder, kind)
        time.sleep(draw.uniform(0, seconds))
        os.kill(process, signal.SIGKILL)
        hit += nursery.wait(process) == -signal.SIGKILL
    assert nursery.run(folder, kind) == 0
    return hit


def test_killed_at_random_moments(nursery: Nursery, tmp_path: Path, undisturbed: Any) -> None:
    draw, (expected, seconds) = random.Random(1), undisturbed("linear")
    hits = 0
    for number in range(3):
        folder = tmp_path / str(number)
        hits += survive(nursery, folder, "linear", draw, 3, seconds)
        assert state(folder) == expected
    assert hits  # how many kills find the run alive is a matter of the machine's speed


def test_killed_twice_in_every_epoch(nursery: Nursery, tmp_path: Path, undisturbed: Any) -> None:
    """By the count of batches: a life makes at most five of an epoch's twelve updates."""
    lives = 1
    while nursery.run(tmp_path / "run", kill_at=TRIED + 5 + 1) == -signal.SIGKILL:
        lives += 1
        assert lives < 30
    assert lives > 3 * PER_EPOCH // 5
    assert state(tmp_path / "run") == undisturbed("linear")[0]


def test_killed_before_the_first_checkpoint(
    nursery: Nursery, tmp_path: Path, undisturbed: Any
) -> None:
    assert nursery.run(tmp_path / "run", kill_at=TRIED + 2) == -signal.SIGKILL
    assert present(tmp_path / "run" / "checkpoints") == []
    assert nursery.run(tmp_path / "run") == 0
    assert state(tmp_path / "run") == undisturbed("linear")[0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["linear", "carrying", *sorted(CELLS)])
def test_every_model_survives_many_kills(
    nursery: Nursery, tmp_path: Path, undisturbed: Any, kind: str
) -> None:
    nursery.run(tmp_path / "first", kind)  # compiles its kernels
    draw, (expected, seconds) = random.Random(kind), undisturbed(kind)
    hits = 0
    for number in range(5):
        folder = tmp_path / str(number)
        hits += survive(nursery, folder, kind, draw, 5, seconds)
        assert state(folder) == expected
    assert hits


# --- killed at each system call ------------------------------------------------------------

SYSTEM_CALLS = ["mkdir", "fsync", "rename", "openat", "write", "unlinkat", "rmdir", "ftruncate"]


def killed_at_call(nursery: Nursery, folder: Path, call: str, number: int, plan: Any) -> bool:
    """Runs under strace, which kills at the number-th system call of that name."""
    gate = folder.with_suffix(".gate")
    process = nursery.start(folder, plan=plan, gate=str(gate))
    inject = f"inject={call}:signal=SIGKILL:when={number}"
    strace = subprocess.Popen(
        ["strace", "-p", str(process), "-e", f"trace={call}", "-e", inject],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert strace.stderr is not None
    line = strace.stderr.readline()
    if "attached" not in line:
        gate.touch()
        nursery.wait(process)
        pytest.skip(f"strace may not attach here: {line}")
    gate.touch()
    strace.stderr.read()
    strace.wait()
    strace.stderr.close()
    code = nursery.wait(process)
    assert code in (0, -signal.SIGKILL)
    return code != 0


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.parametrize("call", SYSTEM_CALLS)
def test_killed_at_each_system_call(nursery: Nursery, tmp_path: Path, call: str) -> None:
    plan = {**PLAN, "epochs": 1, "checkpoint_updates": 4, "check_every": "epoch"}
    assert nursery.run(tmp_path / "undisturbed", plan=plan) == 0
    expected, kills = state(tmp_path / "undisturbed"), 0
    for number in range(1, 1000):
        folder = tmp_path / str(number)
        killed = killed_at_call(nursery, folder, call, number, plan)
        if killed:
            assert nursery.run(folder, plan=plan) == 0
        assert state(folder) == expected
        assert not list((folder / "checkpoints").glob(".tmp-*"))
        assert not (folder / "checkpoints" / "damaged").exists()
        shutil.rmtree(folder)
        if not killed:
            break
        kills += 1
    print(f"{call}: {kills} kills")
    assert kills or call == "rmdir"  # rmtree uses unlinkat for folders too


# --- the disk within a run -----------------------------------------------------------------


def plan(**more: Any) -> TrainSettings:
    return TrainSettings.of({**PLAN, **more})


def fitted(folder: Path, settings: TrainSettings | None = None, **more: Any) -> nn.Module:
    model = build("linear")
    fit(model, Rows(), Judge(model), settings or plan(), RunFolder(folder), **more)
    return model


def test_a_run_on_a_full_disk_ends_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted(tmp_path / "undisturbed")
    real, calls = os.fsync, [0]

    def full(handle: int) -> None:
        calls[0] += 1
        if calls[0] == 42:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    rows: list[Row] = []
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(RunError, match=r"step-0000\d\d: not saved: No space left on device;"):
            fitted(tmp_path / "run", watchers=[rows.append])
    saved = [row.path for row in rows if isinstance(row, CheckpointSaved)]
    assert present(tmp_path / "run" / "checkpoints")[-1] == saved[-1]
    fitted(tmp_path / "run")
    assert state(tmp_path / "run") == state(tmp_path / "undisturbed")


def test_a_disk_without_room_is_refused_before_the_first_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9, 8, 1234))
    model = build("linear")
    weights = 4 * sum(p.numel() for p in model.parameters())
    needed = 4 * 5 * weights + 2 * weights + (1 << 20)
    with pytest.raises(RunError) as caught:
        fitted(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path / 'checkpoints'}: expected room for 4 checkpoints and the model, "
        f"{needed:,} bytes, got 1,234. Make room, or name a run folder on another disk"
    )


class Unwritten:
    """`open` on a disk on which nothing can be written: to open fails, or to write."""

    def __init__(self, error: int, late: bool) -> None:
        self.error, self.late = error, late

    def __call__(self, path: Path, *mode: Any, **more: Any) -> Any:
        if not self.late:
            raise OSError(self.error, os.strerror(self.error), str(path))
        return Full(path, "a+b")


class Full(io.FileIO):
    def write(self, data: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("error", "late", "next_step"),
    [
        (errno.ENOSPC, True, "make room"),
        (errno.ENOSPC, False, "make room"),
        (errno.EROFS, False, "name a folder that can be written to"),
        (errno.EACCES, False, "name a folder that can be written to"),
    ],
)
def test_a_disk_that_is_full_or_closed_when_a_run_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, late: bool, next_step: str
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9, 8, 1234))
    needed = len(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
    with monkeypatch.context() as patch:
        patch.setattr(run_folder, "open_plain", Unwritten(error, late))
        with pytest.raises(RunError) as caught, RunFolder(tmp_path / "run").locked():
            pass
    assert str(caught.value) == (
        f"{tmp_path / 'run' / 'lock'}: not saved: {os.strerror(error)}; needed {needed} bytes, "
        f"free 1,234. Next: {next_step}, then run the same command again"
    )
    with RunFolder(tmp_path / "run").locked():  # it is free
        pass
    if not late:
        with monkeypatch.context() as patch:
            patch.setattr(run, "append_to", Unwritten(error, late))
            with pytest.raises(RunError) as caught:
                fitted(tmp_path / "run")
        assert str(caught.value) == (
            f"{tmp_path / 'run' / 'history.jsonl'}: not saved: {os.strerror(error)}. Earlier "
            f"checkpoints are untouched. Next: {next_step}, then run the same command again"
        )


def test_an_error_within_a_locked_run_is_not_taken_for_one_of_its_disk(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="of the data"), RunFolder(tmp_path).locked():
        raise OSError(errno.EIO, "of the data")


@pytest.mark.parametrize(
    ("error", "next_step"),
    [(errno.ENOSPC, "make room"), (errno.EROFS, "name a folder that can be written to")],
)
def test_a_folder_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, next_step: str
) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(Path, "mkdir", failing)
    with pytest.raises(RunError) as caught, RunFolder(tmp_path / "run").locked():
        pass
    assert str(caught.value) == (
        f"{tmp_path / 'run'}: cannot be made a run folder: {os.strerror(error)}. Next: "
        f"{next_step}, then run the same command again"
    )


# --- a damaged checkpoint within a run -----------------------------------------------------


def test_a_run_goes_on_from_the_checkpoint_before_a_damaged_one(
    nursery: Nursery, tmp_path: Path, undisturbed: Any
) -> None:
    folder = tmp_path / "run"
    for left in (1, 0):  # whole checkpoints that remain
        nursery.run(folder, kill_at=TRIED + 17)
        for place in present(folder / "checkpoints")[left:]:
            (place / "weights.safetensors").write_bytes(b"")
        rows: list[Row] = []
        model = build("linear")
        with pytest.raises(KeyboardInterrupt):
            fit(model, Rows(), _interrupt, plan(), RunFolder(folder), [rows.append])
        messages = [row.text for row in rows if isinstance(row, Notice)]
        assert (
            sum("is damaged: weights.safetensors has 0 bytes, expected" in s for s in messages) >= 1
        )
        last = "continuing from step-0000" if left else "no whole checkpoint is left: the training"
        assert messages[-1].startswith(last)
    assert nursery.run(folder) == 0
    assert state(folder) == undisturbed("linear")[0]


def _interrupt() -> Mapping[str, float]:
    raise KeyboardInterrupt


# --- something else than it began with -----------------------------------------------------


def begun(folder: Path) -> None:
    """A run of which a part is done."""
    fitted(folder, plan(most_updates=5))


class Others(Rows):
    fingerprint = "other rows"


def test_changes_are_listed_and_refused(tmp_path: Path) -> None:
    begun(tmp_path)
    model = build("linear")
    with pytest.raises(RunError) as caught:
        fit(model, Others(), Judge(model), plan(rate=0.5), RunFolder(tmp_path))
    assert str(caught.value) == (
        f"{tmp_path}: 3 changes since this run began\n"
        '  data: was "the rows of trainees.py", now "other rows"\n'
        '  train.most_updates: was 5, now "off"\n'
        "  train.rate: was 0.02, now 0.5\n"
        "Undo them, name another run folder, or allow them by name: "
        "--allow data --allow train.most_updates --allow train.rate"
    )


def test_a_configuration_is_compared_key_by_key(tmp_path: Path) -> None:
    fitted(tmp_path, config={"model.hidden": 6, "data.file": "a.csv"})
    with pytest.raises(RunError) as caught:
        fitted(tmp_path, config={"model.hidden": 7, "data.text": "review"})
    assert str(caught.value).splitlines()[1:4] == [
        '  data.file: was "a.csv", now not there',
        "  model.hidden: was 6, now 7",
        '  data.text: was not there, now "review"',
    ]


def test_another_model_is_refused(tmp_path: Path) -> None:
    begun(tmp_path)
    model = build("linear")
    model.top = nn.Linear(6, 4)
    with pytest.raises(RunError) as caught:
        fit(model, Rows(), Judge(model), plan(most_updates=5), RunFolder(tmp_path))
    assert str(caught.value).splitlines()[1] == (
        "  model: was top.weight (3, 6) torch.float32, now top.weight (4, 6) torch.float32"
    )


def test_an_allowed_change_goes_on(tmp_path: Path) -> None:
    begun(tmp_path / "run")
    rows: list[Row] = []
    fitted(tmp_path / "run", allow=["train.most_updates"], watchers=[rows.append])
    assert Notice('train.most_updates: was 5, now "off": allowed') in rows
    evaluations = [row.update for row in rows if isinstance(row, Validated)]
    assert evaluations == [7, 14, 21, 28, 35, 36]


def test_another_number_of_threads_is_told_and_goes_on(tmp_path: Path) -> None:
    begun(tmp_path)
    threads = torch.get_num_threads()
    rows: list[Row] = []
    torch.set_num_threads(threads + 1)
    try:
        fitted(tmp_path, plan(most_updates=5), watchers=[rows.append])
    finally:
        torch.set_num_threads(threads)
    assert Notice(f"threads: was {threads}, now {threads + 1}: not bit-exact") in rows


def test_when_files_are_written_is_no_change(tmp_path: Path) -> None:
    begun(tmp_path)
    fitted(tmp_path, plan(most_updates=5, checkpoint_updates=4, checkpoint_seconds=1.5))


FACTS = [
    "ensue", "torch", "data", "validation", "model", "threads", "processes", "engine", "compiler",
    "flags", "cpu",
]  # fmt: skip


@pytest.mark.parametrize("name", FACTS)
def test_every_fact_is_compared(name: str) -> None:
    was = {"config": {}, **dict.fromkeys(FACTS, "1"), "model": "w (1,)"}
    assert differences(was, was) == {}
    assert list(differences(was, {**was, name: "2"})) == [name]


class Known(Judge):
    """A validation whose data has a name."""

    def __init__(self, model: nn.Module, fingerprint: str) -> None:
        super().__init__(model)
        self.fingerprint = fingerprint


def test_another_validation_is_refused_unless_allowed(tmp_path: Path) -> None:
    model = build("linear")
    short, folder = plan(most_updates=5), RunFolder(tmp_path)
    fit(model, Rows(), Known(model, "these rows"), short, folder)
    fit(model, Rows(), Known(model, "these rows"), short, folder)
    with pytest.raises(RunError) as caught:
        fit(model, Rows(), Known(model, "those rows"), short, folder)
    assert str(caught.value) == (
        f"{tmp_path}: 1 change since this run began\n"
        '  validation: was "these rows", now "those rows"\n'
        "Undo them, name another run folder, or allow them by name: --allow validation"
    )
    with pytest.raises(RunError, match='validation: was "these rows", now not there'):
        fit(model, Rows(), None, short, folder)
    rows: list[Row] = []
    fit(
        model, Rows(), Known(model, "those rows"), short, folder, [rows.append],
        allow=["validation"],
    )  # fmt: skip
    assert Notice('validation: was "these rows", now "those rows": allowed') in rows


@pytest.mark.parametrize("before", [False, True])
def test_only_what_can_change_is_allowed(tmp_path: Path, before: bool) -> None:
    if before:
        begun(tmp_path)
    with pytest.raises(OptionError) as caught:
        fitted(tmp_path, plan(most_updates=5), allow=["data", "train.raet"])
    words = "unknown name of what may have changed 'train.raet': did you mean 'train.rate'? Known: "
    assert str(caught.value).startswith(words)
    known = str(caught.value).removeprefix(words).split(", ")
    assert {*FACTS, "train.rate", "train.checkpoint_seconds"} <= set(known)
    assert "config" not in known
    fitted(tmp_path, plan(most_updates=5), allow=known)  # every one of them can be named


def test_scores_come_in_the_same_order_after_a_restart(tmp_path: Path) -> None:
    model = build("linear")

    def backwards() -> dict[str, float]:
        return {"zeal": 1.0, "cost": 0.5, "accuracy": 0.25}

    once, again = (
        fit(model, Rows(), backwards, plan(most_updates=5), RunFolder(tmp_path)) for _ in range(2)
    )
    assert once.scores is not None
    assert again.scores is not None
    assert list(once.scores.items()) == list(again.scores.items())


def test_a_changed_history_is_named(tmp_path: Path) -> None:
    begun(tmp_path)
    file = tmp_path / "history.jsonl"
    length = file.stat().st_size
    for data in (file.read_bytes().replace(b"1", b"2"), file.read_bytes()[:-1]):
        whole = file.read_bytes()
        file.write_bytes(data)
        with pytest.raises(RunError) as caught:
            begun(tmp_path)
        assert str(caught.value) == (
            f"{file}: its first {length:,} bytes have changed since the checkpoint was written "
            f"({len(data):,} bytes found). Restore the file, or start in another run "
            "folder"
        )
        file.write_bytes(whole)
    file.write_bytes(whole + b"what came after the checkpoint")
    begun(tmp_path)
    assert file.read_bytes() == whole


# --- a run that has ended ------------------------------------------------------------------


def test_a_finished_run_returns_at_once_with_the_best_weights(tmp_path: Path) -> None:
    first = fitted(tmp_path)
    before = state(tmp_path)
    model = build("linear", seed=5)
    judge = Judge(model)
    fit(model, Rows(), judge, plan(), RunFolder(tmp_path))
    assert judge.calls == 0
    assert state(tmp_path) == before
    for one, other in zip(first.parameters(), model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_with_and_without_a_folder_is_the_same_training(tmp_path: Path) -> None:
    model = build("linear")
    fit(model, Rows(), Judge(model), plan())
    for one, other in zip(fitted(tmp_path).parameters(), model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_checkpoint_stands_before_every_evaluation(tmp_path: Path) -> None:
    model = build("linear")
    judge, updates = Judge(model), []

    def validation() -> Mapping[str, float]:
        checkpoint = newest(tmp_path / "checkpoints", print)
        updates.append(
            checkpoint.scalars["update"] if checkpoint and checkpoint.scalars["due"] else None
        )
        return judge()

    fit(model, Rows(), validation, plan(checkpoint_updates="off"), RunFolder(tmp_path))
    assert updates == [None, 7, 14, 21, 28, 35, 36]  # the first is preflight's


# --- two at once ---------------------------------------------------------------------------


def test_of_many_simultaneous_starts_one_wins(nursery: Nursery, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    started = [
        nursery.start(tmp_path / "run", delay=0.05, gate=str(gate), log=str(tmp_path / str(k)))
        for k in range(5)
    ]
    gate.touch()
    codes = [nursery.wait(process) for process in started[::-1]][::-1]
    assert sorted(codes) == [0, 2, 2, 2, 2]
    winner = started[codes.index(0)]
    host = os.uname().nodename
    for k, code in enumerate(codes):
        assert (tmp_path / str(k)).read_text() == (
            ""
            if code == 0
            else f"{tmp_path / 'run'} is in use by process {winner} on {host}. Wait for it, stop "
            "it, or name another run folder\n"
        )


# --- signals -------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_saves_within_a_step(
    nursery: Nursery, tmp_path: Path, undisturbed: Any, number: signal.Signals
) -> None:
    draw, folder = random.Random(number), tmp_path / "run"
    stops = 0
    for _ in range(3):
        process = nursery.start(folder, delay=0.01)
        reached(folder, process)
        time.sleep(draw.uniform(0, 0.3))
        made = len(_read(folder / "history.jsonl"))
        os.kill(process, number)
        code = nursery.wait(process)
        assert code in (0, 128 + number)
        stops += code != 0
        saved = newest(folder / "checkpoints", print)
        length = saved.scalars["history"]["length"] if saved else 0
        assert length >= made  # nothing that was written down is lost
    assert nursery.run(folder) == 0
    assert stops >= 1
    assert state(folder) == undisturbed("linear")[0]


def test_a_signal_after_an_evaluation_does_not_lose_it(tmp_path: Path) -> None:
    fitted(tmp_path / "undisturbed")

    def strike(row: Row) -> None:
        if isinstance(row, Validated) and row.update == 14:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Stopped, match="stopped by SIGTERM after update 15"):
        fitted(tmp_path / "run", watchers=[strike])
    saved = newest(tmp_path / "run" / "checkpoints", print)
    assert saved is not None
    written = len(_read(tmp_path / "run" / "history.jsonl"))
    assert saved.scalars["history"]["length"] == written
    fitted(tmp_path / "run")
    assert state(tmp_path / "run") == state(tmp_path / "undisturbed")


def test_a_signal_during_an_evaluation_ends_it_at_once(tmp_path: Path) -> None:
    fitted(tmp_path / "undisturbed")
    model = build("linear")
    judge, handlers = Judge(model), [signal.getsignal(s) for s in (2, 15, 1)]

    def validation() -> Mapping[str, float]:
        scores = judge()
        if judge.calls == 3:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(10)
            raise AssertionError("not interrupted")
        return scores

    with pytest.raises(Stopped) as caught:
        fit(model, Rows(), validation, plan(), RunFolder(tmp_path / "run"))
    assert (caught.value.code, caught.value.signal) == (143, signal.SIGTERM)
    assert str(caught.value) == (
        "stopped by SIGTERM after update 14; the same command continues it"
    )
    assert [signal.getsignal(s) for s in (2, 15, 1)] == handlers
    fitted(tmp_path / "run")
    assert state(tmp_path / "run") == state(tmp_path / "undisturbed")


# --- not a number --------------------------------------------------------------------------


class Poisoned(Rows):
    """One row of which is not finite once the training has begun."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value, self.calls = value, 0
        self.bad = self.batches(0)[6][1]  # in the seventh update

    def batch(self, rows: Any) -> Any:
        self.calls += 1
        x, y = super().batch(rows)
        if self.calls > TRIED and self.bad in rows:
            x = x.clone()
            x[0, list(rows).index(self.bad), 2] = self.value
        return x, y


def names(rows: Any) -> str:
    return ", ".join(f"rows.csv:{row + 1}" for row in rows)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_bad_input_is_named_by_row(tmp_path: Path, value: float) -> None:
    model, source = build("linear"), Poisoned(value)
    with pytest.raises(TrainingError) as caught:
        fit(model, source, Judge(model), plan(), RunFolder(tmp_path))
    found_in = {
        "nan": "the cost is nan: the batch itself holds such a number",
        "inf": "the norm of the gradient is nan: in that of body.weight",  # tanh(∞) is finite
    }
    assert str(caught.value).startswith(f"update 7: {found_in[str(value)]}. ")
    assert f"Rows: {names(source.batches(0)[6])}. " in str(caught.value)
    checkpoint = newest(tmp_path / "checkpoints", print)
    assert checkpoint is not None
    assert checkpoint.scalars["update"] == 5
    model = build("linear")  # and the run continues once the data is fixed
    fit(model, Rows(), Judge(model), plan(), RunFolder(tmp_path))


class Exploding(nn.Module):
    """Its cost, gradient or weight goes wrong at the seventh update."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.inner, self.what, self.calls = build("linear"), what, 0

    def forward(self, batch: Any, carried: Any) -> Any:
        self.calls += self.training
        now = self.calls == TRIED + 7
        if now and self.what == "weight":
            with torch.no_grad():
                self.inner.top.weight[0, 0] = float("inf")
        if now and self.what == "layer":
            self.inner.body.register_forward_hook(lambda *_: torch.full((3, 4, 6), torch.nan))
        cost, carried = self.inner(batch, carried)
        if now and self.what == "cost":
            cost = cost * float("nan")
        if now and self.what == "gradient":
            self.inner.top.bias.register_hook(lambda gradient: gradient * float("nan"))
        return cost, carried


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("cost", "update 7: the cost is nan: in no layer's output. The weights were not changed."),
        ("layer", "update 7: the cost is nan: first in the output of layer inner.body. The wei"),
        ("weight", "update 7: the cost is nan: the weight inner.top.weight is not finite. The wei"),
        ("gradient", "update 7: the norm of the gradient is nan: in that of inner.top.bias. The w"),
    ],
)
def test_a_number_that_is_not_finite_stops_before_the_update(
    tmp_path: Path, what: str, words: str
) -> None:
    model = Exploding(what)
    source = Rows()
    with pytest.raises(TrainingError) as caught:
        fit(model, source, None, plan(checkpoint_updates=1), RunFolder(tmp_path))
    assert str(caught.value).startswith(words)
    assert f" Rows: {names(source.batches(0)[6])}. Next: " in str(caught.value)
    checkpoint = newest(tmp_path / "checkpoints", print)
    assert checkpoint is not None
    assert checkpoint.scalars["update"] == 6
    if what != "weight":
        for name, weight in checkpoint.tensors["weights"].items():
            assert torch.equal(model.state_dict()[name], weight)


def test_a_moment_that_is_not_finite_is_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build("linear")
    at = Progress.begin(model, plan())
    monkeypatch.setattr(Progress, "begin", lambda *_: at)

    def spoil(row: Row) -> None:
        if isinstance(row, Update) and row.update == 5:
            at.optimiser.tensors()["top.bias/exp_avg"][0] = float("nan")

    with pytest.raises(TrainingError, match=r"^optimiser top.bias/exp_avg holds a number that is"):
        fit(model, Rows(), None, plan(checkpoint_updates=1), RunFolder(tmp_path), [spoil])
    checkpoint = newest(tmp_path / "checkpoints", print)
    assert checkpoint is not None
    assert checkpoint.scalars["update"] == 4


# --- several processes ---------------------------------------------------------------------


def dealt(
    folder: Path, processes: int, settings: Mapping[str, Any], allow: str = ""
) -> dict[str, Any]:
    """The weights after a run by a number of processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {
        **os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1",
        "WORLD_SIZE": str(processes), "SETTINGS": json.dumps(settings), "ALLOW": allow,
    }  # fmt: skip
    started = [
        subprocess.Popen(
            [sys.executable, SUBJECT, folder],
            env={**shared, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]
    answers = [process.communicate(timeout=120) for process in started]
    for process, (_, error) in zip(started, answers, strict=True):
        assert process.returncode == 0, error
    return dict(json.loads(answers[0][0]))


@pytest.mark.slow
@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_several_processes_give_what_one_gives(tmp_path: Path, optimiser: str) -> None:
    common = {**PLAN, "optimiser": optimiser, "l2": 0.01}
    one = dealt(tmp_path / "one", 1, {**common, "accumulate": 6})
    two = dealt(tmp_path / "two", 2, {**common, "accumulate": 3})
    for name, weight in one.items():
        torch.testing.assert_close(
            torch.tensor(weight), torch.tensor(two[name]), rtol=1e-6, atol=1e-6
        )
    whole = {**common, "accumulate": 3}
    dealt(tmp_path / "cut", 2, {**whole, "most_updates": 7})  # going on gives the same as well
    assert dealt(tmp_path / "cut", 2, whole, allow="train.most_updates") == two
