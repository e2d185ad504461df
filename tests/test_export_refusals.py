"""Wrong questions: what `ensue predict` refuses, predict.py and JavaScript refuse in a clear line;
what it answers, they answer the same."""

from __future__ import annotations

import json
import math
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from export_questions import MONTHS, PANEL, SALES, TEXTS, TREES
from exports import ALONE, ANSWERS, LABELLED, QUICK, ROWS, SMALL, check_answer, made
from test_export_models import needs_node

import ensue
from ensue.data.tokenise import Tokeniser
from ensue.errors import EnsueError
from ensue.export.model import TracedModel, write_traced
from ensue.export.module import PATTERNS, RUNTIME
from ensue.export.onnx.network import network_model
from ensue.export.programs import node_program

pytest.importorskip("onnxruntime")
SAME = ""  # in the place of a message: the answer of `ensue predict`
Questions = Sequence[tuple[Any, str]]
TEXT, PAIR = "expected a text", "expected two texts"
STEPS, FINITE = "expected a list of steps, 3 numbers each", "expected finite numbers"


def row(**changed: Any) -> dict[str, Any]:
    return {"area": 50.0, "town": "Delft", **changed}


def series(steps: int = 36, **changed: Any) -> dict[str, Any]:
    return {"month": MONTHS[:steps], "sales": [float(v) for v in SALES[:steps]], **changed}


def sales_with(*values: Any) -> list[Any]:
    """The values in the middle of numbers."""
    return [*SALES[:20], *values, *SALES[20 + len(values) : 36]]


def nested(depth: int) -> str:
    return "(1 " * depth + "bad" + ")" * depth


def shop(**changed: Any) -> dict[str, Any]:
    return {**PANEL.chosen[0], **changed}


def picture(*shape: int, value: float = 7) -> dict[str, Any]:
    return {"shape": list(shape), "data": [value] * math.prod(shape)}


NUMBER = "column.*area.*expected a finite number"
CELL = "expected a text, a number or a date"
SOLD = "column.*sales.*expected a finite number"
LENGTHS = "expected columns of equal length"
BY_NAME = r"expected numbers, or columns by name \(month, sales\)"
NO_TEXT: Questions = [(None, TEXT), (5, TEXT), ([1, 2], TEXT)]
NO_PICTURE: Questions = [(5, "expected a picture"), (None, "expected a picture")]
REFUSED: Mapping[str, Questions] = {
    "regress": NO_TEXT,
    "label": NO_TEXT,
    "translate": NO_TEXT,
    "caption": NO_PICTURE,
    "classify": [
        ({"text": "a fine film", "age": 40}, "expected a text, got a row of columns"),
        *NO_TEXT,
        (["a", "fine"], SAME),
    ],
    "language": [({"text": "the cat"}, "expected a text, got a row of columns"), (None, TEXT)],
    "classify, vectors": [
        ([[1, 2, 3]], SAME),
        ([[1e10, 0, 0], [0, 0, 1]], SAME),
        ([[1e30, 0, 0]], SAME),
        ([[1, 2]], f"{STEPS}, got .* at step 1"),
        ([[1, 2, 3, 4]], STEPS),
        ([[1, 2, 3], [1, 2]], f"{STEPS}, got .* at step 2"),
        ([1, 2, 3], STEPS),
        ([], STEPS),
        (None, STEPS),
        (["a", "b"], STEPS),
        ([[None, 1, 2]], FINITE),
        ([["1", "x", "3"]], FINITE),
        ([[1e40, 0, 0]], FINITE),
        ([[1e31, 0, 0]], FINITE),
    ],
    "table": [
        (row(area=1e30), SAME),
        (row(area=" 93 "), SAME),
        (row(area="+9.3E1"), SAME),
        (row(area="\x1c93\x85"), SAME),
        (row(area="na"), SAME),
        (row(town="\ufeffDelft"), SAME),
        (row(area=1e31), NUMBER),
        (row(area=1e300), NUMBER),
        (row(area="1_000"), NUMBER),
        (row(area="５５"), NUMBER),
        (row(area="0x10"), NUMBER),
        (row(area="Infinity"), NUMBER),
        (row(area="1,5"), NUMBER),
        (row(area=True), NUMBER),
        (row(area=[5]), f"column.*area.*{CELL}"),
        (row(town=["Delft"]), f"column.*town.*{CELL}"),
        (row(town={"a": 1}), f"column.*town.*{CELL}"),
        ({"area": 5}, "there is no column.*town"),
        ([1, 2], "expected a row"),
        (None, "expected a row"),
        (5, "expected a row"),
    ],
    "classify, columns": [
        ({"review": None, "price": 3, "country": "nl"}, TEXT),
        ({"review": 5, "price": 3, "country": "nl"}, TEXT),
        ({"review": ["a", "fine"], "price": 3, "country": "nl"}, SAME),
        ({"price": 3, "country": "nl"}, "there is no column.*review"),
    ],
    "match": [
        (["it rains", "it is wet"], SAME),
        (["a"], PAIR),
        (["a", "b", "c"], PAIR),
        ([1, 2], TEXT),
        (None, PAIR),
        (5, PAIR),
    ],
    "tree": [
        (TREES[0], SAME),
        (nested(499), SAME),
        (nested(501), "expected brackets nested at most 500 deep, got 501"),
        (5, "expected a tree in brackets"),
        (None, "expected a tree in brackets"),
    ],
    "forecast, dates": [
        (series(), SAME),
        (series(sales=sales_with("", None, "na", " 12.5 ")), SAME),
        ([{"month": m, "sales": s} for m, s in zip(MONTHS[:40], SALES, strict=False)], SAME),
        (series(sales=sales_with("abc")), SOLD),
        (series(sales=["abc"] * 36), SOLD),
        (series(sales=sales_with("1,234")), SOLD),
        (series(sales=sales_with(1e40)), SOLD),
        (series(sales=sales_with([3])), SOLD),
        (series(month=["2019-12"] * 36), "month.*2019-12.*comes twice"),
        (series(sales=list(SALES[:20])), LENGTHS),
        (series(month=MONTHS[:30]), LENGTHS),
        ({"sales": list(SALES[:36])}, "expected the column month"),
        ({"month": MONTHS[:36]}, "got no sales"),
        (series(sales=3), "column.*sales.*expected a list"),
        (None, BY_NAME),
        (5, BY_NAME),
        ([[1, 2], [3, 4]], "expected sales at each step"),
    ],
    "forecast, panel": [
        (shop(), SAME),
        (shop(size="big"), SAME),
        (shop(offer=[1, 0]), LENGTHS),
        (shop(shop=None, offer="no"), "column.*offer.*expected a list"),
    ],
    "image": [
        (picture(8, 8), SAME),
        (picture(3, 8, 8), SAME),
        (picture(8, 8, 3), "picture.* with 1 or 3 channels"),
        (picture(8, 8, value=0.5), "expected whole numbers of 0 to 255"),
        (picture(8, 8, value=300), "expected whole numbers of 0 to 255"),
        *NO_PICTURE,
    ],
}
SLOW = [pytest.param(name, marks=[pytest.mark.slow] if ROWS[name].slow else []) for name in REFUSED]


def in_process(command: Sequence[str], questions: Sequence[Any]) -> list[dict[str, Any]]:
    done = subprocess.run(command, input=json.dumps(questions), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


def in_python(folder: Path, questions: Sequence[Any]) -> list[dict[str, Any]]:
    """Answers, or the class and text of an error."""
    script = ALONE.rpartition("print")[0] + (
        "model = predict.Exported(sys.argv[2])\n"
        "def outcome(question):\n"
        "    try: return model.answer(question)\n"
        "    except Exception as error: return {'kind': type(error).__name__, 'said': str(error)}\n"
        "print(json.dumps([outcome(question) for question in questions]))"
    )
    return in_process(
        [sys.executable, "-W", "error", "-c", script, str(folder), str(folder / "model.onnx")],
        questions,
    )


def in_javascript(folder: Path, questions: Sequence[Any]) -> list[dict[str, Any]]:
    script = ANSWERS.replace("map((question) => {", "map((question) => { try {").replace(
        "return { ...outputs, cut: values.tokens };",
        "return outputs; } catch (e) { return { kind: e.constructor.name, said: e.message }; }",
    )
    (folder / "main.mjs").write_text(script)
    (folder / "model.mjs").write_text((folder / "model.js").read_text())
    return in_process(
        [node_program(), str(folder / "main.mjs"), str(folder / "model.mjs")], questions
    )


def asked_of_predict(name: str, question: Any) -> Any:
    """A question as Python takes it: arrays of vectors and of pictures."""
    if name == "image" and isinstance(question, dict):
        kind = np.uint8 if set(question["data"]) <= {7} else np.float64
        return np.array(question["data"], kind).reshape(question["shape"])
    return np.array(question, np.float32) if name == "classify, vectors" else question


def test_every_task_that_is_exported_has_wrong_questions() -> None:
    assert {name.split(",")[0] for name in REFUSED} == {name.split(",")[0] for name in ROWS}


@needs_node
@pytest.mark.parametrize("name", SLOW)
def test_wrong_questions_are_refused_as_predict_does(name: str, tmp_path: Path) -> None:
    export, cases = made(name), REFUSED[name]
    for target in ("model.onnx", "model.js"):
        write_traced(export.traced, tmp_path / target, unchecked=True)
    questions = [question for question, _ in cases]
    runs = {"onnx": in_python(tmp_path, questions), "js": in_javascript(tmp_path, questions)}
    for number, (question, message) in enumerate(cases):
        if message == SAME:
            (expected,) = ROWS[name].expected_answers(
                export.model, [asked_of_predict(name, question)]
            )
        for run, answers in runs.items():
            got, where = answers[number], (run, str(question)[:200])
            if message == SAME:
                assert "said" not in got, (where, got)
                check_answer(got, expected)
            else:
                assert got.get("kind") in ("ValueError", "Error"), (where, got)
                assert pytest.RaisesExc(Exception, match=message).matches(Exception(got["said"])), (
                    where,
                    got,
                )
                assert "\n" not in got["said"]


@pytest.mark.parametrize("name", SLOW)
def test_predict_refuses_them_too(name: str) -> None:
    """What an export refuses, Python does, too. Exceptions: numbers that fit in an array, but in
    no file, and columns that the questions here are padded in for Python."""
    export = made(name)
    for question, message in REFUSED[name]:
        if message == SAME or question in ([[1e31, 0, 0]], shop(offer=[1, 0])):
            continue
        with pytest.raises((EnsueError, ValueError, TypeError)), np.errstate(over="ignore"):
            ROWS[name].expected_answers(export.model, [asked_of_predict(name, question)])


@needs_node
def test_a_row_is_answered_by_its_text(tmp_path: Path) -> None:
    """Where the model knows which column that is."""
    rows = [{"review": text, "stars": label} for text, label in LABELLED]
    model = ensue.Classifier(model=SMALL, train=QUICK).fit(rows, text="review", label="stars")
    traced = TracedModel(model.task.exported(model))
    for target in ("model.onnx", "model.js"):
        write_traced(traced, tmp_path / target, unchecked=True)
    good, missing = {"review": TEXTS[0], "age": 40}, {"age": 40}
    (expected,) = ROWS["classify"].expected_answers(model, [good])
    for run in (in_python, in_javascript):
        answers = run(tmp_path, [good, missing, {"review": None}, {"review": {"a": 1}}])
        check_answer(answers[0], expected)
        for got, message in zip(answers[1:], ("the column", TEXT, "a row of columns"), strict=True):
            assert message in got["said"]


# --- white space ---------------------------------------------------------------------------------

SPACES = [chr(code) for code in range(0x3001) if chr(code).isspace()]
BETWEEN = [*SPACES, "\ufeff", "\u200b", "\u180e", "\u2060"]


@needs_node
def test_javascript_cuts_at_the_white_space_of_python(tmp_path: Path) -> None:
    """At every code point of it, and not at what JavaScript alone takes for it; over all levels."""
    texts = [f"{space}good{space}{space}film, 3{space}5<br{space}/>x{space}" for space in BETWEEN]
    options = {"nfc": True, "breaks": "space", "lower": False, "numbers": "keep"}
    steps = [
        {**options, "javascript": pattern, "flags": flags, "max_length": None, "cut": "end"}
        for pattern, flags in PATTERNS.values()
    ]
    parts = [(RUNTIME / f"{name}.js").read_text() for name in ("checks", "text", "words")]
    script = f"const [steps, texts] = {json.dumps([steps, texts])};" + (
        "process.stdout.write(JSON.stringify([steps.map((how) => texts.map((text) => "
        "tokenise(text, how))), texts.map(stripped), texts.map((text) => text.match(STRETCH))]));"
    )
    (tmp_path / "a.mjs").write_text("\n".join([*parts, script]))
    token_lists, stripped, stretches = in_process([node_program(), str(tmp_path / "a.mjs")], [])
    for name, tokens_of_texts in zip(PATTERNS, token_lists, strict=True):
        for text, tokens in zip(texts, tokens_of_texts, strict=True):
            assert tokens == Tokeniser(name, breaks="space")(text), (name, text)
    assert stripped == [text.strip() for text in texts]
    assert stretches == [text.split() for text in texts]


# --- the runnable example ------------------------------------------------------------------------


def example(folder: Path, *words: str) -> Any:
    """predict.py from the command line."""
    command = [sys.executable, "predict.py", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def remark_of(name: str, folder: Path) -> list[str]:
    """The words of what is printed after an export."""
    (remark,) = write_traced(made(name).traced, folder / "model.onnx", unchecked=True).remarks
    return shlex.split(remark.removeprefix("try it: python "))


HINTED = ["classify", "classify, vectors", "table", "classify, columns", "table, dates", "match"]
HINTED += ["tree", "forecast", "forecast, dates", "forecast, panel"]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if ROWS[name].slow else []) for name in HINTED],
)
def test_what_is_printed_after_an_export_can_be_run(name: str, tmp_path: Path) -> None:
    program, *words = remark_of(name, tmp_path)
    assert program == "predict.py"
    done = example(tmp_path, *words)
    if "…" not in words[1]:
        assert done.returncode == 0, done.stderr
        assert "input" in json.loads(done.stdout)
    for column in made(name).traced.exported.before[0].get("columns", ()):
        assert column in words[1] or not words[1].startswith("{")
    assert "python predict.py model.onnx QUESTION" in example(tmp_path).stderr


def test_a_file_that_is_no_model_is_told_in_a_line(tmp_path: Path) -> None:
    write_traced(made("classify").traced, tmp_path / "model.onnx", unchecked=True)
    (tmp_path / "text.onnx").write_text("no model")
    strange = network_model(next(iter(made("classify").traced.graphs.values())), "float32")
    (tmp_path / "other.onnx").write_bytes(strange.SerializeToString())
    for name, message in (
        ("nope.onnx", "expected a file of a model, got none"),
        ("text.onnx", "expected a model in ONNX"),
        ("other.onnx", "expected a model that `ensue export` wrote"),
    ):
        done = example(tmp_path, name, "a text")
        assert done.returncode == 1
        assert done.stderr.startswith(f"{name}: {message}")
        assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_picture_that_is_no_array_is_told(tmp_path: Path) -> None:
    write_traced(made("image").traced, tmp_path / "model.onnx", unchecked=True)
    (tmp_path / "star.png").write_bytes(b"\x89PNG\r\n")
    np.save(tmp_path / "last.npy", np.zeros((8, 8, 3), np.uint8))
    np.save(tmp_path / "good.npy", np.zeros((3, 8, 8), np.uint8))
    message = example(tmp_path, "model.onnx", "star.png").stderr
    assert "expected a file .npy" in message
    assert "from PIL import Image" in message
    assert "pickle" not in message
    message = example(tmp_path, "model.onnx", "last.npy").stderr
    assert "(channels, height, width) with 1 or 3 channels, got (8, 8, 3)" in message
    assert example(tmp_path, "model.onnx", "good.npy").returncode == 0
