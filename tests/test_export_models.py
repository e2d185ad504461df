"""Whole models in other languages: the same answers, without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import ensue
from ensue import cli
from ensue.errors import OptionError
from ensue.export.grid import ExportMismatch
from ensue.export.model import write_model
from ensue.export.onnx import layer as onnx_layer
from ensue.export.onnx.network import network_model
from ensue.tasks import TASKS

pytest.importorskip("onnxruntime")

TEXTS = [
    "a fine, fine film",
    "dull & long",
    "great fun!",
    "boring",
    "the new one: 3.50",
    "naïve <b>",
]
ROWS = [(text, "good" if k % 2 == 0 else "bad") for k, text in enumerate(TEXTS)] * 6
# A process in which torch cannot be imported, nor Ensue.
ALONE = """
import sys
sys.modules["torch"] = sys.modules["ensue"] = None
sys.path.insert(0, sys.argv[1])
import json, predict
print(json.dumps(list(predict.answers(sys.argv[2], json.loads(sys.stdin.read())))))
"""


def classifier(**model: Any) -> Any:
    members = model.pop("members", 1)
    own = ensue.Classifier(
        model={"hidden_size": 6, "embedding_size": 5, "linear": "alone", **model},
        train={"epochs": 2, "rate": 0.05},
        members=members,
    )
    return own.fit(ROWS)


@pytest.fixture(scope="module")
def model() -> Any:
    return classifier(pooling="max+last", members=2)


def test_onnx_answers_like_predict_without_torch(model: Any, tmp_path: Path) -> None:
    written = write_model(model, tmp_path / "model.onnx")
    assert written.combinations == 24
    assert written.difference < 1e-5
    asked = [*TEXTS, "", "unknown words only", "A" * 300, "fine " * 60]
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(tmp_path), str(tmp_path / "model.onnx")],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for (label, every), wanted in zip(json.loads(done.stdout), model.predict(asked), strict=True):
        assert label == wanted.label
        assert every == pytest.approx(wanted.probabilities, abs=1e-4)
    described = json.loads((tmp_path / "model.preprocess.json").read_text())
    assert [own["step"] for own in described["before"]] == ["tokenise", "look up", "cut"]


def test_what_cannot_be_exported_is_refused_by_name(tmp_path: Path) -> None:
    mixed = classifier(ngrams=1, ngram_share=0.5)
    with pytest.raises(OptionError, match="classify: a mixture with a linear model cannot be"):
        write_model(mixed, tmp_path / "model.onnx")
    other = ensue.Regressor(model={"hidden_size": 4}, train={"epochs": 1})
    other.fit([(text, float(k)) for k, text in enumerate(TEXTS * 4)])
    with pytest.raises(OptionError, match="regress: a whole model cannot be exported"):
        write_model(other, tmp_path / "model.onnx")
    with pytest.raises(OptionError, match="got no ending"):
        write_model(mixed, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_sabotaged_model_leaves_no_file(model: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(
        onnx_layer.Sequences, "alive", lambda s, less=0: s.builder.constant([True], bool)
    )
    monkeypatch.setattr(onnx_layer, "operator_of", lambda direction: None)
    with pytest.raises(ExportMismatch, match="not exported"):
        write_model(model, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_what_torch_cannot_write_is_an_error_of_ours() -> None:
    class Strange(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.special.ndtri(x)

    with pytest.raises(OptionError, match="torch's exporter cannot write this network"):
        network_model(Strange(), {"x": torch.rand(3)}, {"x": ["batch"]}, ["y"])


def test_every_task_exports_or_says_that_it_does_not() -> None:
    own = [name for name, task in TASKS.items() if "exported" in vars(type(task))]
    assert own == ["classify"]


def test_the_command(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    rows = "".join(
        json.dumps({"text": f"{t} {k}", "label": c}) + "\n" for k, (t, c) in enumerate(ROWS)
    )
    (tmp_path / "rows.jsonl").write_text(rows)
    monkeypatch.chdir(tmp_path)
    words = "train rows.jsonl --task classify --run run --quiet --set model.linear=alone"
    for line, code in (
        (f"{words} --set train.epochs=1 --set model.hidden_size=4", 0),
        ("export run model.onnx --weights int8", 0),
        ("export run model.exe", 2),
    ):
        with pytest.raises(SystemExit) as stop:
            cli.main(line.split())
        assert stop.value.code == code, capsys.readouterr()
    told = capsys.readouterr()
    assert "wrote model.onnx" in told.out
    assert "validation accuracy:" in told.out
    assert "model.exe" in told.err
