"""Formats of other versions are refused in one message, and nothing in the folder is changed."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Ensue, commands_in
from sealed import flipped
from toy_runs import CASES, stopped_run, toy_run

from ensue import Classifier, Run, load, select
from ensue.errors import RunError
from ensue.files.atomic_folder import MANIFEST, canonical, sealed, with_manifest
from ensue.files.format import COMMITS, FORMAT, VERSIONS
from ensue.files.run_folder import RunFolder
from ensue.runs.run import list_runs
from ensue.tasks import TASKS
from ensue.training import checkpoint

HERE = Path(__file__).parent
COLUMNS = ("--text", "text", "--label", "label")
NEXT = f"ensue train data.csv --task classify {' '.join(COLUMNS)} --run 'old run-2'"
# Versions as they wrote a run: the format of a model, of a checkpoint, and of the other files.
WROTE = {"0.1.0": (1, 1, 1), "0.2.0": (2, 1, 1)}


def reformatted(place: Path, number: Any, version: str) -> None:
    """Makes a folder with a manifest one of another version; its digests are right."""
    files = {path.name: path.read_bytes() for path in place.iterdir() if path.name != MANIFEST}
    facts = json.loads((place / MANIFEST).read_bytes())
    recorded = {
        key: entry for key, entry in facts.items() if key not in ("files", "sha256", "ensue")
    }
    if "model.json" in files:
        model = json.loads(files["model.json"])
        files["model.json"] = canonical({**model, "format": number, "ensue": version})
    else:
        recorded["ensue"] = version  # of models, model.json has it
    for name, data in with_manifest(files, {**recorded, "format": number}).items():
        (place / name).write_bytes(data)


def resealed(path: Path, number: Any) -> None:
    """A JSON file of another format, with the digest that belongs to it."""
    facts = json.loads(path.read_bytes())
    del facts["sha256"]
    path.write_bytes(sealed({**facts, "format": number}, sort=False))


def written_by(version: str, run: Path) -> Path:
    """A run as this version wrote it."""
    model, step, beside = WROTE[version]
    for place in run.rglob(MANIFEST):
        number = step if place.parent.name.startswith("step-") else model
        reformatted(place.parent, number, version)
    for name in ("training.json", "evaluation.json"):
        if (run / name).exists():
            resealed(run / name, beside)
    return run


def content(folder: Path) -> dict[str, bytes | None]:
    """Every file and folder below, with what the files hold."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def message_of(version: str, number: int, name: str = "old run", command: str = NEXT) -> str:
    return (
        f"{name}: Ensue {version} wrote this, in format {number}; this version reads format "
        f"{FORMAT}. Nothing was changed.\n"
        f"To use it as it is, in your clone of Ensue: git worktree add ../ensue-{version} "
        f"{COMMITS[version]} && make -C ../ensue-{version} demo ARGS=--help; the command is then "
        f"../ensue-{version}/.venv/bin/ensue\n"
        f"To train it again with this version: {command}"
    )


def without_settings(message: object) -> str:
    """The message with a command that has no --set: a law of its own has these."""
    return re.sub(r" --set (?:'[^']*'|\S+)", "", str(message))


def settings_line(config: str) -> str:
    return f"\nAdd the settings that you chose yourself with --set; {config} has them."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The data and a finished run of this version, `old run`."""
    shutil.copytree(toy_run("classify-words"), tmp_path / "case")
    (tmp_path / "case" / "run").rename(tmp_path / "case" / "old run")
    return tmp_path / "case"


@pytest.fixture
def ensue(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    return commands_in(folder, capsys, monkeypatch)


VERBS = {
    "train": ["train", "--run", "old run"],
    "train files": ["train", "data.csv", *COLUMNS, "--run", "old run"],
    "init": ["init", "data.csv", *COLUMNS, "--run", "old run"],
    "dry run": ["train", "--run", "old run", "--dry-run"],
    "evaluate": ["evaluate", "old run"],
    "evaluate with an option": ["evaluate", "old run", "--threshold", "good=0.5"],
    "validation": ["evaluate", "old run", "--validation"],
    "predict": ["predict", "old run", "input.csv"],
    "best so far": ["predict", "old run", "input.csv", "--best-so-far"],
    "explain": ["explain", "old run", "--text", "a fine cat"],
    "export": ["export", "old run", "model.onnx"],
    "flow": ["flow", "old run"],
    "compare": ["compare", "old run", "other"],
    "base": ["train", "data.csv", *COLUMNS, "--base", "old run", "--run", "new"],
    "study": ["study", "labels", "old run"],
}


@pytest.mark.parametrize("version", WROTE)
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_refuses_a_run_of_an_older_version(
    verb: str, version: str, folder: Path, ensue: Ensue
) -> None:
    shutil.copytree(folder / "old run", folder / "other")
    written_by(version, folder / "old run")
    before = content(folder)
    code, out, err = ensue(*VERBS[verb])
    assert (code, out) == (2, "")
    message = message_of(version, WROTE[version][0])
    assert f"RunError: {message}\n" in without_settings(err).replace(
        f"{folder}/", ""
    )  # a base is named in full
    assert content(folder) == before


@pytest.mark.parametrize("version", WROTE)
def test_a_list_of_runs_names_the_older_one_in_a_line(
    version: str, folder: Path, ensue: Ensue
) -> None:
    shutil.copytree(folder / "old run", folder / "other")
    written_by(version, folder / "old run")
    before = content(folder)
    line = message_of(version, WROTE[version][0]).partition("\n")[0]
    runs = list_runs(folder)
    assert [run.name for run in runs.runs] == ["other"]
    assert runs.broken == [f"{folder}/{line}"]
    code, out, err = ensue("runs")
    assert (code, "other" in out) == (0, True)
    assert line in err
    assert content(folder) == before


PYTHON: dict[str, Callable[[], object]] = {
    "load": lambda: load("old run"),
    "load its model": lambda: load("old run/model"),
    "load by class": lambda: Classifier.load("old run"),
    "settings": lambda: Run("old run").settings,
    "summary": lambda: Run("old run").summary(),
    "evaluation": lambda: Run("old run").evaluation(),
    "evaluate": lambda: Run("old run").evaluate(),
    "compare": lambda: Run("old run").compare("other"),
    "fit": lambda: Classifier().fit([("a", "x"), ("b", "y")] * 9, folder="old run"),
}


@pytest.mark.parametrize("version", WROTE)
@pytest.mark.parametrize("call", PYTHON)
def test_python_refuses_a_run_of_an_older_version(
    call: str, version: str, folder: Path, ensue: Ensue
) -> None:
    shutil.copytree(folder / "old run", folder / "other")
    written_by(version, folder / "old run")
    before = content(folder)
    with pytest.raises(RunError) as caught:
        PYTHON[call]()
    assert without_settings(caught.value) == message_of(version, WROTE[version][0])
    assert content(folder) == before


@pytest.mark.parametrize("version", WROTE)
def test_a_stopped_run_of_an_older_version_is_not_begun_anew(
    version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    """Its checkpoints are not damaged, and stay where they are."""
    shutil.copytree(stopped_run("classify-words"), tmp_path / "case")
    run = written_by(version, tmp_path / "case" / "stopped")
    ensue = commands_in(tmp_path / "case", capsys, monkeypatch)
    for learned in (True, False):
        if not learned:
            shutil.rmtree(run / "learned")
        number = WROTE[version][0 if learned else 1]
        command = NEXT.replace("'old run-2'", "stopped-2")
        before = content(tmp_path)
        for words in (["train", "--run", "stopped"], ["predict", "stopped", "--best-so-far"]):
            code, _, err = ensue(*words)
            message = message_of(version, number, "stopped", command)
            assert (code, without_settings(err)) == (2, f"RunError: {message}\n")
        assert content(tmp_path) == before
    step = max(run.glob("checkpoints/step-*"))
    with pytest.raises(RunError, match=f"Ensue {version} wrote this, in format 1"):
        checkpoint.newest(step.parent, lambda line: None)
    assert content(tmp_path) == before


def test_a_model_that_was_saved_alone_names_its_task(folder: Path, ensue: Ensue) -> None:
    load("old run").save("a model")
    reformatted(folder / "a model", 2, "0.2.0")
    before = content(folder)
    with pytest.raises(RunError) as caught:
        load("a model")
    command = "ensue train FILES --task classify --run 'a model-2'"
    assert str(caught.value) == message_of("0.2.0", 2, "a model", command)
    assert content(folder) == before


def test_rows_in_memory_are_not_written_beside_an_older_selection(
    folder: Path, ensue: Ensue
) -> None:
    place = folder / "chosen"
    place.mkdir()
    (place / "selection.json").write_bytes(canonical({"format": 1}))
    (folder / "old run").rename(place / "trial-000")
    written_by("0.2.0", place / "trial-000")
    before = content(folder)
    with pytest.raises(RunError) as caught:
        select([("a", "x"), ("b", "y")] * 9, folder="chosen", task="classify")
    command = NEXT.replace("train data", "select chosen/data").replace("'old run-2'", "chosen-2")
    message = message_of("0.2.0", 1, "chosen", command)  # as the trials have recorded
    assert str(caught.value) == message + settings_line("chosen/trial-000/config.toml")
    assert content(folder) == before


@pytest.mark.parametrize("task", sorted(TASKS))
def test_the_command_trains_the_same_with_the_same_settings(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    for name in (name for name in CASES if name.partition("-")[0] == task):
        shutil.copytree(toy_run(name), tmp_path / name)
        ensue = commands_in(tmp_path / name, capsys, monkeypatch)
        written_by("0.2.0", Path("run"))
        words = ensue("predict", "run")[2].split("this version: ")[1].partition("\n")[0]
        _, *words_advised = shlex.split(words)
        assert words_advised[-2:] == ["--run", "run-2"]
        code, out, err = ensue(*words_advised, "--dry-run")
        assert code == 0, err
        was, now = tomllib.loads(Path("run/config.toml").read_text()), tomllib.loads(out)
        paths = ("train", "validation", "test")
        for part in paths:
            names = [[Path(path).name for path in each["data"].pop(part)] for each in (was, now)]
            assert names[0] == names[1]
        assert {**now, "model": None} == {**was, "model": None}
        for key, value in was["model"].items():
            assert (key, now["model"][key]) == (key, value), name


def test_settings_that_are_gone_and_files_to_run_are_named_alone(
    folder: Path, ensue: Ensue
) -> None:
    """A folder names no file that a pasted command would run."""
    config = folder / "old run" / "config.toml"
    tables = tomllib.loads(config.read_text())
    changes = {"cell": "evil.py:Cell", "width": 7, "hidden_size": 9}
    model = {**tables.pop("model"), **changes}
    lines = ["members = 3", f"task = {json.dumps(tables.pop('task'))}"]
    for name, table in {**tables, "model": model, "base": {"path": ["lm"]}}.items():
        if isinstance(table, dict):
            lines += [
                f"[{name}]",
                *(f"{key} = {json.dumps(entry)}" for key, entry in table.items()),
            ]
    written_by("0.2.0", folder / "old run")
    config.write_text("\n".join(lines))
    _, _, err = ensue("predict", "old run", "input.csv")
    assert "--set members=3" in err
    assert "--set model.hidden_size=9" in err
    assert "evil.py" not in err
    left_out = "model.cell, model.width, base.path; old run/config.toml has them."
    assert err.endswith(f"Not in this command: {left_out}\n")


@pytest.mark.parametrize("version", VERSIONS.values())
def test_the_commit_of_a_version_is_one_of_it(version: str) -> None:
    commit = f"{COMMITS[version]}:src/ensue/__init__.py"
    done = subprocess.run(["git", "show", commit], cwd=HERE, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("no history of git")
    assert f'__version__ = "{version}"' in done.stdout


def test_the_model_of_a_run_is_loaded_by_its_own_folder_too(folder: Path) -> None:
    """It has a copy of config.toml, and was taken for a run."""
    texts = ["a fine cat", "a grim dog"]
    alone = load(folder / "old run" / "model")
    assert alone.predict(texts) == load(folder / "old run").predict(texts)


# --- single files, other numbers ---------------------------------------------------------------


@pytest.mark.parametrize("number", [*VERSIONS, FORMAT + 1])
@pytest.mark.parametrize(
    ("name", "verb"),
    [
        ("training.json", ["runs"]),
        ("evaluation.json", ["runs"]),
        ("evaluation.json", ["evaluate", "old run", "--validation"]),
        ("data.json", ["train", "--run", "old run"]),
    ],
)
def test_a_file_of_another_format_is_refused(
    name: str, verb: list[str], number: int, folder: Path, ensue: Ensue
) -> None:
    path = folder / "old run" / name
    resealed(path, number)
    if name == "data.json":
        model = folder / "old run" / "model"
        shutil.copy(path, model / name)
        reformatted(model, FORMAT, "0.3.0")
    before = path.read_bytes()
    err = ensue(*verb)[2]
    line = "a newer Ensue wrote this" if number > FORMAT else f"wrote this, in format {number};"
    assert line in err
    assert path.read_bytes() == before


@pytest.mark.parametrize("place", ["model", "checkpoints"])
def test_a_newer_format_says_to_upgrade(place: str, folder: Path, ensue: Ensue) -> None:
    run = folder / "old run"
    named = run / place if place == "model" else max((run / place).glob("step-*"))
    reformatted(named, FORMAT + 1, "9.0")
    (named / "of later versions").mkdir()  # whose layout is not known yet
    before = content(folder)
    message = (
        f"RunError: {named.relative_to(folder)}: a newer Ensue wrote this, in format {FORMAT + 1}; "
        f"this version reads format {FORMAT}. Nothing was changed.\n"
        "Next: git pull, in your clone of Ensue\n"
    )
    for verb in ("train", "evaluate", "predict", "export", "explain"):
        assert ensue(*VERBS[verb])[::2] == (2, message)
    assert content(folder) == before


@pytest.mark.parametrize("number", [None, True, 0, -1, 2.0, "3", [3]])
def test_a_number_that_is_no_format_is_no_version(number: Any, folder: Path) -> None:
    reformatted(folder / "old run" / "model", number, "0.2.0")
    with pytest.raises(RunError, match=r"not a whole model: format: expected 3, got "):
        load(folder / "old run")


def test_a_damaged_manifest_is_damage_and_no_other_version(folder: Path) -> None:
    """A flipped bit makes 3 a 2."""
    manifest = folder / "old run" / "model" / MANIFEST
    data = manifest.read_bytes()
    at = data.index(b'"format": 3') + len(b'"format": ')
    flipped(manifest, at, 0)
    assert b'"format": 2' in manifest.read_bytes()
    with pytest.raises(RunError, match=r"manifest.json differs from what Ensue wrote"):
        load(folder / "old run")


@pytest.mark.parametrize("kind", ["no TOML", "no table", "no files", "none"])
def test_without_a_configuration_the_files_are_left_open(kind: str, folder: Path) -> None:
    config = folder / "old run" / "config.toml"
    tables = {"no TOML": "[", "no table": 'task = "classify"\ndata = 1', "no files": "[data]"}
    written_by("0.2.0", folder / "old run")
    config.write_text(tables.get(kind, ""))
    with pytest.raises(RunError) as caught:
        RunFolder(folder / "old run").check_weights()
    assert "this version: ensue train FILES" in str(caught.value)
    assert "--set" not in str(caught.value)


def test_a_strange_version_is_never_part_of_a_command(folder: Path) -> None:
    written_by("0.2.0", folder / "old run")
    reformatted(folder / "old run" / "model", 2, "1'; rm -rf ~; '")
    with pytest.raises(RunError) as caught:
        load(folder / "old run")
    assert "rm -rf" not in str(caught.value)
    assert f"git worktree add ../ensue-0.2.0 {COMMITS['0.2.0']}" in str(caught.value)
