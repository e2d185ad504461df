"""What the rooms of tables and of texts with columns share of an export: a row by column name to
numbers, categories and what features read."""

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
    """Of a network that reads these columns; days of the week are whole numbers, and stand apart
    from what else features read."""
    least = min((len(own.categories) + 1 for own in columns.categories), default=1)
    days = sum(map(is_weekday, columns.features.readings))
    others = len(columns.features.readings) - days
    found = [
        Input(NUMBERS, (BATCH, columns.width)),
        Input(CATEGORIES, (BATCH, len(columns.categories)), least),
    ]
    found += [Input(READ, (BATCH, others))] if others else []
    found += [Input(WEEKDAYS, (BATCH, days), 7)] if days else []
    found += [Input(GONE, (BATCH, others + days), 2)] if others + days else []
    return tuple(found)


def is_weekday(reading: Reading) -> bool:
    return reading.how == "weekday"


def features_read(features: FeatureColumns, given: dict[str, Tensor]) -> Tensor:
    """(rows, readings) as networks take it, NaN where a cell is empty."""
    gone = given[GONE] > 0
    kinds = [iter(range(gone.shape[1])), iter(range(gone.shape[1]))]
    columns = []
    for own in features.readings:
        values = given[WEEKDAYS if is_weekday(own) else READ].to(torch.float32)
        place = next(kinds[is_weekday(own)])
        columns.append(values[:, place : place + 1])
    return torch.cat(columns, -1).masked_fill(gone, torch.nan)


def row_step(columns: TableColumns, gaps: bool) -> Step:
    """gaps: whether cells may be empty. Features are read as their columns are: a number or a date,
    as days since 1970, a month or a day of the week."""
    return {
        "step": "row",
        "from": "question",
        "numbers": [
            {
                "name": own.name,
                "mean": own.mean,
                "spread": own.spread,
                "indicator": own.indicator,
            }
            for own in columns.numbers
        ],
        "categories": [
            {"name": own.name, "categories": list(own.categories)} for own in columns.categories
        ],
        "features": [_read(own) for own in columns.features.readings],
        "missing": sorted(MISSING),
        "gaps": gaps,
    }


def _read(own: Reading) -> dict[str, Any]:
    return {
        "name": own.column,
        "how": own.how,
        "to": WEEKDAYS if is_weekday(own) else READ,
        "mean": own.mean,
        "spread": own.spread,
        "reads": reads_of(own.column, own.order) if own.dates else None,
    }
