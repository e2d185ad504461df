"""Estimators of sequences: texts, tokens, or vectors over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, validate_data

from ensue.errors import DataError
from ensue.sklearn.estimator import (
    TRAINING,
    ClassEstimator,
    Estimator,
    NumberEstimator,
    RowNumbers,
    class_names,
)

Value = str | list[str] | NDArray[np.float32]  # a text, its tokens, or vectors (time, features)


class Sequences(NamedTuple):
    """Checked sequences. values: one for each row; features: number of features of each step, None
    for texts and tokens."""

    values: list[Value]
    features: int | None


def sequences_of(X: Any) -> Sequences:
    """Sequences from texts, lists of tokens, arrays (time, features), or one array (row, time,
    features)."""
    values = [_value(sequence, row) for row, sequence in enumerate(_rows(X))]
    if not values:
        raise DataError("X: expected at least 1 sequence, got an empty X with 0 sample(s)")
    kinds = [value.shape[1] if isinstance(value, np.ndarray) else None for value in values]
    for row, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise DataError(
                f"X: row {row}: expected {_described(kinds[0])} as in row 0, got {_described(kind)}"
            )
    return Sequences(values, kinds[0])


def _rows(X: Any) -> Sequence[Any]:
    if isinstance(X, str):
        raise DataError("X: expected a list of texts or sequences, got one text; write [text]")
    if hasattr(X, "columns"):  # a frame: iterating over it would yield the names of its columns
        names = list(X.columns)
        if len(names) != 1:
            raise DataError(
                "X: expected one column of texts, got a frame with the columns "
                f"{', '.join(map(str, names))}; choose one, such as X[{names[0]!r}]"
                if names
                else "X: expected one column of texts, got a frame without columns"
            )
        X = X[names[0]]
    if hasattr(X, "tocsr"):
        raise DataError(
            "X: expected texts or sequences, got a sparse matrix; leave out the vectoriser before "
            "this estimator: it reads the texts themselves"
        )
    if not isinstance(X, list | tuple) and hasattr(X, "__array__"):
        return _rows_of_array(np.asarray(X))
    if not hasattr(X, "__len__") or not hasattr(X, "__iter__"):
        raise DataError(f"X: expected a list of texts or sequences, got {type(X).__name__}")
    return list(X)


def _rows_of_array(X: NDArray[Any]) -> Sequence[Any]:
    """The rows of an array: (rows,) or (rows, 1) of texts or sequences, or (rows, time, features)
    of numbers."""
    numbers = X.dtype.kind in "biuf"
    if X.ndim == 2 and X.shape[1] == 1 and not numbers:
        return list(X[:, 0])
    if X.ndim == (3 if numbers else 1):
        return list(X)
    hint = "; for one number a step write X[:, :, None]" if numbers and X.ndim == 2 else ""
    raise DataError(
        "X: expected an array (row, time, features) of numbers, or (row,) of texts, got "
        f"{X.dtype} of shape {X.shape}{hint}"
    )


def _value(sequence: Any, row: int) -> Value:
    if isinstance(sequence, str):
        return str(sequence)
    if not isinstance(sequence, list | tuple) and hasattr(sequence, "__array__"):
        sequence = np.asarray(sequence)
        if sequence.dtype.kind in "biuf":
            return _vectors(sequence, row)
    if isinstance(sequence, list | tuple | np.ndarray):
        if all(isinstance(token, str) for token in sequence):
            return [str(token) for token in sequence]
        return _vectors(sequence, row)
    raise DataError(
        f"X: row {row}: expected a text, a list of tokens, or an array (time, features), "
        f"got {sequence!r}"[:200]
    )


def _vectors(sequence: Any, row: int) -> NDArray[np.float32]:
    try:
        vectors = np.asarray(sequence, np.float32)
    except (TypeError, ValueError):
        expected = "a list of tokens, or numbers (time, features)"
        raise DataError(f"X: row {row}: expected {expected}, got {sequence!r}"[:200]) from None
    if vectors.ndim != 2:
        hint = "; for one number a step write row[:, None]" if vectors.ndim == 1 else ""
        raise DataError(
            f"X: row {row}: expected an array (time, features), got shape {vectors.shape}{hint}"
        )
    if not np.isfinite(vectors).all():
        step = int(np.flatnonzero(~np.isfinite(vectors).all(1))[0])
        raise DataError(
            f"X: row {row}, step {step}: expected finite numbers, got NaN or infinity; fill "
            "the gaps first"
        )
    return vectors


def _described(features: int | None) -> str:
    return "a text or tokens" if features is None else f"steps of {features} features"


NETWORK = {
    "cell": ("model.cell",),
    "hidden_size": ("model.hidden_size",),
    "layers": ("model.layers",),
    "dropout": ("model.dropout_input", "model.dropout_output"),
    **TRAINING,
}


class SequenceEstimator(Estimator):
    """An estimator whose rows are sequences."""

    n_features_in_: int  # of each step; absent for texts

    def _sequences(self, X: Any) -> list[Value]:
        """The sequences of X for `fit`."""
        sequences = self._checked(sequences_of(X))
        if sequences.features is not None:
            self.n_features_in_ = sequences.features
        elif hasattr(self, "n_features_in_"):
            del self.n_features_in_
        return sequences.values

    def _checked(self, sequences: Sequences) -> Sequences:
        return sequences

    def _inputs(self, X: Any) -> list[Value]:
        sequences = self._checked(sequences_of(X))
        expected = getattr(self, "n_features_in_", None)
        if sequences.features == expected:
            return sequences.values
        if None in (sequences.features, expected):
            kinds = ("texts or tokens", "vectors")
            expected_kind, got = kinds if expected is None else kinds[::-1]
            raise DataError(f"X: expected {expected_kind}, as in fit, got {got}")
        raise DataError(
            f"X has {sequences.features} features, but {type(self).__name__} is expecting "
            f"{expected} "
            "features as input"
        )

    def _learn_pairs(self, X: list[Value], y: Sequence[Any], names: Sequence[Any]) -> Self:
        """Fits X and y, the target of each row. names: the labels of each row, as a set."""

        def take(rows: RowNumbers) -> list[tuple[Value, Any]]:
            return [(X[row], y[row]) for row in rows]

        return self._learn(take, names)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.string = True
        tags.target_tags.required = True
        return tags


class AnswerEstimator(SequenceEstimator):
    """An estimator with one answer for a whole sequence."""

    _keys: ClassVar[Mapping[str, tuple[str, ...]]] = {"level": ("text.level",), **NETWORK}

    def __init__(
        self,
        *,
        level: str = "words",
        cell: Any = "LSTM",
        hidden_size: int = 64,
        layers: int = 1,
        dropout: float = 0.3,
        epochs: int = 50,
        rate: float = 3e-3,
        batch_rows: int | None = 32,
        patience: int | None = 5,
        validation_fraction: float | None = 0.1,
        members: int = 1,
        random_state: Any = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self._store(locals())


class SequenceClassifier(ClassEstimator, AnswerEstimator):
    """Classifies texts, tokens, or vectors over time.

    X: texts, lists of tokens, arrays (time, features) of any length, or one array (row, time,
    features). y: a class for each row.

    >>> from ensue.sklearn import SequenceClassifier
    >>> X = ["a fine film", "so lovely", "dull and long", "far too loud"] * 5
    >>> y = ["good", "good", "bad", "bad"] * 5
    >>> model = SequenceClassifier(cell="GRU", hidden_size=8, random_state=1).fit(X, y)
    >>> model.predict(["dull", "lovely"]).tolist()
    ['bad', 'good']

    level: how texts are tokenised: words, pieces, spaces, characters or subwords. cell,
    hidden_size, layers: the recurrent network; cell is a name or a cell of your own. dropout: of
    the network's inputs and outputs. epochs, rate, batch_rows: number of epochs, learning rate and
    rows of a batch. validation_fraction: share of the rows that is held out for early stopping. If
    that would be fewer than 5 rows, none are held out and all epochs are trained. patience: epochs
    without a better cost on the held-out rows after which training stops. members: number of
    networks, whose predictions are averaged. random_state: an integer is used as Ensue's seed,
    train.seed. settings: any other setting of the task, such as {"model.pooling": "mean"}.

    Fitted attributes: classes_; model_, an `ensue.Classifier`; n_features_in_, for vectors.
    """

    _task = "classify"
    _defaults: ClassVar[Mapping[str, Any]] = {"train.watch": "cost"}
    _fixed: ClassVar[Mapping[str, Any]] = {"model.several": False}

    def fit(self, X: Any, y: Any) -> Self:
        """Learns from sequences X and y, a class for each row."""
        sequences = self._sequences(X)
        classes = self._class_names(validate_data(self, y=y))
        check_consistent_length(sequences, classes)
        return self._learn_pairs(sequences, classes, [{label} for label in classes])


class SequenceRegressor(NumberEstimator, AnswerEstimator):
    """Predicts a number from texts, tokens, or vectors over time.

    X and parameters are the same as in `SequenceClassifier`. y: a number for each row.

    >>> import numpy as np
    >>> from ensue.sklearn import SequenceRegressor
    >>> X = [np.full((steps, 1), value) for steps in (3, 4, 5) for value in (0.0, 1.0, 2.0)]
    >>> y = [10.0, 20.0, 30.0] * 3
    >>> model = SequenceRegressor(hidden_size=8, dropout=0.0, random_state=1).fit(X, y)
    >>> model.predict(X).shape
    (9,)
    >>> bool(model.score(X, y) > 0.9)
    True

    Fitted attributes: model_, an `ensue.Regressor`; n_features_in_, for vectors.
    """

    _task = "regress"

    def fit(self, X: Any, y: Any) -> Self:
        """Learns from sequences X and y, a number for each row."""
        sequences = self._sequences(X)
        numbers = validate_data(self, y=y, y_numeric=True).astype(float).tolist()
        check_consistent_length(sequences, numbers)
        return self._learn_pairs(sequences, numbers, [set()] * len(numbers))


class SequenceLabeller(SequenceEstimator):
    """Labels each token of a sentence, or each vector of a sequence.

    X: lists of tokens, or arrays (time, features). y: for each row a list with a label for each
    step. The parameters are the same as in `SequenceClassifier`, except level.

    >>> from ensue.sklearn import SequenceLabeller
    >>> X = [["the", "dog", "barks"], ["a", "cat", "sleeps"]] * 4
    >>> y = [["DET", "NOUN", "VERB"]] * 8
    >>> model = SequenceLabeller(hidden_size=8, random_state=1).fit(X, y)
    >>> model.predict([["the", "cat", "barks"]])
    [['DET', 'NOUN', 'VERB']]

    Fitted attributes: classes_, all labels; model_, an `ensue.Labeller`; n_features_in_, for
    vectors.
    """

    _task = "label"
    _keys = NETWORK
    _defaults: ClassVar[Mapping[str, Any]] = {"train.watch": "cost"}

    classes_: NDArray[Any]

    def __init__(
        self,
        *,
        cell: Any = "LSTM",
        hidden_size: int = 64,
        layers: int = 1,
        dropout: float = 0.3,
        epochs: int = 50,
        rate: float = 3e-3,
        batch_rows: int | None = 32,
        patience: int | None = 5,
        validation_fraction: float | None = 0.1,
        members: int = 1,
        random_state: Any = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self._store(locals())

    def fit(self, X: Any, y: Any) -> Self:
        """Learns from sequences X and y, for each row a label for each step."""
        sequences = self._sequences(X)
        labels = _labels_of_steps(sequences, y)
        classes, numbers = np.unique(list(chain.from_iterable(labels)), return_inverse=True)
        if len(classes) < 2:
            raise DataError(f"y: expected at least 2 different labels, got {classes.tolist()}")
        self.classes_ = classes
        names, every = class_names(classes), iter(numbers)
        named = [[names[next(every)] for _ in label] for label in labels]
        return self._learn_pairs(sequences, named, [set(labels) for labels in named])

    def predict(self, X: Any) -> list[list[Any]]:
        """A list for each row, with a label for each step."""
        answers = self._answers(X)
        known = dict(zip(class_names(self.classes_), self.classes_.tolist(), strict=True))
        return [[known[label] for label in answer.labels] for answer in answers]

    def score(self, X: Any, y: Any) -> float:
        """The share of steps with the right label."""
        answers = self.predict(X)
        labels = _labels_of_steps(answers, y)
        pairs = zip(chain.from_iterable(answers), chain.from_iterable(labels), strict=True)
        return float(np.mean([guess == gold for guess, gold in pairs]))

    def _checked(self, sequences: Sequences) -> Sequences:
        for row, value in enumerate(sequences.values):
            if isinstance(value, str):
                raise DataError(
                    f"X: row {row}: expected a list of tokens, each of which has a label, got a "
                    "text; cut it first, such as text.split()"
                )
        return sequences


def _labels_of_steps(sequences: Sequence[Any], y: Any) -> list[list[Any]]:
    """Checks y: a list for each sequence, with a label for each step."""
    if y is None:
        raise DataError("y: expected a list of labels for each row, got None")
    check_consistent_length(sequences, y)
    labels = []
    for row, (steps, labels_of_row) in enumerate(zip(sequences, y, strict=True)):
        if not isinstance(labels_of_row, list | tuple | np.ndarray):
            expected = "a list of labels, one for each step"
            raise DataError(f"y: row {row}: expected {expected}, got {labels_of_row!r}"[:200])
        if len(labels_of_row) != len(steps):
            raise DataError(
                f"y: row {row}: expected {len(steps)} labels, one for each step, got "
                f"{len(labels_of_row)}"
            )
        labels.append(
            labels_of_row.tolist() if isinstance(labels_of_row, np.ndarray) else list(labels_of_row)
        )
    return labels
