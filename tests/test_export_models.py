"""Whole models in other languages: the same answers, without torch."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from exports import ROWS, SALES, TEXTS, check_answer, classifier, in_node, in_onnx, labeller, made

import ensue
from ensue import cli
from ensue.errors import OptionError
from ensue.export.grid import ExportMismatch
from ensue.export.model import TracedModel, write_model, write_traced
from ensue.export.onnx import layer as onnx_layer
from ensue.export.onnx.network import traced
from ensue.export.programs import NoProgram, node_program
from ensue.tasks import TASKS
from ensue.tasks.exported import REFUSED
from ensue.tasks.rows import exported as rows_exported

pytest.importorskip("onnxruntime")
DOCS = Path(__file__).parent.parent / "docs"
NAMES = [
    pytest.param(name, marks=[pytest.mark.slow] if row.slow else []) for name, row in ROWS.items()
]


def no_node() -> bool:
    try:
        node_program()
    except NoProgram:
        return True
    return False


needs_node = pytest.mark.skipif(no_node(), reason="no Node.js")


@pytest.mark.parametrize("name", NAMES)
def test_onnx_answers_like_predict_without_torch(name: str, tmp_path: Path) -> None:
    own = made(name)
    written = write_traced(own.traced, tmp_path / "model.onnx")
    assert written.combinations == 24
    for got, wanted in zip(in_onnx(tmp_path, ROWS[name].questions), own.wanted, strict=True):
        check_answer(got, wanted)
    described = json.loads((tmp_path / "model.preprocess.json").read_text())
    assert described["task"] == name.split(",")[0]


@needs_node
@pytest.mark.parametrize("name", NAMES)
def test_javascript_answers_like_predict(name: str, tmp_path: Path) -> None:
    own = made(name)
    assert write_traced(own.traced, tmp_path / "model.js").combinations == 24
    found = in_node(tmp_path, ROWS[name].questions)
    for got, wanted in zip(found, own.wanted, strict=True):
        check_answer(got, wanted)
    if name == "classify":  # cut as Python cuts
        tokeniser = own.model.learned.tokenisers.input
        assert [got["cut"] for got in found] == [tokeniser(t) for t in ROWS[name].questions]


def test_every_task_is_exported_or_refused_by_name() -> None:
    own = {name for name, task in TASKS.items() if "exported" in vars(type(task))}
    assert own == {name.split(",")[0] for name in ROWS}
    with pytest.raises(OptionError, match="tree: a whole model of this task cannot be exported"):
        TASKS["tree"].exported(object())  # type: ignore[arg-type]


def test_what_cannot_be_exported_is_refused_by_name(tmp_path: Path) -> None:
    mixed = classifier(ngrams=1, ngram_share=0.5)
    with pytest.raises(OptionError, match=r"classify: n-grams of words beside the network"):
        write_model(mixed, tmp_path / "model.onnx")
    with pytest.raises(OptionError, match="label: an output that reads the label before"):
        write_model(labeller(output="previous", linear_share=0), tmp_path / "model.onnx")
    counted = ensue.LanguageModel(model={"family": "ngram", "order": 2}).fit(TEXTS, TEXTS)
    with pytest.raises(OptionError, match="language: an n-gram language model"):
        write_model(counted, tmp_path / "model.onnx")
    mixture = ensue.Forecaster(model={"horizon": 2, "look_back": 6}, train={"epochs": 1})
    mixture.fit({"sales": SALES[:80]}, target="sales")
    with pytest.raises(OptionError, match="forecast: the seasonal, ridge and smoothing models of"):
        write_model(mixture, tmp_path / "model.onnx")
    with pytest.raises(OptionError, match="got no ending"):
        write_model(mixed, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_the_docs_print_the_table_of_refusals() -> None:
    page = " ".join((DOCS / "export.md").read_text().split())
    for what, instead in REFUSED.values():
        assert f"| {what} | {instead} |" in page, what


def test_columns_that_are_not_the_text_s_are_refused() -> None:
    model = made("classify").model
    wider = replace(
        model.learned.text_linear,
        weights=model.learned.text_linear.weights.repeat(2, 0),
    )
    with pytest.raises(OptionError, match="columns of a table beside the text"):
        rows_exported.linear_member(wider, model.learned.tokenisers.input, "classify")


def test_a_sabotaged_model_leaves_no_file(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(
        onnx_layer.Sequences, "alive", lambda s, less=0: s.builder.constant([True], bool)
    )
    monkeypatch.setattr(onnx_layer, "operator_of", lambda direction: None)
    with pytest.raises(ExportMismatch, match="not exported"):
        write_traced(made("classify").traced, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_what_torch_cannot_write_is_an_error_of_ours() -> None:
    class Strange(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.special.ndtri(x)

    with pytest.raises(OptionError, match="torch's exporter cannot write this network"):
        traced(Strange(), {"x": torch.rand(3)}, {"x": ["batch"]}, ["y"])


def test_the_command(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    rows = "".join(
        json.dumps({"text": f"{TEXTS[k % 6]} {k}", "label": "ab"[k % 2]}) + "\n" for k in range(36)
    )
    (tmp_path / "rows.jsonl").write_text(rows)
    monkeypatch.chdir(tmp_path)
    small = "--set train.epochs=1 --set model.hidden_size=4 --set model.linear=alone"
    for line, code in (
        (f"train rows.jsonl --task classify --run run --quiet {small}", 0),
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


def test_a_traced_model_is_traced_once() -> None:
    own = made("classify").traced
    assert isinstance(own, TracedModel)
    assert own.graphs is own.graphs
