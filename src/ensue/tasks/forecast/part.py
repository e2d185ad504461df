"""`SeriesPart`: the steps of series that form a part, and their history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.data.fingerprint import fingerprint
from ensue.data.time.axis import TimeColumn, arranged
from ensue.errors import DataError
from ensue.metrics.classes import NumberAnswers
from ensue.metrics.table import Metric, scores_of
from ensue.tasks.forecast.networks import ForecastNetwork, WindowBatch
from ensue.tasks.forecast.series import Series, Steps, carried_forward, ranges, series_of_axis
from ensue.tasks.forecast.settings import ForecastSettings
from ensue.tasks.rows.part import Names
from ensue.training.processes import device_of_weights, moved


@dataclass(frozen=True)
class SeriesPart:
    """A part of series. series: all steps; begins: the first step of each series that belongs to
    the part (earlier steps are history, which forecasts read); time: the name of the time column;
    notes: remarks on reading for the user."""

    series: Series
    begins: Steps
    time: str = ""
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, series: Series, time: str = "", notes: tuple[str, ...] = ()) -> SeriesPart:
        """A part with all steps of the series."""
        return cls(series, series.bounds[:-1].copy(), time, notes)

    def __len__(self) -> int:
        """The number of steps that belong to the part."""
        return int((self.series.bounds[1:] - self.begins).sum())

    @property
    def values(self) -> NDArray[np.float64]:
        return self.series.values

    @property
    def begin(self) -> int:
        """The first step of the part, for a single series."""
        assert self.series.count == 1
        return int(self.begins[0])

    @property
    def names(self) -> Names:
        """The names of the steps that belong to the part."""
        return self.series.names.take(self._steps)

    @property
    def _steps(self) -> Steps:
        return ranges(self.begins, self.series.bounds[1:])

    def until(self, step: int) -> SeriesPart:
        """The steps of a single series before this one, which counts history."""
        assert self.series.count == 1
        return self.between(np.array([self.begin]), np.array([step]))

    def since(self, step: int) -> SeriesPart:
        """The steps of a single series from this one on; earlier ones are history."""
        assert self.series.count == 1
        return replace(self, begins=np.array([step], np.int64))

    def between(self, begins: Steps, ends: Steps) -> SeriesPart:
        """The steps of each series before `ends`; those from `begins` on belong to the part."""
        firsts = self.series.bounds[:-1]
        series = self.series.slices(firsts, ends)
        counts = np.minimum(begins, ends) - firsts
        return replace(self, series=series, begins=series.bounds[:-1] + counts)

    def take(self, rows: NDArray[np.int64]) -> SeriesPart:
        """The steps with these indices, consecutive in each series; all before them are history."""
        steps = self._steps[rows]
        owner, bounds = self.series.owner[steps], self.series.bounds
        begins, ends = bounds[1:].copy(), bounds[1:].copy()
        for k in np.unique(owner):
            rows_of_series = steps[owner == k]
            assert np.array_equal(
                rows_of_series,
                np.arange(rows_of_series[0], rows_of_series[0] + len(rows_of_series)),
            )
            begins[k], ends[k] = rows_of_series[0], rows_of_series[-1] + 1
        return self.between(begins, ends)


def _without_context(part: SeriesPart) -> Series:
    """The steps that belong to a part, without its history."""
    return part.series.slices(part.begins, part.series.bounds[1:])


def joined(first: SeriesPart, second: SeriesPart) -> SeriesPart:
    """Each series of the first part, continued by the steps of the second without its history."""
    one, two = first.series, _without_context(second)
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
    static = [known[key] for key in axis.ids]
    values = np.concatenate([one.values, two.values])
    whole = series_of_axis(axis, values, names, static, one.spelling)
    begun = dict(zip(one.ids, first.begins - one.bounds[:-1], strict=True))
    starts = np.array([begun.get(key, 0) for key in whole.ids], np.int64)
    return SeriesPart(whole, whole.bounds[:-1] + starts, first.time, first.notes)


def _refuse_overlap(first: SeriesPart, second: Series) -> None:
    """Raises an error if later steps do not have later times."""
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
    """The part with all steps of the previous part as history."""
    whole = joined(before, part)
    known = dict(zip(before.series.ids, before.series.lengths, strict=True))
    begun = np.array([known.get(key, 0) for key in whole.series.ids], np.int64)
    return replace(whole, begins=whole.series.bounds[:-1] + begun, notes=part.notes)


def divided(whole: SeriesPart, settings: ForecastSettings) -> dict[str, SeriesPart]:
    """train, validation and test in the order of time, each with the steps before it as history.
    Steps beyond the given numbers belong to no part."""
    firsts, lengths = whole.begins, whole.series.bounds[1:] - whole.begins
    if settings.split_in_shares:
        ends = [np.round(lengths * end).astype(np.int64) for end in accumulate(settings.split)]
    else:
        ends = [np.full_like(lengths, int(end)) for end in accumulate(settings.split)]
        short = np.argwhere(ends[-1] > lengths)
        if len(short):
            k = int(short[0, 0])
            where = f" of {', '.join(whole.series.ids[k])}" if whole.series.ids[k] else ""
            raise DataError(
                f"{whole.series.names[int(whole.series.bounds[k + 1]) - 1]}: model.split names "
                f"{ends[-1][0]} steps, and the series{where} has {lengths[k]}"
            )
    train, validation, test = (firsts + end for end in ends)
    return {
        "train": whole.between(firsts, train),
        "validation": replace(whole.between(train, validation), notes=()),
        "test": replace(whole.between(validation, test), notes=()),
    }


AT_ONCE, FEW = 128, 4  # windows scored together; windows of a trial evaluation
Origins = NDArray[np.int64]


class Windows:
    """Windows of series. values (steps, columns) for networks: outputs first, columns known ahead
    last; NaN for missing values. A window is identified by its origin, the first forecast step, and
    lies in one series. starts: where the series of each step begins; ahead: number of columns known
    ahead, if more than in the settings."""

    def __init__(
        self,
        values: NDArray[np.float32],
        settings: ForecastSettings,
        starts: Origins | None = None,
        ahead: int | None = None,
    ) -> None:
        self.values, self.settings = values, settings
        every = torch.from_numpy(carried_forward(values, starts))
        self._past = every.unfold(0, settings.look_back, 1)  # (windows, columns, look_back): a view
        known = settings.ahead if ahead is None else ahead
        self._ahead = every[:, every.shape[1] - known :].unfold(0, settings.horizon, 1)
        truth = torch.from_numpy(values)
        self._target = truth[:, : settings.outputs].unfold(0, settings.horizon, 1)

    def batch(self, origins: Sequence[int] | Origins) -> WindowBatch:
        """A batch of windows with all their steps ahead."""
        at = torch.as_tensor(np.asarray(origins, np.int64))
        return WindowBatch(
            _time_first(self._past[at - self.settings.look_back]),
            _time_first(self._ahead[at]),
            _time_first(self._target[at]),
        )

    def observed(self, origins: Sequence[int] | Origins) -> NDArray[np.int64]:
        """The number of observed values to forecast in each window."""
        at = torch.as_tensor(np.asarray(origins, np.int64))
        return np.asarray(torch.isfinite(self._target[at]).sum((1, 2)).numpy())


def _time_first(tensor: Tensor) -> Tensor:
    return tensor.permute(2, 0, 1).contiguous()


def in_batches(origins: Origins, size: int = AT_ONCE) -> Iterator[Origins]:
    for first in range(0, len(origins), size):
        yield origins[first : first + size]


class WindowSource:
    """The windows of the training part, in an order determined by seed and epoch."""

    def __init__(self, windows: Windows, origins: Origins, names: Names, seed: int) -> None:
        self.windows, self.names, self.seed = windows, names, seed
        self.origins = origins[windows.observed(origins) > 0]
        last = int(origins[-1]) + windows.settings.horizon
        self.fingerprint = fingerprint({"steps": windows.values[:last], "origins": self.origins})

    def batches(self, epoch: int) -> Sequence[Any]:
        # raw draws: their stream, unlike that of numpy's Generator, is the same in all versions
        drawn = np.random.PCG64(np.random.SeedSequence([self.seed, epoch]))
        settings = self.windows.settings
        order = np.argsort(drawn.random_raw(len(self.origins)), kind="stable")
        order = order[: settings.epoch_windows]
        return list(in_batches(self.origins[order], settings.batch_windows))

    def batch(self, rows: Sequence[int]) -> WindowBatch:
        return self.windows.batch(rows)

    def targets(self, rows: Sequence[int]) -> float:
        return float(self.windows.observed(rows).sum())

    def tokens(self, rows: Sequence[int]) -> float:
        return float(len(rows) * self.windows.settings.look_back)

    def name(self, row: int) -> str:
        return f"{self.names[row]} (the window ahead of it)"


class WindowScores:
    """A validation: the mean of each metric over the observed numbers of the windows, in the
    network's scale. metrics: means over numbers, so that they can be averaged over batches; watch:
    the metric for early stopping."""

    def __init__(
        self,
        network: ForecastNetwork,
        windows: Windows,
        origins: Origins,
        metrics: tuple[Metric, ...],
        watch: str,
    ) -> None:
        self.network, self.windows = network, windows
        self.origins = origins[windows.observed(origins) > 0]
        self.metrics, self.watch = metrics, watch
        self.fingerprint = fingerprint({"steps": windows.values, "origins": self.origins})

    def __call__(self) -> Mapping[str, float]:
        return self._on(self.origins)

    def sample(self) -> Mapping[str, float]:
        return self._on(self.origins[-FEW:])

    def _on(self, origins: Origins) -> dict[str, float]:
        on = dict[str, float]()
        answers = [self._answers(some) for some in in_batches(origins)]
        total = sum(len(answer.gold) for answer in answers)
        for answer in answers:
            for name, score in scores_of(self.metrics, answer, self.watch).items():
                on[name] = on.get(name, 0.0) + score * len(answer.gold) / max(total, 1)
        return on

    @torch.no_grad()
    def _answers(self, origins: Origins) -> NumberAnswers:
        """Answers for the targets only, not for covariates that a network forecasts for its own
        use."""
        targets = len(self.windows.settings.targets)
        batch = moved(self.windows.batch(origins), device_of_weights(self.network))
        every = batch.target, self.network.point(batch), self.network.costs(batch)
        flat = [y[..., :targets].flatten().double().cpu().numpy() for y in every]
        known = np.isfinite(flat[0])
        return NumberAnswers(*(y[known] for y in flat))


def each(
    function: Callable[[WindowBatch], Tensor], windows: Windows, origins: Origins
) -> NDArray[np.float64]:
    """The results of a function for each window, (horizon, windows, outputs)."""
    results = [function(windows.batch(some)).double().numpy() for some in in_batches(origins)]
    return np.concatenate(results, 1)
