"""What newcomers type first and Ensue cannot do: a line that says what to type instead."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from commands import Ensue, commands_in
from toy_runs import toy_run

from ensue.data.pictures.images import write_image


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    """In a folder with ads.csv, whose photos lie next to it."""
    draw, rows = np.random.default_rng(2), ["title,price,nothing,photo,sold"]
    for k in range(40):
        write_image(tmp_path / f"p{k}.png", draw.integers(0, 255, (16, 16)).astype(np.uint8))
        rows.append(f"a red chair number {k},{k / 7:.2f},,p{k}.png,{('yes', 'no')[k % 2]}")
    (tmp_path / "ads.csv").write_text("\n".join(rows))
    return commands_in(tmp_path, capsys, monkeypatch)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "--text title --columns price,price --label sold",
            "data.columns: expected each column once, got 'price' twice",
        ),
        (
            '--set data.columns=["price","price"] --image photo --label sold',
            "data.columns: expected each column once, got 'price' twice",
        ),
        ("--task image", "is read with --image COLUMN --label COLUMN without --task image"),
        (
            "--task image --image photo --label sold",
            "data.image: a table that names pictures is read by classify and regress; leave out "
            "--task image",
        ),
        (
            "--text title --label sold --task tagset",
            "a task of your own is imported first, in a script that then calls ensue.cli.main()",
        ),
        (
            "--task table --label sold --set model.target=rank",
            "got 'rank'; a target of your own is imported first, in a script that then calls "
            "ensue.cli.main()",
        ),
        (
            "--text nothing --text title --label sold --set data.skip_bad=false",
            "nothing: expected texts to learn words from, got none with a word in it",
        ),
    ],
)
def test_a_training_that_cannot_be(words: str, message: str, ensue: Ensue) -> None:
    code, _, err = ensue("train", "ads.csv", *words.split())
    assert code == 2
    assert message in err


def test_a_picture_is_no_table(ensue: Ensue) -> None:
    words = ("--image", "photo", "--label", "sold", "--epochs", "1", "--run", "photos")
    assert ensue("train", "ads.csv", *words)[0] == 0
    code, out, err = ensue("predict", "photos", "p3.png")
    assert (code, out) == (2, "")
    assert "p3.png: expected a table that names pictures, with the columns photo" in err
    line = json.dumps({"photo": "p3.png"}).encode()
    assert ensue("predict", "photos", stdin=line)[0] == 0


def test_a_check_says_of_an_empty_picture_what_a_training_says(
    tmp_path: Path, ensue: Ensue
) -> None:
    lines = (tmp_path / "ads.csv").read_text().replace(",p7.png,", ",,")
    (tmp_path / "ads.csv").write_text(lines)
    words = ("ads.csv", "--image", "photo", "--columns", "price", "--label", "sold")
    for verb in (("data", "check"), ("train",)):
        code, out, err = ensue(*verb, *words)
        assert code
        assert "photo: expected the name of a picture's file, got" in out + err


def test_a_picture_that_is_gone_is_no_table(tmp_path: Path, ensue: Ensue) -> None:
    for name in ("gone.csv", "shape.pgm"):
        (tmp_path / name).write_text("")
    for name, guess in (("gone.png", "check the name."), ("shape.png", "did you mean shape.pgm?")):
        assert f"{name}: no such file: {guess}" in ensue("train", name)[2]


def test_a_run_that_is_refused_is_a_run(tmp_path: Path, ensue: Ensue) -> None:
    shutil.copytree(toy_run("classify-words") / "run", tmp_path / "old")
    manifest = tmp_path / "old" / "model" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"format": 3', '"format": 9'))
    code, out, err = ensue("runs", ".")
    assert (code, out) == (0, "")
    assert err
