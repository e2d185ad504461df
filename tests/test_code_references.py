"""A name in a saved file never decides which code runs: references to cells are inert, and only a
person's own words make the permission to load one."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from canary import Canary, Place, plant, strings_in
from commands import Ensue, commands_in
from test_transfer import SMALL as SMALL_LANGUAGE
from test_transfer import TEXT, reviews
from test_transfer_letters import LETTERS, OWN, SMALL, TAGGED, TEXTS

from ensue import Classifier, Labeller, LanguageModel, Recurrent, load
from ensue.cells.permission import CellPermission
from ensue.cells.reference import CellReference, as_reference
from ensue.errors import EnsueError
from ensue.tasks.ensembles.model import EnsembleModel

LETTER_CELL = Place("model.json", ("letter context", "settings", "cell"))
SMALL_TRAINING = [
    *("--set", "model.linear=alone", "--set", "model.batch_rows=8", "--epochs", "2"),
    *("--set", "text.level=words", "--set", "text.min_count=1"),
]


@pytest.fixture
def canary(tmp_path: Path) -> Canary:
    return Canary(tmp_path / "elsewhere")


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A labeller that reads its sentences with character language models, saved."""
    place = tmp_path_factory.mktemp("tagger")
    for way in ("forward", "backward"):
        settings = {**SMALL, "direction": way}
        letters = LanguageModel(text=LETTERS, model=settings, train={"epochs": 1, "device": "cpu"})
        letters.fit(TEXTS, TEXTS).save(place / way)
    Labeller(base=[place / "forward", place / "backward"], **OWN).fit(TAGGED, TAGGED[:8]).save(
        place / "tagger"
    )
    return place / "tagger"


def test_the_letter_context_of_a_labeller_runs_no_file(
    tagger: Path, tmp_path: Path, canary: Canary
) -> None:
    model = tmp_path / "model"
    shutil.copytree(tagger, model)
    assert LETTER_CELL in strings_in(model)
    plant(model, LETTER_CELL, canary.references[0])
    with pytest.raises(EnsueError, match=r"letter context.*built-in cell.*canary.py") as error:
        load(model).predict([TAGGED[0][0]])
    assert not canary.sang
    assert "Nothing was run" in str(error.value)


def test_the_copy_of_a_base_runs_no_file(tmp_path: Path, canary: Canary, ensue: Ensue) -> None:
    rows = reviews(32)
    texts = [text for text, _ in rows]
    quick: dict[str, Any] = {"epochs": 1, "device": "cpu"}
    LanguageModel(text=TEXT, model=SMALL_LANGUAGE, train=quick).fit(texts, texts).save(
        tmp_path / "lm"
    )
    lines = ["text,label", *(f"{text},{label}" for text, label in rows)]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    words = ["train", "rows.csv", "--base", "lm", "--run", "h", *SMALL_TRAINING]
    code, _, err = ensue(*words)
    assert code == 0, err
    shutil.copytree(tmp_path / "h" / "base", tmp_path / "base")
    shutil.rmtree(tmp_path / "h")
    (tmp_path / "h").mkdir()
    (tmp_path / "base").rename(tmp_path / "h" / "base")
    plant(tmp_path / "h" / "base", Place("model.json", ("settings", "cell")), canary.references[0])
    code, _, err = ensue(*words)
    assert not canary.sang
    assert code != 0
    assert "canary.py" in err
    assert "Nothing was run" in err


# --- who may load a Python file ---------------------------------------------------------------


def test_a_file_that_changed_since_it_was_allowed_does_not_run(canary: Canary) -> None:
    permission = CellPermission.named([str(canary.file)])
    canary.file.write_text(canary.file.read_text() + "# another digest\n")
    with pytest.raises(
        EnsueError, match=r"canary.py has changed.*expected sha256 \w{64}, got \w{64}"
    ):
        load_reference(canary, permission)
    assert not canary.sang


def digest_of(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()


def load_reference(canary: Canary, permission: CellPermission) -> object:
    reference = as_reference(canary.references[0])
    assert isinstance(reference, CellReference)
    return reference.loaded(permission)


def test_a_reference_is_inert_until_a_person_names_its_file(canary: Canary) -> None:
    reference = as_reference(canary.references[0])
    with pytest.raises(EnsueError, match=r"canary.py is named by a saved file.*Nothing was run"):
        Recurrent(reference, 2, 3)
    assert not canary.sang
    Recurrent(load_reference(canary, CellPermission.named([str(canary.file)])), 2, 3)
    assert canary.sang


def test_a_trusted_file_imports_no_module_next_to_it(canary: Canary) -> None:
    (canary.file.parent / "neighbour_of_a_canary.py").write_text("")
    canary.file.write_text("import neighbour_of_a_canary\n" + canary.file.read_text())
    trusted = CellPermission.trusted({str(canary.file): digest_of(canary.file)})
    with pytest.raises(EnsueError, match="No module named 'neighbour_of_a_canary'"):
        load_reference(canary, trusted)
    assert not canary.sang
    load_reference(canary, CellPermission.named([str(canary.file)]))
    assert canary.sang


def test_the_sha256_that_was_shown_is_the_one_that_runs(tmp_path: Path, canary: Canary) -> None:
    small = {"cell": canary.references[0], "hidden_size": 3, "embedding_size": 3}
    rows = [("a b", "x"), ("c d", "y")] * 6
    Classifier(model=small, train={"epochs": 1}).fit(rows).save(tmp_path / "model")
    canary.mark.unlink()
    with pytest.raises(EnsueError, match="sha256") as refused:
        load(tmp_path / "model")
    digest = re.findall(r"sha256 (\w{64})", str(refused.value))[0]
    for other, message in (("0" * 64, "Nothing was run"), ("0" * 63, "expected the sha256 of a")):
        with pytest.raises(EnsueError, match=message):
            load(tmp_path / "model", trust=other)
    assert not canary.sang
    load(tmp_path / "model", trust=digest.upper())
    assert canary.sang


def own_run(folder: Path, canary: Canary, ensue: Ensue, run: str) -> None:
    """A finished run whose cell is the canary, after which the canary has not sung."""
    lines = ["text,label", *(f"{text},{label}" for text, label in reviews(40))]
    (folder / "rows.csv").write_text("\n".join(lines))
    sizes = ["--hidden-size", "4", "--set", "model.embedding_size=4"]
    named = ["--cell", canary.references[0], "--run", run]
    code, _, err = ensue("train", "rows.csv", *SMALL_TRAINING, *sizes, *named)
    assert code == 0, err
    canary.mark.unlink()


def test_trust_names_the_digests_that_a_command_showed(
    tmp_path: Path, canary: Canary, ensue: Ensue
) -> None:
    own_run(tmp_path, canary, ensue, "run")
    code, _, err = ensue("evaluate", "run")
    (advice,) = re.findall(r"to allow it: (--trust-cell=\w{64})", err)
    for wrong in ("--trust-cell=" + "0" * 64, "--trust-cell=no-digest"):
        assert ensue("evaluate", "run", wrong)[0] == 2
    assert not canary.sang
    for words in ([advice], advice.split("="), ["--trust-cell"]):
        canary.mark.unlink(missing_ok=True)
        code, _, err = ensue("evaluate", "run", *words)
        assert (code, canary.sang) == (0, True), err
        assert re.search(r"running the cell Canary of run/model/cell.py .*sha256 \w{64}", err)


def test_an_ensemble_shows_every_file_before_one_runs(tmp_path: Path, canary: Canary) -> None:
    other = Canary(tmp_path / "another")
    other.file.write_text(other.file.read_text() + "# another digest\n")
    rows = [("a b", "x"), ("c d", "y")] * 6
    models = [
        Classifier(
            model={"cell": cell.references[0], "hidden_size": 3, "embedding_size": 3},
            train={"epochs": 1},
        ).fit(rows)
        for cell in (canary, other)
    ]
    EnsembleModel(models, [1, 1]).save(tmp_path / "both")
    for cell in (canary, other):
        cell.mark.unlink()
    with pytest.raises(EnsueError, match="2 cells of its own") as refused:
        load(tmp_path / "both")
    digests = re.findall(r"sha256 (\w{64})", str(refused.value))
    assert set(digests) == {digest_of(canary.file), digest_of(other.file)}
    with pytest.raises(EnsueError, match="Nothing was run"):
        load(tmp_path / "both", trust=digests[:1])
    assert not canary.sang
    assert not other.sang
    load(tmp_path / "both", trust=digests)
    assert canary.sang
    assert other.sang


def test_going_on_runs_the_file_that_the_run_was_trained_with(
    tmp_path: Path, canary: Canary, ensue: Ensue
) -> None:
    own_run(tmp_path, canary, ensue, "run")
    trained = digest_of(canary.file)
    canary.file.write_text(canary.file.read_text() + "# another digest\n")
    code, _, err = ensue("train", "--run", "run", "--trust-cell")
    assert (code, canary.sang) == (2, False)
    assert f"the run was trained with sha256 {trained}" in err
    assert f"--trust-cell={digest_of(canary.file)}" in err
    canary.file.unlink()
    code, _, err = ensue("train", "--run", "run", "--trust-cell")
    assert code == 2
    assert "model.cell: expected the file of its cell" in err


@pytest.mark.parametrize("lost", ["model/cell.py", "model", "a link"])
def test_bare_trust_needs_the_copy_that_the_run_keeps(
    lost: str, tmp_path: Path, canary: Canary, ensue: Ensue
) -> None:
    own_run(tmp_path, canary, ensue, "run")
    copy = tmp_path / "run" / "model" / "cell.py"
    for folder in ("model", "learned"):
        if lost == "model":
            shutil.rmtree(tmp_path / "run" / folder, ignore_errors=True)
        else:
            (tmp_path / "run" / folder / "cell.py").unlink(missing_ok=True)
    if lost == "a link":
        copy.symlink_to(canary.file)
    code, _, err = ensue("train", "--run", "run", "--trust-cell")
    assert (code, canary.sang) == (2, False), err
    assert "has no copy to compare it with" in err
    assert f"--trust-cell={digest_of(canary.file)}" in err


def test_what_a_refusal_says_to_paste_runs_no_words_of_the_folder(
    tmp_path: Path, canary: Canary, ensue: Ensue
) -> None:
    odd = tmp_path / "elsewhere" / "x;touch PASTED;.py"
    odd.write_text(canary.file.read_text())
    (tmp_path / "run").mkdir()
    for cell, is_file in ((f"{odd}:Canary", True), (f"{canary.file}:Canary;touch PASTED", False)):
        config = ["task = 'classify'", "[data]", "train = ['rows.csv']", "[model]"]
        (tmp_path / "run" / "config.toml").write_text("\n".join([*config, f"cell = '{cell}'"]))
        code, _, err = ensue("train", "--run", "run")
        assert (code, canary.sang) == (2, False)
        assert ("to allow them" in err) is is_file
        pasted = err.rpartition(": --set ")[2] if is_file else ""
        assert shlex.split(pasted) == [f"model.cell={cell}"] * is_file


@pytest.mark.parametrize("trust", [None, 1, [True], 3.5])
def test_trust_is_a_yes_or_digests(trust: Any, tmp_path: Path, canary: Canary) -> None:
    small = {"cell": canary.references[0], "hidden_size": 3, "embedding_size": 3}
    rows = [("a b", "x"), ("c d", "y")] * 6
    Classifier(model=small, train={"epochs": 1}).fit(rows).save(tmp_path / "model")
    canary.mark.unlink()
    with pytest.raises(EnsueError, match="trust: expected True, False, or the sha256"):
        load(tmp_path / "model", trust=trust)
    assert not canary.sang


def test_python_m_ensue_imports_nothing_from_the_current_folder(tmp_path: Path) -> None:
    for name in ("ensue", "typer", "torch"):
        (tmp_path / f"{name}.py").write_text("open('mark', 'w').close()")
    command = [sys.executable, "-m", "ensue", "--version"]
    (tmp_path / "ensue.py").unlink()  # that one Python itself takes before any of our lines
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "mark").exists()


def test_a_study_of_labels_runs_no_file_of_the_run(
    tmp_path: Path, canary: Canary, ensue: Ensue
) -> None:
    (tmp_path / "lm.safetensors").touch()
    (tmp_path / "run").mkdir()
    config = ["task = 'classify'", "[data]", "train = ['rows.csv']", "[model]"]
    config += [f"cell = '{canary.references[0]}'", "[base]", "path = ['lm.safetensors']"]
    (tmp_path / "run" / "config.toml").write_text("\n".join(config))
    code, _, err = ensue("study", "labels", "run")
    assert (code, canary.sang) == (2, False)
    assert "--trust-cell" in err


# --- the table in SECURITY.md -----------------------------------------------------------------

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "ensue"
RUN_IN = {
    "cells/load.py": "files under a permission",
    "cells/reference.py": "copies in a model folder that a person trusts",
    "cli/machine.py": "the benchmarks of the clone that this package runs from",
    "benchmarks/engine/loop.py": "the loop that the benchmark writes itself",
}


def grants(call: ast.Call) -> bool:
    """Whether a call makes a permission: CellPermission.named(…), Trust(True), load(trust=True)."""
    called = ast.unparse(call.func)
    filled = any(keyword.arg in (None, "files") for keyword in call.keywords)
    return (
        called in ("CellPermission.named", "CellPermission.trusted")
        or (called in ("CellPermission", "Trust") and bool(call.args or filled))
        or any(ast.unparse(keyword) == "trust=True" for keyword in call.keywords)
    )


def runs_code(call: ast.Call) -> bool:
    names = ("exec", "eval", "__import__", "run_path", "run_module", "spec_from_file_location")
    return ast.unparse(call.func).rpartition(".")[2] in names and bool(call.args)


def files_with(calls: Callable[[ast.Call], bool]) -> set[str]:
    paths = {path: path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")}
    paths |= {path: path.relative_to(ROOT) for path in (ROOT / "benchmarks/engine").rglob("*.py")}
    return {
        str(name)
        for path, name in paths.items()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and calls(node)
    }


def test_security_names_every_place_that_makes_a_permission() -> None:
    section = (ROOT / "SECURITY.md").read_text().partition("## When a Python file runs")[2]
    rows = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    made_in = {file for row in rows for file in re.findall(r"`([\w/]+\.py)`", row.split("|")[-2])}
    assert made_in == files_with(grants) - {"cells/permission.py"}


def test_code_runs_in_these_places_only() -> None:
    assert files_with(runs_code) == RUN_IN.keys()
