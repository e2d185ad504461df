"""Windows of a series as the training loop takes them: views, never a copy of the data set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ensue.data.fingerprint import fingerprint
from ensue.models.collect import Names
from ensue.models.forecast_networks import ForecastNetwork, WindowBatch
from ensue.models.forecast_settings import ForecastSettings

AT_ONCE, FEW = 128, 4  # windows that are scored together; of a trial evaluation
Origins = NDArray[np.int64]


class Windows:
    """values (steps, columns) as networks see them: outputs first, what is known ahead last. A
    window is named by its origin, the first step that is forecast."""

    def __init__(self, values: NDArray[np.float32], settings: ForecastSettings) -> None:
        self.values, self.settings = values, settings
        every = torch.from_numpy(values)
        self._past = every.unfold(0, settings.look_back, 1)  # (windows, columns, look_back): a view
        ahead = settings.ahead
        self._ahead = every[:, every.shape[1] - ahead :].unfold(0, settings.horizon, 1)
        self._target = every[:, : settings.outputs].unfold(0, settings.horizon, 1)

    def batch(self, origins: Sequence[int] | Origins) -> WindowBatch:
        """Of windows whose steps ahead are all there."""
        at = torch.as_tensor(np.asarray(origins, np.int64))
        return WindowBatch(
            _time_first(self._past[at - self.settings.look_back]),
            _time_first(self._ahead[at]),
            _time_first(self._target[at]),
        )


def _time_first(found: Tensor) -> Tensor:
    return found.permute(2, 0, 1).contiguous()


def in_batches(origins: Origins, size: int = AT_ONCE) -> Iterator[Origins]:
    for first in range(0, len(origins), size):
        yield origins[first : first + size]


class WindowSource:
    """The windows of the training part, in an order that follows from the seed and the epoch."""

    def __init__(self, windows: Windows, origins: Origins, names: Names, seed: int) -> None:
        self.windows, self.origins, self.names, self.seed = windows, origins, names, seed
        last = int(origins[-1]) + windows.settings.horizon
        self.fingerprint = fingerprint({"steps": windows.values[:last], "origins": origins})

    def batches(self, epoch: int) -> Sequence[Any]:
        # raw draws: their stream, unlike that of numpy's Generator, is the same in all versions
        drawn = np.random.PCG64(np.random.SeedSequence([self.seed, epoch]))
        order = np.argsort(drawn.random_raw(len(self.origins)), kind="stable")
        return list(in_batches(self.origins[order], self.windows.settings.batch_windows))

    def batch(self, rows: Sequence[int]) -> WindowBatch:
        return self.windows.batch(rows)

    def targets(self, rows: Sequence[int]) -> float:
        own = self.windows.settings
        return float(len(rows) * own.horizon * own.outputs)

    def tokens(self, rows: Sequence[int]) -> float:
        return float(len(rows) * self.windows.settings.look_back)

    def name(self, row: int) -> str:
        return f"{self.names[row]} (the window ahead of it)"


class WindowScores:
    """A validation: mean cost, and the errors of the point forecast in the numbers that the
    network sees."""

    def __init__(self, network: ForecastNetwork, windows: Windows, origins: Origins) -> None:
        self.network, self.windows, self.origins = network, windows, origins
        self.fingerprint = fingerprint({"steps": windows.values, "origins": origins})

    def __call__(self) -> Mapping[str, float]:
        return self._on(self.origins)

    def sample(self) -> Mapping[str, float]:
        return self._on(self.origins[-FEW:])

    def _on(self, origins: Origins) -> dict[str, float]:
        targets = len(self.windows.settings.targets)
        sums = np.zeros(3)
        for some in in_batches(origins):
            batch = self.windows.batch(some)
            off = (self.network.point(batch) - batch.target)[..., :targets]
            costs = self.network.costs(batch)[..., :targets]
            sums += [float(own.mean()) * len(some) for own in (costs, off.abs(), off**2)]
        cost, mae, error = sums / len(origins)
        return {"cost": cost, "mae": mae, "error": error}


def each(
    function: Callable[[WindowBatch], Tensor], windows: Windows, origins: Origins
) -> NDArray[np.float64]:
    """What a function gives for each window, (horizon, windows, outputs)."""
    found = [function(windows.batch(some)).double().numpy() for some in in_batches(origins)]
    return np.concatenate(found, 1)
