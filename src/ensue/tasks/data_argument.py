"""The data passed to a model, as rows in memory, a data frame or a file, and the roles of its
columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os.path import exists
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ensue.data.fingerprint import digest_of, rows_digest
from ensue.data.frames.frame import NAME, Frame, is_a
from ensue.data.frames.origin import Origin
from ensue.data.options import require
from ensue.data.settings import DataSettings
from ensue.errors import DataError, OptionError, unknown
from ensue.files.run_folder import RunFolder
from ensue.tasks.answers import Answers, answer_frame
from ensue.tasks.any_model import table_of
from ensue.tasks.evaluation.openings import Openings
from ensue.tasks.finite_answers import answers_of
from ensue.tasks.options import EVALUATE, PREDICT
from ensue.tasks.questions import decided
from ensue.tasks.reader import QuestionFiles
from ensue.tasks.roles import Tables, named_roles
from ensue.tasks.sample import Sample, first_rows

if TYPE_CHECKING:
    from ensue.tasks.any_model import AnyModel
    from ensue.tasks.evaluation.report import Evaluation
    from ensue.tasks.reader import AnyPart
    from ensue.tasks.task import Task

P = TypeVar("P", bound="AnyPart")

IN_PYTHON = "{}="
MEND_FRAME = (
    "Fill the cells in, or leave the rows out (pandas: frame.dropna(), polars: frame.drop_nulls())."
)
MEND_FILE = "Fix the lines, or leave them out."
SHOWN_ROWS = "row"  # name of rows in memory
SHOWN = 40  # maximum characters of a value in a message


@dataclass(frozen=True)
class NamedTable:
    """Rows with named columns, of a data frame or a file."""

    name: str
    origin: Origin
    frame: Frame | None = None

    @classmethod
    def of(cls, data: Any, task: Task[Any, Any, Any]) -> NamedTable | None:
        """None for rows in memory."""
        roles = reversed([*task.columns.items()])
        keys = {key.partition(".")[2]: role for role, key in roles}  # the first role of each
        frame = None if isinstance(data, str | Path) else Frame.of(data)
        if frame is not None:
            origin = Origin(frame.read, MEND_FRAME, files=False, option=IN_PYTHON, words=keys)
            return cls(NAME, origin, frame)
        if (path := _as_file(data)) is not None:
            return cls(path, Origin(mend=MEND_FILE, option=IN_PYTHON, words=keys))
        return None

    def settings(self, roles: Mapping[str, Any]) -> DataSettings:
        """The [data] table for all rows, whatever their part. roles: keys of [data]."""
        parts = {part: [self.name] for part in ("train", "validation", "test")}
        return DataSettings.of({**parts, **roles}, "data")

    @property
    def known(self) -> list[str]:
        """The names of the columns, if known without opening a file."""
        return [] if self.frame is None else self.frame.names

    def names(self) -> list[str]:
        """The names of the columns."""
        if self.frame is not None:
            return self.frame.names
        return list(first_rows([self.name], self.settings({}).read_options(), 1)[0].fields)


def _is_file(text: str) -> bool:
    """Whether a text names an existing file or folder, or two parallel files."""
    return exists(text) or all(exists(side.strip()) for side in text.split(","))


def _require(source: NamedTable, tables: Tables) -> None:
    """Raises an error unless all named columns exist."""
    if source.frame is not None:
        named = [value for table in tables.values() for value in table.values()]
        names = [n for column in named for n in (column if isinstance(column, list) else [column])]
        columns_present = [*source.frame.names, *filter(None, [source.frame.time_index])]
        require(names, columns_present, source.name)


# --- to be learned from ------------------------------------------------------------------------


def fit_parts_of(
    model: AnyModel,
    data: Any,
    validation: Any,
    columns: Mapping[str, Any],
    say: Callable[[str], None],
) -> tuple[Any, Any]:
    """The training and validation parts; the model takes over the roles of columns, and the
    settings that follow from them. say: callback for what was inferred."""
    task = model.task
    refuse_labels(task, data, validation)
    table = NamedTable.of(data, task)
    if table is None:
        _must_be_rows(data, "fit")
        column_roles = named_roles(task, columns)
    else:
        column_roles = _guessed(model, table, columns, say)
    roles = column_roles.pop("data", {})
    model.settle(column_roles)
    model.roles = {key: value for key, value in roles.items() if value}
    model.read_inputs(DataSettings.of({"train": [SHOWN_ROWS], **model.roles}, "data"))
    model.label_type = ""
    if table is not None and table.frame is not None and roles.get("label"):
        model.label_type = table.frame.type_of(roles["label"])
    train = _part(model, data, table, columns, "train", None)
    if validation is None:
        return model.reader.hold_out(train)
    other = NamedTable.of(validation, task)
    return train, _part(model, validation, other, columns, "validation", train)


def _guessed(
    model: AnyModel,
    source: NamedTable,
    columns: Mapping[str, Any],
    say: Callable[[str], None],
) -> Tables:
    """The given roles, and those inferred from the data, as settings by table and key."""
    task = model.task
    roles = named_roles(task, columns, source.known)
    _require(source, roles)
    if source.frame is not None and (index := source.frame.time_index):
        needs_time = "model.time" in task.columns.values() and "time" not in model.explicit["model"]
        if needs_time and "time" not in roles.get("model", {}):
            roles.setdefault("model", {})["time"] = index
    made = {
        table: {key: getattr(table_of(model, table), key) for key in keys} | roles.get(table, {})
        for table, keys in model.explicit.items()
    }
    sample = Sample(source.settings(roles.get("data", {})), made, source.origin)
    if "data.image" in task.columns.values():
        sample = sample.with_pictures()
    guess = decided(sample, task, task.infer(sample))
    guessed: Tables = {"data": {"image": sample.data.image, **guess.data}}
    for table, keys in guess.tables.items():
        guessed[table] = {k: v for k, v in keys.items() if k not in made.get(table, {})}
    for table, keys in guessed.items():
        for key, value in keys.items():
            if value and value != roles.get(table, {}).get(key):
                say(f"{table}.{key}: {value}")
    for table, keys in roles.items():
        guessed[table] = {**guessed.get(table, {}), **keys}
    return guessed


def _part(
    model: AnyModel,
    data: Any,
    table: NamedTable | None,
    columns: Mapping[str, Any],
    name: str,
    before: Any,
) -> Any:
    if table is None:
        return model.reader.labelled(data, columns, before)
    files = model.reader.files(table.settings(model.roles), None, table.origin)
    return files.part(name, like=before)


def evaluated(model: AnyModel, data: Any, options: Mapping[str, Any]) -> Evaluation:
    """Evaluates a model on data. options: roles of columns, and options of the task."""
    columns = {role: value for role, value in options.items() if role in model.task.columns}
    words = {word: value for word, value in options.items() if word not in columns}
    check_words(model.task, words, EVALUATE)
    data = list(data) if isinstance(data, Iterator) else data  # it is read twice
    part = part_to_evaluate(model, data, columns)
    if not len(part):
        raise DataError("evaluate: expected rows, got none")
    return model.openings.count(data_digest(data), model.evaluate_part(part, words))


def part_to_evaluate(model: AnyModel, data: Any, columns: Mapping[str, Any]) -> Any:
    """The labelled rows to evaluate. columns: roles, if they differ from the roles in training."""
    task, table = model.task, NamedTable.of(data, model.task)
    if table is None:
        _must_be_rows(data, EVALUATE)
        return model.reader.labelled(data, columns)
    roles = _asked_roles(model, table, columns)
    if "data.label" in task.columns.values() and not roles.get("label"):
        sample = Sample(table.settings(roles), {}, table.origin)
        roles = {**decided(sample, task, task.infer(sample)).data, **roles}
    files = model.reader.files(table.settings(roles), None, table.origin)
    return files.part("test")


def _asked_roles(model: AnyModel, table: NamedTable, columns: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of [data]: the keys of `fit`, unless this call overrides them."""
    roles = named_roles(model.task, columns, table.known)
    _require(table, roles)
    for key, value in roles.get("model", {}).items():
        if value != (fitted := getattr(model.settings, key)):
            raise OptionError(
                f"{key}: this model was fitted with {fitted!r}, got {value!r}; rename the column"
            )
    return {**model.roles, **roles.get("data", {})}


# --- evaluated how often --------------------------------------------------------------------------


def data_digest(data: Any) -> str:
    """The digest of the data of `evaluate`, by content; a file has the same digest as in its
    run."""
    if (path := _as_file(data)) is not None:
        return digest_of([path])
    frame = Frame.of(data)
    if frame is not None:
        return rows_digest({name: frame.column(name) for name in frame.names})
    return rows_digest(data)


def openings_of(folder: RunFolder | None, *learned_from: Any) -> Openings:
    """The evaluation counts of a model that learns from these data; digests of files are computed
    at the first evaluation."""
    sources = [
        source for source in learned_from if source is not None and not isinstance(source, Iterator)
    ]
    files = [path for source in sources if (path := _as_file(source)) is not None]
    rows = frozenset(data_digest(source) for source in sources if _as_file(source) is None)
    return Openings(folder, partial(_learned_from, rows, files))


def _learned_from(rows: frozenset[str], files: Sequence[str]) -> frozenset[str]:
    return rows | {digest_of([path]) for path in files if _is_file(path)}


def _as_file(data: Any) -> str | None:
    if isinstance(data, Path) or (isinstance(data, str) and _is_file(data)):
        return str(data)
    return None


# --- to be answered ------------------------------------------------------------------------------


def answered(model: AnyModel, inputs: Any, options: Mapping[str, Any]) -> Any:
    """The answers as a list, or for a data frame as a frame of the same kind. options: roles of
    columns, and options of the task."""
    task, table = model.task, NamedTable.of(inputs, model.task)
    columns = {role: value for role, value in options.items() if role in task.columns}
    words = {word: value for word, value in options.items() if word not in columns}
    check_words(task, words, PREDICT)
    if table is None:
        if columns:
            raise OptionError(f"predict: {', '.join(columns)}: inputs in a list have no columns")
        listed = _listed(inputs)
        return Answers.of(answers_of(model, model.reader.questions(listed, words), words), listed)
    roles = question_roles(model, table, columns)
    results: Answers[Any] = Answers()
    of_rows = task.needs_input
    if table.frame is not None and of_rows and not len(table.frame):
        return table.frame.with_columns({name: [] for name in model.answer_shape().columns})
    data = table.settings(roles)
    files = QuestionFiles([table.name], data, None, table.origin)
    for questions in model.reader.question_files(files, words):
        results = results.and_then(answers_of(model, questions.part, words), questions.shown_inputs)
        of_rows = questions.shown_inputs is not None
    if table.frame is None:
        return results
    return answer_frame(table.frame, results, model, roles.get("sequence", "") or None, of_rows)


def question_roles(
    model: AnyModel, table: NamedTable, columns: Mapping[str, Any]
) -> dict[str, Any]:
    """The columns from which inputs are read: the columns of `fit`, or the only column."""
    roles = _asked_roles(model, table, columns)
    whole = roles.get("sequence") or roles.get("image") or roles.get("tree")
    keys = () if whole else model.reader.question_keys(table.origin)
    missing = [key for key in keys if not roles.get(key)]
    if not missing:
        return roles
    names = table.names()
    if len(missing) == len(names) == 1:
        return {**roles, missing[0]: names[0]}
    words = " and ".join(table.origin.word(key) for key in missing)
    raise OptionError(
        f"predict: which column should be read? Name it with {words}. Columns: {', '.join(names)}"
    )


def check_words(task: Task[Any, Any, Any], words: Mapping[str, Any], verb: str) -> None:
    """Raises an error for unknown options of a task."""
    known = [option.word for option in task.options if verb in option.verbs]
    for name in words:
        if name not in known:
            raise unknown(f"word of {verb}", name, known)


# --- refused -------------------------------------------------------------------------------------


def _listed(inputs: Any) -> Any:
    """A column of Arrow as a list of its values; anything else unchanged."""
    return inputs.to_pylist() if is_a(inputs, "pyarrow", "_PandasConvertible") else inputs


def _must_be_rows(data: Any, verb: str) -> None:
    if isinstance(data, str):
        raise DataError(
            f"{verb}: expected rows, a data frame, or an existing file, got the text "
            f"{data[:SHOWN]!r}; pass a single row as [row]"
        )


def refuse_labels(task: Task[Any, Any, Any], data: Any, validation: Any) -> None:
    """Rejects fit(X, y), scikit-learn's form, with an error that shows how to pass rows."""
    labelled = any(key.endswith((".label", ".targets")) for key in task.columns.values())
    labelled = labelled and not task.inputs_alone
    if validation is None or not labelled or not _are_labels(validation, data):
        return
    role = next((role for role, key in task.columns.items() if key == "data.label"), "target")
    expected_rows = "rows, each with its label: fit(list(zip(X, y)))"
    if Frame.of(data) is not None or "data.text" not in task.columns.values():
        expected_rows = f'the labels as a column of the data: fit(frame, {role}="…")'
    beside = "".join(f", or ensue.sklearn.{name}().fit(X, y)" for name in task.estimators)
    raise DataError(
        f"fit: the second argument is validation data, got labels; expected {expected_rows}{beside}"
    )


def _are_labels(validation: Any, data: Any) -> bool:
    """Whether `validation` contains labels instead of rows. Labels are single values, or lists as
    long as the rows."""
    if isinstance(validation, np.ndarray) or _is_column(validation):
        return True
    if not isinstance(validation, Sequence) or isinstance(validation, str) or not validation:
        return False
    first: Any = validation[0]
    if isinstance(first, str | int | float | np.generic):
        return True
    beside: Any = data[0] if isinstance(data, Sequence) and len(data) else None
    return _is_tags(first) and _is_tags(beside) and len(first) == len(beside) != 2


def _is_column(data: object) -> bool:
    return any(is_a(data, library, "Series") for library in ("pandas", "polars"))


def _is_tags(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
