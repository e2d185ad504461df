"""The end of `ensue train`: how good, against which baseline, and what comes next."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from ensue.tasks.evaluation.bootstrap import Interval, RowSums, intervals
from ensue.tasks.evaluation.report import Evaluation
from ensue.tasks.evaluation.summary import (
    NETWORK_ALONE,
    difference_text,
    summary_lines,
    summary_of,
)

ROWS = 200
RIGHT = np.arange(ROWS) % 10 < 9  # 0.9
BASELINE = np.arange(ROWS) % 10 < 6  # 0.6, right where the model is right


def sums(right: np.ndarray, statistic: str = "ratio") -> RowSums:
    return RowSums(statistic, np.stack([right, np.ones(ROWS)], 1))


def evaluation(higher: bool = True) -> Evaluation:
    by_name = {"accuracy" if higher else "mae": sums(RIGHT)}
    return Evaluation(
        rows=ROWS,
        steps=ROWS,
        scores=intervals(by_name, seed=1),
        others={},
        baselines={"majority class": 0.3, "linear": 0.6, NETWORK_ALONE: 0.95},
        baseline_sums={"linear": sums(BASELINE)},
        classes=(),
        confusion=(),
        worst=(),
        higher_is_better=higher,
        sums=by_name,
    )


def test_the_strongest_baseline_is_shown_with_a_paired_interval() -> None:
    """The network of the model itself is no baseline, however good it is."""
    summary = summary_of(evaluation())
    assert (summary.name, summary.baseline, summary.baseline_score) == ("accuracy", "linear", 0.6)
    value, low, high = summary.difference
    assert value == pytest.approx(0.3)
    assert 0.2 < low < value < high < 0.4
    lines = summary_lines(summary, "accuracy", [{"accuracy": 0.95}], {"accuracy": 0.9, "cost": 0.3})
    assert lines == [
        f"accuracy       0.9000  95 % interval {summary.score.low:.4f} … {summary.score.high:.4f}",
        f"linear         0.6000  model better by 0.3000 ({low:.4f} … {high:.4f})",
        "network alone  0.9500",
        "further scores: cost 0.3000",
    ]


def test_of_a_lower_score_the_least_baseline_is_the_strongest() -> None:
    summary = summary_of(replace(evaluation(higher=False), baselines={"mean": 0.8, "linear": 0.6}))
    assert summary.baseline == "linear"
    assert summary.difference.value == pytest.approx(-0.3)
    assert difference_text(summary.difference).startswith("model worse by 0.3000 (0.2")


def test_a_difference_within_its_interval_may_be_chance() -> None:
    assert difference_text(Interval(0.01, -0.02, 0.03)).endswith(
        "(-0.0200 … 0.0300), may be chance"
    )
    assert difference_text(Interval(0.01, math.nan, math.nan)) == "model better by 0.0100"
    assert difference_text(Interval(0.0, 0.0, 0.0)) == "no difference"
    assert difference_text(Interval(math.inf, math.nan, math.nan)) == ""


def test_scores_without_a_baseline_or_a_summary_stay_short() -> None:
    alone = summary_of(replace(evaluation(), baselines={}))
    assert len(summary_lines(alone, "accuracy", [{"accuracy": 0.9}], {})) == 1
    scores = {"exact": 0.25, "cost": 1.5}
    lines = summary_lines(None, "exact", [scores], {})
    assert lines == ["exact  0.2500", "further scores: cost 1.5000"]
    several = summary_lines(None, "exact", [scores, {"exact": 0.5, "cost": 1.0}], {})
    assert several == ["networks alone  0.2500  0.5000"]
    assert summary_lines(None, "exact", [{}], {}) == []


def test_scores_of_another_unit_are_named_as_scaled() -> None:
    """A forecaster is trained on scaled numbers, and compared in those of the data."""
    summary = summary_of(evaluation(higher=False))
    lines = summary_lines(
        summary, "error", [{"mae": 0.1, "error": 0.02}], {"mae": 0.1, "error": 0.02}
    )
    assert lines[-1] == "scaled scores: error 0.0200, mae 0.1000"
    assert not any("alone" in line for line in lines)


def test_baseline_sums_are_not_kept() -> None:
    assert "baseline_sums" not in evaluation().as_json()
