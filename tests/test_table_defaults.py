"""Tables by default: the linear model in the answer, a threshold for rare classes, identifiers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ensue import TableModel
from ensue.errors import ConfigError, DataError
from ensue.metrics.classes import class_counts, macro_f1
from ensue.tasks.baselines.regression import Regression
from ensue.tasks.supervised.task import FEWEST, cross_fitted_threshold, fitted_threshold
from ensue.tasks.targets.classes import ClassTarget
from ensue.training import Notice

Rows = list[dict[str, Any]]
FAST = {"epochs": 3, "rate": 0.01}
SMALL = {"hidden": [4], "batch_rows": 32}


def churn(many: int, seed: int) -> Rows:
    """About 9 % leave, by two columns, with much noise."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(many, 3))
    z = 1.3 * x[:, 0] - 1.3 * x[:, 1] - 3.2
    leaves = draw.random(many) < 1 / (1 + np.exp(-z))
    return [
        {"a": float(a), "b": float(b), "c": float(c), "churn": "yes" if out else "no"}
        for (a, b, c), out in zip(x, leaves, strict=True)
    ]


def fitted(**model: Any) -> TableModel:
    return TableModel(model={**SMALL, **model}, train=FAST).fit(
        churn(900, 1), churn(300, 2), target="churn"
    )


def test_a_rare_class_is_answered() -> None:
    rows = churn(600, 3)
    evaluation, before = (model.evaluate(rows) for model in (fitted(), fitted(threshold="off")))
    assert evaluation.scores["macro_f1"].value > before.scores["macro_f1"].value + 0.05
    assert any("from probability" in note for note in evaluation.notes)
    recall = {row.name: row.recall for row in evaluation.classes}
    assert recall["yes"] > 0.3


def test_a_rare_class_is_answered_by_a_small_table() -> None:
    """Its validation part has six rows of that class: too few to fit a threshold to."""

    def small(**model: Any) -> TableModel:
        model_small = TableModel(model={**SMALL, **model}, train=FAST)
        return model_small.fit(churn(480, 1), churn(60, 5), target="churn")

    rows = churn(600, 3)
    evaluation, before = (model.evaluate(rows) for model in (small(), small(threshold="off")))
    assert evaluation.scores["macro_f1"].value > before.scores["macro_f1"].value + 0.03
    assert any("from probability" in note for note in evaluation.notes)


def test_a_cross_fitted_threshold_holds_on_new_rows() -> None:
    def drawn(many: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
        rows = churn(many, seed)
        x = torch.tensor([[row[name] for name in "abc"] for row in rows], dtype=torch.float64)
        return x, torch.tensor([int(row["churn"] == "yes") for row in rows])

    x, y = drawn(480, 1)
    best_threshold = cross_fitted_threshold(x, y, 1, 1e-3)
    assert best_threshold is not None
    new, gold = drawn(4000, 2)
    p = Regression(3, 2, "softmax").double().solve(x, y, 1e-3).answers(new).detach().numpy()[:, 1]
    usual, fitted_one = (
        macro_f1(class_counts(gold.numpy(), (p >= threshold).astype(np.int64), 2))
        for threshold in (0.5, best_threshold)
    )
    assert fitted_one > usual + 0.02
    y[:] = 0
    y[: FEWEST - 1] = 1
    assert cross_fitted_threshold(x, y, 1, 1e-3) is None


def test_a_threshold_is_kept_and_decides(tmp_path: Path) -> None:
    model = fitted(threshold=0.2)
    target = model.learned.target
    assert isinstance(target, ClassTarget)
    assert target.threshold == 0.2
    rows = churn(50, 4)
    answers = model.predict(rows)
    for answer in answers:
        assert (answer.label == "yes") == (answer.probabilities["yes"] >= 0.2)
        assert sum(answer.probabilities.values()) == pytest.approx(1)
    model.save(tmp_path / "model")
    assert TableModel.load(tmp_path / "model").predict(rows) == answers
    assert model.predict(rows[:1]) == answers[:1]


def test_a_threshold_is_a_share() -> None:
    for wrong in (0.0, 1.0, "always"):
        with pytest.raises(ConfigError, match="threshold"):
            TableModel(model={"threshold": wrong})


def test_few_rows_or_nothing_won_leave_the_more_probable_class() -> None:
    draw = np.random.default_rng(1)
    gold = (draw.random(400) < 0.5).astype(np.int64)
    sure = np.where(gold == 1, 0.9, 0.1)
    assert fitted_threshold(np.stack([1 - sure, sure], 1), gold, 1) is None
    few = np.zeros(100, np.int64)
    few[: FEWEST - 1] = 1
    assert fitted_threshold(np.full((100, 2), 0.5), few, 1) is None


def test_the_threshold_is_that_of_the_best_macro_f1() -> None:
    draw = np.random.default_rng(2)
    p = draw.beta(1, 8, 4000)
    gold = (draw.random(4000) < p).astype(np.int64)
    best_threshold = fitted_threshold(np.stack([1 - p, p], 1), gold, 1)
    assert best_threshold is not None

    def score(threshold: float) -> float:
        return float(macro_f1(class_counts(gold, (p >= threshold).astype(np.int64), 2)))

    best = max(score(k / 100) for k in range(2, 51))
    assert score(best_threshold) > best - 0.01 > score(0.5)


def test_the_linear_model_answers_with_the_network() -> None:
    """With one epoch the network has learned next to nothing."""
    draw = np.random.default_rng(5)
    x = draw.normal(size=(700, 4))
    rows = [
        {**{f"x{k}": float(v) for k, v in enumerate(row)}, "y": "ab"[int(row @ [1, -1, 1, 1] > 0)]}
        for row in x
    ]
    slow = {"epochs": 1, "rate": 1e-5}
    model = TableModel(model=SMALL, train=slow).fit(rows[:500], rows[500:600], target="y")
    evaluation = model.evaluate(rows[600:])
    assert evaluation.scores["accuracy"].value > 0.93
    assert evaluation.baselines["network alone"] < 0.9
    assert abs(evaluation.baselines["linear model"] - evaluation.scores["accuracy"].value) < 0.05
    alone = TableModel(model={**SMALL, "linear_share": 0.0}, train=slow)
    alone.fit(rows[:500], rows[500:600], target="y")
    assert "network alone" not in alone.evaluate(rows[600:]).baselines


def test_identifiers_are_not_read_unless_told() -> None:
    rows = [{"customer_id": 1000 + 7 * k % 997, **row} for k, row in enumerate(churn(200, 6))]
    model = TableModel(model=SMALL, train={"epochs": 1}).fit(rows, target="churn")
    assert model.settings.leave_out == ["customer_id"]
    assert "customer_id" not in {number.name for number in model.learned.input.columns.numbers}
    assert model.predict([{k: v for k, v in rows[0].items() if k != "customer_id"}])
    reading_all = TableModel(model={**SMALL, "leave_out": []}, train={"epochs": 1})
    reading_all.fit(rows, target="churn")
    assert "customer_id" in {number.name for number in reading_all.learned.input.columns.numbers}
    repeated = [{"customer_id": k % 20, **row} for k, row in enumerate(churn(200, 6))]
    again = TableModel(model=SMALL, train={"epochs": 1}).fit(repeated, target="churn")
    assert again.settings.leave_out == []


def test_empty_cells_are_learned_with_and_said() -> None:
    """The first command had stopped at them, and named a setting."""
    rows = [{**row, "plan": "pro" if k % 3 else "basic"} for k, row in enumerate(churn(200, 6))]
    for k in range(0, 200, 9):
        rows[k]["a"] = None
        rows[k]["plan"] = ""
        del rows[k + 1]["b"]  # objects of JSON may lack a field
    heard: list[str] = []
    model = TableModel(model=SMALL, train={"epochs": 1}).fit(
        rows[:170],
        rows[170:],
        target="churn",
        watchers=[lambda event: heard.append(event.text) if isinstance(event, Notice) else None],
    )
    assert "empty cells in a (19), b (19), plan (19): numbers become" in "\n".join(heard)
    assert {number.name for number in model.learned.input.columns.numbers if number.indicator} == {
        "a",
        "b",
    }
    assert "" in model.learned.input.columns.categories[0].categories
    refusing = TableModel(model={**SMALL, "missing": "error"}, train={"epochs": 1})
    heard.clear()
    with pytest.raises(DataError, match="3 columns of the table cannot be read"):
        refusing.fit(
            rows,
            target="churn",
            watchers=[
                lambda event: heard.append(event.text) if isinstance(event, Notice) else None
            ],
        )
    assert not any("with an indicator" in text for text in heard)
