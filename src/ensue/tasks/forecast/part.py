"""`SeriesPart`: steps of series that belong together, and those before them that are read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from ensue.data.time.axis import TimeColumn, arranged
from ensue.errors import DataError
from ensue.tasks.forecast.series import Series, Steps, ranges, series_of_axis
from ensue.tasks.forecast.settings import ForecastSettings
from ensue.tasks.rows.part import Names


@dataclass(frozen=True)
class SeriesPart:
    """series: all steps; begins: of each series the first step that belongs to the part; those
    before it are history, which its forecasts read. time: the name of the column of the time;
    notes: what reading has found that a user should know."""

    series: Series
    begins: Steps
    time: str = ""
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, series: Series, time: str = "", notes: tuple[str, ...] = ()) -> SeriesPart:
        """All of its steps belong to the part."""
        return cls(series, series.bounds[:-1].copy(), time, notes)

    def __len__(self) -> int:
        """How many steps belong to it."""
        return int((self.series.bounds[1:] - self.begins).sum())

    @property
    def values(self) -> NDArray[np.float64]:
        return self.series.values

    @property
    def begin(self) -> int:
        """Of one series."""
        assert self.series.count == 1
        return int(self.begins[0])

    @property
    def names(self) -> Names:
        """Where the steps come from that belong to it."""
        return self.series.names.take(self._steps)

    @property
    def _steps(self) -> Steps:
        return ranges(self.begins, self.series.bounds[1:])

    def until(self, step: int) -> SeriesPart:
        """The steps of one series before this one, history counted."""
        assert self.series.count == 1
        return self.between(np.array([self.begin]), np.array([step]))

    def since(self, step: int) -> SeriesPart:
        """The steps of one series from this one on; all before it are history."""
        assert self.series.count == 1
        return replace(self, begins=np.array([step], np.int64))

    def between(self, begins: Steps, ends: Steps) -> SeriesPart:
        """Of each series the steps before `ends`, which belong to the part from `begins` on."""
        firsts = self.series.bounds[:-1]
        series = self.series.taken(firsts, ends)
        own = np.minimum(begins, ends) - firsts
        return replace(self, series=series, begins=series.bounds[:-1] + own)

    def take(self, rows: NDArray[np.int64]) -> SeriesPart:
        """The steps of these numbers, which follow one another in each series; all before them
        are history."""
        steps = self._steps[rows]
        owner, bounds = self.series.owner[steps], self.series.bounds
        begins, ends = bounds[1:].copy(), bounds[1:].copy()
        for k in np.unique(owner):
            own = steps[owner == k]
            assert np.array_equal(own, np.arange(own[0], own[0] + len(own)))
            begins[k], ends[k] = own[0], own[-1] + 1
        return self.between(begins, ends)


def _own(part: SeriesPart) -> Series:
    """The steps that belong to a part, without its history."""
    return part.series.taken(part.begins, part.series.bounds[1:])


def joined(first: SeriesPart, second: SeriesPart) -> SeriesPart:
    """The steps that belong to the second, after all of the first, series by series."""
    one, two = first.series, _own(second)
    _refuse_overlap(first, two)
    names = Names(
        (*one.names.files, *two.names.files),
        np.concatenate([one.names.file, two.names.file + len(one.names.files)]),
        np.concatenate([one.names.line, two.names.line]),
    )
    ids = [series.ids[k] for series in (one, two) for k in series.owner]
    times = None
    if one.times:
        moments = (*one.moments, *two.moments)
        times = TimeColumn((*one.times, *two.times), moments, one.spelling)
    axis = arranged(len(ids), names.__getitem__, times, first.time, ids, one.spacing)
    known = dict(zip(two.ids, two.static, strict=True)) | dict(
        zip(one.ids, one.static, strict=True)
    )
    static = [known[own] for own in axis.ids]
    values = np.concatenate([one.values, two.values])
    whole = series_of_axis(axis, values, names, static, one.spelling)
    begun = dict(zip(one.ids, first.begins - one.bounds[:-1], strict=True))
    own = np.array([begun.get(key, 0) for key in whole.ids], np.int64)
    return SeriesPart(whole, whole.bounds[:-1] + own, first.time, first.notes)


def _refuse_overlap(first: SeriesPart, second: Series) -> None:
    """Steps that come after others have later times."""
    one = first.series
    if not one.times or not second.times:
        return
    ends = {key: int(end) - 1 for key, end in zip(one.ids, one.bounds[1:], strict=True)}
    for k, key in enumerate(second.ids):
        at = int(second.bounds[k])
        if key not in ends or at == second.bounds[k + 1] or ends[key] < 0:
            continue
        last, this = one.moments[ends[key]], second.moments[at]
        if type(last) is not type(this):
            raise DataError(
                f"{second.names[at]}: column {first.time!r}: expected a time written as "
                f"{one.times[ends[key]]!r} before it, got {second.times[at]!r}"
            )
        if this <= last:  # type: ignore[operator]
            raise DataError(
                f"{second.names[at]}: column {first.time!r}: {second.times[at]!r} does not come "
                f"after {one.times[ends[key]]!r}, where the steps before it end "
                f"({one.names[ends[key]]}); give steps that follow them"
            )


def following(before: SeriesPart, part: SeriesPart) -> SeriesPart:
    """The part with all steps of the one before it as history."""
    whole = joined(before, part)
    known = dict(zip(before.series.ids, before.series.lengths, strict=True))
    begun = np.array([known.get(key, 0) for key in whole.series.ids], np.int64)
    return replace(whole, begins=whole.series.bounds[:-1] + begun, notes=part.notes)


def divided(whole: SeriesPart, settings: ForecastSettings) -> dict[str, SeriesPart]:
    """train, validation and test, in the order of time, each with the steps before it as history.
    Steps after the numbers that are given belong to none."""
    firsts, lengths = whole.begins, whole.series.bounds[1:] - whole.begins
    if settings.split_in_shares:
        ends = [np.round(lengths * end).astype(np.int64) for end in accumulate(settings.split)]
    else:
        ends = [np.full_like(lengths, int(end)) for end in accumulate(settings.split)]
        short = np.argwhere(ends[-1] > lengths)
        if len(short):
            k = int(short[0, 0])
            own = f" of {', '.join(whole.series.ids[k])}" if whole.series.ids[k] else ""
            raise DataError(
                f"{whole.series.names[int(whole.series.bounds[k + 1]) - 1]}: model.split names "
                f"{ends[-1][0]} steps, and the series{own} has {lengths[k]}"
            )
    train, validation, test = (firsts + end for end in ends)
    return {
        "train": whole.between(firsts, train),
        "validation": replace(whole.between(train, validation), notes=()),
        "test": replace(whole.between(validation, test), notes=()),
    }
