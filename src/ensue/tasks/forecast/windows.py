"""Windows of series as the training loop takes them: views, never a copy of the data set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.data.fingerprint import fingerprint
from ensue.metrics.answers import NumberAnswers
from ensue.metrics.table import Metric, scores_of
from ensue.tasks.forecast.networks import ForecastNetwork, WindowBatch
from ensue.tasks.forecast.series import carried_forward
from ensue.tasks.forecast.settings import ForecastSettings
from ensue.tasks.rows.part import Names
from ensue.training.devices import device_of_weights, moved

AT_ONCE, FEW = 128, 4  # windows that are scored together; of a trial evaluation
Origins = NDArray[np.int64]


class Windows:
    """values (steps, columns) as networks see them: outputs first, what is known ahead last; NaN
    where a value is missing. A window is named by its origin, the first step that is forecast, and
    lies in one series. starts: where the series of each step begins; ahead: how many columns are
    known ahead, if there are more than the settings name."""

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
        """Of windows whose steps ahead are all there."""
        at = torch.as_tensor(np.asarray(origins, np.int64))
        return WindowBatch(
            _time_first(self._past[at - self.settings.look_back]),
            _time_first(self._ahead[at]),
            _time_first(self._target[at]),
        )

    def observed(self, origins: Sequence[int] | Origins) -> NDArray[np.int64]:
        """How many numbers of each window are there to be forecast."""
        at = torch.as_tensor(np.asarray(origins, np.int64))
        return np.asarray(torch.isfinite(self._target[at]).sum((1, 2)).numpy())


def _time_first(found: Tensor) -> Tensor:
    return found.permute(2, 0, 1).contiguous()


def in_batches(origins: Origins, size: int = AT_ONCE) -> Iterator[Origins]:
    for first in range(0, len(origins), size):
        yield origins[first : first + size]


class WindowSource:
    """The windows of the training part, in an order that follows from the seed and the epoch."""

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
    """A validation: the mean of each metric over the numbers of the windows, as the network sees
    them; missing ones do not count. metrics: each a mean over numbers, so that the mean over
    batches is that over all; watch: the name of the one that training stops by."""

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
        found = dict[str, float]()
        answers = [self._answers(some) for some in in_batches(origins)]
        total = sum(len(own.gold) for own in answers)
        for own in answers:
            for name, score in scores_of(self.metrics, own, self.watch).items():
                found[name] = found.get(name, 0.0) + score * len(own.gold) / max(total, 1)
        return found

    @torch.no_grad()
    def _answers(self, origins: Origins) -> NumberAnswers:
        """Of the targets alone, not of covariates that a network forecasts for itself."""
        targets = len(self.windows.settings.targets)
        batch = moved(self.windows.batch(origins), device_of_weights(self.network))
        every = batch.target, self.network.point(batch), self.network.costs(batch)
        flat = [y[..., :targets].flatten().double().cpu().numpy() for y in every]
        there = np.isfinite(flat[0])
        return NumberAnswers(*(y[there] for y in flat))


def each(
    function: Callable[[WindowBatch], Tensor], windows: Windows, origins: Origins
) -> NDArray[np.float64]:
    """What a function gives for each window, (horizon, windows, outputs)."""
    found = [function(windows.batch(some)).double().numpy() for some in in_batches(origins)]
    return np.concatenate(found, 1)
