"""Links, FIFOs and sockets in a run folder: refused by name, and nothing outside is touched."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import commands_in
from toy_runs import toy_run

from ensue.data.stream import open_file
from ensue.data.tasks.write import write_task
from ensue.errors import DataError, RunError
from ensue.files.atomic_folder import with_manifest, write_folder
from ensue.files.disk import write_whole
from ensue.files.opening import append_to, open_plain, read_plain
from ensue.files.run_folder import RunFolder
from ensue.runs.run import _saved_epoch

FILES = (
    *("config.toml", "data.json", "history.jsonl", "timing.jsonl", "lock"),
    *("training.json", "card.md", "evaluation.json", "failure.json"),
)
FOLDERS = ("checkpoints", "learned", "model", "members", "refit", "evaluation-rows")


def make_link(place: Path) -> None:
    place.symlink_to(place.parent.parent / "precious")


def make_socket(place: Path) -> None:
    here = os.getcwd()
    os.chdir(place.parent)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(place.name)
    finally:
        os.chdir(here)


STRANGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a link": (make_link, "a link to "),
    "a link to nowhere": (lambda place: place.symlink_to("nowhere"), "a link to nowhere"),
    "a FIFO": (os.mkfifo, "a FIFO"),
    "a socket": (make_socket, "a socket"),
}


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    (tmp_path / "precious").write_text("years of work")
    (tmp_path / "run").mkdir()
    return RunFolder(tmp_path / "run")


@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.parametrize("name", [*FILES, *FOLDERS])
def test_a_run_folder_with_something_strange_in_it_is_refused(
    run: RunFolder, name: str, kind: str
) -> None:
    make, described = STRANGE[kind]
    make(run.path / name)
    expected = "a plain file" if name in FILES else "a folder"
    for hold in (run.locked, run.writing):
        with pytest.raises(RunError) as caught, hold():
            pass
        message = str(caught.value)
        assert message.startswith(f"{run.path / name}: expected {expected}, got {described}")
        assert message.endswith("Remove it, or name another run folder")
    assert (run.path.parent / "precious").read_text() == "years of work"


@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.parametrize("use", [open_plain, read_plain, append_to])
def test_only_plain_files_are_opened(
    run: RunFolder, kind: str, use: Callable[[Path], object]
) -> None:
    make, described = STRANGE[kind]
    place = run.path / "history.jsonl"
    make(place)
    with pytest.raises(RunError, match=f"expected a plain file, got {described}"):
        use(place)
    assert (run.path.parent / "precious").read_text() == "years of work"


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_followed(run: RunFolder) -> None:
    make_link(run.config)
    write_whole(run.config, b"new")
    assert run.config.read_bytes() == b"new"
    assert (run.path.parent / "precious").read_text() == "years of work"


def test_no_more_is_read_than_a_file_may_have(run: RunFolder) -> None:
    run.config.write_bytes(b"12345")
    assert read_plain(run.config, 5) == b"12345"
    with pytest.raises(RunError, match="expected at most 4 bytes, got more"):
        read_plain(run.config, 4)


def move_away(run: RunFolder) -> None:
    run.path.rename(run.path.with_name("moved"))


def put_another(run: RunFolder) -> None:
    run.lock.unlink()
    run.lock.write_text("")


@pytest.mark.parametrize("change", [move_away, put_another])
def test_a_folder_that_is_removed_while_it_is_in_use(
    run: RunFolder, change: Callable[[RunFolder], None]
) -> None:
    with pytest.raises(RunError, match="removed or replaced while the run was"), run.locked():
        change(run)


def test_a_file_that_was_half_written_by_a_killed_process_goes(run: RunFolder) -> None:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    left = run.path / f".tmp-config.toml-{child}-0123abcd"
    left.write_text("half")
    write_whole(run.config, b"whole")
    assert sorted(os.listdir(run.path)) == ["config.toml"]


def test_a_data_set_that_cannot_be_made_leaves_the_file_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ensue.data.tasks.write.MOST_ATTEMPTS", 1)
    place = tmp_path / "kept.trees"
    place.write_text("mine\n")
    with pytest.raises(DataError, match="too few different trees"):
        write_task("logic", place, rows=100)
    assert place.read_text() == "mine\n"
    assert os.listdir(tmp_path) == ["kept.trees"]


def test_what_a_message_quotes_cannot_drive_the_terminal() -> None:
    message = str(RunError("a label \x1b[31m\x07\tred\r\nnext line " + "x" * 10_000))
    assert message.startswith("a label \\x1b[31m\\x07\\tred\\r\nnext line xxx")
    assert len(message) < 2000


def test_a_pipe_is_no_data_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match=r"pipe.csv: expected a file, got a pipe, which can be"):
        open_file(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match="expected a file, got a device"):
        open_file(Path("/dev/zero"))


@pytest.mark.parametrize("kind", STRANGE)
def test_the_epoch_of_a_run_is_not_read_through_something_strange(
    run: RunFolder, kind: str
) -> None:
    for step, epoch in (("step-000001", 1), ("step-000002", 2)):
        state = json.dumps({"scalars": {"epoch": epoch, "position": 0}})
        write_folder(run.checkpoints / step, with_manifest({"state.json": state.encode()}, {}))
        place = run.checkpoints / step / "state.json"
    assert _saved_epoch(run) == 2
    place.unlink()
    STRANGE[kind][0](place)
    assert _saved_epoch(run) == 1


def test_a_model_behind_a_link_is_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(toy_run("classify-words") / "run", tmp_path / "run")
    (tmp_path / "run" / "model").rename(tmp_path / "elsewhere")
    (tmp_path / "run" / "model").symlink_to("../elsewhere")
    ensue = commands_in(tmp_path, capsys, monkeypatch)
    message = (
        "run/model: expected a folder, got a link to ../elsewhere; nothing was read or written"
    )
    assert message in ensue("runs")[2]
    for words in (("evaluate", "run"), ("predict", "run")):
        code, out, err = ensue(*words)
        assert (code, out) == (2, "")
        assert err.startswith(f"RunError: {message}")
