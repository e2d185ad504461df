"""A format, an optimiser, a schedule, a metric and an encoder are each added in one place: here in
a copy of the package, one text in one file each, and used by their names in one training."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from warm import Warm

Ensue = Callable[..., subprocess.CompletedProcess[str]]
PACKAGE = Path(__file__).resolve().parent.parent / "src" / "ensue"

# The file, a text in it, and what stands there afterwards.
ROWS = {
    "optimiser": (
        "training/optimiser.py",
        "OPTIMISERS = {",
        "OPTIMISERS = {\n"
        '    "added_optimiser": OptimiserKind(lambda g, s: torch.optim.RMSprop(g, lr=s.rate), 1),',
    ),
    "schedule": (
        "training/optimiser.py",
        '    "constant": ',
        '    "half": lambda at: 0.5,\n    "constant": ',
    ),
    "metric": (
        "metrics/table.py",
        '    Metric("macro_f1", True, _macro_f1),\n',
        '    Metric("macro_f1", True, _macro_f1),\n'
        '    Metric("mistakes", False, lambda own: float((own.gold != own.predicted).sum())),\n',
    ),
    "encoder": (
        "tasks/blocks/encoders.py",
        '    "plain": PlainEncoder,\n',
        '    "plain": PlainEncoder,\n    "added_encoder": PlainEncoder,\n',
    ),
}
FORMAT = '''
"""A text and its label on each line, with a bar between."""

from ensue.data.decode import lines
from ensue.data.rows import Place, Row

ENDINGS = (".bars",)


def read(path, options, tell):
    for number, line, _ in lines(path, options):
        text, _, label = line.partition("|")
        yield Row(Place(str(path), number), {"text": text, "label": label})
'''
SETTINGS = (
    "train.optimiser=added_optimiser train.schedule=half train.watch=mistakes train.epochs=2 "
    "train.rate=0.05 model.encoder=added_encoder model.embedding_size=4"
)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder to import Ensue from, with one more of everything."""
    package = tmp_path / "ensue"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for file, before, after in ROWS.values():
        text = (package / file).read_text("utf-8")
        assert text.count(before) == 1, f"{file}: {before!r}"
        (package / file).write_text(text.replace(before, after), "utf-8")
    (package / "data" / "formats" / "bars.py").write_text(FORMAT, "utf-8")
    return tmp_path


@pytest.fixture
def ensue(copy: Path, warm: Warm) -> Ensue:
    """Runs a command of the copy in its folder."""
    return lambda *words: warm.fresh(["-m", "ensue", *words], copy, {"PYTHONPATH": str(copy)})


def test_one_place_each_is_enough(copy: Path, ensue: Ensue) -> None:
    rows = [f"it is {word} {k}|{word}\n" for k in range(60) for word in ("good", "bad")]
    (copy / "data.bars").write_text("".join(rows))
    settings = [f"--set={setting}" for setting in SETTINGS.split()]
    trained = ensue("train", "data.bars", "--run", "run", "--quiet", *settings)
    assert trained.returncode == 0, trained.stderr
    assert "mistakes 0.0000" in trained.stdout
    rows_kept = [json.loads(line) for line in (copy / "run/history.jsonl").read_text().splitlines()]
    assert any(row.get("rate") == 0.025 for row in rows_kept)
    process = ensue("evaluate", "run", "--validation", "--json")
    evaluation = json.loads(process.stdout)
    assert evaluation["scores"]["accuracy"]["value"] == 1.0
    assert evaluation["others"]["mistakes"] == 0.0, "a metric is reported by being in the table"


def test_each_is_offered_by_its_name(copy: Path, ensue: Ensue) -> None:
    (copy / "data.txt").write_text("a\n")
    assert "bars" in ensue("data", "check", "--help").stdout
    errors = ensue("data", "check", "data.txt", "--format", "bras").stderr
    assert "did you mean 'bars'?" in errors
