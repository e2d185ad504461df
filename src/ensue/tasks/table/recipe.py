"""Defaults of a model of tables for its training part."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ensue.data.recognise.columns import is_identifier_name
from ensue.tasks.columns.cells import Column, Grid
from ensue.tasks.columns.features import date_features
from ensue.tasks.columns.learned import empty_cells
from ensue.tasks.table.settings import TableSettings
from ensue.tasks.targets.classes import ClassTarget
from ensue.tasks.targets.numbers import NumberTarget
from ensue.tasks.task import Recipe

FEWEST = 10  # rows, so that all of them being different says something


def table_recipe(
    grid: Grid, kind: str, settings: TableSettings, said: Collection[str] = ()
) -> Recipe:
    """kind: of the target; said: the keys of [model] that a person gave. Identifiers are left out,
    and dates read as features; classes are answered together with a linear model, and the rarer of
    two from a probability that is fitted."""
    model, why = dict[str, Any](), list[str]()
    told = {*settings.numeric, *settings.categorical, *settings.leave_out}
    left = [name for name in grid.columns if name not in told]
    names = [name for name in left if is_identifier_name(name) and _alone(grid, name)]
    if names and len(names) < len(grid.columns):
        model["leave_out"] = [*settings.leave_out, *names]
        listed = ", ".join(map(repr, names))
        why.append(f"{listed}: names each row and is not read (--set model.leave_out=[] reads it)")
    features = {name: date_features(grid.column(name)) for name in left if _whole(grid, name)}
    if dates := {name: own for name, own in features.items() if own}:
        model["features"] = [text for own in dates.values() for text in own]
        why.append(
            f"{', '.join(map(repr, dates))}: dates, read as {', '.join(model['features'])} "
            "(--set model.features=[] reads them as categories)"
        )
    model["missing"] = "indicator"
    gaps = {} if "missing" in said else _gaps(grid, [*settings.leave_out, *names])
    if gaps:
        listed = ", ".join(f"{name} ({count:,})" for name, count in gaps.items())
        why.append(
            f"empty cells in {listed}: numbers as their column's mean beside a mark, categories as "
            "one of their own (--set model.missing=error refuses them)"
        )
    if kind != NumberTarget.kind:
        model["linear_share"] = "fitted"
    if kind == ClassTarget.kind:
        model["threshold"] = "auto"
    return Recipe({"model": model}, "; ".join(why))


def _gaps(grid: Grid, left_out: Sequence[str]) -> dict[str, int]:
    """How many cells of a column are empty, where some are."""
    found = {}
    for name in grid.columns:
        column = grid.column(name)
        gone = empty_cells(column.texts)
        if gone.any() and name not in left_out:
            found[name] = int(gone[column.index].sum())
    return found


def _alone(grid: Grid, name: str) -> bool:
    """Whether no two rows have the same value, and none is a text of several words."""
    if not _whole(grid, name):
        return False
    column: Column = grid.column(name)
    rows = len(column.index)
    different = len(column.texts) == rows >= FEWEST
    return different and not any(" " in text for text in column.texts)


def _whole(grid: Grid, name: str) -> bool:
    """Whether all rows have this column."""
    return not (grid.cells[:, grid.columns.index(name)] < 0).any()
