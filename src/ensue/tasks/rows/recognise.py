"""Which columns of rows are the text, the label, the numbers of a sequence."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ensue.data.options import require
from ensue.data.roles import guess_roles
from ensue.errors import DataError, OptionError
from ensue.tasks.sample import Sample


class RowRoles(NamedTuple):
    """data: the keys of [data] that were found out; by_step: whether each step has a label of its
    own; several: whether a row may have several labels."""

    data: dict[str, Any]
    by_step: bool
    several: bool

    @property
    def text(self) -> str:
        return str(self.data.get("text", ""))

    @property
    def label(self) -> str:
        return str(self.data["label"])


def roles_of(sample: Sample) -> RowRoles:
    """Of a text or sequence and its label or labels, given or found; an error names what is
    missing."""
    if sample.data.sequence:
        return _long_table(sample)
    given, place = sample.data, sample.place
    require([given.group] if given.group else [], sample.columns, place)
    if given.text and given.text == given.label:
        raise same_column(sample)
    roles = guess_roles(sample.rows, given.text or None, given.label or None)
    if roles.label is None:
        raise sample.no_label()
    texts, labels = sample.values(roles.text), sample.values(roles.label)
    lists = any(isinstance(label, list | np.ndarray) for label in labels)
    stepped = sum(_stepped(text, label) for text, label in zip(texts, labels, strict=True))
    return RowRoles(
        {"text": roles.text, "label": roles.label},
        by_step=lists and 2 * stepped > len(labels),  # the others are faults, to be named
        several=lists or bool(given.separator),
    )


def same_column(sample: Sample) -> OptionError:
    """The error where one column is both the text and the label."""
    both = f"{sample.word('text')} and {sample.word('label')}"
    return OptionError(f"{both}: expected two columns, got {sample.data.text!r} twice")


def _stepped(text: Any, label: Any) -> bool:
    kinds = (list, np.ndarray)
    return all(isinstance(own, kinds) for own in (text, label)) and len(text) == len(label)


def _long_table(sample: Sample) -> RowRoles:
    """Many rows make one sequence, whose label is the same on all of them, or one for each."""
    given, place, names = sample.data, sample.place, sample.columns
    asked = [given.sequence, given.label, given.group, *given.features]
    require([name for name in asked if name], names, place)
    if not given.label:
        raise sample.no_label()
    others = [name for name in names if name not in (given.sequence, given.label, given.group)]
    features = given.features or [name for name in others if sample.numeric(name)]
    if not features:
        raise DataError(
            f"{place}: no column of numbers among {', '.join(others) or 'none'}; "
            f"name them with {sample.word('features')} a,b,c"
        )
    known: dict[str, Any] = {}
    same = all(
        known.setdefault(str(row.fields[given.sequence]), row.fields[given.label])
        == row.fields[given.label]
        for row in sample.rows
    )
    return RowRoles({"label": given.label, "features": features}, not same, bool(given.separator))


def recognised_roles(sample: Sample) -> RowRoles | None:
    """The same, or None where the data have no such columns: a text, and a label."""
    try:
        roles = roles_of(sample)
    except (DataError, OptionError):
        return None
    numbers_as_text = roles.text and not sample.data.text and sample.numeric(roles.text)
    return None if numbers_as_text else roles


def number_wanted(sample: Sample, label: str) -> bool:
    """Whether the label is a number to predict: its values hardly repeat."""
    return not sample.data.separator and sample.different_numbers(label) is not None
