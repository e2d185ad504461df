"""Words from a feature vector, or from a sequence of them; numbers from generated sequences."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import commands_in

from ensue import Translator
from ensue.errors import DataError, OptionError

SMALL = {"hidden_size": 24, "embedding_size": 16, "batch_rows": 16, "beam": 2}
WORDS = ("up", "down", "left")


def frames(count: int) -> list[tuple[np.ndarray, str]]:
    """Two or three frames for each word; the words in the order of the frames."""
    draw, rows = random.Random(1), []
    for _ in range(count):
        words = [draw.choice(WORDS) for _ in range(draw.randint(1, 2))]
        steps = [np.eye(3)[WORDS.index(w)] * 3 + draw.gauss(0, 0.1) for w in words for _ in "ab"]
        rows.append((np.array(steps, np.float32), " ".join(words)))
    return rows


@pytest.fixture(name="model", scope="module")
def _model() -> Translator:
    train = {"epochs": 25, "rate": 0.02, "patience": None}
    rows = frames(120)
    return Translator(model=SMALL | {"smoothing": 0.0}, train=train).fit(rows, rows[:20])


def test_frames_become_words(model: Translator, tmp_path: Path) -> None:
    rows = frames(20)
    answers = model.predict([steps for steps, _ in rows])
    right = sum(answer.text == words for answer, (_, words) in zip(answers, rows, strict=True))
    assert right >= 18
    model.save(tmp_path / "kept")
    again = Translator.load(tmp_path / "kept").predict([rows[0][0]])[0]
    assert again.text == answers[0].text
    assert answers[0].source == tuple(str(k + 1) for k in range(len(rows[0][0])))
    aligned = model.predict([rows[0][0]], alignment=True)[0]
    assert aligned.alignment is None or len(aligned.alignment[0]) == len(rows[0][0])


def test_vectors_are_scaled_so_that_units_do_not_matter(model: Translator) -> None:
    source = model.learned.source.encode(model.reader.questions([frames(1)[0][0]]))
    assert source.values.dtype == np.float32
    assert np.abs(source.values).max() < 5


def test_refusals(model: Translator) -> None:
    with pytest.raises(DataError, match="expected sequences of vectors with 3 numbers a step"):
        model.predict([np.zeros((2, 4), np.float32)])
    with pytest.raises(DataError, match="got text"):
        model.predict(["words"])
    with pytest.raises(OptionError, match="sources are vectors and have no words"):
        Translator(model=SMALL | {"shared": True}).fit(frames(20))
    texts = Translator(model=SMALL, train={"epochs": 1}).fit([("a b", "c")] * 20)
    with pytest.raises(DataError, match="expected text, as in training, got vectors"):
        texts.predict([np.zeros((2, 4), np.float32)])


def test_files_of_vectors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of numbers is one vector, a list of lists is a sequence of them."""
    ensue = commands_in(tmp_path, capsys, monkeypatch)
    draw = random.Random(2)
    for name, nested in (("one", False), ("many", True)):
        lines = []
        for _ in range(40):
            k = draw.randrange(3)
            vector = [draw.gauss(3 * (k == n), 0.1) for n in range(3)]
            value = [vector, vector] if nested else vector
            lines.append(json.dumps({"vector": value, "said": f"go {WORDS[k]} now please"}))
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
        words = ["--task", "translate", "--text", "vector", "--label", "said", "--run", name]
        small = [f"--set=model.{key}={value}" for key, value in SMALL.items()]
        code, _, err = ensue("train", f"{name}.jsonl", *words, *small, "--epochs", "1")
        assert code == 0, err
        assert ensue("evaluate", name)[0] == 0
        code, out, err = ensue("predict", name, f"{name}.jsonl")
        assert code == 0, err
        assert len(out.splitlines()) == 40


@pytest.mark.parametrize("task", ["adding", "counting"])
def test_numbers_from_generated_files(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ensue = commands_in(tmp_path, capsys, monkeypatch)
    code, _, err = ensue("data", "make", task, "k.jsonl", "--rows", "40", "--steps", "6")
    assert code == 0, err
    row = json.loads((tmp_path / "k.jsonl").read_text().splitlines()[0])
    assert np.isfinite(float(np.mean(np.asarray(row["label"], float))))
    words = ["--text", "features", "--label", "label", "--run", "run", "--epochs", "1"]
    if task == "adding":
        features = np.array(row["features"])
        assert row["label"] == pytest.approx(features[features[:, 1] > 0, 0].sum(), abs=1e-5)
        code, _, err = ensue("train", "k.jsonl", "--task", "regress", *words, "--hidden-size", "4")
        assert code == 0, err
        code, out, _ = ensue("predict", "run", "k.jsonl")
        assert len(out.splitlines()) == 40


def test_a_file_that_was_there_is_kept_where_making_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ensue = commands_in(tmp_path, capsys, monkeypatch)
    (tmp_path / "k.jsonl").write_text("mine\n")

    def broken(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    command = ("data", "make", "counting", "k.jsonl", "--rows", "40")
    code, _, err = ensue(*command, "--steps", "2")
    assert (code, err) == (2, "OptionError: steps: expected a number ≥ 4, got 2\n")
    monkeypatch.setattr(json, "dumps", broken)
    assert ensue(*command)[0] == 2
    assert (tmp_path / "k.jsonl").read_text() == "mine\n"
    assert [path.name for path in tmp_path.iterdir()] == ["k.jsonl"]
