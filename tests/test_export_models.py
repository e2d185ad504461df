"""Whole models in other languages: the same answers, without torch."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from export_questions import TEXTS
from exports import ROWS, check_answer, classifier, in_node, in_onnx, labeller, made
from warm import Warm

import ensue
from ensue import cli
from ensue.errors import OptionError
from ensue.export.c_folder import folder_files, run_folder
from ensue.export.grid import ExportMismatch, with_stored_weights
from ensue.export.model import (
    EXAMPLE,
    TracedModel,
    cases_of,
    changed,
    compare_outputs,
    write_model,
    write_traced,
)
from ensue.export.onnx import layer as onnx_layer
from ensue.export.onnx.network import parameter_names, traced
from ensue.export.programs import NoProgram, c_compiler, compile_c, node_program
from ensue.tasks import TASKS
from ensue.tasks.exported import REFUSED, rounded
from ensue.tasks.rows.exported import LinearScores
from ensue.tasks.task import Task

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


def no_c() -> bool:
    try:
        c_compiler()
    except NoProgram:
        return True
    return False


SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
needs_c = pytest.mark.skipif(no_c(), reason="no C compiler")
needs_node = pytest.mark.skipif(no_node(), reason="no Node.js")


@pytest.mark.parametrize("name", NAMES)
def test_onnx_answers_like_predict_without_torch(name: str, tmp_path: Path) -> None:
    export = made(name)
    written = write_traced(export.traced, tmp_path / "model.onnx")
    assert written.combinations == 24
    for got, expected in zip(in_onnx(tmp_path, ROWS[name].questions), export.expected, strict=True):
        check_answer(got, expected)
    described = json.loads((tmp_path / "model.preprocess.json").read_text())
    assert described["task"] == name.split(",")[0]


# No compiler on the path, none as a package, and no kernel that was compiled before.
WITHOUT_COMPILER = """
import sys
sys.modules["ziglang"] = None
from pathlib import Path
import ensue
from ensue.engine.native.cache import NoCompiler, compiler
from ensue.export.model import write_model
try:
    compiler()
except NoCompiler:
    write_model(ensue.load(sys.argv[1]), Path(sys.argv[2]))
else:
    sys.exit("a compiler was found")
"""


@pytest.mark.parametrize("cell", ["LSTM", "GRUResetBefore"])
def test_a_model_is_exported_without_a_compiler(cell: str, tmp_path: Path, warm: Warm) -> None:
    """Models run there as loops in Python, which cannot be traced. torch has kernels of its own
    for the first cell, and none for the second."""
    model = classifier(cell=cell)
    model.save(tmp_path / "saved")
    hidden = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cold"), "CXX": ""}
    words = ["-c", WITHOUT_COMPILER, tmp_path / "saved", tmp_path / "model.onnx"]
    done = warm.run(words, tmp_path, hidden)
    assert done.returncode == 0, done.stderr
    row = ROWS["classify"]
    expected = row.expected_answers(model, row.questions)
    for got, answer in zip(in_onnx(tmp_path, row.questions), expected, strict=True):
        check_answer(got, answer)


@needs_node
@pytest.mark.parametrize("name", NAMES)
def test_javascript_answers_like_predict(name: str, tmp_path: Path) -> None:
    export = made(name)
    assert write_traced(export.traced, tmp_path / "model.js").combinations == 24
    answers = in_node(tmp_path, ROWS[name].questions)
    for got, expected in zip(answers, export.expected, strict=True):
        check_answer(got, expected)
    if name == "classify":  # cut as Python cuts
        tokeniser = export.model.learned.tokenisers.input
        assert [got["cut"] for got in answers] == [tokeniser(t) for t in ROWS[name].questions]


@pytest.mark.slow
@needs_node
@pytest.mark.parametrize("name", ROWS)
def test_two_hundred_answers_are_those_of_predict(name: str, tmp_path: Path) -> None:
    """ONNX without torch, and JavaScript. What is measured is printed (pytest -s)."""
    row, export = ROWS[name], made(name)
    questions = row.question_set.many(200)
    expected = row.expected_answers(export.model, questions)
    for target, run in (("model.onnx", in_onnx), ("model.js", in_node)):
        write_traced(export.traced, tmp_path / target)
        answers = run(tmp_path, questions)
        largest = max(check_answer(*both) for both in zip(answers, expected, strict=True))
        print(f"{name}: {target}: {len(answers)} answers, largest difference {largest:.1e}")


WITH_LINEAR = ("label", "regress", "table")
IN_C = ["classify", "label", "regress", "match", "table", "language", "translate", "forecast"]
IN_C += [
    "classify, transformer",
    "classify, both ways",
    "classify, convolution",
    "image",
    "caption",
]
IN_C += ["classify, columns", "table, dates"]
IN_C += ["classify, ways apart", "classify, causal transformer", "classify, causal convolution"]


@needs_c
@pytest.mark.parametrize(
    ("name", "weights", "flags"),
    [
        ("classify", "int8", ("-O0",)),
        *(
            pytest.param(name, "int8", (*SANITIZERS, "-O0"), marks=pytest.mark.slow)
            for name in IN_C
        ),
    ],
)
def test_c_computes_what_python_does(name: str, weights: str, flags: tuple[str, ...]) -> None:
    """Over the grid; under the sanitizers, too."""
    traced_model = made(name).traced
    files = folder_files(traced_model.exported, traced_model.graphs, weights)
    cases = [(graph.name, inputs) for graph, inputs in cases_of(traced_model.exported)]
    outputs = iter(run_folder(traced_model.exported.graphs, files, cases, flags))
    assert compare_outputs(traced_model.exported, weights, lambda *_: next(outputs), "C") < 1e-4


@pytest.mark.parametrize(
    "name",
    ["classify", "regress", "table", pytest.param("classify, columns", marks=pytest.mark.slow)],
)
def test_the_linear_model_of_an_answer_is_stored_as_the_networks_are(name: str) -> None:
    """Its matrices count as learned: rounded, where those of the networks are."""
    export = made(name)
    assert export.model.learned.mixed_linear is not None
    (graph,) = export.traced.graphs.values()
    assert any(name.startswith("network.linear.") for name in parameter_names(graph))
    (whole,) = export.traced.exported.graphs
    stored = with_stored_weights(whole.network, "int8").state_dict()
    for path, values in whole.network.linear.state_dict().items():  # type: ignore[union-attr, operator]
        if values.dim() > 1 and values.numel():
            assert not torch.equal(stored[f"linear.{path}"], values.float()), path


@pytest.mark.slow
@needs_c
def test_a_folder_of_c_is_written_and_runs(tmp_path: Path) -> None:
    written = write_traced(made("classify").traced, tmp_path / "model.c")
    assert written.combinations == 24
    names = {file.name for file in written.files}
    library = {"tensors.h", "shapes.h", "indices.h", "windows.h", "operators.h"}
    assert names == {"model.c", "model.h", "example.c", "preprocess.json"} | library
    folder = tmp_path / "model.c"
    compile_c([str(folder / "example.c"), str(folder / "model.c")], str(folder / "example"))
    done = subprocess.run([str(folder / "example"), "2", "3"], capture_output=True, text=True)
    assert done.returncode == 0
    assert sum(map(float, done.stdout.split())) == pytest.approx(1, abs=1e-4)


def test_a_file_of_somebody_else_is_not_replaced(tmp_path: Path) -> None:
    """No user chose names such as predict.py."""
    mine = tmp_path / "predict.py"
    mine.write_text("print('mine')")
    with pytest.raises(OptionError, match=r"predict\.py already exists, and no export wrote it"):
        write_traced(made("classify").traced, tmp_path / "model.onnx", unchecked=True)
    assert mine.read_text() == "print('mine')"
    assert [path.name for path in tmp_path.iterdir()] == ["predict.py"]
    mine.unlink()
    described = tmp_path / "model.preprocess.json"
    for _ in range(2):  # what an export wrote, the next one replaces; of another task, too
        write_traced(made("classify").traced, tmp_path / "model.onnx", unchecked=True)
        described.write_text(described.read_text().replace('"classify"', '"regress"', 1))
    (tmp_path / "c.c").mkdir()
    (tmp_path / "c.c" / "model.c").write_text("int main(void) { return 0; }")
    with pytest.raises(OptionError, match=r"model\.c already exists"):
        write_traced(made("classify").traced, tmp_path / "c.c", unchecked=True)
    (tmp_path / "layer.c").write_text("/* a layer */")
    with pytest.raises(OptionError, match="is a file, and a model in C is a folder"):
        write_traced(made("classify").traced, tmp_path / "layer.c", unchecked=True)


def test_models_of_one_folder_share_the_example(tmp_path: Path) -> None:
    """The second export broke the first, whose steps its predict.py did not do."""
    questions = {
        "classify": ROWS["classify"].questions[0],
        "table": json.dumps(ROWS["table"].questions[0]),
    }
    for name in questions:
        write_traced(made(name).traced, tmp_path / f"{name}.onnx", unchecked=True)
    for name, question in questions.items():
        command = [sys.executable, "predict.py", f"{name}.onnx", question]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["label"] == made(name).expected[0]["label"]


def test_pieces_of_the_example_do_not_replace_each_other() -> None:
    names = []
    for piece in sorted(EXAMPLE.glob("*.py.txt")):
        for node in ast.parse(piece.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.append(node.name)
            elif isinstance(node, ast.Assign):
                names += map(ast.unparse, node.targets)
    assert sorted(names) == sorted({*names})


def test_steps_of_a_newer_model_are_refused_in_a_line(tmp_path: Path) -> None:
    write_traced(made("classify").traced, tmp_path / "model.onnx", unchecked=True)
    example = (tmp_path / "predict.py").read_text()
    (tmp_path / "predict.py").write_text(example.replace('"tokenise": ', '"tokenize": '))
    command = [sys.executable, "predict.py", "model.onnx", "a fine film"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr == (
        "model.onnx: expected steps that this predict.py does, got 'tokenise': take the predict.py "
        "that was written with the model\n"
    )


@needs_c
def test_the_example_of_c_takes_no_word_that_is_none(tmp_path: Path) -> None:
    """Numbers beyond the vocabulary, fractions and letters are reported, and nothing is read for
    them. The network itself reports them, too, where a program passes them to it."""
    traced_model = made("classify").traced
    files = folder_files(traced_model.exported, traced_model.graphs, "float32")
    unwary = files["example.c"].replace(b"number_of(argv[k])", b"strtod(argv[k], NULL)")
    unwary = unwary.replace(b"isnan(value)", b"0 && isnan(number_of(argv[k]))")
    count = traced_model.exported.graphs[0].inputs[0].count
    expected = f"expected a whole number from 0 to {count - 1}"
    for name, text in {**files, "unwary.c": unwary}.items():
        (tmp_path / name).write_bytes(text)
    for name in ("example", "unwary"):
        sources = [str(tmp_path / f"{name}.c"), str(tmp_path / "model.c")]
        compile_c(sources, str(tmp_path / name), (*SANITIZERS, "-O0"))
    for word in (str(count), "999999999", "1e30", "-5", "abc", "1.5", "nan", "inf", "2x", ""):
        words = [str(tmp_path / "example"), "2", word]
        done = subprocess.run(words, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"number 2: {expected}, got {word}\n"
    for word in (str(count), "999999999", str(-1 - count), "nan"):
        done = subprocess.run([str(tmp_path / "unwary"), word], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (1, "a number is none of the network's\n")
    done = subprocess.run([str(tmp_path / "example"), *["2"] * 257], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "expected at most 256 numbers, got 257\n")
    done = subprocess.run([str(tmp_path / "example"), "2", "3"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@needs_c
def test_too_little_memory_is_told(tmp_path: Path) -> None:
    """The room is the caller's: a run that it is too small for gives −1 and writes nothing else."""
    traced_model = made("classify").traced
    files = folder_files(traced_model.exported, traced_model.graphs, "float32")
    files["example.c"] = files["example.c"].replace(b"memory[4000000]", b"memory[20]")
    for name, text in files.items():
        (tmp_path / name).write_bytes(text)
    program = str(tmp_path / "example")
    compile_c([str(tmp_path / "example.c"), str(tmp_path / "model.c")], program, SANITIZERS)
    done = subprocess.run([program, "2", "3"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "the room is too small\n")


def test_every_task_is_exported() -> None:
    assert {*TASKS} == {name.split(",")[0] for name in ROWS}
    with pytest.raises(OptionError, match="tree: a whole model of a custom task"):
        Task.exported(TASKS["tree"], object())  # type: ignore[arg-type]


def test_what_cannot_be_exported_is_refused_by_name(tmp_path: Path) -> None:
    mixed = classifier(ngrams=1, ngram_share=0.5)
    with pytest.raises(OptionError, match=r"classify: n-grams of words next to the network"):
        write_model(mixed, tmp_path / "model.onnx")
    with pytest.raises(OptionError, match="label: an output that reads the label before"):
        write_model(labeller(output="previous", linear_share=0), tmp_path / "model.onnx")
    counted = ensue.LanguageModel(model={"family": "ngram", "order": 2}).fit(TEXTS, TEXTS)
    with pytest.raises(OptionError, match="language: an n-gram language model"):
        write_model(counted, tmp_path / "model.onnx")
    with pytest.raises(OptionError, match="got no ending"):
        write_model(mixed, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_the_docs_print_the_table_of_refusals() -> None:
    page = " ".join((DOCS / "reference" / "export.md").read_text().split())
    for what, instead in REFUSED.values():
        assert f"| {what} | {instead} |" in page, what


def test_weights_of_two_classes_are_stored_once_where_one_is_the_other_negated() -> None:
    scores = made("classify").model.learned.linear.model
    columns, values = torch.tensor([[0, 2]]), torch.tensor([[1.0, 0.5]])
    for scale in (1.0, 1.5):
        weights = scores.weights * np.array([1.0, scale], np.float32)
        linear = LinearScores(replace(scores, weights=weights))
        assert len(linear.weight) == (1 if scale == 1 else 2)
        expected = torch.from_numpy(weights[0] + 0.5 * weights[2] + scores.bias)
        torch.testing.assert_close(linear(columns, values)[0], expected)


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
    monkeypatch.setattr(ensue.Classifier, "knows_validation", lambda *_: "the linear model")
    small = "--set train.epochs=1 --set model.hidden_size=4 --set model.linear=alone"
    for line, code in (
        (f"train rows.jsonl --task classify --run run --quiet {small}", 0),
        ("export run model.onnx --weights int8", 0),
        ("export run model.exe", 2),
    ):
        with pytest.raises(SystemExit) as stop:
            cli.main(line.split())
        assert stop.value.code == code, capsys.readouterr()
    streams = capsys.readouterr()
    assert "wrote model.onnx" in streams.out
    assert "validation accuracy:" in streams.out
    assert "the linear model also learned from them" in streams.out
    assert "model.exe" in streams.err


@pytest.mark.parametrize(
    "name",
    ["classify", *(pytest.param(n, marks=pytest.mark.slow) for n in ("label", "regress", "table"))],
)
def test_the_linear_model_is_rounded_too(name: str) -> None:
    """What `--weights int8` reports of the scores covers all that is stored with fewer bits."""
    model = ROWS[name].make() if ROWS[name].slow else made(name).model
    shapes = []
    rounded_model = rounded(
        model.learned, lambda weights: shapes.append(weights.shape) or 0 * weights
    )
    assert len(shapes) == 1
    questions = list(ROWS[name].questions)[:3]
    other = changed(model, rounded_model, model.networks).predict(questions)
    assert [str(answer) for answer in other] != [str(answer) for answer in model.predict(questions)]


def test_a_traced_model_is_traced_once() -> None:
    traced_model = made("classify").traced
    assert isinstance(traced_model, TracedModel)
    assert traced_model.graphs is traced_model.graphs
