"""Shared code of the estimators: parameters as settings, classes, pickling."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ensue.errors import DataError, OptionError, unknown
from ensue.tasks import TASKS

if TYPE_CHECKING:
    from ensue.tasks.any_model import AnyModel

LEAST_HELD = 5  # with fewer held-out rows, none are held out

RowNumbers = NDArray[np.int64]
RowLabels = Sequence[Set[Hashable]]  # for each row: its class, the labels of its steps, or nothing


def hold_out(labels: RowLabels, fraction: float, seed: int) -> tuple[RowNumbers, RowNumbers]:
    """Splits rows into those to learn from and a fraction for early stopping, with about the same
    share of each class. At least one row with each label stays among those to learn from. If fewer
    than LEAST_HELD would be held out, none are."""
    everything, nothing = np.arange(len(labels)), np.zeros(0, np.int64)
    count, rows = round(fraction * len(labels)), list[int]()
    left = Counter(chain.from_iterable(labels))
    for row in _in_equal_shares(labels, seed):
        if len(rows) == count:
            break
        if all(left[label] > 1 for label in labels[row]):
            rows.append(int(row))
            left.subtract(labels[row])
    if len(rows) < LEAST_HELD:
        return everything, nothing
    return np.setdiff1d(everything, rows), np.sort(rows)


def _in_equal_shares(labels: RowLabels, seed: int) -> RowNumbers:
    """The rows in a random order such that every prefix has about the same share of each class."""
    order = np.random.RandomState(seed).permutation(len(labels))
    classes = [next(iter(label)) if len(label) == 1 else None for label in labels]
    total, held_out = Counter(classes), Counter[Hashable]()
    shares = []
    for row in order:
        label = classes[row]
        shares.append((held_out[label] + 0.5) / total[label])
        held_out[label] += 1
    return np.asarray(order[np.argsort(shares, kind="stable")], np.int64)


TABLES = ("text", "model", "train")
SEEDS = 2**31  # range of seeds from a random state
# Without held-out rows there is no early stopping: all epochs are trained, the last is scored.
ALL_EPOCHS = {"train.patience": None, "train.check_every": 10**9}
TRAINING = {
    "epochs": ("train.epochs",),
    "rate": ("train.rate",),
    "batch_rows": ("model.batch_rows",),
    "patience": ("train.patience",),
}


class Estimator(BaseEstimator, ABC):
    """A model of a task as a scikit-learn estimator: `__init__` stores parameters, `fit` checks
    them.

    _task: its name; _keys: parameters by name, with the settings that they stand for; _defaults:
    settings whose default differs from the task's; _fixed: settings that define the estimator."""

    _task: ClassVar[str]
    _keys: ClassVar[Mapping[str, tuple[str, ...]]]
    _defaults: ClassVar[Mapping[str, Any]] = {}
    _fixed: ClassVar[Mapping[str, Any]] = {}

    validation_fraction: float | None
    members: int
    random_state: Any
    settings: Mapping[str, Any] | None
    model_: AnyModel

    def __new__(cls, *positional: Any, **parameters: Any) -> Self:
        """Unknown parameters raise an error that names the class."""
        known = cls._get_param_names()
        for name in parameters:
            if name not in known:
                keys = sorted(key for keys in cls._keys.values() for key in keys)
                raise TypeError(
                    f"{cls.__name__}: {unknown('parameter', name, known)}. Every other setting is "
                    f'given by its key: settings={{"{keys[0].partition(".")[0]}.…": …}}'
                )
        made: Self = super().__new__(cls)
        return made

    def _store(self, parameters: Mapping[str, Any]) -> None:
        """Stores the arguments of a constructor, by name."""
        self.__dict__.update({name: value for name, value in parameters.items() if name != "self"})

    # ------------------------------------------------------------- learning
    def _learn(
        self,
        take: Callable[[RowNumbers], Any],
        labels: RowLabels,
        inferred: Mapping[str, Any] | None = None,
        **columns: Any,
    ) -> Self:
        """Fits the model. take: returns rows by index, in the form of the task's `fit`; labels: of
        each row; inferred: settings that follow from the data."""
        seed = _seed(self.random_state)
        train, validation = hold_out(labels, self._fraction(), seed)
        settings = {**self._values(), "train.seed": seed, **(inferred or {})}
        model = self._new_model(settings if len(validation) else {**settings, **ALL_EPOCHS})
        rows = take(train)
        model.fit(rows, take(validation) if len(validation) else rows, watchers=[], **columns)
        self.model_ = model
        return self

    def _values(self) -> dict[str, Any]:
        """Settings by `table.key`: from parameters and from `settings`."""
        names = {key: name for name, keys in self._keys.items() for key in keys}
        settings = {} if self.settings is None else self.settings
        if not isinstance(settings, Mapping):
            raise OptionError(
                f'settings: expected a dictionary such as {{"train.clip": 0.5}}, got {settings!r}'
            )
        for key in settings:
            if why := self._refused(str(key), {**names, "train.seed": "random_state"}):
                raise OptionError(f"settings: {why}")
        values = {key: getattr(self, name) for key, name in names.items()}
        settings_by_key = {**self._defaults, **values, **settings, **self._fixed}
        return {key: _plain(value) for key, value in settings_by_key.items()}

    def _refused(self, key: str, names: Mapping[str, str]) -> str:
        """Why a setting cannot be passed in `settings`; "" if it can. names: the names of
        parameters."""
        table, _, name = key.partition(".")
        if table not in TABLES or not name:
            known = ", ".join(TABLES)
            return f"expected keys of the tables {known}, such as 'train.clip', got {key!r}"
        if key in names:
            return f"{key} is the parameter {names[key]}; write {names[key]}=… instead"
        if key in self._fixed:
            return f"{type(self).__name__} needs {key} = {self._fixed[key]!r}; leave it out"
        return ""

    def _new_model(self, settings: Mapping[str, Any]) -> AnyModel:
        tables: dict[str, dict[str, Any]] = {name: {} for name in TABLES}
        for key, value in settings.items():
            table, _, name = key.partition(".")
            tables[table][name] = value
        text, model, train = (tables[name] for name in TABLES)
        return TASKS[self._task].model_class(text, model, train, members=_plain(self.members))

    def _fraction(self) -> float:
        fraction = 0 if self.validation_fraction is None else self.validation_fraction
        if not isinstance(fraction, int | float) or not 0 <= fraction < 1:
            raise OptionError(
                "validation_fraction: expected a number 0 ≤ fraction < 1, or None, got "
                f"{self.validation_fraction!r}"
            )
        return float(fraction)

    # ------------------------------------------------------------- answers
    @abstractmethod
    def _inputs(self, X: Any) -> Any:
        """X in the form of the model's `predict`, checked against the data of `fit`."""

    def _answers(self, X: Any) -> list[Any]:
        check_is_fitted(self, "model_")
        answers: list[Any] = self.model_.predict(self._inputs(X))
        return answers

    # ------------------------------------------------------------- pickled
    def __getstate__(self) -> dict[str, Any]:
        """Pickles the model as the files that `save` writes: safetensors and JSON."""
        state: dict[str, Any] = {**super().__getstate__()}
        if "model_" in state:
            with TemporaryDirectory() as place:
                state["model_"].save(Path(place, "model"))
                files = Path(place, "model").iterdir()
                state["model_"] = {file.name: file.read_bytes() for file in files}
        return state

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        files = state.get("model_")
        super().__setstate__({**state})
        if files is None:
            return
        cell = getattr(self, "cell", "")
        handed = None if isinstance(cell, str) else cell  # other values were pickled directly
        device = (self.settings or {}).get("train.device", "auto")
        with TemporaryDirectory() as place:
            for name, content in files.items():
                Path(place, name).write_bytes(content)
            # the file of a cell inside a pickle is trusted like the pickle
            model_class = TASKS[self._task].model_class
            self.model_ = model_class.load(place, trust=True, cell=handed, device=device)


class ClassEstimator(ClassifierMixin, Estimator):
    """A classifier."""

    classes_: NDArray[Any]

    def _class_names(self, y: NDArray[Any]) -> list[str]:
        """The class of each row as its name in the model; classes_ keeps the original values of
        y."""
        check_classification_targets(y)
        classes, numbers = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise DataError(
                f"y: expected at least 2 classes, got 1 class only: {classes.tolist()[0]!r}"
            )
        self.classes_ = classes
        names = class_names(classes)
        return [names[number] for number in numbers]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes, in the order of `classes_`; shape (rows, classes)."""
        answers = self._answers(X)
        names = class_names(self.classes_)
        return np.array([[answer.probabilities[name] for name in names] for answer in answers])

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row; shape (rows,)."""
        probabilities = self.predict_proba(X)
        return np.asarray(self.classes_[probabilities.argmax(1)])


class NumberEstimator(RegressorMixin, Estimator):
    """A regressor."""

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The expected value of each row; shape (rows,)."""
        return np.array([answer.value for answer in self._answers(X)])


def class_names(classes: NDArray[Any]) -> list[str]:
    """The names of classes in a model, whose labels are texts."""
    return [str(name) for name in classes.tolist()]


def _seed(random_state: Any) -> int:
    """The seed: the integer itself, or a number drawn from a random state."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(SEEDS))


def _plain(value: Any) -> Any:
    """A value in the form of settings: tuples and numpy numbers, as in grids, are converted."""
    if isinstance(value, np.generic):
        return value.item()
    return [_plain(item) for item in value] if isinstance(value, tuple | np.ndarray) else value
