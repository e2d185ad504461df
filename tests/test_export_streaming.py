"""Models that are fed piece by piece: the answer after each piece is that to all that was read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from export_questions import STRANGE_WORDS, VECTORS
from exports import ALONE, QUICK, SMALL, check_answer, classes, classifier, labeller, number, tags
from test_export_models import needs_c, needs_node

import ensue
from ensue.errors import OptionError
from ensue.export.c_folder import folder_files, run_folder
from ensue.export.model import TracedModel, cases_of, compare_outputs, write_model, write_traced
from ensue.export.programs import node_program
from ensue.export.streaming import streamed
from ensue.tasks.exported import TIME

pytest.importorskip("onnxruntime")
ONE_WAY = {"bidirectional": False}
PIECES = [["a", "fine"], [","], [], ["film", "dull", "unknown"], ["great", "fun", "!"]]
FED = ALONE.replace(
    "print(json.dumps(predict.answers(sys.argv[2], questions)))",
    "fed = predict.Stream(sys.argv[2])\n"
    "print(json.dumps([fed.feed(piece) for piece in questions]))",
)
IN_NODE = """
import { readFileSync } from "node:fs";
const { stream, MODEL } = await import(process.argv[2]);
const fed = stream(), [{ step, labels }] = MODEL.after;
process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map((piece) => {
    const { values, seen, all, ...outputs } = fed.feed(piece), p = outputs.probabilities;
    if (step === "labels")
        outputs.probabilities = Object.fromEntries(labels.map((n, k) => [n, p[k]]));
    return outputs;
})));
"""


def _regressor() -> Any:
    rows = [("a fine film", 3.0), ("dull", 1.0), ("great fun", 4.0), ("boring", 0.5)] * 9
    settings = {**SMALL, **ONE_WAY, "pooling": "last+attention", "initial_state": "learned"}
    return ensue.Regressor(model=settings, train=QUICK).fit(rows)


def _vectors() -> Any:
    settings = {**SMALL, **ONE_WAY, "pooling": "mean", "encoder": "plain"}
    return ensue.Classifier(model=settings, train=QUICK).fit(VECTORS)


ROWS: dict[str, tuple[Any, Any, Any]] = {  # how it is made, what is fed, what is compared
    "classify": (
        lambda: classifier(**ONE_WAY, pooling="max+mean", members=2, cell="GRU", layers=2),
        PIECES,
        classes,
    ),
    "regress": (_regressor, PIECES, number),
    "label": (
        lambda: labeller(**ONE_WAY, linear_share=0, output="crf", character_size=4, affixes=2),
        [["The", "dog"], [], ["USA", "2026"], STRANGE_WORDS],
        tags,
    ),
    "vectors": (_vectors, [vectors.tolist() for vectors, _ in VECTORS[:4]], classes),
}
NAMES = [pytest.param(name, marks=[] if name == "regress" else [pytest.mark.slow]) for name in ROWS]


def read_until(pieces: list[Any]) -> list[Any]:
    return [[step for piece in pieces[: k + 1] for step in piece] for k in range(len(pieces))]


@pytest.mark.parametrize(
    "name", ["regress", *(pytest.param(n, marks=pytest.mark.slow) for n in ROWS)]
)
def test_states_that_are_carried_on_make_the_whole(name: str) -> None:
    """Rows of unequal lengths, cut anywhere: the network in pieces says what it says at once."""
    model = ROWS[name][0]()
    with torch.no_grad():
        check_pieces(name, model)


def check_pieces(name: str, model: Any) -> None:
    whole = model.task.exported(model)
    (graph,), (piecewise,) = whole.graphs, streamed(whole).graphs
    inputs = graph.drawn(9, [9, 4, 0, 7], seed=1)
    expected = graph.network(*inputs.values())
    states = [torch.tensor(state) for state in streamed(whole).before[-1]["states"].values()]
    after = [state.expand(4, -1) for state in states]
    outputs: list[Any] = []
    for first, end in ((0, 3), (3, 4), (4, 9)):
        piece = {
            port.name: inputs[port.name][first:end] if TIME in port.axes[:1] else inputs[port.name]
            for port in graph.inputs
        }
        piece["lengths"] = (inputs["lengths"] - first).clamp(0, end - first)
        outputs_of_piece = piecewise.network(*piece.values(), *after)
        count = len(graph.outputs)
        outputs, after = [*outputs, outputs_of_piece[:count]], list(outputs_of_piece[count:])
    if name == "label":
        torch.testing.assert_close(
            torch.cat([piece_outputs[0] for piece_outputs in outputs], 1), expected
        )
        return
    expected = expected if isinstance(expected, tuple) else (expected,)
    for got, value in zip(outputs[-1], expected, strict=True):
        torch.testing.assert_close(got, value)


@needs_node
@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_fed_piece_by_piece_it_answers_to_the_whole(name: str, tmp_path: Path) -> None:
    """ONNX in a process without torch, and JavaScript; the grid carries states over, too."""
    make, pieces, answered = ROWS[name]
    model = make()
    questions = [
        np.array(question) if name == "vectors" else question for question in read_until(pieces)
    ]
    answers = [answered(answer) for answer in model.predict(questions)]
    traced = TracedModel(streamed(model.task.exported(model)))
    remarks = []
    for target in ("model.onnx", "model.js"):
        written = write_traced(traced, tmp_path / target)
        assert written.combinations == 24
        remarks.append(written.remarks[1].removeprefix("piece by piece: "))
    (tmp_path / "model.mjs").write_text((tmp_path / "model.js").read_text())
    (tmp_path / "main.mjs").write_text(IN_NODE)
    runs = {
        "onnx": [sys.executable, "-c", FED, str(tmp_path), str(tmp_path / "model.onnx")],
        "javascript": [node_program(), str(tmp_path / "main.mjs"), str(tmp_path / "model.mjs")],
    }
    for words in runs.values():
        done = subprocess.run(words, input=json.dumps(pieces), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        for got, expected in zip(json.loads(done.stdout), answers, strict=True):
            check_answer(got, expected)
    (tmp_path / "remark.mjs").write_text(remarks[1].replace("./model.js", "./model.mjs"))
    for words in ([sys.executable, "-c", remarks[0]], [node_program(), "remark.mjs"]):
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, (words, done.stderr)


@needs_c
@pytest.mark.slow
def test_a_stream_in_c() -> None:
    model = ROWS["regress"][0]()
    traced = TracedModel(streamed(model.task.exported(model)))
    files = folder_files(traced.exported, traced.graphs, "float32")
    cases = [(graph.name, inputs) for graph, inputs in cases_of(traced.exported)]
    outputs = iter(run_folder(traced.exported.graphs, files, cases))
    assert compare_outputs(traced.exported, "float32", lambda *_: next(outputs), "C") < 1e-4


def test_what_cannot_stream_is_refused_by_name(tmp_path: Path) -> None:
    both = classifier(bidirectional=True)
    with pytest.raises(OptionError, match="classify: streaming of a network that reads what comes"):
        write_model(both, tmp_path / "model.onnx", streaming=True)
    series = ensue.Forecaster(model={"family": "linear", "horizon": 2, "look_back": 4})
    series.fit({"y": [0.0, 1.0, 2.0, 3.0] * 12}, target="y")
    with pytest.raises(OptionError, match="forecast: streaming of this task"):
        ensue.export.write(series, tmp_path / "model.onnx", streaming=True)
    mixed = labeller(**ONE_WAY)
    if mixed.learned.mixture is not None:
        with pytest.raises(OptionError, match="label: streaming of a labeller whose linear chain"):
            write_model(mixed, tmp_path / "model.onnx", streaming=True)
    assert list(tmp_path.iterdir()) == []
