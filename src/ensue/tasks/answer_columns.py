"""Answers as columns of a data frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from ensue.data.frames.frame import Frame
from ensue.data.frames.values import TYPES

if TYPE_CHECKING:
    from ensue.tasks.model import Model

LABELS = ("label", "labels")  # columns that have the type of the labels in training
TIME, TOKENS = "time", "tokens"


def as_row(answer: Any) -> Mapping[str, Any]:
    """An answer by the names of its columns: what it says itself, or else its fields."""
    if hasattr(answer, "as_row"):
        found: Mapping[str, Any] = answer.as_row()
        return found
    return {own.name: getattr(answer, own.name) for own in fields(answer)}


def answer_columns(answers: Sequence[Any], label_type: str = "") -> dict[str, list[Any]]:
    """Columns by name; those without any value are left out. label_type: a row of `TYPES` that
    labels are read as."""
    rows = [as_row(answer) for answer in answers]
    names = dict.fromkeys(name for row in rows for name in row)
    found = {name: [row.get(name) for row in rows] for name in names}
    if label_type:
        found |= {name: _typed(found[name], label_type) for name in LABELS if name in found}
    return {name: own for name, own in found.items() if any(v is not None for v in own)}


def _typed(labels: list[Any], label_type: str) -> list[Any]:
    """Labels, or lists of them, of another type; as they are where one of them is not of it."""
    read = TYPES[label_type]

    def typed(label: Any) -> Any:
        if label is None:  # nothing was answered
            return None
        return [*map(read, label)] if isinstance(label, list) else read(label)

    try:
        return [typed(label) for label in labels]
    except ValueError:
        return labels


def answer_frame(
    frame: Frame,
    answers: Sequence[Any],
    model: Model[Any, Any, Any],
    sequence: str | None,
    of_rows: bool,
) -> Any:
    """The frame with columns for the answers. sequence: the column whose equal values are one
    question, which then has a row of its own in a new frame; of_rows: whether each row is a
    question. Else the answers are times ahead, in a new frame."""
    label = str(model.roles.get("label", ""))
    there = frame.type_of(label) if label in frame.names else ""
    columns = answer_columns(answers, model.label_type or there)
    text = str(model.roles.get("text", ""))
    if TOKENS in columns and text in frame.names and frame.column(text) == columns[TOKENS]:
        del columns[TOKENS]  # they came as tokens
    if sequence is not None:
        return frame.new({sequence: list(dict.fromkeys(frame.column(sequence))), **columns})
    if of_rows:
        return frame.with_columns(columns)
    time = model.task.time_column(model.model)
    if not time:
        return frame.new(columns)
    return frame.new({time: columns.pop(TIME), **columns}, like=[time])
