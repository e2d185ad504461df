"""The estimators for scikit-learn: its own checks, and the same answers as the task's model."""

from __future__ import annotations

import doctest
import importlib
import pickle
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from ensue import Classifier, Labeller, Regressor, TableModel
from ensue.cells import Cell
from ensue.equations import Matrix, Vector, tanh
from ensue.errors import MissingExtra
from ensue.sklearn import (
    SequenceClassifier,
    SequenceLabeller,
    SequenceRegressor,
    TableClassifier,
    TableRegressor,
)
from ensue.sklearn.estimator import LEAST_HELD, hold_out
from ensue.sklearn.tables import table_cells

SEQUENCE: dict[str, Any] = {"cell": "GRU", "hidden_size": 4, "epochs": 2, "random_state": 3}
NARROW: dict[str, Any] = {"settings": {"model.embedding_size": 4}}
TABLE: dict[str, Any] = {"hidden": (8,), "epochs": 3, "random_state": 3}

WORDS = ["red", "blue", "green", "old", "new", "house", "boat"]


class Leaky(Cell):
    """A custom cell; with another share than the usual one it is made by no file."""

    W, U, b = Matrix("x"), Matrix("h"), Vector()

    def __init__(self, share: float = 0.5) -> None:
        self.share = share

    def step(self, x: Any, h: Any) -> Any:
        return self.share * h + (1 - self.share) * tanh(self.W @ x + self.U @ h + self.b)


def sentences(count: int = 60) -> list[list[str]]:
    draw = np.random.RandomState(0)
    return [[str(word) for word in draw.choice(WORDS, draw.randint(2, 6))] for _ in range(count)]


def texts(count: int = 60) -> list[str]:
    return [" ".join(tokens) for tokens in sentences(count)]


def classes(count: int = 60) -> list[str]:
    return ["old" if "old" in tokens else "other" for tokens in sentences(count)]


def vectors(count: int = 60) -> list[np.ndarray[Any, Any]]:
    draw = np.random.RandomState(0)
    return [draw.randn(draw.randint(1, 7), 2) for _ in range(count)]


def frame(count: int = 60) -> pd.DataFrame:
    draw = np.random.RandomState(0)
    return pd.DataFrame(
        {
            "area": draw.uniform(40, 200, count),
            "rooms": draw.randint(1, 6, count),
            "town": draw.choice(["Delft", "Gouda"], count),
        }
    )


def prices(rows: pd.DataFrame) -> Any:
    return 2 * rows["area"] + 50 * (rows["town"] == "Delft")


# --- scikit-learn's own checks -------------------------------------------------------------------


@parametrize_with_checks([TableClassifier(), TableRegressor()])
def test_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


# --- no second implementation --------------------------------------------------------------------

SETTINGS: dict[str, Any] = {
    "model": {
        "cell": "GRU",
        "hidden_size": 4,
        "layers": 1,
        "embedding_size": 4,
        "dropout_input": 0.3,
        "dropout_output": 0.3,
        "batch_rows": 32,
    },
    # so fast, and of targets so random, that the last epoch is not the best
    "train": {"epochs": 8, "rate": 0.2, "patience": 2, "seed": 3},
}
FAST = {**SEQUENCE, **NARROW, "epochs": 8, "rate": 0.2, "patience": 2}
BY_COST = {"model": SETTINGS["model"], "train": {**SETTINGS["train"], "watch": "cost"}}


def coins(count: int = 60) -> list[str]:
    return [str(label) for label in np.random.RandomState(5).choice(["heads", "tails"], count)]


def rows_of(X: Any, y: Any, rows: Any) -> list[tuple[Any, Any]]:
    return [(X[row], y[row]) for row in rows]


def test_a_classifier_is_the_task_s_own() -> None:
    X, y = texts(), coins()
    estimator = SequenceClassifier(**FAST).fit(X, y)
    train, validation = hold_out([{label} for label in y], 0.1, 3)
    assert len(validation) == 6
    direct = Classifier(**BY_COST).fit(rows_of(X, y, train), rows_of(X, y, validation))
    probabilities = estimator.predict_proba(X)
    for row, answer in enumerate(direct.predict(X)):
        assert {name: answer.probabilities[name] for name in estimator.classes_} == dict(
            zip(estimator.classes_, probabilities[row], strict=True)
        )
    assert estimator.predict(X).tolist() == [answer.label for answer in direct.predict(X)]


def test_a_regressor_is_the_task_s_own() -> None:
    X, y = vectors(), np.random.RandomState(5).randn(60).tolist()
    estimator = SequenceRegressor(**FAST).fit(X, y)
    train, validation = hold_out([set() for _ in y], 0.1, 3)
    direct = Regressor(**SETTINGS).fit(rows_of(X, y, train), rows_of(X, y, validation))
    assert estimator.predict(X).tolist() == [answer.value for answer in direct.predict(X)]


def test_a_labeller_is_the_task_s_own() -> None:
    X = sentences()
    y = [coins(99)[k : k + len(tokens)] for k, tokens in enumerate(X)]
    estimator = SequenceLabeller(**FAST).fit(X, y)
    train, validation = hold_out([set(labels) for labels in y], 0.1, 3)
    direct = Labeller(**BY_COST).fit(rows_of(X, y, train), rows_of(X, y, validation))
    predictions = estimator.predict(X)
    assert predictions == [list(answer.labels) for answer in direct.predict(X)]
    steps = list(zip(chain(*predictions), chain(*y), strict=True))
    assert estimator.score(X, y) == sum(guess == gold for guess, gold in steps) / len(steps)


def test_an_estimator_of_tables_is_the_task_s_own() -> None:
    X = frame()
    y = prices(X).tolist()
    estimator = TableRegressor(**TABLE).fit(X, y)
    train, validation = hold_out([set() for _ in y], 0.1, 3)
    rows = [{**row, "target": value} for row, value in zip(X.to_dict("records"), y, strict=True)]
    direct = TableModel(
        model={"hidden": [8], "target": "number", "batch_rows": 64},
        train={"epochs": 3, "rate": 1e-2, "l2": 0.03, "seed": 3},
    ).fit([rows[k] for k in train], [rows[k] for k in validation], target="target")
    assert estimator.predict(X).tolist() == [answer.value for answer in direct.predict(rows)]


def test_few_rows_are_all_learned_from_in_every_epoch() -> None:
    X, y = texts(20), coins(20)
    estimator = SequenceClassifier(**FAST).fit(X, y)
    unstopped = {**BY_COST["train"], "patience": "off", "check_every": 1000}
    rows = list(zip(X, y, strict=True))
    direct = Classifier(model=SETTINGS["model"], train=unstopped).fit(rows, rows)
    probabilities = [
        [answer.probabilities[name] for name in estimator.classes_] for answer in direct.predict(X)
    ]
    assert estimator.predict_proba(X).tolist() == probabilities


# --- held-out rows -------------------------------------------------------------------------------


@pytest.mark.parametrize("fraction", [0.1, 0.25])
@pytest.mark.parametrize("seed", [0, 7])
def test_every_class_gives_its_share_and_keeps_a_row(fraction: float, seed: int) -> None:
    labels = [{"a"}] * 80 + [{"b"}] * 40 + [{"c"}]
    train, validation = hold_out(labels, fraction, seed)
    assert sorted([*train, *validation]) == list(range(len(labels)))
    for name, count in (("a", 80), ("b", 40)):
        assert sum(labels[row] == {name} for row in validation) == pytest.approx(
            fraction * count, abs=1
        )
    assert labels[-1] == {"c"}
    assert len(labels) - 1 in train
    again = hold_out(labels, fraction, seed)
    assert [rows.tolist() for rows in again] == [train.tolist(), validation.tolist()]
    assert hold_out(labels, fraction, seed + 1)[1].tolist() != validation.tolist()


def test_no_label_is_held_out_with_its_last_row() -> None:
    draw = np.random.RandomState(1)
    labels = [{f"{draw.randint(30)}", f"{draw.randint(30)}"} for _ in range(60)]
    train, validation = hold_out(labels, 0.5, 0)
    assert len(validation)
    assert set.union(*(labels[row] for row in train)) == set.union(*labels)


def test_few_rows_are_not_held_out() -> None:
    for count in (2, 10 * LEAST_HELD - 6):
        train, validation = hold_out([set()] * count, 0.1, 0)
        assert (len(train), len(validation)) == (count, 0)
    assert len(hold_out([set()] * 10 * LEAST_HELD, 0.1, 0)[1]) == LEAST_HELD
    each_once = [{str(k)} for k in range(100)]
    assert not len(hold_out(each_once, 0.1, 0)[1])


@pytest.mark.parametrize("y", [list("aabbc"), [0, 0, 1, 1, 2], [True, True, False, False, True]])
def test_five_rows_and_a_class_of_one(y: list[Any]) -> None:
    X = ["a red house", "a red boat", "blue", "blue water", "nothing"]
    estimator = SequenceClassifier(**{**SEQUENCE, "epochs": 40, "rate": 0.02}).fit(X, y)
    assert estimator.classes_.dtype == np.array(y).dtype
    assert estimator.classes_.tolist() == sorted(set(y))
    assert estimator.predict(X).tolist() == y
    table = TableClassifier(**TABLE).fit(np.arange(10.0).reshape(5, 2), y)
    assert table.predict_proba([[0.0, 1.0]]).shape == (1, len(estimator.classes_))


# --- the contract --------------------------------------------------------------------------------

FITTED: dict[str, Any] = {
    "texts": lambda: (SequenceClassifier(**SEQUENCE, **NARROW), texts(20), classes(20)),
    "vectors": lambda: (SequenceClassifier(**SEQUENCE), vectors(20), [0, 1] * 10),
    "numbers": lambda: (SequenceRegressor(**SEQUENCE), vectors(20), np.arange(20.0)),
    "labels": lambda: (
        SequenceLabeller(**SEQUENCE, **NARROW),
        sentences(20),
        [[len(word) for word in tokens] for tokens in sentences(20)],
    ),
    "members": lambda: (TableRegressor(members=2, **TABLE), frame(20), prices(frame(20))),
    "frame": lambda: (TableClassifier(**TABLE), frame(20)[["area", "rooms"]], frame(20)["town"]),
}


def same(one: Any, other: Any) -> bool:
    """Bit for bit."""
    if isinstance(one, list):
        return bool(one == other)
    if one.dtype == object:
        return bool(one.tolist() == other.tolist())
    return bool(one.dtype == other.dtype and one.tobytes() == other.tobytes())


@pytest.mark.parametrize("case", FITTED)
def test_pickled_and_cloned(case: str) -> None:
    estimator, X, y = FITTED[case]()
    with pytest.raises(NotFittedError):
        estimator.predict(X)
    assert estimator.fit(X, y) is estimator
    predictions = estimator.predict(X)
    again = pickle.loads(pickle.dumps(estimator))
    assert b"torch" not in pickle.dumps(estimator)
    assert same(again.predict(X), predictions)
    if is_classifier(estimator):
        assert same(again.predict_proba(X), estimator.predict_proba(X))
    assert again.get_params() == estimator.get_params()
    assert again.score(X, y) == estimator.score(X, y)
    fresh = clone(again)
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    assert same(fresh.fit(X, y).predict(X), predictions)  # the same random_state
    other = clone(estimator).set_params(random_state=4).fit(X, y)
    assert other.model_.config()["train.seed"] == 4


def test_a_random_state_is_asked_for_a_seed() -> None:
    X, y = np.arange(20.0).reshape(10, 2), [0, 1] * 5

    def seed(random_state: Any) -> int:
        estimator = TableClassifier(**{**TABLE, "random_state": random_state, "epochs": 1}).fit(
            X, y
        )
        return int(estimator.model_.train.seed)

    state = np.random.RandomState(0)
    assert seed(np.random.RandomState(0)) == seed(state) != seed(state)
    assert seed(np.int64(8)) == 8
    assert seed(None) != seed(None)


def test_what_the_estimators_are() -> None:
    assert is_classifier(SequenceClassifier())
    assert is_regressor(SequenceRegressor())
    assert not is_classifier(SequenceLabeller())
    tags = SequenceClassifier().__sklearn_tags__()
    assert (tags.input_tags.string, tags.input_tags.three_d_array) == (True, True)
    assert not tags.input_tags.two_d_array
    assert not TableClassifier().__sklearn_tags__().input_tags.allow_nan
    assert TableClassifier(missing="indicator").__sklearn_tags__().input_tags.allow_nan


def test_every_setting_can_be_reached() -> None:
    settings = {"model.pooling": "mean", "text.lower": False, "train.clip": None}
    estimator = SequenceClassifier(**SEQUENCE, settings=settings).fit(texts(10), classes(10))
    config = estimator.model_.config()
    assert {key: config[key] for key in settings} == {**settings, "train.clip": "off"}
    X = np.arange(20.0).reshape(10, 2)
    table = TableRegressor(**{**TABLE, "hidden": np.array([3, 2])}).fit(X, X[:, 0])
    assert table.model_.config()["model.hidden"] == [3, 2]


@pytest.mark.parametrize("cell", [Leaky, Leaky(0.25)])
def test_a_cell_of_one_s_own_is_pickled_by_its_class(cell: Any) -> None:
    X, y = vectors(10), [0, 1] * 5
    estimator = SequenceClassifier(**{**SEQUENCE, "cell": cell}).fit(X, y)
    assert same(pickle.loads(pickle.dumps(estimator)).predict_proba(X), estimator.predict_proba(X))


# --- X and y -------------------------------------------------------------------------------------


def test_texts_may_come_in_many_ways() -> None:
    X, y = texts(20), classes(20)
    estimator = SequenceClassifier(**SEQUENCE, **NARROW, level="spaces").fit(X, y)
    probabilities = estimator.predict_proba(X)
    series = pd.Series(X, index=range(100, 120))
    ways = [tuple(X), np.array(X), np.array(X, object), series, series.to_frame("review")]
    for way in [*ways, np.array(X)[:, None], [text.split() for text in X]]:
        assert same(estimator.predict_proba(way), probabilities)
        assert same(clone(estimator).fit(way, pd.Series(y)).predict_proba(X), probabilities)
    assert not hasattr(estimator, "n_features_in_")


def test_vectors_may_come_in_many_ways() -> None:
    X = np.random.RandomState(0).randn(20, 4, 3)
    estimator = SequenceClassifier(**SEQUENCE).fit(X, [0, 1] * 10)
    probabilities = estimator.predict_proba(X)
    for way in (list(X), X.tolist(), X.astype(np.float32)):
        assert same(estimator.predict_proba(way), probabilities)
    assert estimator.n_features_in_ == 3
    shorter = [row[: 1 + k % 4] for k, row in enumerate(X)]
    together = estimator.predict_proba(shorter)
    alone = np.concatenate([estimator.predict_proba([row]) for row in shorter])
    np.testing.assert_allclose(together, alone, atol=1e-6)
    # a sequence of no steps
    assert estimator.predict_proba([X[0], np.zeros((0, 3))]).shape == (2, 2)
    assert not hasattr(estimator.fit(texts(20), [0, 1] * 10), "n_features_in_")


def test_columns_of_frames_are_numbers_or_names() -> None:
    X = frame()
    X["rooms"] = X["rooms"].astype("category")
    X["new"] = X["area"] > 100
    estimator = TableRegressor(**TABLE).fit(X, prices(X))
    columns = estimator.model_.learned.input.columns
    assert [column.name for column in columns.numbers] == ["area", "new"]
    assert [column.name for column in columns.categories] == ["rooms", "town"]
    assert estimator.feature_names_in_.tolist() == list(X.columns)
    named = TableRegressor(**TABLE, settings={"model.categorical": ["new"]}).fit(X, prices(X))
    assert len(named.model_.learned.input.columns.categories) == 3
    X["area"] = X["area"].map(str)
    as_text, as_number = (
        TableRegressor(**TABLE, settings=settings).fit(X, prices(frame()))
        for settings in (None, {"model.numeric": ["area"]})
    )
    assert len(as_text.model_.learned.input.columns.numbers) == 1
    assert len(as_number.model_.learned.input.columns.numbers) == 2
    mixed = [[row.area, row.town] for row in frame().itertuples()]  # numpy makes texts of it all
    columns = TableRegressor(**TABLE).fit(mixed, prices(frame())).model_.learned.input.columns
    assert [len(columns.numbers), len(columns.categories)] == [1, 1]


def test_gaps_are_learned_with_where_that_is_wanted() -> None:
    X = frame()
    X.loc[3, "area"] = np.nan
    X["town"] = X["town"].astype(object)
    X.loc[4, "town"] = None
    estimator = TableRegressor(**TABLE, missing="indicator").fit(X, np.arange(60))
    assert np.isfinite(estimator.predict(X)).all()
    with pytest.raises(ValueError, match=r"NaN: row 3, column 'area'.*missing='indicator'"):
        TableRegressor(**TABLE).fit(X, np.arange(60))
    for gap in (None, " "):
        X.loc[4, "town"] = gap
        with pytest.raises(ValueError, match="NaN: row 4, column 'town'"):
            TableRegressor(**TABLE).fit(X[["town"]], np.arange(60))


def test_a_column_may_be_called_as_y_is_inside() -> None:
    X = frame().rename(columns={"area": "target"})
    estimator = TableRegressor(**TABLE).fit(X, prices(frame()))
    plain = TableRegressor(**TABLE).fit(frame(), prices(frame()))
    assert same(estimator.predict(X), plain.predict(frame()))


# --- in scikit-learn's tools ---------------------------------------------------------------------


def test_cross_validation_and_pipelines_of_texts() -> None:
    classifier = SequenceClassifier(**{**SEQUENCE, "epochs": 1}, **NARROW)
    pipeline = make_pipeline(
        FunctionTransformer(lambda X: [text.upper() for text in X]), classifier
    )
    assert cross_val_score(pipeline, texts(), classes(), cv=2).shape == (2,)
    X = pd.DataFrame({"text": texts(), "other": 1})
    probabilities = cross_val_predict(
        classifier, X["text"], classes(), cv=2, method="predict_proba"
    )
    np.testing.assert_allclose(probabilities.sum(1), 1)
    labels = [[len(word) for word in tokens] for tokens in sentences(20)]
    labeller = SequenceLabeller(**{**SEQUENCE, "epochs": 1}, **NARROW)
    assert all(0 <= score <= 1 for score in cross_val_score(labeller, sentences(20), labels, cv=2))


def test_a_grid_over_the_cell() -> None:
    regressor = SequenceRegressor(**{**SEQUENCE, "epochs": 1})
    grid = {"cell": ["GRU", "LSTM"], "hidden_size": np.array([3])}
    search = GridSearchCV(regressor, grid, cv=2).fit(vectors(20), np.arange(20.0))
    assert search.best_params_["cell"] in ("GRU", "LSTM")
    assert search.best_estimator_.model_.config()["model.hidden_size"] == 3


@pytest.mark.slow
def test_a_grid_in_two_processes() -> None:
    classifier, X, y = TableClassifier(**TABLE), frame()[["area", "rooms"]], frame()["town"]
    grid = {"hidden": [(4,), (8, 4)]}
    one, two = (GridSearchCV(classifier, grid, cv=2, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    scores = [search.cv_results_["mean_test_score"].tolist() for search in (one, two)]
    assert scores[0] == scores[1]


def test_a_column_transformer_before_a_table() -> None:
    X = frame()
    columns = make_column_transformer((StandardScaler(), ["area"]), ("passthrough", ["town"]))
    pipeline = make_pipeline(columns, TableRegressor(**TABLE)).fit(X, prices(X))
    columns_learned = pipeline[-1].model_.learned.input.columns
    assert [len(columns_learned.numbers), len(columns_learned.categories)] == [1, 1]
    assert pipeline.predict(X).shape == (60,)


# --- errors --------------------------------------------------------------------------------------

WRONG_SEQUENCES = {
    "one text": ("a text", "got one text; write [text]"),
    "frame": (pd.DataFrame({"a": ["x"], "b": ["y"]}), "columns a, b; choose one, such as X['a']"),
    "no column": (pd.DataFrame(index=[0]), "got a frame without columns"),
    "sparse": (csr_matrix(np.eye(2)), "leave out the vectoriser"),
    "flat": (np.ones((3, 4)), "shape (3, 4); for one number a step write X[:, :, None]"),
    "flat row": ([np.ones(3)], "row 0: expected an array (time, features), got shape (3,)"),
    "generator": ((text for text in "ab"), "expected a list of texts or sequences, got generator"),
    "number": (["a", 3.5], "row 1: expected a text, a list of tokens, or an array"),
    "tokens": ([["a", None]], "row 0: expected a list of tokens, or numbers (time, features)"),
    "mixed": (["a", np.ones((2, 3))], "row 1: expected a text or tokens as in row 0, got steps of"),
    "widths": ([np.ones((2, 3)), np.ones((2, 4))], "row 1: expected steps of 3 features"),
    "gap": ([np.ones((2, 1)), np.array([[1], [np.nan]])], "row 1, step 1: expected finite"),
    "nothing": ([], "expected at least 1 sequence"),
}


@pytest.mark.parametrize("case", WRONG_SEQUENCES)
def test_wrong_sequences_are_told(case: str) -> None:
    X, message = WRONG_SEQUENCES[case]
    with pytest.raises(ValueError) as error:  # noqa: PT011
        SequenceClassifier().fit(X, [0, 1])
    assert message in str(error.value)


WRONG_TARGETS: dict[str, tuple[Any, Any, Any, str]] = {
    "none": (SequenceClassifier, ["a", "b"], None, "requires y to be passed"),
    "one class": (SequenceClassifier, ["a", "b"], ["x", "x"], "at least 2 classes, got 1 class"),
    "lengths": (SequenceRegressor, ["a", "b"], [1.0], "inconsistent numbers of samples: [2, 1]"),
    "continuous": (SequenceClassifier, ["a", "b"], [0.5, 1.5], "Unknown label type: continuous"),
    "text": (SequenceLabeller, ["a b"], [["x", "y"]], "row 0: expected a list of tokens"),
    "no labels": (SequenceLabeller, [["a"]], None, "expected a list of labels for each row"),
    "one label": (SequenceLabeller, [["a"]], ["x"], "row 0: expected a list of labels"),
    "steps": (SequenceLabeller, [["a", "b"]], [["x"]], "row 0: expected 2 labels"),
    "same": (SequenceLabeller, [["a", "b"]], [["x", "x"]], "at least 2 different labels"),
    "table": (TableClassifier, [[1.0], [2.0]], ["x", "x"], "got 1 class only: 'x'"),
}


@pytest.mark.parametrize("case", WRONG_TARGETS)
def test_wrong_targets_are_told(case: str) -> None:
    kind, X, y, message = WRONG_TARGETS[case]
    with pytest.raises(ValueError) as error:  # noqa: PT011
        kind().fit(X, y)
    assert message in str(error.value)


def test_wrong_cells_of_a_table_are_told() -> None:
    with pytest.raises(TypeError, match="Sparse data was passed"):
        TableClassifier().fit(csr_matrix(np.eye(4)), [0, 1, 0, 1])
    days = pd.DataFrame({"day": pd.to_datetime(["2024-01-01", "2024-01-02"]), "n": [1, 2]})
    with pytest.raises(ValueError, match=r"column 'day': .*got datetime64.*convert it to numbers"):
        TableClassifier().fit(days, [0, 1])
    with pytest.raises(ValueError, match="X: expected numbers, texts or categories, got datetime"):
        TableClassifier().fit(days[["day"]].to_numpy(), [0, 1])
    with pytest.raises(ValueError, match="expected columns of different names, got 'a' twice"):
        table_cells(np.ones((2, 2)), ["a", "a"])
    infinite = np.array([[1.0, "a"], [np.inf, "b"]], object)
    with pytest.raises(ValueError, match="contains infinity: row 1, column 'x0'"):
        TableClassifier().fit(infinite, [0, 1])


def test_other_sequences_than_those_of_fit_are_told() -> None:
    estimator = SequenceClassifier(**SEQUENCE).fit(vectors(10), [0, 1] * 5)
    with pytest.raises(ValueError, match="X has 3 features, but SequenceClassifier is expecting 2"):
        estimator.predict(np.ones((1, 4, 3)))
    with pytest.raises(ValueError, match="expected vectors, as in fit, got texts or tokens"):
        estimator.predict(["text"])
    estimator = SequenceClassifier(**SEQUENCE, **NARROW).fit(texts(10), [0, 1] * 5)
    with pytest.raises(ValueError, match="expected texts or tokens, as in fit, got vectors"):
        estimator.predict(vectors(2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": -1.0}, "train.rate: expected a number > 0, got -1.0"),
        ({"hidden": "wide"}, "model.hidden: "),
        ({"validation_fraction": 1.0}, "validation_fraction: expected a number 0 ≤ fraction < 1"),
        ({"validation_fraction": "all"}, "or None, got 'all'"),
        ({"settings": {"train.rate": 0.1}}, "train.rate is the parameter rate; write rate=…"),
        ({"settings": {"train.seed": 1}}, "write random_state=…"),
        ({"settings": {"model.target": "class"}}, "TableRegressor needs model.target = 'number'"),
        ({"settings": {"rate": 0.1}}, "such as 'train.clip', got 'rate'"),
        ({"settings": {"model.hiden": [2]}}, "unknown key, did you mean hidden?"),
        ({"settings": "model.hidden"}, "settings: expected a dictionary"),
        ({"members": 0}, "members: expected a number of networks ≥ 1, got 0"),
    ],
)
def test_wrong_parameters_are_told_by_fit(options: dict[str, Any], message: str) -> None:
    regressor = TableRegressor(**options)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        regressor.fit([[1.0], [2.0]], [1.0, 2.0])
    assert message in str(error.value)


def test_without_scikit_learn_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("ensue.sklearn")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtra, match=r"pip install 'ensue\[sklearn\]'"):
        importlib.import_module("ensue.sklearn")


@pytest.mark.parametrize("module", ["sequences", "tables"])
def test_the_examples_of_docstrings_run(module: str) -> None:
    results = doctest.testmod(importlib.import_module(f"ensue.sklearn.{module}"))
    assert results.attempted > 5
    assert results.failed == 0


def test_the_extra_is_that_of_the_message() -> None:
    text = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    assert 'sklearn = ["scikit-learn>=' in text
