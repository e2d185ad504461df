"""Checkpoints: whole or refused, after a crash during a commit, a full disk, or damaged files."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from ensue.errors import RunError, TrainingError
from ensue.files import atomic_folder as whole
from ensue.files.atomic_folder import Damaged, exchanged
from ensue.files.chain import present
from ensue.files.disk import sweep, unfinished
from ensue.files.format import FORMAT
from ensue.training import checkpoint

SCALARS = {"update": 3, "cost": 0.1 + 0.2, "due": False, "best": None}
FACTS = {"config": {"train.rate": 0.1}, "data": "f00d", "threads": 1}


def some(seed: int = 0) -> dict[str, dict[str, Tensor]]:
    draw = torch.Generator().manual_seed(seed)
    weights = {
        "top.weight": torch.randn(3, 2, generator=draw),
        "top.bias": torch.randn(3, generator=draw),
    }
    return {"weights": weights, "optimiser": {"top.weight/step": torch.tensor(3.0)}, "best": {}}


def write(folder: Path, update: int = 3, seed: int = 0, **more: Any) -> Path:
    return checkpoint.save(folder, update, some(seed), SCALARS, FACTS, **more)


def names(folder: Path) -> list[str]:
    return [path.name for path in present(folder)]


def unheard(text: str) -> None:
    raise AssertionError(f"nothing was to be said, but: {text}")


# --- what is written is read ---------------------------------------------------------------


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    tensors = some()
    tensors["weights"] |= {
        "tied": tensors["weights"]["top.weight"],
        "turned": tensors["weights"]["top.weight"].T,
        "whole": torch.arange(4),
        "low": torch.randn(3).bfloat16(),
        "empty": torch.zeros(0, 2),
        "zero": torch.tensor(-0.0),
    }
    place = checkpoint.save(tmp_path, 3, tensors, SCALARS, FACTS)
    saved = checkpoint.read(place)
    assert place == tmp_path / "step-000003"
    assert (saved.scalars, saved.facts) == (SCALARS, FACTS)
    assert saved.tensors.keys() == tensors.keys()
    for group, table in tensors.items():
        assert saved.tensors[group].keys() == table.keys()
        for name, tensor in table.items():
            assert saved.tensors[group][name].dtype == tensor.dtype
            assert torch.equal(saved.tensors[group][name], tensor)
    assert saved.tensors["weights"]["zero"].signbit()


def test_the_same_state_is_written_as_the_same_bytes(tmp_path: Path) -> None:
    one, other = write(tmp_path / "a"), write(tmp_path / "b")
    assert whole.read_files(one) == whole.read_files(other)
    assert whole.read_files(one) != whole.read_files(write(tmp_path / "c", seed=1))
    again = checkpoint.save(tmp_path / "d", 3, checkpoint.read(one).tensors, SCALARS, FACTS)
    assert whole.read_files(again) == whole.read_files(one)


def test_the_manifest_says_what_it_ran_under(tmp_path: Path) -> None:
    manifest = json.loads((write(tmp_path) / "manifest.json").read_text())
    assert manifest["format"] == FORMAT == 3
    assert manifest["torch"] == torch.__version__
    assert (manifest["threads"], manifest["data"]) == (1, "f00d")
    files = {"weights.safetensors", "optimiser.safetensors", "best.safetensors", "state.json"}
    assert manifest["files"].keys() == files


def test_two_are_kept_and_the_best(tmp_path: Path) -> None:
    for update in range(1, 7):
        write(tmp_path, update, best=2)
    assert names(tmp_path) == ["step-000002", "step-000005", "step-000006"]
    write(tmp_path, 6, final=True, best=6)
    assert names(tmp_path) == ["step-000006", "step-000006-final"]
    assert sorted(os.listdir(tmp_path)) == names(tmp_path)


def test_the_newest_is_the_largest_number(tmp_path: Path) -> None:
    for update in (999_999, 1_000_000):
        write(tmp_path, update)
    newest_checkpoint = checkpoint.newest(tmp_path, unheard)
    assert newest_checkpoint is not None
    assert newest_checkpoint.path.name == "step-1000000"
    assert checkpoint.newest(tmp_path / "nowhere", unheard) is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("group", ["weights", "optimiser", "best"])
def test_a_number_that_is_not_finite_is_never_saved(
    tmp_path: Path, group: str, value: float
) -> None:
    tensors = some()
    tensors[group]["odd"] = torch.tensor([1.0, value])
    with pytest.raises(TrainingError) as caught:
        checkpoint.save(tmp_path, 3, tensors, SCALARS, FACTS)
    assert str(caught.value) == (
        f"{group} odd holds a number that is not finite, so it is not saved; the last checkpoint "
        "stands. Next: lower the rate and run again"
    )
    assert os.listdir(tmp_path) == []


# --- damaged files ------------------------------------------------------------------------


def damage(path: Path, how: str) -> None:
    data = path.read_bytes()
    match how:
        case "missing":
            path.unlink()
        case "empty":
            path.write_bytes(b"")
        case "first byte":
            path.write_bytes(data[:1])
        case "half":
            path.write_bytes(data[: len(data) // 2])
        case "last byte missing":
            path.write_bytes(data[:-1])
        case "extended":
            path.write_bytes(data + b"\n")
        case "zeros":
            path.write_bytes(bytes(len(data)))
        case "a folder":
            path.unlink()
            path.mkdir()
        case "a link":
            shutil.move(path, path.parent.parent / "elsewhere")
            path.symlink_to(path.parent.parent / "elsewhere")


WAYS = [
    "missing", "empty", "first byte", "half", "last byte missing", "extended", "zeros", "a folder"
]  # fmt: skip
FILES = ["weights.safetensors", "optimiser.safetensors", "state.json", "manifest.json"]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("file", FILES)
def test_a_damaged_one_is_set_aside_and_the_previous_used(
    tmp_path: Path, file: str, how: str
) -> None:
    write(tmp_path, 3)
    place = write(tmp_path, 4)
    damage(place / file, how)
    messages: list[str] = []
    newest_checkpoint = checkpoint.newest(tmp_path, messages.append)
    assert newest_checkpoint is not None
    assert newest_checkpoint.path.name == "step-000003"
    assert len(messages) == 1
    assert messages[0].startswith("step-000004 is damaged: ")
    assert file in messages[0]
    moved = tmp_path / "damaged" / "step-000004"
    assert messages[0].endswith(f"; moved to {moved}; trying the one before")
    assert names(tmp_path) == ["step-000003"]
    write(tmp_path, 4)  # its name is free again
    damage(tmp_path / "step-000004" / file, how)
    checkpoint.newest(tmp_path, messages.append)
    assert sorted(os.listdir(tmp_path / "damaged")) == ["step-000004", "step-000004-2"]


def test_a_link_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    place = write(tmp_path)
    damage(place / "weights.safetensors", "a link")
    with pytest.raises(Damaged, match=r"^weights.safetensors is not a regular file$"):
        checkpoint.read(place)


def test_an_extra_file_is_refused(tmp_path: Path) -> None:
    place = write(tmp_path)
    (place / "more.safetensors").write_bytes(b"")
    with pytest.raises(Damaged, match=r"^more.safetensors is not in the manifest$"):
        checkpoint.read(place)


def test_files_of_another_checkpoint_are_refused_by_name(tmp_path: Path) -> None:
    swapped = 0
    for file in ("weights.safetensors", "manifest.json"):
        one, other = write(tmp_path / f"a{file}", 3), write(tmp_path / f"b{file}", 3, seed=1)
        assert (one / file).stat().st_size == (other / file).stat().st_size
        shutil.copy(other / file, one / file)
        named = "weights.safetensors"  # the file that does not belong to the manifest
        with pytest.raises(
            Damaged, match=f"^{named} differs from what Ensue wrote: its sha256 differs$"
        ):
            checkpoint.read(one)
        swapped += 1
    assert swapped == 2


def flips(tmp_path: Path, number: int) -> tuple[int, int]:
    """How many flips of one bit, over all files, are caught out of how many."""
    place = write(tmp_path)
    files = whole.read_files(place)
    positions = [(name, k) for name, data in files.items() for k in range(8 * len(data))]
    draw = random.Random(5)
    caught = 0
    for name, bit in (draw.choice(positions) for _ in range(number)):
        data = bytearray(files[name])
        data[bit // 8] ^= 1 << bit % 8
        (place / name).write_bytes(data)
        try:
            checkpoint.read(place)
        except Damaged:
            caught += 1
        (place / name).write_bytes(files[name])
    checkpoint.read(place)
    return caught, number


def test_every_flipped_bit_is_caught(tmp_path: Path) -> None:
    assert flips(tmp_path, 300) == (300, 300)


@pytest.mark.slow
def test_ten_thousand_flipped_bits_are_caught(tmp_path: Path) -> None:
    assert flips(tmp_path, 10_000) == (10_000, 10_000)


def test_every_flip_in_the_manifest_is_caught(tmp_path: Path) -> None:
    place = write(tmp_path)
    data = (place / "manifest.json").read_bytes()
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Damaged):
            whole.manifest_of(bytes(changed))


@pytest.mark.parametrize(
    ("number", "error", "message"),
    [
        (2, RunError, r"step-000003: Ensue 0\.2\.0 wrote this, in format 2;"),
        (FORMAT + 1, RunError, r"step-000003: a newer Ensue wrote this, in format 4;"),
        (None, Damaged, r"^format: expected 3, got None$"),
    ],
)
def test_a_manifest_of_another_format_is_named(
    number: int | None, error: type[Exception], message: str, tmp_path: Path
) -> None:
    manifest = json.loads((write(tmp_path) / "manifest.json").read_text())
    manifest["format"] = number
    del manifest["sha256"]
    seal = whole.digest(whole.canonical(manifest))
    (tmp_path / "step-000003" / "manifest.json").write_bytes(
        whole.canonical({**manifest, "sha256": seal})
    )
    with pytest.raises(error, match=message):
        checkpoint.read(tmp_path / "step-000003")


# --- a crash at each call of a commit ------------------------------------------------------

CALLS = ["mkdir", "open", "fsync", "rename", "close", "unlink", "rmdir"]
KILLED = 77


def crash_at(module: Any, call: str, number: int) -> None:
    """The process ends, with nothing flushed, when `call` is made for the number-th time."""
    real, calls = getattr(module, call), [0]

    def counted(*arguments: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == number:
            os._exit(KILLED)
        return real(*arguments, **named)

    setattr(module, call, counted)


def crashed(folder: Path, call: str, number: int) -> bool:
    """Whether writing update 4, removing 2, got to the number-th call and ended there."""
    child = os.fork()
    if not child:
        try:
            crash_at(os, call, number)
            write(folder, 4, seed=4)
            os._exit(0)
        except BaseException:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, KILLED)
    return code == KILLED


def test_a_crash_at_any_call_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    points, newest = 0, set()
    for call in CALLS:
        for number in range(1, 100):
            folder = tmp_path / f"{call}-{number}"
            for update in (2, 3):
                write(folder, update)
            ended = crashed(folder, call, number)
            newest_checkpoint = checkpoint.newest(folder, unheard)
            assert newest_checkpoint is not None
            assert newest_checkpoint.path.name in ("step-000003", "step-000004")
            assert len(names(folder)) >= 2
            for name in names(folder):
                checkpoint.read(folder / name)
            sweep(folder)
            assert sorted(os.listdir(folder)) == names(folder)
            if not ended:
                assert newest_checkpoint.path.name == "step-000004"
                break
            points += 1
            newest.add(newest_checkpoint.path.name)
    assert points > 15
    assert newest == {"step-000003", "step-000004"}


# --- the disk -------------------------------------------------------------------------------


def failing(number: int, error: int, real: Callable[..., Any]) -> Callable[..., Any]:
    calls = [0]

    def call(*arguments: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == number:
            raise OSError(error, os.strerror(error))
        return real(*arguments, **named)

    return call


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (errno.ENOSPC, "make room"),
        (errno.EIO, "check the disk"),
        (errno.EROFS, "name a folder that can be written to"),
        (errno.EXDEV, "check the disk"),
    ],
)
@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_a_disk_error_leaves_the_old_one_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: int, advice: str
) -> None:
    write(tmp_path, 3)
    for number in range(1, 5 if call == "fsync" else 2):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, failing(number, error, getattr(os, call)))
            patch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9, 8, 1234))
            with pytest.raises(RunError) as caught:
                write(tmp_path, 4)
        needed = sum(map(len, checkpoint.contents(some(), SCALARS, FACTS).values()))
        assert str(caught.value) == (
            f"{tmp_path / 'step-000004'}: not saved: {os.strerror(error)}; needed {needed:,} "
            "bytes, free 1,234. Earlier checkpoints are untouched. "
            f"Next: {advice}, then run the same command again"
        )
        assert os.listdir(tmp_path) == ["step-000003"]
        assert checkpoint.newest(tmp_path, unheard) is not None


@pytest.mark.slow
def test_a_full_disk_leaves_the_old_one(tmp_path: Path) -> None:
    """On a real small disk, where that is permitted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.system(f"mount -t tmpfs -o size=256k tmpfs {disk} 2>/dev/null"):
        pytest.skip("mounting a small tmpfs is not permitted here")
    try:
        write(disk, 3)
        large = {**some(), "average": {"w": torch.zeros(100_000)}}
        with pytest.raises(RunError, match=r"not saved: No space left on device; needed 40\d,\d+"):
            checkpoint.save(disk, 4, large, SCALARS, FACTS)
        assert os.listdir(disk) == ["step-000003"]
        assert checkpoint.newest(disk, unheard) is not None
    finally:
        os.system(f"umount {disk}")


def test_what_reads_back_differently_is_not_called_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 3)
    real = whole._write

    def rotten(path: Path, data: bytes) -> None:
        real(path, data[:-1] + bytes([data[-1] ^ 1]) if path.name == "state.json" else data)

    monkeypatch.setattr(whole, "_write", rotten)
    with pytest.raises(RunError) as caught:
        write(tmp_path, 4)
    assert str(caught.value) == (
        f"{tmp_path / 'step-000004'}: state.json differs from what Ensue wrote: its sha256 "
        "differs; "
        f"moved to {tmp_path / 'damaged' / 'step-000004'}. Check the disk"
    )
    assert names(tmp_path) == ["step-000003"]


# --- what may be replaced ------------------------------------------------------------------

FIRST, SECOND = {"a.json": b"{}", "b.json": b"[]"}, {"a.json": b"1", "c.json": b"2"}


def put(place: Path, files: dict[str, bytes]) -> dict[str, bytes]:
    sealed = whole.with_manifest(files, {"format": 1})
    whole.write_folder(place, sealed)
    return sealed


def tree(folder: Path) -> dict[str, Any]:
    """Every file and link below a folder, with its content."""
    return {
        str(path.relative_to(folder)): os.readlink(path) if path.is_symlink()
        else path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }  # fmt: skip


def test_a_folder_of_ours_and_an_empty_one_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    for files in (FIRST, SECOND, FIRST):
        sealed = put(tmp_path / "place", files)
        assert whole.read_files(tmp_path / "place") == sealed
        assert sorted(os.listdir(tmp_path / "place")) == sorted([*files, "manifest.json"])
        assert os.listdir(tmp_path) == ["place"]


@pytest.mark.parametrize("how", WAYS[:-1])
@pytest.mark.parametrize("file", ["a.json", "manifest.json"])
def test_a_damaged_folder_of_ours_is_replaced(tmp_path: Path, file: str, how: str) -> None:
    put(tmp_path / "place", FIRST)
    damage(tmp_path / "place" / file, how)
    if (file, how) == ("manifest.json", "missing"):  # nothing says any more that it is ours
        with pytest.raises(RunError, match="a folder with other files"):
            put(tmp_path / "place", FIRST)
        return
    sealed = put(tmp_path / "place", FIRST)
    assert whole.read_files(tmp_path / "place") == sealed


FOREIGN: dict[str, tuple[Callable[[Path], object], str]] = {
    "a file": (lambda p: p.write_text("thesis"), "a file"),
    "a folder": (
        lambda p: [p.mkdir(), *((p / n).write_text("x") for n in "dcba")],
        "a folder with other files (a, b, c, …)",
    ),
    "a folder with a folder": (
        lambda p: (p / "more").mkdir(parents=True),
        "a folder with other files (more)",
    ),
    "one of ours with a file more": (
        lambda p: [put(p, FIRST), (p / "notes.txt").write_text("mine")],
        "a folder with other files (a.json, b.json, manifest.json, …)",
    ),
    "one of ours with a folder in it": (
        lambda p: [put(p, FIRST), (p / "a.json").unlink(), (p / "a.json").mkdir()],
        "a folder with other files (a.json, b.json, manifest.json)",
    ),
    "another's manifest": (
        lambda p: [
            p.mkdir(),
            (p / "manifest.json").write_text('{"files": {"a.json": "x"}}'),
            (p / "a.json").write_text("x"),
        ],
        "a folder with other files (a.json, manifest.json)",
    ),
    "a manifest alone": (
        lambda p: [p.mkdir(), (p / "manifest.json").write_text("no json")],
        "a folder with other files (manifest.json)",
    ),
    "a link": (
        lambda p: [put(p.with_name("elsewhere"), FIRST), p.symlink_to("elsewhere")],
        "a link to elsewhere",
    ),
    "a link to nowhere": (lambda p: p.symlink_to("nowhere"), "a link to nowhere"),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_what_is_not_ours_is_never_replaced(tmp_path: Path, what: str) -> None:
    make, described = FOREIGN[what]
    place = tmp_path / "place"
    make(place)
    before = tree(tmp_path)
    with pytest.raises(RunError) as caught:
        put(place, FIRST)
    assert str(caught.value) == (
        f"{place}: not saved: {described} already exists, and was left unchanged. Name a new "
        "folder, or move it away"
    )
    assert tree(tmp_path) == before


def test_a_disk_error_while_replacing_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = put(tmp_path / "place", FIRST)
    for number in (1, 2):  # of the old one aside, and of the new one to its place
        with monkeypatch.context() as patch:
            patch.setattr(whole, "exchanged", lambda one, other: False)
            patch.setattr(os, "rename", failing(number, errno.EIO, os.rename))
            patch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9, 8, 1234))
            with pytest.raises(RunError) as caught:
                put(tmp_path / "place", SECOND)
        needed = sum(map(len, whole.with_manifest(SECOND, {"format": 1}).values()))
        assert str(caught.value) == (
            f"{tmp_path / 'place'}: not saved: Input/output error; needed {needed:,} bytes, free "
            "1,234. Next: check the disk, then run the same command again"
        )
        assert whole.read_files(tmp_path / "place") == old
        assert os.listdir(tmp_path) == ["place"]


def killed_at(number: int, call: Callable[[], object]) -> int:
    """The exit code of a process that dies at that change of a folder; 0 where it came through."""
    child = os.fork()
    if not child:
        changes = iter(range(1, 1000))

        def dying(real: Callable[..., Any]) -> Callable[..., Any]:
            def change(*arguments: Any, **words: Any) -> Any:
                if next(changes) == number:
                    os._exit(9)
                return real(*arguments, **words)

            return change

        for name in ("rename", "mkdir", "fsync", "rmdir"):
            setattr(os, name, dying(getattr(os, name)))
        call()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("at_once", [True, False])
def test_a_kill_while_replacing_leaves_the_old_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    """At every call that changes a folder; a reader puts back what was there."""
    if not at_once:
        monkeypatch.setattr(whole, "exchanged", lambda one, other: False)
    place, states = tmp_path / "place", set[str]()
    old, new = (whole.with_manifest(files, {"format": 1}) for files in (FIRST, SECOND))
    for number in range(1, 30):
        put(place, FIRST)
        code = killed_at(number, lambda: put(place, SECOND))
        files_left = whole.read_files(place)
        assert files_left in (old, new), number
        states.add("old" if files_left == old else "new")
        put(place, FIRST)
        assert os.listdir(tmp_path) == ["place"]
        if not code:
            break
    assert not code
    assert states == {"old", "new"}


def test_the_next_save_puts_back_what_a_kill_took_away(tmp_path: Path) -> None:
    place = tmp_path / "place"
    old = put(place, FIRST)
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    os.rename(place, tmp_path / f".tmp-place-{child}-0123abcd-old")
    whole.recover(place)
    assert whole.read_files(place) == old
    assert os.listdir(tmp_path) == ["place"]


def test_names_are_exchanged_in_one_step_or_not_at_all(tmp_path: Path) -> None:
    for name in "ab":
        put(tmp_path / name, {"own.json": name.encode()})
    if exchanged(tmp_path / "a", tmp_path / "b"):
        assert (tmp_path / "a" / "own.json").read_bytes() == b"b"
        assert (tmp_path / "b" / "own.json").read_bytes() == b"a"
    with pytest.raises(FileNotFoundError):
        exchanged(tmp_path / "a", tmp_path / "nowhere")
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_a_folder_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="Next: name another folder, then run"):
        put(tmp_path / "file" / "place", FIRST)


# --- what killed processes leave -----------------------------------------------------------


def test_leftovers_of_killed_processes_go_and_hinder_nobody(tmp_path: Path) -> None:
    place = tmp_path / "place"
    put(place, FIRST)
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    for process in (child, os.getpid()):  # one that has ended, and an earlier one of our number
        for end in ("", "-old"):
            left = tmp_path / f".tmp-place-{process}-0123abcd{end}"
            left.mkdir()
            (left / "a.json").write_text("half")
    leftovers = [f".tmp-place-{os.getppid()}-0123abcd", ".tmp-other-1-0123abcd", ".tmp-place-notes"]
    for name in leftovers:  # of a living process, of another place, of another making
        (tmp_path / name).mkdir()
    sealed = put(place, SECOND)
    assert whole.read_files(place) == sealed
    assert sorted(os.listdir(tmp_path)) == sorted([*leftovers, "place"])


def test_no_two_writings_have_the_same_name_beside(tmp_path: Path) -> None:
    assert len({unfinished(tmp_path / "place") for _ in range(100)}) == 100
