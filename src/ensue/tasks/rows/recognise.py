"""Recognition of columns: the text, the label, the numbers of a sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ensue.data.options import require
from ensue.data.recognise.columns import Kind
from ensue.data.roles import guess_roles
from ensue.errors import DataError, OptionError
from ensue.metrics.spans import scheme_of
from ensue.tasks.sample import Guess, NumberKind, Sample

# Kinds of columns that cannot be read next to a text, and what to do.
UNREADABLE = {
    Kind.IDENTIFIER: "it says nothing about new rows; leave it out",
    Kind.TEXT: "one text is read; join both texts in one column, or leave it out",
    Kind.DATE: "write the part that matters, such as the month, as a separate column, or leave it "
    "out",
    Kind.TOKENS: "numbers and categories can be read; leave it out",
    Kind.STEPS: "numbers and categories can be read; leave it out",
    Kind.OTHER: "write the values that you need as separate columns, or leave it out",
}


class RowRoles(NamedTuple):
    """The inferred roles of columns. data: the inferred keys of [data]; by_step: whether each step
    has a label; several: whether a row may have several labels; others: equally plausible roles."""

    data: dict[str, Any]
    by_step: bool
    several: bool
    others: tuple[RowRoles, ...] = ()

    @property
    def text(self) -> str:
        return str(self.data.get("text", ""))

    @property
    def label(self) -> str:
        return str(self.data["label"])

    @property
    def readings(self) -> tuple[RowRoles, ...]:
        return (self, *self.others)


def roles_of(sample: Sample) -> RowRoles:
    """The roles of a text or sequence and its labels, named or inferred; an error says what is
    missing."""
    if sample.data.sequence:
        return _long_table(sample)
    data, place = sample.data, sample.place
    require([data.group] if data.group else [], sample.columns, place)
    if data.text_column and data.text_column == data.label:
        raise same_column(sample)
    if data.columns:
        check_columns(sample)
    roles = sample.roles
    if not roles.labels:
        raise sample.no_label()
    if not roles.texts:
        raise sample.no_text()
    readings = [_as_roles(sample, t, la) for t in roles.texts for la in roles.labels if t != la]
    return readings[0]._replace(others=tuple(readings[1:]))


def _as_roles(sample: Sample, text: str, label: str) -> RowRoles:
    texts, labels = sample.values(text), sample.values(label)
    lists = any(isinstance(label, list | np.ndarray) for label in labels)
    stepped = sum(_stepped(*both) for both in zip(texts, labels, strict=True))
    return RowRoles(
        {"text": text, "label": label},
        by_step=lists and 2 * stepped > len(labels),  # the others are faults, which are reported
        several=lists or bool(sample.data.separator),
    )


def row_roles(sample: Sample) -> RowRoles:
    """Like `roles_of`, for one input or several inputs with named columns."""
    if not sample.data.joins:
        return roles_of(sample)
    label = _joined_label(sample)
    lists = any(isinstance(value, list | np.ndarray) for value in sample.values(label))
    return RowRoles({"label": label}, by_step=False, several=lists or bool(sample.data.separator))


def _joined_label(sample: Sample) -> str:
    """The label of several inputs: the named column, or the only column that is left or that looks
    like a label. Raises an error if an input is not a column of the data, or if two inputs are the
    same column."""
    data, place = sample.data, sample.place
    inputs = [*data.texts, *data.columns, *filter(None, [data.image, data.tree])]
    require([name for name in [*inputs, data.label, data.group] if name], sample.columns, place)
    left = [name for name in sample.columns if name not in (*inputs, data.group)]
    guessed = left if len(left) == 1 else guess_roles(sample.rows, inputs[0], None).labels
    labels = [name for name in guessed if name in left]
    label = data.label or (labels[0] if len(labels) == 1 else "")
    if not label:
        raise sample.no_label()
    named_columns = [*inputs, *filter(None, {label, data.group})]
    twice = [name for name in dict.fromkeys(named_columns) if named_columns.count(name) > 1]
    if twice:
        raise OptionError(
            f"{place}: expected every input and the label in a column of its own, got "
            f"{', '.join(map(repr, twice))} twice; name it once"
        )
    if data.columns:
        check_columns(sample)
    return label


def row_guess(sample: Sample, roles: RowRoles, why: str, tables: Mapping[str, Any]) -> Guess:
    """The guess from roles. why: the reason, for one input (several inputs are listed); tables:
    settings that follow from the label."""
    data = sample.data
    if data.joins:
        inputs = [*data.texts, *[", ".join(data.columns)] * bool(data.columns)]
        inputs += filter(None, [data.image, data.tree])
        why = f"{roles.label} from {' + '.join(inputs)}"
    return Guess(why, roles.data, tables)


def same_column(sample: Sample) -> OptionError:
    """The error where one column is both the text and the label."""
    both = f"{sample.word('text')} and {sample.word('label')}"
    return OptionError(f"{both}: expected two columns, got {sample.data.text_column!r} twice")


def check_columns(sample: Sample) -> None:
    """Raises an error for columns that cannot be read next to the text."""
    data, word = sample.data, sample.word("columns")
    require(data.columns, sample.columns, sample.place)
    role_columns = {"text": data.text_column, "label": data.label, "group": data.group}
    role_columns |= {"sequence": data.sequence}
    wrong = []
    for name in data.columns:
        roles = [role for role, column in role_columns.items() if column == name]
        if roles:
            wrong.append(f"{name!r} is the {roles[0]} already; leave it out")
        elif reason := UNREADABLE.get(sample.kinds[name].kind):
            wrong.append(f"{name!r} holds {sample.kinds[name].summary}: {reason}")
    if wrong:
        raise OptionError("\n".join(f"{sample.place}: {word}: {reason}" for reason in wrong))


def _stepped(text: Any, label: Any) -> bool:
    kinds = (list, np.ndarray)
    return all(isinstance(item, kinds) for item in (text, label)) and len(text) == len(label)


def _long_table(sample: Sample) -> RowRoles:
    """The reading as a long table: many rows form one sequence, with the same label on all rows or
    a label for each row."""
    data, place, names = sample.data, sample.place, sample.columns
    used = [data.sequence, data.label, data.group, *data.features]
    require([name for name in used if name], names, place)
    if not data.label:
        raise sample.no_label()
    others = [name for name in names if name not in (data.sequence, data.label, data.group)]
    features = data.features or [name for name in others if sample.numeric(name)]
    if not features:
        raise DataError(
            f"{place}: no column of numbers among {', '.join(others) or 'none'}; "
            f"name them with {sample.word('features')} a,b,c"
        )
    known: dict[str, Any] = {}
    same = all(
        known.setdefault(str(row.fields[data.sequence]), row.fields[data.label])
        == row.fields[data.label]
        for row in sample.rows
    )
    return RowRoles({"label": data.label, "features": features}, not same, bool(data.separator))


def _recognised_roles(sample: Sample) -> RowRoles | None:
    """The roles; None if the data have no text or no label. Named columns must exist."""
    if sample.data.joins:
        return row_roles(sample)
    try:
        return roles_of(sample)
    except (DataError, OptionError):
        return None


def as_guess(readings: Sequence[RowRoles], read: Callable[[RowRoles], Guess]) -> Guess:
    """The first reading, with the others as alternatives."""
    first, *others = map(read, readings)
    return replace(first, others=tuple(others))


def _with_columns(sample: Sample, roles: RowRoles) -> list[RowRoles]:
    """The text with the columns next to it, if it may be one column of a table."""
    if roles.by_step or sample.data.columns or not _may_be_table(sample, roles):
        return []
    beside = sample.features({roles.text, roles.label})
    return [roles._replace(data={**roles.data, "columns": beside}, others=())]


def _may_be_table(sample: Sample, roles: RowRoles) -> bool:
    """Whether the text may be one column of a table."""
    return not sample.data.joins and sample.table_instead(roles.text)


def recognised(
    sample: Sample, suits: Callable[[RowRoles], bool], read: Callable[[RowRoles], Guess]
) -> Guess | None:
    """The readings that suit a task. The task is certain only if there is one reading, and the
    columns are a text rather than a table."""
    roles = _recognised_roles(sample)
    suitable = (
        [reading for reading in roles.readings if suits(reading)] if roles is not None else []
    )
    if roles is None or not suitable:
        return None
    sure = len(roles.readings) == 1 and not _may_be_table(sample, roles)
    suitable += _with_columns(sample, suitable[0])
    return replace(as_guess(suitable, read), sure=sure and not doubtful_number(sample, roles))


def number_wanted(sample: Sample, label: str) -> bool:
    """Whether the label is a number to predict."""
    return not sample.data.separator and sample.number_kind(label) is NumberKind.QUANTITY


def doubtful_number(sample: Sample, roles: RowRoles) -> bool:
    """Whether the label may be a number as well as a class."""
    if roles.by_step or roles.several:
        return False
    return sample.number_kind(roles.label) is NumberKind.EITHER


# --- a label for each step -----------------------------------------------------------------


def recognised_steps(sample: Sample) -> Guess | None:
    return recognised(sample, lambda roles: roles.by_step, partial(_steps_guess, sample))


def steps_guess(sample: Sample) -> Guess:
    return as_guess(roles_of(sample).readings, partial(_steps_guess, sample))


def _steps_guess(sample: Sample, roles: RowRoles) -> Guess:
    tables = dict[str, dict[str, Any]]()
    if roles.text:
        if isinstance(sample.values(roles.text)[0], str):
            tables["text"] = {"level": "spaces"}
        if scheme_of(_tags(sample.values(roles.label))) is not None:
            tables["train"] = {"watch": "span_f1"}
    return Guess("a label for each step", roles.data, tables)


def _tags(values: Iterable[Any]) -> set[str]:
    """The labels of steps, from lists or single strings."""
    listed = (value.split() if isinstance(value, str) else value for value in values)
    return {str(tag) for tags in listed if isinstance(tags, Iterable) for tag in tags}


# --- a pair --------------------------------------------------------------------------------

# Names of the two columns in well-known data sets.
SIDES = (
    ("premise", "hypothesis"),
    ("sentence1", "sentence2"),
    ("sentence_a", "sentence_b"),
    ("question1", "question2"),
    ("text1", "text2"),
    ("first", "second"),
    ("query", "document"),
    ("question", "answer"),
)


def pair_guess(sample: Sample) -> Guess | None:
    """The reading as pairs: two columns with the names of a well-known pair, or a text with a
    second column that an option names. Two other texts with a label may be a pair."""
    data = sample.data
    if data.sequence:
        return None
    if data.second or _sides(sample) is not None:
        return named_pair(sample) if _label(sample) else None
    roles = sample.roles
    if data.text_column or len(roles.texts) != 2 or not roles.labels:
        return None
    return replace(_readings(*roles.texts, roles.labels), sure=False)


def named_pair(sample: Sample) -> Guess:
    """Both columns and the label of pairs; raises an error if they cannot be inferred."""
    data, place = sample.data, sample.place
    roles = [name for name in (data.text_column, data.second, data.label, data.group) if name]
    require(roles, sample.columns, place)
    known = _sides(sample) or _two_texts(sample)
    text, second = data.text_column or known[0], data.second or known[1]
    if not text or not second or text == second:
        raise DataError(
            f"{place}: which two columns should be matched? Name them with "
            f"{sample.word('text')} and {sample.word('second')}. Columns: "
            f"{', '.join(sample.columns)}"
        )
    label = _label(sample)
    if not label:
        raise sample.no_label()
    return _readings(text, second, [label])


def _readings(text: str, second: str, labels: Sequence[str]) -> Guess:
    first, *others = (
        Guess(f"{text} with {second}", {"text": text, "second": second, "label": label})
        for label in labels
    )
    return replace(first, others=tuple(others))


def _sides(sample: Sample) -> tuple[str, str] | None:
    """The two columns whose names are a well-known pair, such as premise and hypothesis; None if
    there are none."""
    return next((pair for pair in SIDES if {*pair} <= {*sample.columns}), None)


def _two_texts(sample: Sample) -> tuple[str, str]:
    """The only two text columns."""
    data, texts = sample.data, sample.roles.texts
    columns = [name for name in texts if name != data.label]
    return (columns[0], columns[1]) if not data.text_column and len(columns) == 2 else ("", "")


def _label(sample: Sample) -> str:
    """The column of the label: the named one, or the only one left."""
    if sample.data.label:
        return sample.data.label
    sides = _sides(sample) or ()
    used = {*sides, sample.data.text_column, sample.data.second, sample.data.group}
    left = [name for name in sample.columns if name not in used]
    if len(left) == 1:
        return left[0]
    return sample.roles.label or ""
