"""Generating from a run whose cell is a Python file: only where that was allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import commands_in

CELL = """
from ensue.cells import Cell
from ensue.equations import Matrix, tanh

open("ran", "a").close()

class Mine(Cell):
    W, U = Matrix("x"), Matrix("h")

    def step(self, x, h):
        return 0.5 * h + 0.5 * tanh(self.W @ x + self.U @ h)
"""
SETTINGS = (
    "model.cell=mine.py:Mine model.hidden_size=4 model.embedding_size=4 model.layers=1 "
    "model.columns=2 train.epochs=1 text.min_count=1"
)


def test_generate_and_suggest_need_trust_for_a_cell_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ensue = commands_in(tmp_path, capsys, monkeypatch)
    (tmp_path / "mine.py").write_text(CELL)
    lines = [f"the {who} sees the {what}" for who in ("cat", "dog") for what in ("tree", "ball")]
    (tmp_path / "lines.txt").write_text("\n".join(lines * 20) + "\n")
    settings = [f"--set={setting}" for setting in SETTINGS.split()]
    code, _, err = ensue("train", "lines.txt", "--task", "language", "--run", "run", *settings)
    assert code == 0, err
    (tmp_path / "ran").unlink()
    for words in (["generate", "run", "--tokens", "3"], ["suggest", "run"]):
        code, _, err = ensue(*words, stdin=b"the \n")
        assert code == 2
        assert "--trust-cell" in err
        assert not (tmp_path / "ran").exists()
        code, out, err = ensue(*words, "--trust-cell", stdin=b"the \n")
        assert code == 0, err
        assert out.strip()
        (tmp_path / "ran").unlink()
