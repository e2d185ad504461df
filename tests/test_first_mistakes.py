"""What people do in their first hour, and what they are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Ensue, commands_in

SMALL = ("--set", "model.hidden_size=4", "--set", "model.embedding_size=4", "--epochs", "1")


@pytest.fixture
def ensue(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


def test_texts_alone_do_not_lose_their_first_words(ensue: Ensue, tmp_path: Path) -> None:
    lines = [f"{('good', 'bad')[k % 2]} the film number {k}" for k in range(60)]
    (tmp_path / "train.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "new.txt").write_text("the film was fine\na dull story\n")
    assert ensue("train", "train.txt", "--format", "labelled", "--run", "r", *SMALL)[0] == 0
    code, out, err = ensue("predict", "r", "new.txt")
    assert (code, out) == (2, "")
    assert "no labels of this model: 'the', 'a'" in err
    assert "--format text" in err
    code, out, _ = ensue("predict", "r", "new.txt", "--format", "text")
    assert (code, "the film was fine" in out) == (0, True)
    code, out, _ = ensue("predict", "r", "train.txt")
    assert (code, len(out.splitlines())) == (0, 60)
