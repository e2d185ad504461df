"""One lock, from the first look at a run folder to the last file written into it."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from commands import Ensue, commands_in
from reviews import refused, reviews
from sealed import complaints, digests
from starts import simultaneous, words

from ensue import Classifier, cli
from ensue.errors import RunError
from ensue.files import run_folder
from ensue.files.run_folder import RunFolder
from ensue.runs import train

STARTS = 5


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    reviews(tmp_path / "r.csv", 120)
    return commands_in(tmp_path, capsys, monkeypatch)


def check_simultaneous_starts(folder: Path, count: int) -> None:
    """Of many commands with different settings one wins; the others leave its run as if they had
    never been."""
    data = reviews(folder / "r.csv", 120)
    codes = simultaneous(data, folder / "run", count)
    assert sorted(codes) == [0, *[2] * (count - 1)]
    winner = codes.index(0)
    for k in range(count):
        output = (folder / f"run-{k}.txt").read_text()
        refusals = (
            f"RunError: {folder / 'run'} is in use by process ",
            "setting differs from this",
        )
        assert k == winner or any(refusal in output for refusal in refusals), output
    with pytest.raises(SystemExit):
        cli.main([*words(data, folder / "alone", winner), "--quiet"])
    run, alone = digests(folder / "run"), digests(folder / "alone")
    for clocked in ("timing.jsonl", "card.md"):  # which has the folder's name
        del run[clocked], alone[clocked]
    assert run == alone
    with pytest.raises(SystemExit):
        cli.main(["evaluate", str(folder / "run")])
    assert complaints(folder / "run") == []


def test_of_commands_with_different_settings_one_wins(tmp_path: Path) -> None:
    check_simultaneous_starts(tmp_path, STARTS)


@pytest.mark.slow
def test_of_fifty_commands_with_different_settings_one_wins(tmp_path: Path) -> None:
    check_simultaneous_starts(tmp_path, 50)


def refusals_at(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[str]:
    """The refusals of another process that tries to take the lock when a function is called."""
    messages, real = [], getattr(module, name)

    def called(*arguments: Any, **named: Any) -> Any:
        messages.append(refused(lambda: RunFolder("run").locked().__enter__()))
        return real(*arguments, **named)

    monkeypatch.setattr(module, name, called)
    return messages


@pytest.mark.parametrize(
    "step", ["read_parts", "settle", "data_facts", "write_model", "write_card"]
)
def test_the_lock_is_held_from_the_configuration_to_the_card(
    step: str, ensue: Ensue, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        refusals = refusals_at(patch, train, step)
        assert ensue(*words(Path("r.csv"), Path("run"), 0), "--quiet")[0] == 0
    assert refusals == [
        f"run is in use by process {os.getpid()} on {os.uname().nodename}. Wait for it, stop it, "
        "or name another run folder"
    ]
    with RunFolder("run").locked():
        assert ensue("train", "--run", "run")[2].startswith("RunError: run is in use by process ")


def test_a_refused_command_changes_nothing(ensue: Ensue, tmp_path: Path) -> None:
    command = words(Path("r.csv"), Path("run"), 0)
    assert ensue("init", *command[1:])[0] == 0
    with RunFolder("run").locked():
        before = digests(tmp_path)
        for verb in ("init", "train"):
            assert ensue(verb, *words(Path("r.csv"), Path("run"), 1)[1:])[0] == 2
        assert digests(tmp_path) == before


def test_fitting_in_python_holds_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(f"a {'good' if k % 2 else 'bad'} film", str(k % 2)) for k in range(40)]
    monkeypatch.chdir(tmp_path)
    from ensue.tasks import model

    refusals = refusals_at(monkeypatch, model, "write_finished")
    Classifier(model={"hidden_size": 4, "embedding_size": 4}, train={"epochs": 1}).fit(
        rows, folder="run"
    )
    assert len(refusals) == 1


# --- what is made for the lock alone -----------------------------------------------------------


def test_a_folder_in_which_nothing_was_written_is_as_before(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes.txt").write_text("of the user")
    for place in (tmp_path / "new" / "deep", mine):
        with RunFolder(place).locked():
            assert (place / "lock").exists()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["mine", "notes.txt"]
    with RunFolder(mine).locked():
        (mine / "config.toml").write_text("")
    assert (mine / "lock").read_bytes() == b""


def test_a_lock_whose_file_was_removed_by_its_last_holder_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has removed the folder that it had made, between our opening and locking."""
    real, file_numbers = run_folder.open_plain, []

    def opened(path: Path, flags: int) -> Any:
        file = real(path, flags)
        if not file_numbers:
            path.unlink()
        file_numbers.append(file.fileno())
        return file

    monkeypatch.setattr(run_folder, "open_plain", opened)
    folder = RunFolder(tmp_path / "run")
    with folder.locked():
        assert len(file_numbers) == 2
        with pytest.raises(RunError, match="is in use by process"), RunFolder(folder.path).locked():
            pass


def test_folders_that_come_and_go_hinder_nobody(tmp_path: Path) -> None:
    """Starts that fail remove the folder that they made while others take it."""
    lock, wrong = threading.Lock(), list[BaseException]()

    def start() -> None:
        for _ in range(100):
            try:
                with RunFolder(tmp_path / "run").locked():
                    assert lock.acquire(blocking=False)
                    lock.release()
            except RunError as error:
                if "is in use by" not in str(error):
                    wrong.append(error)
            except BaseException as error:
                wrong.append(error)

    threads = [threading.Thread(target=start) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


GOING = [
    FileNotFoundError(2, "No such file or directory"),  # its parent was removed before it was made
    FileExistsError(17, "File exists"),  # it was there, and was removed before it was looked at
]


@pytest.mark.parametrize("going", GOING, ids=lambda error: type(error).__name__)
def test_a_folder_that_goes_while_it_is_made_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, going: OSError
) -> None:
    """Both were seen in busy runs of the test above."""
    mkdir, gone = Path.mkdir, [True]

    def removed_once(self: Path, *arguments: Any, **more: Any) -> None:
        if gone:
            gone.pop()
            raise going
        mkdir(self, *arguments, **more)

    monkeypatch.setattr(Path, "mkdir", removed_once)
    with RunFolder(tmp_path / "run").locked():
        assert (tmp_path / "run").is_dir()
    gone += [True] * run_folder.TRIES
    with (
        pytest.raises(RunError, match=f"run: cannot be made a run folder: {going.strerror}"),
        RunFolder(tmp_path / "other" / "run").locked(),
    ):
        pass
