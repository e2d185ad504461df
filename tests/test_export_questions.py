"""Questions that an exported model cannot answer: one line each, in predict.py and JavaScript."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from exports import made
from test_export_models import needs_node
from test_export_packing import loaded

from ensue.export.model import write_traced
from ensue.export.module import IN_JAVASCRIPT, RUNTIME
from ensue.export.programs import node_program
from ensue.tasks.exported import reads_of

pytest.importorskip("onnxruntime")
SCALE = {"mean": 2.0, "spread": 1.0}
STEP = {
    "from": "question",
    "missing": [""],
    "gaps": False,
    "numbers": [{"name": "size", "indicator": False, **SCALE}],
    "categories": [{"name": "town", "categories": ["Ulm"]}],
    "features": [
        {"name": "day", "to": "days", "how": "scaled", "reads": reads_of("day", "auto"), **SCALE}
    ],
}
GOOD = {"size": "3", "town": "Ulm", "day": "2021-03-06"}
REFUSED = {
    "size": [("inf", "finite"), ("nan", "finite"), ("a lot", "finite"), ("", "expected")],
    "town": [("", "expected a value")],
    "day": [("5", "expected a date"), ("soon", "expected times"), ("2021-02-30", "expected times")],
}
ROWS = [
    ({**GOOD, name: value}, message)
    for name, all_said in REFUSED.items()
    for value, message in all_said
]


def test_rows_that_cannot_be_read_are_refused() -> None:
    functions = loaded("core times row")
    functions["STEPS"]["row"]({"question": json.dumps(GOOD)}, STEP)
    for row, message in ROWS:
        with pytest.raises(ValueError, match=message):
            functions["STEPS"]["row"]({"question": row}, STEP)
    for question, message in (("{", "JSON"), ("3", "expected a row"), ("{}", "no column 'day'")):
        with pytest.raises(ValueError, match=message):
            functions["STEPS"]["row"]({"question": question}, STEP)
    with pytest.raises(
        ValueError, match=r'expected two texts, \["one", "another"\], got \[.one.\]'
    ):
        functions["STEPS"]["pair"]({"question": '["one"]'}, {"from": "question", "to": ["a", "b"]})


@needs_node
def test_rows_that_cannot_be_read_are_refused_in_javascript(tmp_path: Path) -> None:
    parts = [(RUNTIME / f"{name}.js").read_text() for name in ("checks", "times", "row")]
    script = """const said = (question) => {
        try { STEPS.row({ question }, step); } catch (error) { return error.message; }
        return "";
    };
    process.stdout.write(JSON.stringify(rows.map(said)));"""
    job = [IN_JAVASCRIPT["row"](STEP), [GOOD, *(row for row, _ in ROWS)]]
    head = f"const STEPS = {{}}, [step, rows] = {json.dumps(job)};"
    (tmp_path / "a.mjs").write_text("\n".join([head, *parts, script]))
    done = subprocess.run([node_program(), str(tmp_path / "a.mjs")], capture_output=True, text=True)
    messages = json.loads(done.stdout)
    assert messages[0] == ""
    for got, (row, message) in zip(messages[1:], ROWS, strict=True):
        assert message in got, row


@pytest.mark.slow
def test_what_cannot_be_answered_is_said_in_a_line(tmp_path: Path) -> None:
    """By the runnable example, after the answers before it."""
    write_traced(made("match").traced, tmp_path / "model.onnx", unchecked=True)

    def run(*words: str) -> Any:
        command = [sys.executable, "predict.py", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    used = run().stderr
    assert used.startswith("Answers of an exported model: python predict.py model.onnx QUESTION")
    assert "or JSON: two texts, a row by" in used
    done = run("model.onnx", '["a", "<b>\\u0000 😀"]', "not two", '["a", "b"]')
    assert done.returncode == 1, done.stderr
    assert sum(json.loads(done.stdout)["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    assert done.stderr.startswith("not two: this question is written as JSON")
    assert "Traceback" not in done.stderr
