"""Runs whose data, folder or disk is not as it was: what is refused, and what is left alone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from reviews import SMALL, refused, reviews
from run_verbs import evaluate_run, predict_files
from typer.testing import CliRunner

from ensue import Classifier
from ensue.cli import app, load_commands
from ensue.runs.config import RunConfig
from ensue.runs.infer import infer
from ensue.runs.load import load_run
from ensue.runs.train import settle, train_run
from ensue.training import RunFolder

load_commands()


def begun(folder: Path, task: str = "classify", settings: list[str] | None = None) -> Any:
    """A run with a file to validate on: its configuration, its folder and that file."""
    train, validation = reviews(folder / "r.csv"), reviews(folder / "v.csv", 20, first=100)
    data = {"train": [str(train)], "validation": [str(validation)], "text": "review"}
    data |= {"label": "stars"} if task == "classify" else {}
    config = infer(data, task, settings or SMALL).config
    run = RunFolder(folder / "run")
    settle(run, config)
    return config, run, validation


LANGUAGE = [
    "model.family=recurrent", "model.hidden_size=4", "model.embedding_size=4", "train.epochs=1",
    "model.columns=2", "model.steps=8",
]  # fmt: skip


@pytest.mark.parametrize(("task", "settings"), [("classify", SMALL), ("language", LANGUAGE)])
def test_another_validation_file_is_refused(tmp_path: Path, task: str, settings: list[str]) -> None:
    config, run, validation = begun(tmp_path, task, settings)
    train_run(config, run)
    train_run(config, run)
    lines = validation.read_text().splitlines()
    validation.write_text("\n".join(lines[:-1]) + "\n")
    message = refused(lambda: train_run(config, run)).splitlines()
    assert message[0] == f"{run.path}: 1 change since this run began"
    assert message[1].startswith('  validation: was "')
    assert message[2].endswith("or allow them by name: --allow validation")
    train_run(config, run, allow=["validation"])
    assert refused(lambda: train_run(config, run, allow=["validaton"])).startswith(
        "unknown name of what may have changed 'validaton': did you mean 'validation'?"
    )


def test_the_card_is_the_same_after_a_restart(tmp_path: Path) -> None:
    config, run, _ = begun(tmp_path)
    train_run(config, run)
    card = (run.path / "card.md").read_bytes()
    train_run(config, run)
    assert (run.path / "card.md").read_bytes() == card


def test_reading_a_run_writes_nothing_into_it(tmp_path: Path) -> None:
    """So that a finished run can be used where it cannot be written to; an evaluation adds its
    files, and changes none of the others."""
    config, run, validation = begun(tmp_path)
    train_run(config, run)
    before = files_of(run)
    _, model = load_run(run)
    assert len(list(predict_files(model, config, [str(validation)]))) == 20
    assert files_of(run) == before
    evaluate_run(run, [], "validation")
    evaluate_run(run, [str(validation)])
    new = {entry for entry in files_of(run) if entry not in before}
    assert {path.relative_to(run.path).parts[0] for path, *_ in new} == {
        "card.md",
        "evaluation.json",
        "evaluation-rows",
    }


def files_of(run: RunFolder) -> set[tuple[Path, int, int]]:
    files = [path for path in run.path.rglob("*") if path.is_file()]
    return {(path, path.stat().st_mtime_ns, path.stat().st_ino) for path in files}


def test_a_record_of_openings_that_cannot_be_written_speaks_of_no_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, run, validation = begun(tmp_path)
    train_run(config, run)
    (tmp_path / "test-openings.jsonl").mkdir()
    message = refused(lambda: evaluate_run(run, [str(validation)]))
    assert message.startswith(
        f"{tmp_path / 'test-openings.jsonl'}: expected a plain file, got a folder"
    )
    assert "checkpoints" not in message


def test_a_saved_model_destroys_nothing(tmp_path: Path) -> None:
    examples = [(f"a {'good' if k % 2 else 'bad'} film", str(k % 2)) for k in range(20)]
    settings = {"hidden_size": 4, "embedding_size": 4}
    model = Classifier(model=settings, train={"epochs": 1}).fit(examples)
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis.txt").write_text("years of work")
    for place, name in (
        (home, "a folder with other files (thesis.txt)"),
        (home / "thesis.txt", "a file"),
    ):
        assert refused(lambda place=place: model.save(place)) == (
            f"{place}: not saved: {name} already exists, and was left unchanged. Name a new "
            "folder, or move it away"
        )
    assert os.listdir(home) == ["thesis.txt"]
    assert (home / "thesis.txt").read_text() == "years of work"
    for _ in range(2):
        model.save(home / "model")
    (home / "model" / "network-1.safetensors").write_bytes(b"")
    model.save(home / "model")
    answers = Classifier.load(home / "model").predict(["a good film"])
    assert answers == model.predict(["a good film"])


def test_a_damaged_model_of_a_run_is_written_again(tmp_path: Path) -> None:
    config, run, _ = begun(tmp_path)
    train_run(config, run)
    (run.model / "manifest.json").write_bytes(b"")
    assert "this is not a whole model" in refused(lambda: load_run(run))
    train_run(config, run)
    load_run(run)
    shutil.rmtree(run.model)
    train_run(config, run)
    load_run(run)


def test_quiet_is_not_silent_on_what_went_wrong(tmp_path: Path) -> None:
    path = reviews(tmp_path / "r.csv", 60)
    with path.open("a") as file:
        file.write("no label\n")
    words = ["train", str(path), "--run", str(tmp_path / "run"), "--skip-bad", "--quiet"]
    words += [word for setting in SMALL for word in ("--set", setting)]
    first = CliRunner().invoke(app, words)
    assert first.exit_code == 0, first.stderr
    assert first.stderr == "1 bad row left out\n"
    for place in (tmp_path / "run" / "checkpoints").iterdir():
        (place / "state.json").unlink()
    again = CliRunner().invoke(app, words)
    lines = again.stderr.splitlines()
    assert lines[0] == "1 bad row left out"
    assert all("is damaged: state.json is missing" in line for line in lines[1:-1])
    assert lines[-1] == "no whole checkpoint is left: the training starts again"
    assert len(lines) >= 3
    assert again.stdout == first.stdout


def test_quiet_names_rows_that_cannot_be_validated_on(tmp_path: Path) -> None:
    train, validation = reviews(tmp_path / "r.csv"), reviews(tmp_path / "v.csv", 20, first=100)
    with validation.open("a") as file:
        file.write("a film,3,film 1\n")
    words = ["train", str(train), "--validation", str(validation), "--run", str(tmp_path / "run")]
    words += ["--quiet", *(word for setting in SMALL for word in ("--set", setting))]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.stderr
    assert result.stderr.startswith("1 row of the validation part left out, with labels")
    assert result.stderr.count("\n") == 1


# --- files that change during a run ----------------------------------------------------------

TEXT = [f"the {k % 7} cats see {k % 5} of the dogs" for k in range(200)]
NGRAMS = ["model.family=ngram", "model.order=2"]


def run_of(
    folder: Path, data: dict[str, Any], task: str, settings: list[str]
) -> tuple[RunConfig, RunFolder]:
    config, place = infer(data, task, settings).config, RunFolder(folder)
    settle(place, config)
    return config, place


def corpus(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_lines_that_moved_are_not_tested_on(tmp_path: Path) -> None:
    """The parts of a text are split by place: lines put in front move the others along."""
    path = corpus(tmp_path / "t.txt", TEXT)
    config, folder = run_of(tmp_path / "a", {"train": [str(path)]}, "language", NGRAMS)
    train_run(config, folder)
    evaluate_run(folder, [])
    corpus(path, [*(line.upper() for line in TEXT[:25]), *TEXT])
    for part in ("test", "validation"):
        assert refused(lambda part=part: evaluate_run(folder, [], part)) == (
            f"{path}: changed since {folder.path} was trained on it: parts are split by "
            "position, so rows that were trained on may now be in the test part. Restore "
            "the file, give others with --test, or train another run"
        )
    model = (folder.model / "model.json").read_bytes()
    assert refused(lambda: train_run(config, folder)) == (
        f"{path}: changed since {folder.path} was trained on it\nNext: name another run for "
        "the new data, restore the old data, or add --allow data"
    )
    assert (folder.model / "model.json").read_bytes() == model
    train_run(config, folder, allow=["data"])
    evaluate_run(folder, [])


def test_rows_split_by_their_hash_keep_their_parts(tmp_path: Path) -> None:
    path = reviews(tmp_path / "r.csv", 80)
    config, folder = run_of(tmp_path / "a", {"train": [str(path)]}, "classify", SMALL)
    train_run(config, folder)
    path.write_text(path.read_text() + "a film like no other,1,film 9\n")
    messages: list[str] = []
    evaluate_run(folder, [], say=messages.append)
    assert messages == [
        f"{path}: changed since {folder.path} was trained on it: rows keep their parts, but "
        "the files no longer have the same rows"
    ]


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    path = corpus(tmp_path / "t.txt", TEXT)
    config, folder = run_of(tmp_path / "a", {"train": [str(path)]}, "language", NGRAMS)
    train_run(config, folder)
    path.unlink()
    advice = "is missing: restore the file, or put it next to the run"
    for part, others in {"test": ", or give other rows with --test FILE", "validation": ""}.items():
        assert refused(lambda part=part: evaluate_run(folder, [], part)) == (
            f"{folder.path}: the rows of its {part} part are in {path}, which {advice}{others}"
        )
    evaluate_run(folder, [str(corpus(tmp_path / "other.txt", TEXT[:50]))])
    assert "no such file" in refused(lambda: evaluate_run(folder, [str(tmp_path / "none.txt")]))


def test_what_the_files_held_is_not_what_ensue_wrote(tmp_path: Path) -> None:
    path = corpus(tmp_path / "t.txt", TEXT)
    config, folder = run_of(tmp_path / "a", {"train": [str(path)]}, "language", NGRAMS)
    train_run(config, folder)
    (folder.path / "data.json").write_text("[]")
    assert refused(lambda: evaluate_run(folder, [])) == (
        f"{folder.data}: changed since it was written. Next: remove it; "
        f"{folder.model / 'data.json'} holds the original content"
    )
