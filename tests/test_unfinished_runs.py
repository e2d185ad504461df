"""Runs that were stopped, that failed, or that still continue: what is left, and the messages."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import Ensue, commands_in
from reviews import SMALL, refused, reviews

from ensue import Classifier, Run, load
from ensue.errors import TrainingError
from ensue.files.chain import present
from ensue.files.run_folder import RunFolder
from ensue.runs.load import Loading, open_run
from ensue.training import Update, checkpoint, loop

TRAIN = ["train", "r.csv", "--text", "review", "--label", "stars", "--run", "run"]
MORE = ["train.epochs=3", "train.rate=0.02", "train.checkpoint_updates=1"]
SET = [word for setting in (*SMALL, *MORE) for word in ("--set", setting)]


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    reviews(tmp_path / "r.csv")
    return commands_in(tmp_path, capsys, monkeypatch)


def at_update(number: int, do: Any, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Does something before the update of that number is made, until the patch is undone."""
    make = loop.Updates.make

    def made(self: Any, at: Any, rate: float) -> Update:
        if at.update + 1 == number:
            do()
        return make(self, at, rate)

    monkeypatch.setattr(loop.Updates, "make", made)
    return monkeypatch


def stopped(ensue: Ensue, monkeypatch: pytest.MonkeyPatch, *more: str) -> None:
    """The run, stopped in its second epoch."""
    with monkeypatch.context() as patch:
        at_update(4, lambda: signal.raise_signal(signal.SIGTERM), patch)
        assert ensue(*TRAIN, *SET, "--quiet", *more)[0] == 128 + signal.SIGTERM


def fail() -> None:
    raise TrainingError("the cost is not finite\nand more lines")


# --- stopped ---------------------------------------------------------------------------------


def test_a_stopped_run_is_used_by_its_best_weights(
    ensue: Ensue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped(ensue, monkeypatch)
    message = (
        "RunError: run: this run is not finished; `ensue train --run run` resumes it. Its best "
        "weights so far are used by `ensue evaluate run --best-so-far`, `ensue predict run "
        "--best-so-far`, load('run', best_so_far=True)\n"
    )
    for verb in ("evaluate", "predict"):
        assert ensue(verb, "run") == (2, "", message)
    assert not (tmp_path / "test-openings.jsonl").exists()
    best = [row for row in Run("run").history() if row.get("best")][-1]
    scores = ", ".join(f"{name} {best['scores'][name]:.4f}" for name in sorted(best["scores"]))
    line = f"run: the best weights so far: update {best['update']}, {scores}. Calibration"
    code, out, err = ensue("evaluate", "run", "--best-so-far", "--validation", "--json")
    assert (code, err.startswith(line)) == (0, True)
    assert json.loads(out)["baselines"]["network alone"] == best["scores"]["accuracy"]
    code, out, err = ensue("predict", "run", "--best-so-far", stdin=b"a good film\n")
    assert (code, err.startswith(line), out.split("\t")[2]) == (0, True, "a good film\n")
    newest = present(RunFolder("run").checkpoints)[-1]
    weights = checkpoint.read(newest).tensors["best"]
    (network,) = load("run", best_so_far=True).networks
    assert all(torch.equal(tensor, weights[name]) for name, tensor in network.state_dict().items())
    assert Run("run").state == "stopped, epoch 2 of 3"
    assert "stopped, epoch 2 of 3" in ensue("runs")[1]


def test_whole_lines_cut_off_the_end_of_a_history_are_noticed(
    ensue: Ensue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best validation of a run that is not finished is read there, and the lines that are left
    follow one another."""
    stopped(ensue, monkeypatch)
    path = Path("run/history.jsonl")
    whole = path.read_bytes()
    *lines, _ = whole.splitlines(keepends=True)
    message = (
        f"run/history.jsonl: its first {len(whole):,} bytes have changed since the checkpoint was "
        f"written ({len(b''.join(lines)):,} bytes found). Restore the file, or start in another "
        "run folder"
    )
    path.write_bytes(b"".join(lines))
    assert message in ensue("runs")[2]
    for words in (["evaluate", "run", "--validation"], ["predict", "run"]):
        assert ensue(*words, "--best-so-far") == (2, "", f"RunError: {message}\n")
    for read in (
        lambda: Run("run").best,
        Run("run").history,
        lambda: load("run", best_so_far=True),
    ):
        assert refused(read) == message
    path.unlink()
    assert refused(Run("run").history).endswith("run folder")
    path.write_bytes(whole + b'{"row": "upda')  # a kill while a line was written
    assert Run("run").best is not None
    assert ensue("runs")[2] == ""


def test_a_run_that_was_evaluated_so_far_goes_on_to_the_same_end(
    ensue: Ensue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped(ensue, monkeypatch)
    assert ensue("evaluate", "run", "--best-so-far")[0] == 0
    assert ensue("train", "--run", "run", "--quiet")[0] == 0
    assert ensue(*TRAIN[:-1], "whole", *SET, "--quiet")[0] == 0
    for name in os.listdir("whole/model"):
        assert Path("run/model", name).read_bytes() == Path("whole/model", name).read_bytes()
    assert not Path("run/learned").exists()
    # what was evaluated then is no evaluation of this model
    assert Run("run").evaluation() is None
    assert "## Evaluation" not in Path("run/card.md").read_text()
    # and of a finished run, the best weights are those of its model
    code, _, err = ensue("evaluate", "run", "--best-so-far", "--validation")
    assert (code, err) == (0, "")


def test_an_ensemble_so_far_is_the_networks_that_have_been_begun(
    ensue: Ensue, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = iter(range(100))
    third = lambda: signal.raise_signal(signal.SIGTERM) if next(count) == 1 else None  # noqa: E731
    with monkeypatch.context() as patch:
        at_update(2, third, patch)
        code = ensue(*TRAIN, *SET, "--set", "members=3", "--quiet")[0]
    assert code == 128 + signal.SIGTERM
    opened = open_run(RunFolder("run"), Loading(best_so_far=True))
    assert len(opened.model.networks) == opened.model.members == 2
    assert opened.best is not None
    assert "of 2 of 3 networks" in opened.best.line()
    assert "not validated yet" in opened.best.line()
    assert Run("run").state == "stopped, epoch 1 of 3 of network 2 of 3"


def test_without_what_was_learned_beside_the_weights_there_is_no_model(
    ensue: Ensue, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped(ensue, monkeypatch)
    os.rename("run/learned", "learned")
    assert ensue("predict", "run", "--best-so-far")[2] == (
        "RunError: run: there are no best weights so far: expected learned/ next to the "
        "checkpoints, which is written when training begins. Next: `ensue train --run run`\n"
    )
    os.rename("learned", "run/learned")
    for place in present(RunFolder("run").checkpoints):
        (place / "state.json").unlink()
    assert ensue("predict", "run", "--best-so-far")[2] == (
        "RunError: run: there are no best weights so far: no whole checkpoint was found. Next: "
        "`ensue train --run run`\n"
    )
    before = sorted(path for path in Path("run").rglob("*"))
    assert ensue("predict", "run", "--best-so-far")[0] == 2
    assert sorted(path for path in Path("run").rglob("*")) == before


def test_a_run_that_goes_on_elsewhere_says_so(
    ensue: Ensue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped(ensue, monkeypatch)
    with RunFolder("run").locked():
        assert Run("run").state == "running, epoch 2 of 3"
        errors = ensue("evaluate", "run")[2]
        assert errors.startswith(f"RunError: run: it is being trained by process {os.getpid()} on ")
        assert "; wait for it. Its best weights so far are used by" in errors
        assert ensue("evaluate", "run", "--best-so-far")[0] == 0
    assert Run("run").state == "stopped, epoch 2 of 3"


# --- failed before anything was learned --------------------------------------------------------


def everything(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("update", [0, 1])
def test_a_new_folder_is_gone_where_nothing_was_learned(
    update: int, ensue: Ensue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0: the data cannot be learned from; 1: the first update fails."""
    if not update:
        (tmp_path / "r.csv").write_text("review,stars\n" + "good film,5\n" * 60)
    else:
        at_update(1, fail, monkeypatch)
    before = everything(tmp_path)
    code, _, err = ensue(*TRAIN[:-1], "new/deep/run", *SET)
    assert code == 2
    assert "Nothing was trained" not in err
    assert everything(tmp_path) == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("of the user")
    before = everything(tmp_path)
    assert ensue(*TRAIN[:-1], "mine", *SET)[0] == 2
    assert everything(tmp_path) == before


def test_a_folder_that_was_there_is_as_before_and_says_why(
    ensue: Ensue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ensue("init", *TRAIN[1:], *SET)[0] == 0
    before = everything(tmp_path)
    with monkeypatch.context() as patch:
        at_update(1, fail, patch)
        code, _, err = ensue(*TRAIN, *SET, "--set", "train.rate=0.5")
    assert code == 2
    assert err.endswith(
        "TrainingError: the cost is not finite\nand more lines\n"
        "Nothing was trained: run is unchanged.\n"
    )
    after = everything(tmp_path)
    assert after.pop(Path(tmp_path / "run" / "failure.json")) is not None
    assert after == before
    message = (
        "RunError: run: failed: the cost is not finite; nothing was trained. Fix this, then "
        "`ensue train --run run`\n"
    )
    for words in (["evaluate", "run"], ["predict", "run"], ["predict", "run", "--best-so-far"]):
        assert ensue(*words)[2] == message
    assert Run("run").state == "failed: the cost is not finite"
    assert ensue("train", "--run", "run", "--quiet")[0] == 0
    assert Run("run").state == "finished"


def test_fitting_in_python_leaves_no_folder_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(f"a {'good' if k % 2 else 'bad'} film", str(k % 2)) for k in range(40)]
    model = Classifier(model={"hidden_size": 4, "embedding_size": 4}, train={"epochs": 2})
    with monkeypatch.context() as patch:
        at_update(1, fail, patch)
        assert refused(lambda: model.fit(rows, folder=tmp_path / "run")).startswith("the cost")
    assert not (tmp_path / "run").exists()
    model.fit(rows, folder=tmp_path / "run")
    best = load(tmp_path / "run", best_so_far=True)
    assert best.predict(["a good film"])[0].label == model.predict(["a good film"])[0].label


# --- failed later ------------------------------------------------------------------------------


def test_a_later_failure_can_be_resumed(
    ensue: Ensue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        at_update(4, fail, patch)
        code, _, err = ensue(*TRAIN, *SET)
    assert code == 2
    assert err.endswith("\n`ensue train --run run` resumes the run.\n")
    assert ensue("evaluate", "run")[2].startswith(
        "RunError: run: failed: the cost is not finite; `ensue train --run run` resumes it. Its "
        "best weights so far are used by `ensue evaluate run --best-so-far`"
    )
    assert Run("run").state == "failed: the cost is not finite"
    assert ensue("evaluate", "run", "--best-so-far")[0] == 0
    # a command that is refused does not make a failure of it, nor unmake one
    other = [*SET, "--set", "model.hidden_size=5"]
    assert "1 setting differs" in ensue(*TRAIN, *other)[2]
    assert Run("run").state == "failed: the cost is not finite"
    assert ensue("train", "--run", "run", "--quiet")[0] == 0
    assert Run("run").state == "finished"
    assert ensue(*TRAIN, *other)[0] == 2
    assert Run("run").state == "finished"


def test_a_refused_resume_is_no_failure(ensue: Ensue, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped(ensue, monkeypatch)
    learned = Path("run/learned/vocabularies.json").read_bytes()
    reviews(Path("r.csv"), 90, first=7)
    assert "2 changes since this run began" in ensue("train", "--run", "run")[2]
    assert Run("run").state == "stopped, epoch 2 of 3"
    assert Path("run/learned/vocabularies.json").read_bytes() == learned


# --- what comes next ---------------------------------------------------------------------------


def test_the_next_command_is_one_that_works(ensue: Ensue, tmp_path: Path) -> None:
    what = "scores on unseen rows, and mistakes\n"
    assert ensue(*TRAIN, *SET)[2].endswith(f"Next: ensue evaluate run    {what}")
    reviews(tmp_path / "v.csv", 20, first=100)
    err = ensue(*TRAIN[:-1], "other", "--validation", "v.csv", *SET)[2]
    assert err.endswith(f"Next: ensue evaluate other --test FILE    {what}")
