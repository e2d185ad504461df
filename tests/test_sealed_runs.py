"""What decides a result is sealed: a file of a run that differs in one bit or was edited is named,
and never silently used."""

from __future__ import annotations

import random
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Ensue, commands_in
from reviews import SMALL, refused, reviews
from run_verbs import texts_to
from sealed import complaints, digests, files_of, flipped
from test_unfinished_runs import at_update

from ensue import Run, cli, load
from ensue.errors import RunError
from ensue.files.chain import add_line
from ensue.files.run_folder import RunFolder
from ensue.files.seal import CONFIG
from ensue.runs.load import load_run
from ensue.tasks.saved import read_model, write_model

FLIPS = 3  # of each file
OPENINGS = "test-openings.jsonl"
TRAIN = ["train", "r.csv", "--text", "review", "--label", "stars", "--quiet"]
SET = [word for setting in (*SMALL, "train.epochs=2") for word in ("--set", setting)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data and a finished run that was evaluated."""
    place = tmp_path_factory.mktemp("sealed")
    reviews(place / "r.csv", 120)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for words in ([*TRAIN, "--run", "a", *SET], ["evaluate", "a"]):
            with pytest.raises(SystemExit) as ending:
                cli.main(words)
            assert not ending.value.code
    return place


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "runs"))


@pytest.fixture
def ensue(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    capsys.readouterr()
    return commands_in(folder, capsys, monkeypatch)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


# --- every file ------------------------------------------------------------------------------


def test_a_run_as_it_was_written_is_said_nothing_of(folder: Path) -> None:
    before = digests(folder)
    assert complaints(folder / "a") == []
    assert digests(folder) == before


def test_no_flipped_bit_is_silent(folder: Path) -> None:
    draw, count = random.Random(1), 0
    for file in files_of(folder / "a"):
        whole = file.read_bytes()
        for _ in range(FLIPS):
            at, bit = draw.randrange(len(whole)), draw.randrange(8)
            flipped(file, at, bit)
            assert complaints(folder / "a"), f"{file.name}: bit {bit} of byte {at}"
            file.write_bytes(whole)
            count += 1
    assert count >= 12 * FLIPS


def test_every_flipped_bit_of_a_configuration_is_noticed(folder: Path) -> None:
    run, draw, messages = RunFolder(folder / "a"), random.Random(2), list[str]()
    whole = run.config.read_bytes()
    for _ in range(60):
        flipped(run.config, draw.randrange(len(whole)), draw.randrange(8))
        try:
            load_run(run, say=texts_to(messages.append))
        except RunError as error:
            messages.append(str(error))
        assert messages.pop().startswith(f"{run.config}: ")
        run.config.write_bytes(whole)


# --- edited by hand --------------------------------------------------------------------------


def test_another_split_is_listed_and_refused(folder: Path, ensue: Ensue) -> None:
    """Other rows would be tested on, among them those that were trained on."""
    edit(folder / "a" / CONFIG, "split_seed = 0", "split_seed = 4")
    before = digests(folder)
    for words in (["evaluate", "a"], ["evaluate", "a", "--validation"], ["predict", "a", "r.csv"]):
        code, out, err = ensue(*words)
        assert (code, out) == (2, "")
        assert err == (
            "RunError: a/config.toml: changed since the run began: data.split_seed: was 0, now 4\n"
            "Next: restore it from a/model/config.toml, or train with the new "
            "settings: `ensue train --run a --allow data.split_seed`, or in another run\n"
        )
    assert refused(lambda: load("a")).startswith("a/config.toml: changed since the run began")
    assert ensue("runs")[2].startswith("a/config.toml: changed since the run began: data.split_")
    assert digests(folder) == before
    shutil.copy("a/model/config.toml", "a/config.toml")
    assert ensue("evaluate", "a")[::2] == (0, "")


def test_a_comment_is_named_and_does_no_harm(folder: Path, ensue: Ensue) -> None:
    with (folder / "a" / CONFIG).open("a") as file:
        file.write("# chosen on Monday\n")
    message = "a/config.toml: edited since the run began; no setting differs\n"
    assert ensue("evaluate", "a")[::2] == (0, message)
    assert ensue("train", "--run", "a", "--quiet")[0] == 0
    assert ensue("evaluate", "a")[::2] == (0, "")
    assert "# chosen on Monday" in (folder / "a" / CONFIG).read_text()


def test_an_edit_is_taken_over_where_it_is_allowed(folder: Path, ensue: Ensue) -> None:
    edit(folder / "a" / CONFIG, "epochs = 2", "epochs = 3")
    code, _, err = ensue("train", "--run", "a")
    assert code == 2
    assert err == (
        "RunError: a/config.toml: 1 setting differs from the settings that the run began with\n"
        "  train.epochs: was 2, now 3\n"
        "Next: restore the file from a/model/config.toml; for the new ones name another "
        "folder, --run a-2, or resume with them: --allow train.epochs\n"
    )
    assert ensue("train", "--run", "a", "--allow", "train.epochs", "--quiet")[0] == 0
    assert ensue("evaluate", "a")[::2] == (0, "")
    assert max(row["epoch"] for row in Run("a").history()) == 3


def test_where_the_data_are_may_be_changed(folder: Path, ensue: Ensue) -> None:
    (folder / "data").mkdir()
    shutil.move("r.csv", "data/reviews.csv")
    edit(folder / "a" / CONFIG, "../r.csv", "../data/reviews.csv")
    assert "--allow data.train" in ensue("evaluate", "a")[2]
    assert ensue("train", "--run", "a", "--allow", "data.train", "--quiet")[0] == 0
    assert ensue("evaluate", "a")[::2] == (0, "")


def test_the_command_that_began_a_run_undoes_an_edit(folder: Path, ensue: Ensue) -> None:
    before = (folder / "a" / CONFIG).read_bytes()
    for old, new in (("epochs = 2", "epochs = 3"), ("[train]", "[train")):
        edit(folder / "a" / CONFIG, old, new)
        code, _, err = ensue(*TRAIN, "--run", "a", *SET)
        assert (code, err) == (0, "a/config.toml: edited by hand; overwritten\n")
        assert (folder / "a" / CONFIG).read_bytes() == before


def test_what_was_not_learned_from_yet_may_be_edited(folder: Path, ensue: Ensue) -> None:
    assert ensue("init", *TRAIN[1:-1], "--run", "new", *SET)[0] == 0
    edit(folder / "new" / CONFIG, "epochs = 2", "epochs = 1")
    assert ensue("train", "--run", "new", "--quiet")[::2] == (0, "")
    assert max(row["epoch"] for row in Run("new").history()) == 1


def test_an_edit_while_a_run_is_at_work_changes_nothing_and_is_noticed(
    folder: Path, ensue: Ensue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change() -> None:
        edit(folder / "b" / CONFIG, "split_seed = 0", "split_seed = 9")

    with monkeypatch.context() as patch:
        at_update(2, change, patch)
        code, _, err = ensue(*TRAIN, "--run", "b", *SET)
    assert code == 0
    assert err.startswith(
        "the run finished with its original settings, but the file was changed meanwhile. "
    )
    assert "data.split_seed: was 0, now 9\nNext: restore it from b/model/config.toml" in err
    assert digests(folder / "b" / "model") == digests(folder / "a" / "model")
    assert "data.split_seed" in ensue("evaluate", "b")[2]


def test_an_edit_of_a_stopped_run_is_listed_before_it_goes_on(
    folder: Path, ensue: Ensue, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        at_update(2, lambda: signal.raise_signal(signal.SIGTERM), patch)
        assert ensue(*TRAIN, "--run", "b", *SET)[0] == 128 + signal.SIGTERM
    reviews(folder / "t.csv", 20, first=500)
    edit(folder / "b" / CONFIG, "test = []", 'test = ["../t.csv"]')
    for words in (["train", "--run", "b"], ["evaluate", "b", "--best-so-far"]):
        code, _, err = ensue(*words)
        assert code == 2
        assert "data.test: was [], now ['" in err
        assert "from b/learned/config.toml" in err
    shutil.copy("b/learned/config.toml", "b/config.toml")
    assert ensue("train", "--run", "b", "--quiet")[::2] == (0, "")
    assert digests(folder / "b" / "model") == digests(folder / "a" / "model")


# --- files of another run --------------------------------------------------------------------


def test_files_of_another_run_are_refused(folder: Path, ensue: Ensue) -> None:
    other = [*SET, "--set", "data.split_seed=4", "--set", "train.rate=0.01"]
    assert ensue(*TRAIN, "--run", "b", *other)[0] == 0
    shutil.copytree("a", "c")
    shutil.copy("b/config.toml", "c/config.toml")
    errors = ensue("evaluate", "c")[2]
    assert errors.startswith("RunError: c/config.toml: 2 settings changed since the run began\n")
    shutil.copy("a/config.toml", "c/config.toml")
    (folder / "r2.csv").write_bytes((folder / "r.csv").read_bytes() + b"more,1,film 1\n")
    assert ensue("train", "r2.csv", *TRAIN[2:], "--run", "d", *SET)[0] == 0
    shutil.copy("d/data.json", "c/data.json")
    assert ensue("evaluate", "c")[2].startswith("RunError: c/data.json: changed since it was")
    Path("c/data.json").unlink()
    assert ensue("evaluate", "c")[::2] == (0, "")


def test_a_model_without_a_seal_is_refused(folder: Path, ensue: Ensue) -> None:
    model = folder / "a" / "model"
    write_model(model, replace(read_model(model), seal={}))
    assert ensue("evaluate", "a")[2].startswith(
        "RunError: a/config.toml: model/ has no seal for it, so changes cannot be detected"
    )


def test_data_facts_are_those_of_what_was_read(
    folder: Path, ensue: Ensue, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        at_update(2, lambda: reviews(folder / "r.csv", 90, first=3), patch)
        assert ensue(*TRAIN, "--run", "b", *SET)[0] == 0
    assert "r.csv: changed since b was trained on it" in ensue("evaluate", "b")[2]


# --- openings of the test part ---------------------------------------------------------------


def test_a_torn_line_of_openings_is_named_and_blocks_nobody(folder: Path, ensue: Ensue) -> None:
    place = folder / OPENINGS
    place.write_bytes(place.read_bytes() + b'{"test": "0123')
    for _ in range(2):
        code, out, err = ensue("evaluate", "a")
        assert (code, err) == (
            0,
            f"{place}:2: incomplete because the process was killed, and not counted\n",
        )
    assert "opened 3 times" in out
    assert ensue(*TRAIN, "--run", "b", *SET)[0] == 0
    assert ensue("evaluate", "b")[0] == 0


def test_openings_that_were_changed_or_removed_are_named(folder: Path, ensue: Ensue) -> None:
    place = folder / OPENINGS
    assert ensue("evaluate", "a")[::2] == (0, "")
    whole = place.read_bytes()
    for changed in (whole.replace(b'"a"', b'"b"', 1), whole.splitlines(keepends=True)[1]):
        place.write_bytes(changed)
        code, _, err = ensue("evaluate", "a")
        assert code == 0
        assert err.startswith(
            f"{place}:1: not as written: changed, or lines before it are missing; the count may be "
            "too low\n"
        )
    place.unlink()
    code, out, err = ensue("evaluate", "a")
    assert (code, err.count("\n")) == (0, 1)
    assert err.startswith(f"{place}: this run has opened this test part before, and the line")
    assert "opened once" in out
    assert ensue("evaluate", "a")[::2] == (0, "")


# --- reports ---------------------------------------------------------------------------------


def test_an_edited_card_is_named_and_kept(folder: Path, ensue: Ensue) -> None:
    card = folder / "a" / "card.md"
    edit(card, "- task: classify", "- task: classify, for the newsletter")
    message = "a/card.md: edited since it was written; what stands before '## Evaluation' is kept\n"
    assert ensue("evaluate", "a")[::2] == (0, message)
    assert ensue("evaluate", "a")[::2] == (0, "")
    assert "for the newsletter" in card.read_text()
    edit(card, "newsletter", "paper")
    message = "a/card.md: edited since it was written; overwritten\n"
    assert ensue("train", "--run", "a", "--quiet")[::2] == (0, message)


def test_a_history_that_was_replaced_is_named(folder: Path) -> None:
    path = folder / "a" / "history.jsonl"
    whole = path.read_bytes()
    path.unlink()
    add_line(path, {"row": "evaluation", "update": 1, "epoch": 1, "scores": {}, "best": True})
    assert refused(Run(folder / "a").history) == (
        f"{path}: changed since the training ended. Restore it"
    )
    path.write_bytes(whole.replace(b'"epoch": 2', b'"epoch": 3'))
    assert refused(Run(folder / "a").history).startswith(f"{path}:")
