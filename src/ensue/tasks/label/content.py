"""Rows whose every step has a label."""

from __future__ import annotations

from typing import Any

from ensue.data.rows import Row
from ensue.data.settings import DataSettings
from ensue.data.values import Unfit
from ensue.tasks.rows.content import Content, Input, label_of


class StepContent(Content):
    """Tokens or vectors with a label each; texts and labels that are written in one are cut at
    their spaces."""

    by_step = True

    def value(self, row: Row, data: DataSettings) -> Input:
        value: Input = super().value(row, data)
        return value.split() if isinstance(value, str) else value

    def label(self, row: Row, data: DataSettings, value: Input) -> list[str]:
        return step_labels(row.fields.get(data.label), data.separator, len(value))


def step_labels(given: Any, separator: str, steps: int) -> list[str]:
    """The labels of so many steps; `Unfit` where it is another number of them."""
    written = isinstance(given, str) and not separator
    labels = given.split() if written else label_of(given, separator)
    if isinstance(labels, str):
        raise Unfit(f"expected a label for each of the {steps} steps, got one, {labels!r}")
    if len(labels) != steps:
        raise Unfit(f"expected a label for each of the {steps} steps, got {len(labels)}")
    return labels
