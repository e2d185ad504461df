"""Recognition of tables, and of the column to predict."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from ensue.data.recognise.columns import Kind, is_identifier_name
from ensue.data.roles import LABELS, TARGETS
from ensue.data.series import number_of
from ensue.tasks.columns.cells import Column, Grid
from ensue.tasks.columns.features import date_features
from ensue.tasks.columns.learned import empty_cells
from ensue.tasks.sample import Guess, NumberKind, Sample
from ensue.tasks.targets.classes import ClassTarget
from ensue.tasks.targets.numbers import NumberTarget
from ensue.tasks.task import Recipe

Read = Callable[[Sample, str], Guess]


def table_guess(sample: Sample, read: Read) -> Guess | None:
    """The reading of data as a table, with a column to predict from columns that are not texts. If
    no option names it, each plausible target is a reading, unless one column is named like a
    label."""
    data = sample.data
    if data.sequence or data.texts or data.second:
        return None
    if not data.label:
        return _unnamed(sample, read)
    if data.label not in sample.columns:
        return None
    texts = [name for name in sample.roles.texts if name != data.label]
    beside = any(sample.table_instead(name) for name in texts)
    if (texts and not beside) or not sample.features({data.label}):
        return None
    return replace(read(sample, data.label), sure=not beside and not _in_time(sample, data.label))


def _unnamed(sample: Sample, read: Read) -> Guess | None:
    texts = sample.roles.texts
    if texts and not all(map(sample.table_instead, texts)):
        return None
    targets = _targets(sample)
    if not targets:
        return None
    first, *others = (read(sample, name) for name in targets)
    sure = not others and not texts and not any(_in_time(sample, name) for name in targets)
    return replace(first, sure=sure, others=tuple(others))


def targets_of(sample: Sample) -> list[str]:
    """The plausible target columns; raises an error if there are none."""
    targets = _targets(sample)
    if not targets:
        raise sample.no_label()
    return targets


def _targets(sample: Sample) -> list[str]:
    """A column named like a label; otherwise all that can be predicted from others: first those
    with two values, then the last of the table."""
    usable = sample.features()
    if len(usable) < 2:
        return []
    named = [name for name in usable if name.lower() in (*LABELS, *TARGETS)]
    if len(named) == 1:
        return named
    return sorted(named or reversed(usable), key=lambda name: sample.kinds[name].different != 2)


def _in_time(sample: Sample, label: str) -> bool:
    """Whether the rows may be steps of a series of this column: numbers with rising dates."""
    dates = [kind.name for kind in sample.kinds.values() if kind.kind is Kind.DATE]
    if sample.number_kind(label) is NumberKind.CLASSES and not _numbers(sample, label):
        return False
    return any(_rising(sample, name) for name in dates)


def _numbers(sample: Sample, label: str) -> bool:
    return all(number_of(value) is not None for value in sample.values(label))


def _rising(sample: Sample, name: str) -> bool:
    """Whether all dates differ and are in order."""
    values = [str(value) for value in sample.values(name)]
    return len({*values}) == len(values) and values in (sorted(values), sorted(values)[::-1])


FEWEST = 10  # minimum rows for uniqueness to be meaningful


def table_recipe(grid: Grid, kind: str, settings: Any, explicit: Collection[str] = ()) -> Recipe:
    """The recipe of a table. kind: the kind of the target; explicit: the keys of [model] that the
    user set. Identifiers are ignored, and dates are read as features. Classes are predicted
    together with a linear model; of two classes, the rarer one from a fitted threshold."""
    model, why = dict[str, Any](), list[str]()
    named = {*settings.numeric, *settings.categorical, *settings.leave_out}
    left = [name for name in grid.columns if name not in named]
    names = [name for name in left if is_identifier_name(name) and _alone(grid, name)]
    if names and len(names) < len(grid.columns):
        model["leave_out"] = [*settings.leave_out, *names]
        listed = ", ".join(map(repr, names))
        why.append(
            f"{listed}: identifies each row and is not read (--set model.leave_out=[] reads it)"
        )
    features = {name: date_features(grid.column(name)) for name in left if _whole(grid, name)}
    if dates := {name: feature for name, feature in features.items() if feature}:
        model["features"] = [text for date in dates.values() for text in date]
        why.append(
            f"{', '.join(map(repr, dates))}: dates, read as {', '.join(model['features'])} "
            "(--set model.features=[] reads them as categories)"
        )
    model["missing"] = "indicator"
    gaps = {} if "missing" in explicit else _gaps(grid, [*settings.leave_out, *names])
    if gaps:
        listed = ", ".join(f"{name} ({count:,})" for name, count in gaps.items())
        why.append(
            f"empty cells in {listed}: numbers become the column's mean with an indicator, "
            "categories a category of their own (--set model.missing=error refuses them)"
        )
    if kind != NumberTarget.kind:
        model["linear_share"] = "fitted"
    if kind == ClassTarget.kind:
        model["threshold"] = "auto"
    return Recipe({"model": model}, "; ".join(why))


def _gaps(grid: Grid, left_out: Sequence[str]) -> dict[str, int]:
    """The number of empty cells of each column that has any."""
    gaps = {}
    for name in grid.columns:
        column = grid.column(name)
        gone = empty_cells(column.texts)
        if gone.any() and name not in left_out:
            gaps[name] = int(gone[column.index].sum())
    return gaps


def _alone(grid: Grid, name: str) -> bool:
    """Whether all values differ, and none is a text of several words."""
    if not _whole(grid, name):
        return False
    column: Column = grid.column(name)
    rows = len(column.index)
    different = len(column.texts) == rows >= FEWEST
    return different and not any(" " in text for text in column.texts)


def _whole(grid: Grid, name: str) -> bool:
    """Whether all rows have this column."""
    return not (grid.cells[:, grid.columns.index(name)] < 0).any()
