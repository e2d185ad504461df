"""Two texts and what they are to each other: the comparison, its baseline, how it is recognised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from ensue import Matcher
from ensue.data.vocabulary import Vocabulary
from ensue.errors import DataError
from ensue.runs.infer import infer
from ensue.tasks.supervised.inputs.pair import BINS, Attended, overlap_rows

WORDS = [f"w{k}" for k in range(14)]
SMALL = {"hidden_size": 10, "embedding_size": 8, "compared_size": 8, "dropout_input": 0.0}
Pairs = list[tuple[tuple[str, str], Any]]


def pairs(count: int, seed: int, score: bool = False) -> Pairs:
    """The second text has words of the first, or none of them; or the share of them as a score."""
    draw = np.random.default_rng(seed)
    rows: Pairs = []
    for k in range(count):
        first = list(draw.choice(WORDS, 5, replace=False))
        others = [word for word in WORDS if word not in first]
        shared = int(draw.integers(4)) if score else 3 * (k % 2)
        second = [*draw.choice(first, shared, replace=False), *draw.choice(others, 3 - shared)]
        draw.shuffle(second)
        label: Any = shared / 3 if score else ("other", "same")[k % 2]
        rows.append(((" ".join(first), " ".join(second)), label))
    return rows


def fitted(train: Pairs, validation: Pairs, epochs: int = 30, **settings: Any) -> Matcher:
    model = Matcher(
        model={**SMALL, **settings}, train={"epochs": epochs, "rate": 0.02, "patience": "off"}
    )
    return model.fit(train, validation)


# --- the comparison -----------------------------------------------------------------------------


def test_attention_between_two_sides_is_its_formula() -> None:
    torch.manual_seed(1)
    layer = Attended(3).double()
    y, other = torch.randn(4, 2, 3).double(), torch.randn(5, 2, 3).double()
    lengths = [5, 2]
    real = torch.arange(5)[:, None] < torch.tensor(lengths)
    output = layer(y, other, real)
    for row, length in enumerate(lengths):
        for t in range(4):
            memory = other[:length, row]
            weights = ((memory @ y[t, row]) / 3**0.5).softmax(0)
            c = weights @ memory
            a = y[t, row]
            expected = layer.compare(torch.cat([a, c, (a - c).abs(), a * c])).relu()
            assert_close(output[t, row], expected)


def test_an_empty_other_side_is_zero_and_learns() -> None:
    layer = Attended(3).double()
    y = torch.randn(4, 1, 3).double().requires_grad_()
    other = torch.randn(5, 1, 3).double().requires_grad_()
    output = layer(y, other, torch.zeros(5, 1, dtype=torch.bool))
    zero = torch.zeros_like(y)
    expected = layer.compare(torch.cat([y, zero, y.abs(), zero], -1)).relu()
    assert_close(output, expected)
    output.sum().backward()
    for side in (y, other):
        assert side.grad is None or side.grad.isfinite().all()


@pytest.mark.parametrize("compare", ["vectors", "attention"])
def test_both_comparisons_tell_shared_words(compare: str) -> None:
    model = fitted(pairs(240, 1), pairs(60, 2), compare=compare)
    evaluation = model.evaluate(pairs(100, 3))
    assert evaluation.scores["accuracy"].value > 0.7 > evaluation.baselines["majority class"]
    assert evaluation.baselines["linear on overlap"] > 0.9, "overlap tells it all"
    alone = [model.predict([pair])[0] for pair, _ in pairs(9, 4)]
    together = model.predict([pair for pair, _ in pairs(9, 4)])
    for one, many in zip(alone, together, strict=True):
        assert one.label == many.label
        assert one.probabilities == pytest.approx(many.probabilities, abs=1e-5)


def test_a_score_is_a_number_with_its_interval() -> None:
    model = fitted(pairs(240, 1, score=True), pairs(60, 2, score=True))
    evaluation = model.evaluate(pairs(80, 3, score=True))
    assert evaluation.scores["rmse"].value < evaluation.baselines["mean"]
    answer = model.predict([("w1 w2 w3 w4 w5", "w1 w2 w3")])[0]
    assert answer.low < answer.value < answer.high


def test_the_order_of_the_sides_matters() -> None:
    model = fitted(pairs(40, 1), pairs(10, 2), epochs=1)
    (one, other), _ = pairs(1, 5)[0]
    forth, back = (model.predict([pair])[0].probabilities for pair in ((one, other), (other, one)))
    assert forth != pytest.approx(back, abs=1e-7)


# --- the baseline -------------------------------------------------------------------------------


def test_what_the_linear_model_reads() -> None:
    model = fitted(pairs(20, 1), pairs(6, 2), epochs=1)
    words = Vocabulary.build({"a": 3, "b": 2, "c": 1}, min_count=1)
    part = model.reader.labelled([(("a b", "b c"), "same")])
    count, a, b, c = len(words), *words.ids(["a", "b", "c"])
    border = 3 * count
    half = round(BINS / 2)
    assert overlap_rows(part, words).row(0).tolist() == [
        *(a, b, border, b + count, c + count, border, b + 2 * count, border),
        border + 1 + half,  # of the first side's words, the other has half
        border + 2 + BINS + half,
    ]


# --- recognised, read, refused ------------------------------------------------------------------


def write(path: Path, header: str, count: int = 40) -> str:
    rows = [f"{one},{other},{label}" for (one, other), label in pairs(count, 1)]
    path.write_text("\n".join([header, *rows]) + "\n")
    return str(path)


@pytest.mark.parametrize("header", ["premise,hypothesis,label", "question1,question2,duplicate"])
def test_well_known_columns_are_recognised(header: str, tmp_path: Path) -> None:
    config = infer({"train": [write(tmp_path / "p.csv", header)]}, None, []).config
    first, second, label = header.split(",")
    assert config.task == "match"
    assert (config.data.text, config.data.second, config.data.label) == (first, second, label)


def test_columns_of_other_names_are_named_or_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "p.csv", "left,right,verdict")
    data = infer({"train": [path]}, "match", []).config.data
    assert (data.text, data.second, data.label) == ("left", "right", "verdict")
    with pytest.raises(DataError, match="Name them with --text and --second"):
        infer({"train": [path], "text": "left"}, "match", [])
    tables = {"train": [path], "text": "left", "second": "right", "label": "verdict"}
    assert infer(tables, None, []).config.task == "match"


@pytest.mark.parametrize("question", ["one text", ("one",), ("a", "b", "c")])
def test_what_is_no_pair_is_refused(question: Any) -> None:
    with pytest.raises(DataError, match="row:1: expected two texts or sequences"):
        next(iter(Matcher().reader.examples([(question, "same")])))


def test_a_line_needs_its_tab() -> None:
    model = fitted(pairs(20, 1), pairs(6, 2), epochs=1)
    with pytest.raises(DataError, match="standard input: expected two texts with a tab between"):
        model.reader.question_lines(["no tab here"])
    with pytest.raises(DataError, match="standard input: expected two texts with a tab between"):
        model.reader.question_lines(["one\ttwo\tthree"])
    part = model.reader.question_lines(["a b\tb c"])
    assert len(part) == 1
    assert model.reader.shown_line("a b\tb c") == ("a b", "b c")
