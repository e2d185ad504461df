"""Every metric agrees with scikit-learn's, or with its definition written out."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn import metrics as reference

from ensue.errors import DataError, OptionError
from ensue.metrics import classes as metrics
from ensue.metrics.spans import span_counts, span_scores
from ensue.tasks.evaluation.bootstrap import (
    STATISTICS,
    RowSums,
    bootstrap,
    intervals,
    paired_bootstrap,
)

CLASSES = 4
MANY = settings(max_examples=30)
NEAR = {"rel": 1e-9, "abs": 1e-12}


@st.composite
def answers(draw: st.DrawFn) -> tuple[NDArray[Any], NDArray[Any]]:
    """Gold and predicted classes, not always all of them there."""
    rows = draw(st.integers(1, 30))
    kinds = draw(st.integers(1, CLASSES))
    drawn = st.lists(st.integers(0, kinds - 1), min_size=rows, max_size=rows)
    return np.array(draw(drawn)), np.array(draw(drawn))


@st.composite
def claims(draw: st.DrawFn, classes: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Gold classes and probabilities, with ties and certainties among them."""
    rows = draw(st.integers(1, 20))
    seed = draw(st.integers(0, 2**31))
    random = np.random.default_rng(seed)
    p = random.integers(0, 4, (rows, classes)) + 0.0
    p[p.sum(1) == 0, 0] = 1
    return random.integers(0, classes, rows), p / p.sum(1, keepdims=True)


@MANY
@given(answers())
def test_one_class_of_many(pair: tuple[NDArray[Any], NDArray[Any]]) -> None:
    gold, predicted = pair
    assert metrics.accuracy(gold, predicted) == pytest.approx(
        reference.accuracy_score(gold, predicted), **NEAR
    )
    table = metrics.confusion(gold, predicted, CLASSES)
    labels = range(CLASSES)
    assert (table == reference.confusion_matrix(gold, predicted, labels=labels)).all()
    counts = metrics.class_counts(gold, predicted, CLASSES)
    assert (counts == metrics.row_counts(gold, predicted, CLASSES).sum(0)).all()
    scores = metrics.class_scores(counts)
    theirs = reference.precision_recall_fscore_support(
        gold, predicted, labels=labels, zero_division=0
    )
    for mine, other in zip(scores, theirs, strict=True):
        assert mine == pytest.approx(other, **NEAR)
    for average, function in (("micro", metrics.micro_f1), ("macro", metrics.macro_f1)):
        expected = reference.f1_score(gold, predicted, average=average, zero_division=0)
        assert function(counts) == pytest.approx(expected, **NEAR)


@MANY
@given(st.integers(1, 12), st.integers(0, 2**31))
def test_several_labels_at_once(rows: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    gold, predicted = random.integers(0, 2, (2, rows, 3))
    assert metrics.accuracy(gold, predicted) == pytest.approx(
        reference.accuracy_score(gold, predicted), **NEAR
    )
    counts = metrics.class_counts(gold, predicted, 3)
    for average, function in (("micro", metrics.micro_f1), ("macro", metrics.macro_f1)):
        expected = reference.f1_score(gold, predicted, average=average, zero_division=np.nan)
        assert function(counts) == pytest.approx(0 if np.isnan(expected) else expected, **NEAR)
    p = random.random((rows, 3))
    expected = np.mean([reference.log_loss(gold[:, k], p[:, k], labels=[0, 1]) for k in range(3)])
    assert metrics.log_loss(gold, p) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
@MANY
@given(data=st.data())
def test_probabilities(classes: int, data: st.DataObject) -> None:
    gold, p = data.draw(claims(classes))
    labels = list(range(classes))
    assert metrics.log_loss(gold, p) == pytest.approx(
        reference.log_loss(gold, p, labels=labels), rel=1e-9, abs=1e-12
    )
    theirs = reference.brier_score_loss(gold, p[:, 1] if classes == 2 else p, labels=labels)
    assert metrics.brier(gold, p) == pytest.approx(theirs, **NEAR)


@MANY
@given(claims(2))
def test_area_under_the_curve(pair: tuple[NDArray[Any], NDArray[Any]]) -> None:
    gold, p = pair
    if len(set(gold.tolist())) < 2:
        with pytest.raises(DataError, match="roc_auc: expected rows of both classes"):
            metrics.roc_auc(gold, p[:, 1])
    else:
        expected = reference.roc_auc_score(gold, p[:, 1])
        assert metrics.roc_auc(gold, p[:, 1]) == pytest.approx(expected, **NEAR)


@MANY
@given(claims(3), st.integers(1, 20))
def test_calibration_error_by_its_definition(
    pair: tuple[NDArray[Any], NDArray[Any]], bins: int
) -> None:
    gold, p = pair
    total = 0.0
    for k in range(bins):
        inside = [
            (row.argmax() == g, row.max())
            for g, row in zip(gold, p, strict=True)
            if k / bins < row.max() <= (k + 1) / bins
        ]
        if inside:
            right, sure = np.mean([r for r, _ in inside]), np.mean([s for _, s in inside])
            total += len(inside) / len(gold) * abs(right - sure)
    assert metrics.calibration_error(gold, p, bins) == pytest.approx(total, **NEAR)


@MANY
@given(answers(), st.integers(0, 2**31))
def test_the_order_of_rows_is_nothing(pair: tuple[NDArray[Any], NDArray[Any]], seed: int) -> None:
    gold, predicted = pair
    order = np.random.default_rng(seed).permutation(len(gold))
    counts = metrics.class_counts(gold, predicted, CLASSES)
    assert (counts == metrics.class_counts(gold[order], predicted[order], CLASSES)).all()
    assert metrics.accuracy(gold, predicted) == metrics.accuracy(gold[order], predicted[order])


def test_span_f1_of_counts_is_that_of_tags() -> None:
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "O"]]
    predicted = [["B-PER", "O", "O", "B-LOC"], ["B-LOC", "B-PER"]]
    total, _ = span_scores(gold, predicted)
    assert metrics.span_f1(span_counts(gold, predicted).sum(0)) == pytest.approx(total.f1)


def test_nothing_is_scored_as_nothing() -> None:
    none = np.zeros(0, np.int64)
    assert metrics.accuracy(none, none) == 0
    assert metrics.macro_f1(metrics.class_counts(none, none, 2)) == 0


def test_unequal_shapes_are_refused() -> None:
    message = "expected a prediction for each gold label, got (2,) gold and (3,) predicted"
    with pytest.raises(DataError, match=re.escape(message)):
        metrics.accuracy(np.zeros(2), np.zeros(3))


# --- intervals ---------------------------------------------------------------------------------


def test_an_interval_is_that_of_resampling_rows_one_by_one() -> None:
    random = np.random.default_rng(3)
    gold, predicted = random.integers(0, 3, (2, 40))
    interval = bootstrap(metrics.row_counts(gold, predicted, 3), metrics.macro_f1, seed=5, draws=50)
    draws = np.random.default_rng(5).integers(0, 40, (50, 40))
    scores = [
        reference.f1_score(gold[d], predicted[d], average="macro", zero_division=0) for d in draws
    ]
    assert (interval.low, interval.high) == pytest.approx(
        tuple(np.quantile(scores, [0.025, 0.975]))
    )
    assert interval.value == pytest.approx(
        reference.f1_score(gold, predicted, average="macro", zero_division=0)
    )


def test_an_interval_follows_from_its_seed_and_covers_the_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sums = np.stack([np.linspace(0, 1, 50), np.ones(50)], 1)
    one = bootstrap(sums, metrics.ratio, seed=1)
    assert one == bootstrap(sums, metrics.ratio, seed=1) != bootstrap(sums, metrics.ratio, seed=2)
    assert one.value == pytest.approx(0.5)
    assert 0.4 < one.low < one.value < one.high < 0.6
    wider = bootstrap(sums, metrics.ratio, seed=1, level=0.99)
    assert wider.low < one.low < one.high < wider.high
    monkeypatch.setattr(
        "ensue.tasks.evaluation.bootstrap._BLOCK", 500
    )  # in blocks it draws the same
    assert bootstrap(sums, metrics.ratio, seed=1) == one


def test_about_19_of_20_intervals_hold_the_truth() -> None:
    random = np.random.default_rng(0)
    covered = 0
    for trial in range(200):
        right = random.random(100) < 0.8
        sums = np.stack([right, np.ones(100)], 1)
        interval = bootstrap(sums, metrics.ratio, seed=trial, draws=200)
        covered += interval.low <= 0.8 <= interval.high
    assert 175 <= covered <= 199


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(DataError, match="bootstrap: expected rows to draw from, got none"):
        bootstrap(np.zeros((0, 2)), metrics.ratio, seed=1)
    with pytest.raises(OptionError, match=r"expected draws ≥ 1 and 0 < level < 1, got 0 and 0\.95"):
        bootstrap(np.zeros((1, 2)), metrics.ratio, seed=1, draws=0)


def test_an_endless_row_makes_those_draws_endless_that_have_it() -> None:
    sums = np.array([[1.0, 1.0]] * 30 + [[np.inf, 1.0]])
    interval = bootstrap(sums, metrics.ratio, seed=1)
    assert interval.value == np.inf
    assert (interval.low, interval.high) == (1.0, np.inf)
    every = bootstrap(np.full((9, 2), [np.inf, 1.0]), metrics.ratio, seed=1)
    assert tuple(every) == (np.inf, np.inf, np.inf)


# --- two models on the same rows ------------------------------------------------------------------

SHAPES = {"macro_f1": (3, 4), "span_f1": (3,), "bleu": (10,)}  # of a row; (2,) of the others


def added(statistic: str, rows: int, seed: int) -> RowSums:
    """What rows could add to a score of each kind: whole numbers ≥ 1."""
    shape = (rows, *SHAPES.get(statistic, (2,)))
    return RowSums(statistic, np.random.default_rng(seed).integers(1, 5, shape))


@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_paired_interval_is_that_of_scoring_both_on_each_draw(statistic: str) -> None:
    one, other = added(statistic, 30, 1), added(statistic, 30, 2)
    interval = paired_bootstrap(one, other, seed=7, draws=40)
    differences = [
        RowSums(statistic, other.values[rows]).score()
        - RowSums(statistic, one.values[rows]).score()
        for rows in np.random.default_rng(7).integers(0, 30, (40, 30))
    ]
    expected = (other.score() - one.score(), *np.quantile(differences, [0.025, 0.975]))
    assert tuple(interval) == pytest.approx(expected)
    assert intervals({"score": one}, 7)["score"].value == pytest.approx(one.score())


def correct(right: np.ndarray) -> RowSums:
    return RowSums("ratio", np.stack([right, np.ones(len(right))], 1))


def test_a_planted_difference_is_found_and_chance_is_not() -> None:
    """B corrects 30 of 1,000 answers of A and shares most of its mistakes: beyond chance, though
    the intervals of their scores overlap. C moves as many answers both ways."""
    random = np.random.default_rng(5)
    a = random.random(1000) < 0.8
    wrong, right = np.flatnonzero(~a), np.flatnonzero(a)
    b, c = a.copy(), a.copy()
    b[wrong[:40]], b[right[:10]] = True, False
    c[wrong[:25]], c[right[:25]] = True, False
    better = paired_bootstrap(correct(a), correct(b))
    assert better.value == pytest.approx(0.03)
    assert 0 < better.low < 0.03 < better.high
    alone = [intervals({"accuracy": correct(predictions)}, 1)["accuracy"] for predictions in (a, b)]
    assert alone[0].high > alone[1].low
    same = paired_bootstrap(correct(a), correct(c))
    assert same.low < 0 == same.value < same.high
    assert paired_bootstrap(correct(b), correct(a)).value == -better.value
    assert tuple(paired_bootstrap(correct(a), correct(a))) == (0, 0, 0)


def test_one_of_20_comparisons_of_equals_goes_beyond_chance() -> None:
    random = np.random.default_rng(0)
    beyond = 0
    for trial in range(200):
        one, other = (correct(random.random(100) < 0.8) for _ in range(2))
        interval = paired_bootstrap(one, other, seed=trial, draws=200)
        beyond += not interval.low <= 0 <= interval.high
    assert 3 <= beyond <= 25


def test_what_cannot_be_paired() -> None:
    with pytest.raises(DataError, match="paired bootstrap: expected the same rows, got 30 and 29"):
        paired_bootstrap(added("ratio", 30, 1), added("ratio", 29, 1))
    with pytest.raises(OptionError, match="unknown statistic 'ration': did you mean 'ratio'"):
        RowSums("ration", np.ones((1, 2)))
    endless = RowSums("exp_ratio", np.full((9, 2), [np.inf, 1.0]))
    interval = paired_bootstrap(endless, endless)
    assert np.isnan([interval.low, interval.high]).all()
    # other classes of the same rows: as many columns as each model has
    few = RowSums("macro_f1", metrics.row_counts(np.arange(6) % 2, np.arange(6) % 2, 2))
    more = RowSums("macro_f1", metrics.row_counts(np.arange(6) % 2, np.arange(6) % 3, 3))
    assert paired_bootstrap(few, more).value == more.score() - few.score() < 0


@pytest.mark.parametrize("rows", [1, 29, 1000])
def test_few_rows_that_are_all_right_leave_doubt(rows: int) -> None:
    ones = np.ones(rows)
    right, wrong = (np.stack([ones * share, ones], 1) for share in (1, 0))
    all_right = intervals({"accuracy": RowSums("ratio", right)}, seed=1)["accuracy"]
    assert (all_right.value, all_right.high) == (1, 1)
    assert all_right.low**rows == pytest.approx(0.025)  # the exact interval of a binomial share
    all_wrong = intervals({"exact": RowSums("ratio", wrong)}, seed=1)["exact"]
    assert (all_wrong.low, all_wrong.high) == (0, pytest.approx(1 - all_right.low))
    errors = intervals({"mae": RowSums("ratio", right)}, seed=1)["mae"]  # 1 is no share here
    assert errors == (1, 1, 1)
