"""Shared exports of tables and of columns next to texts: from a row by column name to numbers,
categories and inputs of features."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ensue.data.series import MISSING
from ensue.tasks.columns.features import FeatureColumns, Reading
from ensue.tasks.columns.learned import TableColumns
from ensue.tasks.exported import BATCH, Input, Step, reads_of

NUMBERS, CATEGORIES = "numbers", "categories"
READ, WEEKDAYS, GONE = "feature_numbers", "feature_weekdays", "feature_gone"


def column_inputs(columns: TableColumns) -> tuple[Input, ...]:
    """Inputs of a network that reads these columns; days of the week are integers, separate from
    the other inputs of features."""
    least = min((len(category.categories) + 1 for category in columns.categories), default=1)
    days = sum(map(is_weekday, columns.features.readings))
    others = len(columns.features.readings) - days
    inputs = [
        Input(NUMBERS, (BATCH, columns.width)),
        Input(CATEGORIES, (BATCH, len(columns.categories)), least),
    ]
    inputs += [Input(READ, (BATCH, others))] if others else []
    inputs += [Input(WEEKDAYS, (BATCH, days), 7)] if days else []
    inputs += [Input(GONE, (BATCH, others + days), 2)] if others + days else []
    return tuple(inputs)


def is_weekday(reading: Reading) -> bool:
    return reading.how == "weekday"


def features_read(features: FeatureColumns, tensors: dict[str, Tensor]) -> Tensor:
    """(rows, readings) for networks, NaN where a cell is empty."""
    gone = tensors[GONE] > 0
    kinds = [iter(range(gone.shape[1])), iter(range(gone.shape[1]))]
    columns = []
    for reading in features.readings:
        values = tensors[WEEKDAYS if is_weekday(reading) else READ].to(torch.float32)
        place = next(kinds[is_weekday(reading)])
        columns.append(values[:, place : place + 1])
    return torch.cat(columns, -1).masked_fill(gone, torch.nan)


def row_step(columns: TableColumns, gaps: bool) -> Step:
    """The step that reads a row. gaps: whether cells may be empty. Features read a number, or of a
    date the days since 1970, the month or the day of the week."""
    return {
        "step": "row",
        "from": "question",
        "numbers": [
            {
                "name": number.name,
                "mean": number.mean,
                "spread": number.spread,
                "indicator": number.indicator,
            }
            for number in columns.numbers
        ],
        "categories": [
            {"name": category.name, "categories": list(category.categories)}
            for category in columns.categories
        ],
        "features": [_read(reading) for reading in columns.features.readings],
        "missing": sorted(MISSING),
        "gaps": gaps,
    }


def _read(reading: Reading) -> dict[str, Any]:
    return {
        "name": reading.column,
        "how": reading.how,
        "to": WEEKDAYS if is_weekday(reading) else READ,
        "mean": reading.mean,
        "spread": reading.spread,
        "reads": reads_of(reading.column, reading.order) if reading.dates else None,
    }
