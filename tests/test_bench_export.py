"""The bench of exported layers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_export_models import needs_node

from benchmarks.engine import exported
from benchmarks.engine.exported import FORMS, Measured, Subject, markdown
from ensue import cli
from ensue.layers.recurrent import Recurrent

pytest.importorskip("onnxruntime")


@pytest.mark.slow
def test_every_form_is_measured(monkeypatch: Any, capsys: Any) -> None:
    """Of one small cell; a form that nothing can run is reported, and the others continue."""

    def missing() -> str:
        raise exported.NoProgram("node was not found")

    monkeypatch.setattr(exported, "CELLS", {"GRU": exported.CELLS["GRU"]})
    monkeypatch.setattr(exported, "SIZES", (4,))
    monkeypatch.setattr(exported, "STEPS", 5)
    monkeypatch.setattr(exported, "node_program", missing)
    with pytest.raises(SystemExit) as stop:
        cli.main(["bench", "export", "--runs", "1"])
    assert not stop.value.code
    streams = capsys.readouterr()
    head, _, row = streams.out.strip().splitlines()
    forms = [form.strip() for form in head.split("|")[2:-1]]
    assert forms == ["native", "ONNX Runtime", "C99", "C99, int8", "torch.nn"]
    assert row.startswith("| GRU, 4 |")
    assert "JavaScript: node was not found" in streams.err


@needs_node
def test_javascript_is_measured_as_often_as_it_is_asked(monkeypatch: Any) -> None:
    """By Node.js, which has read all of a sequence that is longer than a pipe."""
    monkeypatch.setattr(exported, "STEPS", 5000)
    subject = Subject(Recurrent("GRU", 4, 4), torch.zeros(5000, 1, 4), None)
    with FORMS["JavaScript"](subject) as ready:
        assert min(ready.seconds(), ready.seconds()) > 0
    assert ready.size > 0


def test_a_form_that_is_missing_is_a_dash() -> None:
    measurements = [Measured("a", 2, "C99", 1.5, 1000), Measured("b", 2, "torch.nn", 2.0, 0)]
    assert markdown(measurements).splitlines()[2:] == [
        "| a, 2 | 1.50 (1,000) | – |",
        "| b, 2 | – | 2.00 |",
    ]
