"""Networks that forecast: from a window of steps to the steps after it.

    recurrent  p(y_{t+1} | all before) by a cell; rolled forward on its own forecasts
    direct     a cell reads the window; all steps ahead from its last state at once
    segment    a cell reads segments of the window, each variable by itself; all segments ahead
               from its last state at once (SegRNN, Lin et al. 2023)
    linear     each step ahead is a weighted sum of the window, the same for all variables
               (NLinear, Zeng et al. 2023)

Each is called with a batch for its cost, summed over (horizon, batch, outputs). `answer` returns
the network's output z (horizon, batch, outputs, width) for each number; `paths` draws futures.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import dropout, relu

from ensue.tasks.blocks.distributions import Distribution, Gaussian, Mixture
from ensue.tasks.blocks.recurrent_layers import layers_of
from ensue.tasks.forecast.settings import ForecastSettings

LEAST_SPREAD = 1e-5  # minimum spread of a normalised window


NOTHING = torch.zeros(0, 0, 0)


class WindowBatch(NamedTuple):
    """past (look_back, batch, columns): outputs first, columns known ahead last; ahead (horizon,
    batch, known); target (horizon, batch, outputs), NaN for missing values; base: the forecast to
    correct, with the shape of target."""

    past: Tensor
    ahead: Tensor
    target: Tensor
    base: Tensor = NOTHING


@dataclass(frozen=True)
class PointError:
    """A point prediction instead of a distribution, with the cost (z − y)² or |z − y|."""

    name: str

    def cost(self, z: Tensor, y: Tensor) -> Tensor:
        off = (z - y).squeeze(-1)
        return off.abs() if self.name == "absolute" else off**2


class Normalisation(NamedTuple):
    """The normalisation of windows, (1, batch, outputs) each: y = centre + spread·(the network's
    value)."""

    centre: Tensor
    spread: Tensor

    def inward(self, y: Tensor) -> Tensor:
        return (y - self.centre) / self.spread

    def outward(self, y: Tensor) -> Tensor:
        return self.centre + self.spread * y


def normalisation_of(y: Tensor, how: str) -> Normalisation:
    """The normalisation from the look-back y (time, batch, outputs) only."""
    one = torch.ones_like(y[:1])
    if how == "none":
        return Normalisation(torch.zeros_like(one), one)
    if how == "last":
        return Normalisation(y[-1:], one)
    centre = y.mean(0, keepdim=True)
    if how == "mean":
        return Normalisation(centre, one)
    return Normalisation(centre, y.std(0, correction=0, keepdim=True).clamp_min(LEAST_SPREAD))


class ForecastNetwork(nn.Module):
    """Base class of the forecasting networks. columns: size of a past step. static: number of
    static values of a series, which are read with the columns known ahead."""

    def __init__(self, settings: ForecastSettings, static: int = 0) -> None:
        super().__init__()
        self.outputs, self.horizon, self.normalise = (
            settings.outputs,
            settings.horizon,
            settings.normalise,
        )
        self.columns = len(settings.columns) + 2 * len(settings.calendar) + static
        self.ahead, self.rate = settings.ahead + static, settings.dropout_layers
        self.says: Distribution | None = None
        if settings.says in ("gaussian", "mixture"):
            self.says = Gaussian() if settings.says == "gaussian" else Mixture(settings.components)
        self.error = PointError(settings.says)
        self.width = 1 if self.says is None else self.says.width(1)

    @abstractmethod
    def encode(self, batch: WindowBatch, normal: Normalisation) -> Tensor:
        """z (horizon, batch, outputs, width) of a normalised window. Only networks that are rolled
        forward read the target, and only of earlier steps."""

    def normalisation(self, batch: WindowBatch) -> Normalisation:
        return normalisation_of(batch.past[..., : self.outputs], self.normalise)

    def inward(self, batch: WindowBatch, normal: Normalisation) -> Tensor:
        """The normalised past."""
        y, rest = batch.past[..., : self.outputs], batch.past[..., self.outputs :]
        return torch.cat([normal.inward(y), rest], -1)

    def forward(
        self, batch: WindowBatch, carried: Mapping[str, Tensor]
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        return self.costs(batch).sum(), {}

    def costs(self, batch: WindowBatch) -> Tensor:
        """The costs (horizon, batch, outputs) for unnormalised numbers: −log p changes by log
        spread. A missing number has cost 0."""
        normal = self.normalisation(batch)
        known = torch.isfinite(batch.target)
        z, y = self.encode(batch, normal), normal.inward(batch.target).nan_to_num()[..., None]
        if self.says is not None:
            cost = self.says.cost(z, y) + normal.spread.log()
        else:
            spread = normal.spread[..., None]
            cost = self.error.cost(z * spread, y * spread)
        return torch.where(known, cost, torch.zeros_like(cost))

    def means(self, z: Tensor) -> Tensor:
        """The means (…, outputs) of z (…, outputs, width)."""
        return (z if self.says is None else self.says.mean(z)).squeeze(-1)

    def point(self, batch: WindowBatch) -> Tensor:
        """The expected steps ahead, (horizon, batch, outputs); the target is not read."""
        normal = self.normalisation(batch)
        return normal.outward(self.means(self.encode(batch, normal)))

    def paths(self, batch: WindowBatch, count: int, generator: Generator) -> Tensor | None:
        """Drawn futures (count, horizon, batch, outputs); None for a point prediction. The steps of
        one draw are independent given the past."""
        if self.says is None:
            return None
        normal = self.normalisation(batch)
        z = self.encode(batch, normal)
        drawn = self.says.sample(z.expand(count, *z.shape), generator).squeeze(-1)
        return normal.outward(drawn)


class RecurrentForecast(ForecastNetwork):
    """One step ahead at each step: z_{t+1} = V·h_t, h_t = cell(y_t, known_{t+1}; h_{t−1}).

    Trained on the true previous steps (teacher forcing), and rolled forward on its own forecasts. A
    drawn path continues from its own drawn values, so its steps depend on each other."""

    def __init__(self, settings: ForecastSettings, static: int = 0) -> None:
        super().__init__(settings, static)
        self.recurrent = layers_of(settings, self.outputs + self.ahead)
        self.head = nn.Linear(self.recurrent.output_size, self.outputs * self.width)

    def answer(self, h: Tensor) -> Tensor:
        h = dropout(h, self.rate, self.training)
        z: Tensor = self.head(h)
        return z.reshape(*z.shape[:-1], self.outputs, self.width)

    def begun(self, batch: WindowBatch, normal: Normalisation) -> Tensor:
        """The cell's inputs of the past: each step with the known columns of the next one."""
        past = self.inward(batch, normal)
        known = past[..., self.columns - self.ahead :]
        following = torch.cat([known[1:], batch.ahead[:1]])
        return torch.cat([past[..., : self.outputs], following], -1)

    def encode(self, batch: WindowBatch, normal: Normalisation) -> Tensor:
        before = normal.inward(batch.target[:-1]).nan_to_num()
        truth = torch.cat([before, batch.ahead[1:]], -1)
        h, _ = self.recurrent(torch.cat([self.begun(batch, normal), truth]))
        return self.answer(h[len(batch.past) - 1 :])

    def _next(self, z: Tensor, generator: Generator | None) -> Tensor:
        if self.says is None or generator is None:
            return self.means(z)
        return self.says.sample(z, generator).squeeze(-1)

    def rolled(self, batch: WindowBatch, count: int, generator: Generator | None) -> Tensor:
        """Futures that continue from draws, or from means without
        a generator; shape (count, horizon, batch, outputs)."""
        normal = self.normalisation(batch)
        h, state = self.recurrent(self.begun(batch, normal))
        rows = h.shape[1]
        h = h[-1:].repeat(1, count, 1)
        state = tuple(tuple(part.repeat(count, 1) for part in parts) for parts in state)
        predicted = []
        for step in range(self.horizon):
            y = self._next(self.answer(h), generator)  # (1, count·batch, outputs)
            predicted.append(y.reshape(count, rows, -1))
            if step + 1 < self.horizon:
                x = torch.cat([y, batch.ahead[step + 1 : step + 2].repeat(1, count, 1)], -1)
                h, state = self.recurrent(x, state)
        return normal.outward(torch.stack(predicted, 1))

    def point(self, batch: WindowBatch) -> Tensor:
        return self.rolled(batch, 1, None)[0]

    def paths(self, batch: WindowBatch, count: int, generator: Generator) -> Tensor | None:
        return None if self.says is None else self.rolled(batch, count, generator)


class DirectForecast(ForecastNetwork):
    """z_j = V·ReLU(A·h + p_j + K·known_j) for each step j ahead, h the last state of a cell."""

    def __init__(self, settings: ForecastSettings, static: int = 0) -> None:
        super().__init__(settings, static)
        self.recurrent = layers_of(settings, self.columns)
        self.enter = nn.Linear(self.recurrent.output_size, settings.hidden_size)
        self.steps = nn.Parameter(
            nn.init.normal_(torch.empty(settings.horizon, 1, settings.hidden_size), std=0.1)
        )
        self.known = nn.Linear(self.ahead, settings.hidden_size, bias=False) if self.ahead else None
        self.head = nn.Linear(settings.hidden_size, self.outputs * self.width)

    def encode(self, batch: WindowBatch, normal: Normalisation) -> Tensor:
        h, _ = self.recurrent(self.inward(batch, normal))
        inner = self.enter(dropout(h[-1], self.rate, self.training)) + self.steps
        if self.known is not None:
            inner = inner + self.known(batch.ahead)
        z: Tensor = self.head(dropout(relu(inner), self.rate, self.training))
        return z.reshape(*z.shape[:-1], self.outputs, self.width)


class SegmentForecast(ForecastNetwork):
    """Each variable separately, with the same weights: s_k = ReLU(P·segment_k), h = cell over s_k;
    segment j ahead is Q·cell([position_j, variable_c]; h)."""

    def __init__(self, settings: ForecastSettings, static: int = 0) -> None:
        super().__init__(settings, static)
        hidden, half = settings.hidden_size, settings.hidden_size // 2
        self.segment = settings.segment
        self.count = -(-settings.horizon // settings.segment)  # segments ahead; the last may be cut
        self.enter = nn.Linear(settings.segment, settings.hidden_size)
        self.recurrent = layers_of(settings, settings.hidden_size)
        self.positions = nn.Parameter(torch.randn(self.count, half))
        self.variables = nn.Parameter(torch.randn(self.outputs, hidden - half))
        self.head = nn.Linear(self.recurrent.output_size, settings.segment * self.width)

    def encode(self, batch: WindowBatch, normal: Normalisation) -> Tensor:
        y = normal.inward(batch.past[..., : self.outputs])
        cut = y.reshape(-1, self.segment, *y.shape[1:]).permute(
            0, 2, 3, 1
        )  # (segments, batch, c, w)
        segments, rows, variables, _ = cut.shape
        s = relu(self.enter(cut.reshape(segments, rows * variables, -1)))
        _, state = self.recurrent(s)
        ahead = torch.cat(
            [
                self.positions[:, None].expand(-1, variables, -1),
                self.variables.expand(self.count, -1, -1),
            ],
            -1,
        )  # (count, c, hidden)
        x = ahead[:, None].expand(-1, rows, -1, -1).reshape(1, self.count * rows * variables, -1)
        state = tuple(tuple(part.repeat(self.count, 1) for part in parts) for parts in state)
        h, _ = self.recurrent(x, state)
        z: Tensor = self.head(dropout(h[0], self.rate, self.training))
        z = z.reshape(self.count, rows, variables, self.segment, self.width)
        return z.permute(0, 3, 1, 2, 4).flatten(0, 1)[: self.horizon]


class LinearForecast(ForecastNetwork):
    """y_j = Σ_k w_jk·x_k + b_j over the window x, each variable separately with the same weights.
    It is solved, not trained (`baselines.solve`), and predicts a number without distribution."""

    def __init__(self, settings: ForecastSettings, static: int = 0) -> None:
        super().__init__(settings.model_copy(update={"output": "squared"}), static)
        self.weight = nn.Parameter(torch.zeros(settings.horizon, settings.look_back))
        self.bias = nn.Parameter(torch.zeros(settings.horizon))

    def encode(self, batch: WindowBatch, normal: Normalisation) -> Tensor:
        x = normal.inward(batch.past[..., : self.outputs])
        z = torch.einsum("hl,lbc->hbc", self.weight, x) + self.bias[:, None, None]
        return z[..., None]
