"""An input and a target from outside of Ensue, as their pages show them, work with all others."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from test_matrix import INPUTS, SMALL

import ensue
from ensue.errors import DataError, OptionError
from ensue.export.model import TracedModel
from ensue.tasks.targets.kinds import TARGETS

HOWTO = Path(__file__).parent.parent / "docs" / "howto"
TRAIN = {"epochs": 2, "rate": 0.02, "device": "cpu", "watch": "mae"}


def code_of(page: str) -> dict[str, Any]:
    """What the Python blocks of a page define; the last one trains, and is left out."""
    blocks = re.findall(r"```python\n(.*?)```", (HOWTO / page).read_text("utf-8"), flags=re.S)
    code = "\n".join(blocks if page == "input.md" else blocks[:-1])
    module = ModuleType(f"page_{Path(page).stem}")
    sys.modules[module.__name__] = module  # where dataclasses look for their module
    exec(compile(code.partition("draw = np.random")[0], page, "exec"), vars(module))
    return vars(module)


@pytest.fixture(scope="module", autouse=True)
def counts() -> Iterator[None]:
    """A count is one of the targets, for as long as these tests run."""
    code_of("target.md")
    yield
    del TARGETS["count"]


@pytest.fixture(scope="module")
def cloud_model() -> type[ensue.Model[Any, Any, Any]]:
    model: type[ensue.Model[Any, Any, Any]] = code_of("input.md")["CloudModel"]
    return model


def clouds(count: int, seed: int) -> list[np.ndarray[Any, Any]]:
    draw = np.random.default_rng(seed)
    return [draw.normal(size=(3 + k % 4, 3)).astype(np.float32) for k in range(count)]


def check_model(model: Any, rows: list[Any], question: Any, folder: Path) -> None:
    """Answers, evaluates, explains, and is the same when it is loaded."""
    (answer,) = model.predict([question])
    assert np.isfinite(getattr(answer, "expected", getattr(answer, "value", 0.0)))
    assert model.evaluate(rows).rows == len(rows)
    assert model.explain(question).as_text(80, False).strip()
    model.save(folder / "model")
    assert type(model).load(folder / "model").predict([question]) == [answer]


@pytest.mark.parametrize("reads", ["text", "pair", "columns", "picture", "tree"])
def test_a_target_of_your_own_works_with_every_input(reads: str, tmp_path: Path) -> None:
    row, draw = INPUTS[reads], random.Random(1)
    model = row.models("number")(model={**row.settings, "target": "count"}, train=TRAIN)
    questions = [row.question(draw, bool(k % 2)) for k in range(40)]
    rows: list[Any] = [(question, str(k % 4)) for k, question in enumerate(questions)]
    if reads == "columns":
        rows = [{**question, "answer": label} for question, label in rows]
    model.fit(rows, **({"target": "answer"} if reads == "columns" else {}))
    assert model.learned.target.kind == "count"
    check_model(model, rows, questions[0], tmp_path)
    with pytest.raises(OptionError, match=r"a custom target without"):
        TracedModel(model.exported())


@pytest.mark.parametrize("predicts", ["class", "several", "number", "count"])
def test_an_input_of_your_own_works_with_every_target(
    predicts: str, cloud_model: type[ensue.Model[Any, Any, Any]], tmp_path: Path
) -> None:
    labels = {"several": lambda k: ["a", "b"][: 1 + k % 2], "class": lambda k: "ab"[k % 2]}
    label = labels.get(predicts, str)
    rows = [(points, label(k)) for k, points in enumerate(clouds(40, 1))]
    watch = "mae" if predicts in ("number", "count") else "accuracy"
    settings = {"target": predicts, "hidden_size": SMALL["hidden_size"]}
    model = cloud_model(model=settings, train={**TRAIN, "watch": watch}).fit(rows)
    check_model(model, rows, clouds(1, 2)[0], tmp_path)


def test_what_is_no_count_is_named() -> None:
    model = ensue.Regressor(model={**SMALL, "target": "count"}, train=TRAIN)
    rows = [("a fine film", "2"), ("a dull film", "0.5")] * 10
    with pytest.raises(DataError, match=r"expected a count, got 0\.5; correct the row"):
        model.fit(rows, rows)
