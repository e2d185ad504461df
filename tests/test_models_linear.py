"""The linear n-gram model: against counting by hand and scikit-learn's logistic regression."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from ensue.data.ragged import Ragged
from ensue.data.tokenise import Tokeniser, build_and_encode
from ensue.errors import DataError, OptionError
from ensue.tasks.baselines.linear import LinearModel, Ngrams, Presence, fit_linear, log_count_ratios
from ensue.tasks.codec import packed, unpacked

TEXTS = st.lists(st.lists(st.integers(0, 3), max_size=6), min_size=1, max_size=6)


def ngrams_of(text: list[int], longest: int) -> set[tuple[int, ...]]:
    return {tuple(text[i : i + n]) for n in range(1, longest + 1) for i in range(len(text) - n + 1)}


@given(TEXTS, TEXTS, st.integers(1, 3), st.integers(1, 2))
def test_ngrams_are_those_counted_by_hand(
    texts: list[list[int]], others: list[list[int]], longest: int, min_rows: int
) -> None:
    ragged = Ragged.of(texts, np.int32)
    made, present = Ngrams.listed(ragged, longest, min_rows)
    sets = [ngrams_of(text, longest) for text in texts]
    every = sorted(set().union(*sets))
    expected = {gram for gram in every if sum(gram in s for s in sets) >= min_rows}
    spelled = [made.spelled(k) for k in range(len(made))]
    assert len(spelled) == len(set(spelled))
    assert set(spelled) == expected
    again = made.present(ragged)
    assert (again.values == present.values).all()
    assert (again.starts == present.starts).all()
    for rows, numbers_present in (
        (texts, present),
        (others, made.present(Ragged.of(others, np.int32))),
    ):
        assert len(numbers_present) == len(rows)
        for k, text in enumerate(rows):
            numbers = numbers_present.row(k).tolist()
            assert numbers == sorted(set(numbers))
            assert {spelled[n] for n in numbers} == ngrams_of(text, longest) & expected


def rows(count: int, kinds: int, seed: int = 0) -> tuple[Ragged, NDArray[Any], NDArray[Any]]:
    """Texts whose words lean towards their class: word numbers, classes, and a matrix of which
    words each has."""
    random = np.random.default_rng(seed)
    classes = random.integers(0, kinds, count)
    texts = [np.where(random.random(8) < 0.35, 2 + c, random.integers(2, 12, 8)) for c in classes]
    matrix = np.array([[word in text for word in range(12)] for text in texts], float)
    return Ragged.of(texts, np.int32), classes, matrix


def test_products_with_presence() -> None:
    texts, _, matrix = rows(20, 2)
    ngrams, present = Ngrams.listed(texts, 1)
    products = Presence(present, len(ngrams))
    dense = matrix[:, [ngrams.spelled(k)[0] for k in range(len(ngrams))]]
    random = np.random.default_rng(1)
    a, b = random.normal(size=(len(ngrams), 3)), random.normal(size=(20, 3))
    assert products.times(torch.from_numpy(a)).numpy() == pytest.approx(dense @ a)
    assert products.transposed_times(torch.from_numpy(b)).numpy() == pytest.approx(dense.T @ b)


@pytest.mark.parametrize("kinds", [2, 3])
def test_it_is_the_logistic_regression_of_scaled_columns(kinds: int) -> None:
    texts, classes, matrix = rows(120, kinds)
    model = fit_linear(texts, classes, kinds, longest=1, min_rows=1, strength=0.5, iterations=300)
    order = [gram[0] for gram in map(model.ngrams.spelled, range(len(model.ngrams)))]
    x = matrix[:, order]
    if kinds == 2:
        p, q = 1 + x[classes == 1].sum(0), 1 + x[classes == 0].sum(0)
        x = x * np.log(p / p.sum() / (q / q.sum()))
        theirs = LogisticRegression(C=2.0, tol=1e-10, max_iter=1000).fit(x, classes)
        assert model.probabilities(texts) == pytest.approx(theirs.predict_proba(x), abs=2e-4)
        return
    ratios = np.stack(
        [
            np.log((1 + x[classes == k].sum(0)) / (1 + x[classes == k].sum(0)).sum())
            - np.log((1 + x[classes != k].sum(0)) / (1 + x[classes != k].sum(0)).sum())
            for k in range(kinds)
        ],
        1,
    )
    w = torch.zeros(*ratios.shape, dtype=torch.float64, requires_grad=True)
    b = torch.zeros(kinds, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([w, b], max_iter=500, line_search_fn="strong_wolfe")
    dense, scale = torch.from_numpy(x), torch.from_numpy(ratios)

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        z = dense @ (scale * w) + b
        cost = torch.nn.functional.cross_entropy(z, torch.from_numpy(classes), reduction="sum")
        cost = cost + 0.25 * (w * w).sum()
        cost.backward()
        return cost

    optimiser.step(closure)
    expected = (dense @ (scale * w) + b).softmax(1).detach().numpy()
    assert model.probabilities(texts) == pytest.approx(expected, abs=1e-3)


def test_several_labels_are_as_many_models_of_one() -> None:
    texts, classes, _ = rows(100, 3)
    targets = np.stack([classes == 0, classes > 0], 1).astype(np.int64)
    together = fit_linear(texts, targets, 2, iterations=200).probabilities(texts)
    for k in range(2):
        alone = fit_linear(texts, targets[:, k], 2, iterations=200).probabilities(texts)
        assert together[:, k] == pytest.approx(alone[:, 1], abs=1e-3)


def test_ratios_by_hand() -> None:
    texts = Ragged.of([[2, 3], [2], [3]], np.int32)
    ngrams, present = Ngrams.listed(texts, 1)
    goal = torch.tensor([[1.0], [0.0], [0.0]])
    ratios = log_count_ratios(Presence(present, len(ngrams)), goal, 1.0)[:, 0]
    two = next(gram for gram in range(2) if ngrams.spelled(gram) == (2,))
    assert ratios[two].item() == pytest.approx(np.log(2 / 4) - np.log(2 / 4))
    goal = torch.tensor([[0.0], [1.0], [0.0]])
    ratios = log_count_ratios(Presence(present, len(ngrams)), goal, 1.0)[:, 0]
    assert ratios[two].item() == pytest.approx(np.log(2 / 3) - np.log(2 / 5))


def test_what_tells_most() -> None:
    texts, classes, _ = rows(200, 3)
    model = fit_linear(texts, classes, 3)
    for k in range(3):
        (first, weight), *rest = model.most_telling(k, 4)
        assert 2 + k in first
        assert all(weight >= other for _, other in rest)
    assert (model.probabilities(texts).argmax(1) == classes).mean() > 0.9


def test_scores_are_sums_of_weights_and_the_same_for_a_row_alone() -> None:
    texts, classes, _ = rows(50, 3)
    model = fit_linear(texts, classes, 3)
    present = model.ngrams.present(texts)
    scores = model.scores(texts)
    for k in range(50):
        expected = model.bias + model.weights[present.row(k)].sum(0)
        assert scores[k] == pytest.approx(expected, abs=1e-5)
        assert model.scores(texts.take([k]))[0] == pytest.approx(scores[k], abs=1e-5)
    assert model.scores(Ragged.of([[]], np.int32))[0] == pytest.approx(model.bias)


def test_stored_and_read_it_is_the_same() -> None:
    texts, classes, _ = rows(50, 2)
    model = fit_linear(texts, classes, 2)
    words = int(texts.values.max()) + 1
    again = unpacked(LinearModel, packed(model), word_count=words, outputs=2, several=False)
    assert (again.scores(texts) == model.scores(texts)).all()
    assert again.several is model.several is False


def test_texts_without_any_ngram_have_the_shares_of_the_classes() -> None:
    texts = Ragged.of([[]] * 4, np.int32)
    model = fit_linear(texts, np.array([0, 1, 1, 1]), 2)
    assert model.probabilities(texts)[0] == pytest.approx([0.25, 0.75], abs=1e-3)


def test_messages() -> None:
    texts, classes, _ = rows(5, 2)
    message = "smoothing: expected a number > 0, got 0; strength: expected a number > 0, got -1"
    with pytest.raises(OptionError, match=re.escape(message)):
        fit_linear(texts, classes, 2, smoothing=0, strength=-1)
    with pytest.raises(DataError, match="expected texts and a target for each, got 5 and 4"):
        fit_linear(texts, classes[:4], 2)
    with pytest.raises(OptionError, match="expected longest ≥ 1 and min_rows ≥ 1, got 0 and 2"):
        fit_linear(texts, classes, 2, longest=0)


@pytest.mark.slow
def test_it_reaches_91_percent_on_film_reviews(data_folder: Path) -> None:
    """On the last tenth of the training part, in random order; the test part stays closed."""
    with gzip.open(
        data_folder / "imdb" / "imdb.train.tsv.gz", "rt", encoding="utf-8", newline="\n"
    ) as file:
        fields = [line.rstrip("\n").split("\t", 3) for line in file]
    classes = np.array([int(label) for label, *_ in fields])
    _, words = build_and_encode(
        [text for *_, text in fields], Tokeniser("words", lower=True, breaks="space")
    )
    order = np.random.default_rng(0).permutation(len(classes))
    train, validation = order[:22_500], order[22_500:]
    model = fit_linear(words.take(train), classes[train], 2)
    right = model.probabilities(words.take(validation)).argmax(1) == classes[validation]
    assert right.mean() > 0.905
