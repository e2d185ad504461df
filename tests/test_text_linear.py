"""The linear member of a model of texts: features, solver, choice, and its place in the answer."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import commands_in
from numpy.typing import NDArray
from torch import Tensor
from torch.testing import assert_close

from ensue import Classifier, Regressor, load
from ensue.data.ragged import Ragged
from ensue.tasks.baselines import margin, sparse, text_features, text_linear
from ensue.tasks.baselines.margin import (
    Margins,
    RowWeights,
    along_strengths,
    row_weights_along,
    solve_by_rows,
)
from ensue.tasks.baselines.sparse import SparseMatrix, side_by_side
from ensue.tasks.baselines.text_features import LETTERS, WORDS, TextFeatures, Texts
from ensue.tasks.baselines.text_linear import fit_text_linear, fit_text_ridge, most_telling
from ensue.tasks.codec import packed, unpacked
from ensue.tasks.rows.reader import level_of


def texts(rows: list[str]) -> Texts:
    words = sorted({word for row in rows for word in row.split()})
    numbers = [[words.index(word) for word in row.split()] for row in rows]
    return Texts(words, Ragged.of(numbers, np.int32))


def dense(x: SparseMatrix) -> NDArray[np.float64]:
    matrix = np.zeros((len(x), x.width))
    matrix[x.rows, x.columns.values] = x.values
    return matrix


def drawn(seed: int, rows: int, width: int) -> SparseMatrix:
    chance = np.random.default_rng(seed)
    columns = [np.flatnonzero(chance.random(width) < 0.4).astype(np.int32) for _ in range(rows)]
    inside = Ragged.of(columns, np.int32)
    return SparseMatrix(inside, chance.normal(size=len(inside.values)).astype(np.float32), width)


# --- features ------------------------------------------------------------------------------------


def by_hand(rows: list[str], kind: str) -> NDArray[np.float64]:
    """TF-IDF from its definition, columns in any order."""

    def ngrams(row: str) -> list[str]:
        words = row.split()
        if kind == WORDS:
            return words + [f"{a} {b}" for a, b in pairwise(words)]
        padded = [f" {word} " for word in words]
        return [w[k : k + n] for w in padded for n in range(2, 6) for k in range(len(w) - n + 1)]

    counts = [Counter(ngrams(row)) for row in rows]
    known = sorted({feature for row in counts for feature in row})
    idf = {
        feature: 1 + math.log((1 + len(rows)) / (1 + sum(feature in row for row in counts)))
        for feature in known
    }
    values = np.array(
        [
            [
                (1 + math.log(row[feature])) * idf[feature] if row[feature] else 0
                for feature in known
            ]
            for row in counts
        ]
    )
    return values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-30)


ROWS = ["a fine fine film", "dull", "", "a dull film a film", "naïve 東京 café"]


@pytest.mark.parametrize("kind", [WORDS, LETTERS])
def test_features_are_tf_idf(kind: str) -> None:
    _, x = TextFeatures.learn(texts(ROWS), (kind,))
    expected = by_hand(ROWS, kind)
    matrix = dense(x)
    assert matrix.shape == expected.shape
    # columns have another order: products of rows have none
    np.testing.assert_allclose(matrix @ matrix.T, expected @ expected.T, atol=1e-6)


@pytest.mark.parametrize("kinds", [(WORDS,), (LETTERS,), (WORDS, LETTERS)])
def test_a_row_alone_has_the_features_that_it_has_among_others(kinds: tuple[str, ...]) -> None:
    features, x = TextFeatures.learn(texts(ROWS), kinds)
    alone = np.concatenate([dense(features.matrix(texts([row]))) for row in ROWS])
    np.testing.assert_array_equal(alone, dense(x))
    again = unpacked(TextFeatures, packed(features))
    np.testing.assert_array_equal(dense(again.matrix(texts(ROWS))), dense(x))


def test_words_that_were_not_seen_have_no_column() -> None:
    features, _ = TextFeatures.learn(texts(ROWS), (WORDS,))
    assert not dense(features.matrix(texts(["unheard of"]))).any()


def test_of_too_many_columns_those_of_one_row_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_features, "MOST_COLUMNS", 3)
    features, x = TextFeatures.learn(texts(ROWS), (WORDS,))
    assert len(features) == x.width == 3  # a, dull, film
    assert dense(x)[2].sum() == 0


def test_products_are_those_of_the_dense_matrix() -> None:
    x, y = drawn(1, 7, 5), drawn(2, 7, 4)
    both = side_by_side([x, y])
    whole = np.concatenate([dense(x), dense(y)], 1)
    np.testing.assert_allclose(dense(both), whole)
    w, r = torch.randn(9, 3), torch.randn(7, 3)
    assert_close(both.times(w).double(), torch.from_numpy(whole) @ w.double(), atol=1e-5, rtol=0)
    assert_close(
        both.transposed_times(r).double(),
        torch.from_numpy(whole).T @ r.double(),
        atol=1e-5,
        rtol=0,
    )
    rows = np.array([3, 0, 3])
    np.testing.assert_array_equal(dense(both.take(rows)), dense(both)[rows])


def planted(count: int, seed: int = 1) -> tuple[list[str], NDArray[np.int64]]:
    """Of each class a few words speak, among many that say nothing."""
    chance = random.Random(seed)
    noise = [f"n{k}" for k in range(60)]
    rows, classes = [], []
    for _ in range(count):
        label = chance.randrange(3)
        words = [chance.choice(noise) for _ in range(6)] + [f"tell{label}{chance.randrange(4)}"]
        chance.shuffle(words)
        rows.append(" ".join(words))
        classes.append(label)
    return rows, np.array(classes)


def planted_parts(train: int, validation: int) -> tuple[Texts, Texts, NDArray[np.int64]]:
    """Rows to learn from and to validate on, and the classes of both."""
    rows, classes = planted(train + validation)
    whole = texts(rows)
    first, second = np.arange(train), np.arange(train, train + validation)
    cut = [Texts(whole.words, whole.rows.take(indices)) for indices in (first, second)]
    return cut[0], cut[1], classes


# --- solver --------------------------------------------------------------------------------------


STRENGTHS = (0.1, 1.0, 3.0)


def over_rows(x: SparseMatrix, signs: Tensor, strengths: tuple[float, ...]) -> Iterator[Margins]:
    for weights_over_rows in row_weights_along(x.row_products, signs, strengths):
        yield Margins(
            x.transposed_times(weights_over_rows.beta.float()), weights_over_rows.bias.float()
        )


@pytest.mark.parametrize(("solve", "least"), [(along_strengths, 0.02), (over_rows, 5e-3)])
@pytest.mark.parametrize("rows", [9, 40])
def test_margins_are_the_minimum_of_their_cost(
    solve: Callable[..., Iterator[Margins]], least: float, rows: int
) -> None:
    """The gradient of ½‖w‖² + C·Σ max(0, 1 − y·f)², by autograd in float64, is nearly zero."""
    x = drawn(3, rows, 12)
    signs = torch.from_numpy(np.random.default_rng(4).choice([-1.0, 1.0], (rows, 3))).float()
    path = solve(x, signs, STRENGTHS)
    for strength, margins in zip(STRENGTHS, path, strict=True):
        w = margins.weights.double().requires_grad_()
        b = margins.bias.double().requires_grad_()
        f = torch.from_numpy(dense(x)) @ w + b
        cost = 0.5 * (w * w).sum() + strength * (1 - signs * f).clamp(min=0).square().sum()
        for slope in torch.autograd.grad(cost, [w, b]):
            assert float(slope.abs().max()) < least * max(1, strength)


def test_products_of_rows_are_those_of_the_dense_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "PIECE", 3)
    x = drawn(5, 7, 6)
    np.testing.assert_allclose(x.row_products, dense(x) @ dense(x).T, atol=1e-5)


@pytest.mark.parametrize("signs", [[1.0] * 6, [1.0] * 5 + [-1.0]], ids=["one class", "one row"])
def test_margins_over_rows_of_classes_that_hardly_differ(signs: list[float]) -> None:
    """Where no row is inside of the margin, the shortest weights answer: none at all."""
    x = drawn(6, 6, 4)
    y = torch.tensor(signs)[:, None]
    for margins in over_rows(x, y, (0.1, 1e4)):
        assert bool(margins.weights.isfinite().all())
        if len(set(signs)) == 1:
            assert_close(margins.weights, torch.zeros(4, 1))
            assert_close(margins.bias, torch.ones(1))


def test_a_step_over_rows_never_raises_the_cost() -> None:
    """From a bad start, with rows that are nearly the same: where the margin's rows change much."""
    chance = torch.Generator().manual_seed(3)
    wide = torch.randn(30, 4, dtype=torch.float64, generator=chance) + 5
    products, signs = wide @ wide.T, torch.randn(30, 2, generator=chance).sign().double()
    zero = RowWeights(torch.zeros_like(signs), signs.new_zeros(2))
    far = RowWeights(10 * torch.randn(30, 2, dtype=torch.float64, generator=chance), zero.bias)
    best = solve_by_rows(products, signs, 1e3, zero).scores(products)
    assert_close(solve_by_rows(products, signs, 1e3, far).scores(products), best)


def test_few_rows_are_solved_over_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick way ran, and answers as the other one."""
    train, validation, classes = planted_parts(220, 40)
    ran: list[int] = []

    def solved(products: Tensor, *arguments: Any) -> RowWeights:
        ran.append(len(products))
        return solve_by_rows(products, *arguments)

    monkeypatch.setattr(margin, "solve_by_rows", solved)
    quick = fit_text_linear(train, validation, classes, 3).out_of_sample
    assert ran
    ran.clear()
    monkeypatch.setattr(text_linear, "BY_ROWS", 0)
    slow = fit_text_linear(train, validation, classes, 3).out_of_sample
    assert not ran
    assert_close(quick.softmax(1), slow.softmax(1), atol=5e-3, rtol=0)


# --- the whole -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("train", "validation"), [(150, 30), (400, 100), (3000, 300)])
def test_planted_words_are_found_and_probabilities_keep_their_word(
    train: int, validation: int
) -> None:
    *parts, classes = planted_parts(train, validation)
    fitted = fit_text_linear(*parts, classes, 3)
    assert fitted.out_of_sample.shape == (validation, 3)
    right = (fitted.out_of_sample.argmax(1).numpy() == classes[train:]).mean()
    assert right > 0.9
    fresh, labels = planted(300, seed=2)
    z = fitted.model.scores(texts(fresh))
    assert (z.argmax(1).numpy() == labels).mean() > 0.9
    sure = z.softmax(1).max(1).values.mean()
    assert abs(float(sure) - (z.argmax(1).numpy() == labels).mean()) < 0.1
    telling = most_telling(fitted.model, parts[0], ["a", "b", "c"])
    assert all(word.startswith("tell1") for word in telling["b"][:3])


def test_a_number_is_found_too() -> None:
    *parts, classes = planted_parts(400, 100)
    values = (classes - 1.0) * 1.2
    fitted = fit_text_ridge(*parts, values)
    wrong = fitted.out_of_sample[:, 0].numpy() - values[400:]
    assert np.mean(wrong**2) < 0.3 * values.var()


# --- in the answer -------------------------------------------------------------------------------

QUICK = {"hidden_size": 8, "embedding_size": 8}


def linear_only(count: int, seed: int = 1) -> list[tuple[str, str]]:
    """Many telling words, each seen a few times: a small network has no time to learn them."""
    rows, classes = planted(count, seed)
    return [(row, "abc"[number]) for row, number in zip(rows, classes, strict=True)]


def network_only(count: int, seed: int = 1) -> list[tuple[str, str]]:
    """Which of two words comes first, with words between: no n-gram of one or two words tells."""
    chance = random.Random(seed)
    rows = []
    for k in range(count):
        first, last = ("up", "down") if k % 2 else ("down", "up")
        between = [chance.choice("xyz") for _ in range(3)]
        rows.append((" ".join([first, *between, last]), str(k % 2)))
    return rows


@pytest.mark.parametrize("rows", [linear_only, network_only])
def test_the_answer_is_as_good_as_the_better_of_both(rows: object) -> None:
    train, test = rows(600), rows(400, 2)  # type: ignore[operator]
    model = Classifier(model=QUICK, train={"epochs": 6, "rate": 0.02, "seed": 3}).fit(train)
    evaluation = model.evaluate(test)
    alone = [evaluation.baselines[name] for name in ("linear n-grams", "network alone")]
    assert model.learned.mixture is not None
    assert evaluation.scores["accuracy"].value >= max(alone) - 0.03
    assert max(alone) > 0.9


def test_saved_and_loaded_it_answers_the_same_row_by_row(tmp_path: Path) -> None:
    rows = linear_only(120)
    model = Classifier(model=QUICK, train={"epochs": 1}).fit(rows)
    inputs = [text for text, _ in rows[:5]] + ["", "never seen"]
    together = model.predict(inputs)
    for text, answer in zip(inputs, together, strict=True):
        (alone,) = model.predict([text])
        assert alone.label == answer.label
        assert alone.probability == pytest.approx(answer.probability, abs=1e-5)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.predict(inputs) == together
    assert again.most_telling("a") == model.most_telling("a")


def test_a_regressor_mixes_numbers(tmp_path: Path) -> None:
    rows = [(text, {"a": 1.0, "b": 4.0, "c": 9.0}[label]) for text, label in linear_only(300)]
    model = Regressor(model=QUICK, train={"epochs": 2}).fit(rows)
    assert model.config()["model.linear"] == "mixed"
    test = [(text, {"a": 1.0, "b": 4.0, "c": 9.0}[label]) for text, label in linear_only(200, 2)]
    evaluation = model.evaluate(test)
    assert {"ridge on n-grams", "network alone"} <= {*evaluation.baselines}
    best = min(evaluation.baselines["ridge on n-grams"], evaluation.baselines["network alone"])
    assert evaluation.scores["rmse"].value <= 1.1 * best
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").predict([test[0][0]]) == model.predict([test[0][0]])


def test_several_labels_are_mixed_too() -> None:
    rows = [
        (text, [label] if k % 2 else [label, "d"])
        for k, (text, label) in enumerate(linear_only(300))
    ]
    model = Classifier(model={**QUICK, "several": True}, train={"epochs": 2}).fit(rows)
    assert model.learned.mixture is not None
    assert {*model.predict([rows[0][0]])[0].labels} <= {*"abcd"}


# --- level ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "level"),
    [
        ([f"{a}{b}ov" for a in "BCDFGHKL" for b in "aeiou"], "characters"),
        ([f"X{k * 7919 % 1000:03}-{k}" for k in range(80)], "characters"),
        (["the film was fine and we liked it", "the film was dull and long"] * 10, "words"),
        (["yes", "no"] * 20, "words"),
        ([["given", "tokens"]] * 5, "words"),
        ([], "words"),
    ],
)
def test_short_texts_of_new_words_are_read_by_letters(values: list[object], level: str) -> None:
    assert level_of(values).name == level


def test_names_are_read_by_letters_unless_told_otherwise() -> None:
    rows = [
        (f"{a}{b}{c}", "x" if c == "ov" else "y")
        for a in "BCDFGH"
        for b in "aeiou"
        for c in ("ov", "ini")
    ]
    model = Classifier(model=QUICK, train={"epochs": 2}).fit(rows)
    assert model.config()["text.level"] == "characters"
    assert model.predict(["Zaxov"])[0].label == "x"
    by_words = Classifier({"level": "words"}, model=QUICK, train={"epochs": 1}).fit(rows)
    assert by_words.config()["text.level"] == "words"


def test_vectors_and_tokens_have_a_level_too() -> None:
    rows = [(np.full((3, 2), k % 2, np.float32), str(k % 2)) for k in range(30)]
    model = Classifier(model=QUICK, train={"epochs": 1}).fit(rows)
    assert model.config()["text.level"] == "words"
    assert model.config()["model.linear"] == "alone"


def test_an_evaluation_of_rows_that_the_linear_model_learned_from_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It learns from the validation part at the end, where every row is then right."""
    ensue = commands_in(tmp_path, capsys, monkeypatch)
    rows = "".join(f"{'a fine' if k % 2 else 'a dull'} film {k},{k % 2}\n" for k in range(90))
    (tmp_path / "films.csv").write_text("review,label\n" + rows)
    small = ("--epochs", "1", "--hidden-size", "2", "--text", "review", "--label", "label")
    assert ensue("train", "films.csv", "--run", "run", *small)[0] == 0
    learned = "These rows are not test data: the linear model also learned from them"
    assert learned in ensue("evaluate", "run", "--validation")[1]
    assert learned not in ensue("evaluate", "run")[1]
