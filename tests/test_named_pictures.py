"""Tables that name pictures: the column is recognised, and read as pictures rather than as text."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import Ensue, commands_in

from ensue import Classifier, Regressor
from ensue.data.pictures.images import write_image
from ensue.runs.config import RunConfig

QUICK = ("--epochs", "1", "--set", "train.device=cpu")
LABELS = {
    "width": lambda k: round(1.37 * (k % 7) + k / 97, 2),
    "kind": lambda k: ("wide", "narrow")[k % 2],
    "marks": lambda k: ("wide|dark", "narrow")[k % 2],
}


@pytest.fixture
def ensue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Ensue:
    return commands_in(tmp_path, capsys, monkeypatch)


def written(
    folder: Path, *columns: str, name: str = "q{}.png", **more: Any
) -> list[dict[str, Any]]:
    """A table of pictures and these columns, with the files next to it; more: other columns, by
    the number of the row."""
    draw, rows = np.random.default_rng(3), []
    for k in range(60):
        pixels = draw.integers(0, 60, (16, 16)).astype(np.uint8)
        write_image(folder / name.format(k), pixels)
        others = {other: cell(k) for other, cell in more.items()}
        rows.append(
            {"image": name.format(k), **others, **{column: LABELS[column](k) for column in columns}}
        )
    with (folder / "rows.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return rows


@pytest.mark.parametrize("name", ["q{}.png", "IMG_{:03}.PNG"])
@pytest.mark.parametrize(
    ("label", "words", "task"),
    [
        ("width", (), "regress"),
        ("kind", (), "classify"),
        ("marks", ("--separator", "|"), "classify"),
    ],
)
def test_a_column_that_names_pictures_is_read_as_pictures(
    label: str, words: tuple[str, ...], task: str, name: str, tmp_path: Path, ensue: Ensue
) -> None:
    written(tmp_path, label, name=name)
    code, _, err = ensue("train", "rows.csv", *words, *QUICK)
    assert code == 0, err
    assert "image: image (names of picture files)" in err
    config = RunConfig.read(tmp_path / "run" / "config.toml")
    assert (config.task, config.data.image, config.data.text) == (task, "image", "")
    assert config.data.label == label
    code, out, err = ensue("train", "rows.csv", *words, "--task", task, "--dry-run")
    assert (code, 'image = "image"' in out) == (0, True), err


def test_a_picture_has_its_label_beside_other_columns(tmp_path: Path, ensue: Ensue) -> None:
    written(tmp_path, "kind", id=lambda k: 1000 + k)
    code, out, err = ensue("train", "rows.csv", "--dry-run")
    assert code == 0, err
    assert 'image = "image"' in out
    assert "label: kind (2 different values)" in err
    assert "not used: id" in err


def test_names_without_files_are_texts(tmp_path: Path, ensue: Ensue) -> None:
    written(tmp_path, "kind")
    for file in tmp_path.glob("q*.png"):
        file.unlink()
    code, out, err = ensue("train", "rows.csv", "--dry-run")
    assert code == 0, err
    assert "image: image" not in err
    assert 'image = ""' in out


@pytest.mark.parametrize(
    "more",
    [
        {"story": lambda k: f"a long story about thing {k}"},
        {"price": lambda k: k / 7, "country": lambda k: "abc"[k % 3]},
    ],
)
def test_beside_other_inputs_a_note_says_how_pictures_are_read(
    more: dict[str, Any], tmp_path: Path, ensue: Ensue
) -> None:
    written(tmp_path, "kind", **more)
    _, out, err = ensue("train", "rows.csv", "--label", "kind", "--dry-run")
    assert "image names pictures; learn from them with --image image" in err
    assert 'image = "image"' not in out


def test_captions_are_still_captions(tmp_path: Path, ensue: Ensue) -> None:
    written(tmp_path, caption=lambda k: f"a dog and {k} cats")
    code, out, err = ensue("train", "rows.csv", "--dry-run")
    assert code == 0, err
    assert 'task = "caption"' in out


@pytest.mark.parametrize(("label", "model"), [("kind", Classifier), ("width", Regressor)])
def test_a_frame_that_names_pictures(
    label: str, model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = pd.DataFrame(written(tmp_path, label))
    fitted = model(train={"epochs": 1, "device": "cpu"}).fit(rows, label=label)
    assert fitted.roles == {"image": "image", "label": label}
    assert len(fitted.predict(rows)) == len(rows)
