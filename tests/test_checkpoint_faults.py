"""Checkpoints on disks that fail late, among leftovers of others, with content that is not ours,
and on another machine than the one that wrote them."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from hostile import resealed
from torch import Tensor
from trainees import Judge, Rows, build, state

from ensue.engine import machine
from ensue.errors import RunError
from ensue.files import atomic_folder
from ensue.files.atomic_folder import MANIFEST, Damaged, canonical, with_manifest
from ensue.files.chain import present
from ensue.files.disk import sweep
from ensue.files.opening import append_to, write_all
from ensue.training import Notice, RunFolder, TrainSettings, checkpoint, fit
from ensue.training.rows import Row

PLAN = {"epochs": 3, "rate": 0.02, "checkpoint_updates": 5}


def fitted(folder: Path, watchers: Any = (), **more: Any) -> None:
    model = build("linear")
    settings = TrainSettings.of({**PLAN, **more})
    fit(model, Rows(), Judge(model), settings, RunFolder(folder), watchers)


def refusal(folder: Path, **more: Any) -> str:
    with pytest.raises(RunError) as caught:
        fitted(folder, **more)
    return str(caught.value)


# --- the disk --------------------------------------------------------------------------------


def test_a_disk_that_is_full_at_update_20_leaves_the_checkpoint_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had room enough when the run began, and others filled it."""
    fitted(tmp_path / "undisturbed")
    place = tmp_path / "run" / "checkpoints" / "step-000020"
    real = atomic_folder._write

    def full(path: Path, data: bytes) -> None:
        if path.parent.name.startswith(".tmp-step-000020"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        real(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(atomic_folder, "_write", full)
        message = refusal(tmp_path / "run")
    begin, _, rest = message.partition("; needed ")
    assert begin == f"{place}: not saved: No space left on device"
    needed, _, rest = rest.partition(" bytes, free ")
    assert int(needed.replace(",", "")) > 1000
    free, _, rest = rest.partition(". ")
    assert int(free.replace(",", "")) > 0
    assert rest == (
        "Earlier checkpoints are untouched. Next: make room, then run the same command again"
    )
    newest = present(place.parent)[-1]
    assert newest.name == "step-000015"
    checkpoint.read(newest)
    fitted(tmp_path / "run")
    assert state(tmp_path / "run") == state(tmp_path / "undisturbed")


def test_a_disk_that_takes_a_part_of_a_line_has_taken_none(tmp_path: Path) -> None:
    file = append_to(tmp_path / "history.jsonl")

    class Nearly:
        """A file that takes three bytes at a time, then none."""

        def __init__(self, room: int) -> None:
            self.room = room

        def write(self, data: memoryview) -> int:
            if not self.room:
                raise OSError(errno.ENOSPC, "full")
            written = file.write(data[: min(3, self.room)])
            self.room -= written
            return written

    write_all(Nearly(100), b"a whole line\n")  # type: ignore[arg-type]
    assert (tmp_path / "history.jsonl").read_bytes() == b"a whole line\n"
    with pytest.raises(OSError, match="full"):
        write_all(Nearly(5), b"another line\n")  # type: ignore[arg-type]
    file.close()


@pytest.mark.parametrize("error", [errno.EIO, errno.EROFS])
def test_an_old_checkpoint_that_cannot_be_removed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    real: Callable[..., None] = os.rename

    def broken(old: Path, new: Path) -> None:
        if Path(old).name.startswith("step-"):
            raise OSError(error, os.strerror(error), str(old))
        real(old, new)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", broken)
        message = refusal(tmp_path, check_every=100)
    assert message.startswith(
        f"{tmp_path / 'checkpoints' / 'step-000005'}: cannot be removed: {os.strerror(error)}, "
        "though newer ones have been saved. Next: "
    )
    assert [path.name for path in present(tmp_path / "checkpoints")][-1] == "step-000015"
    fitted(tmp_path, check_every=100)


# --- leftovers -------------------------------------------------------------------------------


def dead() -> int:
    """The number of a process that is gone."""
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    return child


def test_leftovers_of_dead_processes_go_and_those_of_others_stay(tmp_path: Path) -> None:
    fitted(tmp_path, most_updates=5)
    gone, alive = dead(), os.getppid()
    left = [f".tmp-learned-{gone}-0123abcd", f".tmp-a-{gone}-01234567"]
    leftovers = [
        ".tmp-x",
        f".tmp-step-000009-{alive}-0123abcd",
        ".tmp-",
        f".tmp-{gone}",
        f".tmp-b-{gone}",
    ]
    for folder in (tmp_path, tmp_path / "checkpoints"):
        for name in (*left, *leftovers):
            (folder / name).mkdir()
            (folder / name / "half.json").write_text("{")
    (tmp_path / "checkpoints" / ".tmp-file").write_text("mine")
    fitted(tmp_path, most_updates=5)
    for folder in (tmp_path, tmp_path / "checkpoints"):
        names = {path.name for path in folder.iterdir()}
        assert names >= {*leftovers}
        assert not names & {*left}
    assert (tmp_path / "checkpoints" / ".tmp-file").read_text() == "mine"


def test_what_was_moved_away_to_be_replaced_is_not_swept(tmp_path: Path) -> None:
    old = tmp_path / f".tmp-model-{dead()}-0123abcd-old"
    old.mkdir()
    assert sweep(tmp_path) == []
    (tmp_path / "model").mkdir()
    assert sweep(tmp_path) == [old.name]
    assert sweep(tmp_path / "nowhere") == []


# --- content that is not ours, with digests that are right -----------------------------------


def rewritten(place: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """A checkpoint whose state is changed and sealed again."""
    files = {file.name: file.read_bytes() for file in place.iterdir()}
    manifest = json.loads(files.pop(MANIFEST))
    value = json.loads(files["state.json"])
    change(value)
    files["state.json"] = canonical(value)
    facts = {key: entry for key, entry in manifest.items() if key not in ("files", "sha256")}
    for name, data in with_manifest(files, facts).items():
        (place / name).write_bytes(data)


HOSTILE: dict[str, Callable[[dict[str, Any]], object]] = {
    "no update": lambda manifest: manifest["scalars"].pop("update"),
    "update is a text": lambda manifest: manifest["scalars"].update(update="x"),
    "negative epoch": lambda manifest: manifest["scalars"].update(epoch=-1),
    "true for a number": lambda manifest: manifest["scalars"].update(position=True),
    "no stale": lambda manifest: manifest["scalars"].pop("stale"),
    "no history": lambda manifest: manifest["scalars"].pop("history"),
    "history is a number": lambda manifest: manifest["scalars"].update(history=7),
    "length is a text": lambda manifest: manifest["scalars"]["history"].update(length="x"),
    "scores are a list": lambda manifest: manifest["scalars"].update(best_scores=[1]),
    "config is a list": lambda manifest: manifest["facts"].update(config=[1]),
}
NO_STATE: dict[str, Callable[[dict[str, Any]], object]] = {
    "no scalars": lambda manifest: manifest.pop("scalars"),
    "scalars are a number": lambda manifest: manifest.update(scalars=3),
    "no facts": lambda manifest: manifest.pop("facts"),
}


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("stopped")
    fitted(place, most_updates=12)
    return place


def newest_in_a_copy(stopped: Path, folder: Path) -> Path:
    """The newest checkpoint of a copy of the run, `folder`/run."""
    shutil.copytree(stopped, folder / "run")
    return present(folder / "run" / "checkpoints")[-1]


@pytest.mark.parametrize("what", HOSTILE)
def test_a_checkpoint_that_is_not_ours_is_refused_in_one_error(
    stopped: Path, tmp_path: Path, what: str
) -> None:
    place = newest_in_a_copy(stopped, tmp_path)
    rewritten(place, HOSTILE[what])
    message = refusal(tmp_path / "run", most_updates=12)
    assert message.startswith(f"{place}: this is not a checkpoint written by Ensue (")
    assert message.endswith("Remove it to use the checkpoint before it")


MISFITS: dict[str, tuple[str, Callable[[dict[str, Tensor]], object], str]] = {
    "a weight of another shape": (
        "best",
        lambda tensors: tensors.update({"top.bias": torch.zeros(7)}),
        "the saved best weights do not fit this model: top.bias: expected torch.float32 (3,), got",
    ),
    "a weight that is missing": (
        "best",
        lambda tensors: tensors.pop("top.bias"),
        "top.bias: expected torch.float32 (3,), got nothing",
    ),
    "a moment of another shape": (
        "optimiser",
        lambda tensors: tensors.update({"top.bias/exp_avg": torch.zeros(7)}),
        "the optimiser's state does not fit this model: top.bias/exp_avg: expected floating point",
    ),
    "a moment of integers": (
        "optimiser",
        lambda tensors: tensors.update({"top.bias/exp_avg": torch.zeros(3, dtype=torch.int64)}),
        "top.bias/exp_avg: expected floating point (3,), got torch.int64 (3,)",
    ),
    "a moment that is missing": (
        "optimiser",
        lambda tensors: tensors.pop("top.bias/exp_avg"),
        "the optimiser's state is not whole: top.bias lacks a moment",
    ),
}


@pytest.mark.parametrize("what", MISFITS)
def test_tensors_of_a_checkpoint_that_do_not_fit_are_refused(
    stopped: Path, tmp_path: Path, what: str
) -> None:
    name, change, expected = MISFITS[what]
    place = newest_in_a_copy(stopped, tmp_path)
    files = {file.name: file.read_bytes() for file in place.iterdir()}
    tensors = safetensors.torch.load(files[f"{name}.safetensors"])
    change(tensors)
    files[f"{name}.safetensors"] = safetensors.torch.save(tensors)
    for file_name, data in resealed(files).items():
        (place / file_name).write_bytes(data)
    assert expected in refusal(tmp_path / "run", most_updates=12)


def test_a_checkpoint_with_a_number_that_is_not_finite_is_damaged(
    stopped: Path, tmp_path: Path
) -> None:
    place = tmp_path / "step-000012"
    shutil.copytree(present(stopped / "checkpoints")[-1], place)
    files = {file.name: file.read_bytes() for file in place.iterdir()}
    best = safetensors.torch.load(files["best.safetensors"])
    best["top.bias"][1] = torch.nan
    for file_name, data in resealed(
        files | {"best.safetensors": safetensors.torch.save(best)}
    ).items():
        (place / file_name).write_bytes(data)
    with pytest.raises(Damaged, match=r"^best: top.bias holds NaN or infinity$"):
        checkpoint.read(place)


@pytest.mark.parametrize("what", NO_STATE)
def test_a_checkpoint_without_a_state_is_set_aside(
    stopped: Path, tmp_path: Path, what: str
) -> None:
    place = newest_in_a_copy(stopped, tmp_path)
    rewritten(place, NO_STATE[what])
    rows: list[Row] = []
    fitted(tmp_path / "run", [rows.append], most_updates=12)
    (line,) = [row.text for row in rows if isinstance(row, Notice) and "damaged" in row.text]
    assert line.startswith(f"{place.name} is damaged: it is not what Ensue writes (")


# --- another machine -------------------------------------------------------------------------


def test_the_machine_is_written_down(stopped: Path) -> None:
    facts = checkpoint.read(present(stopped / "checkpoints")[-1]).facts
    assert facts["engine"] in ("native", "eager")
    assert facts["cpu"]
    if facts["engine"] == "native":
        assert facts["compiler"]
        assert "-Og" in facts["flags"].split()  # see conftest.py
    assert {"torch", "threads"} <= facts.keys()


def test_another_optimisation_level_or_engine_is_not_bit_exact(
    stopped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lines(**facts: str) -> list[str]:
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        shutil.copytree(stopped, tmp_path / "run")
        rows: list[Row] = []
        with monkeypatch.context() as patch:
            now = {**machine.machine_facts(), **facts}
            patch.setattr("ensue.training.facts.machine_facts", lambda: now)
            fitted(tmp_path / "run", [rows.append], most_updates=12)
        return [row.text for row in rows if isinstance(row, Notice) and not row.progress]

    was = machine.machine_facts()
    assert lines() == []
    changes = f'cpu: was "{was["cpu"]}", now "Z80"; engine: was "{was["engine"]}", now "other"'
    assert lines(engine="other", cpu="Z80") == [f"{changes}: not bit-exact"]
    if "flags" in was:
        monkeypatch.setenv("ENSUE_OPTIMISE", "3")
        now = was["flags"].replace("-Og", "-O3")
        assert lines() == [f'flags: was "{was["flags"]}", now "{now}": not bit-exact']


def test_without_a_compiler_the_engine_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "why_not_native", lambda device, dtype: "no compiler")
    assert machine.machine_facts().keys() == {"engine", "cpu"}
    assert machine.machine_facts()["engine"] == "eager"
