"""The families of forecasters by the value of `model.family`: networks, and their descriptions."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, relu

from ensue.tasks.blocks.recurrent_layers import layers_of
from ensue.tasks.forecast.baselines import solve
from ensue.tasks.forecast.forecasts import origins_of
from ensue.tasks.forecast.networks import (
    DirectForecast,
    ForecastNetwork,
    LinearForecast,
    Normalisation,
    RecurrentForecast,
    SegmentForecast,
    WindowBatch,
)
from ensue.tasks.forecast.part import SeriesPart
from ensue.tasks.forecast.settings import MIXED, TARGETS_ONLY, ForecastSettings
from ensue.tasks.model import Model
from ensue.tasks.search.ranges import Choice, Searched, Sets, Sizes
from ensue.tasks.search.usual import TRIED_CELLS
from ensue.tasks.task import Family, Solved

# -------------------------------------------------------------------------------------------------
# The network of a mixed forecast: it predicts the residuals of the solved members, by step ahead.
#
# Each target is read separately with the same weights, in segments of the window: its values minus
# the last one, a mask of present values, and all other columns. Before training the correction is
# zero.

MOST_SEGMENTS = 24


class CorrectionForecast(ForecastNetwork):
    """y_j = base_j + V·ReLU(A·h + p_j + v_c + K·[known_j, base_j − y_0]), where h is the last state
    of a cell over the segments of the window of target c, and y_0 its last value."""

    def __init__(self, settings: ForecastSettings, static: int = 0) -> None:
        super().__init__(settings, static)
        hidden = settings.hidden_size
        self.columns += self.outputs  # whether each value of a target was present
        self.segment = -(-settings.look_back // MOST_SEGMENTS)
        self.steps_used = settings.look_back // self.segment * self.segment  # the newest steps
        features = 2 + self.columns - 2 * self.outputs
        self.read = nn.Linear(self.segment * features, hidden)
        self.recurrent = layers_of(settings, hidden)
        self.enter = nn.Linear(self.recurrent.output_size, hidden)
        self.steps = nn.Parameter(
            nn.init.normal_(torch.empty(settings.horizon, 1, 1, hidden), std=0.1)
        )
        self.variables = nn.Parameter(torch.zeros(self.outputs, hidden))
        self.known = nn.Linear(self.ahead + 1, hidden, bias=False)
        self.head = nn.Linear(hidden, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def encode(self, batch: WindowBatch, normal: Normalisation) -> Tensor:
        """z of a window. normal: the last value of each window, which is subtracted."""
        base = normal.inward(batch.base)  # (horizon, batch, targets)
        return (base + self.correction(batch, normal, base))[..., None]

    def correction(self, batch: WindowBatch, normal: Normalisation, base: Tensor) -> Tensor:
        """The network's correction (horizon, batch, targets), which is added to the base."""
        count = self.outputs
        past = batch.past[-self.steps_used :]
        end = self.columns - self.ahead
        last_values = past[..., end - count : end]
        y = normal.inward(past[..., :count]) * last_values
        others = torch.cat([past[..., count : end - count], past[..., end:]], -1)
        steps, rows = past.shape[:2]
        shared = others[:, :, None].expand(-1, -1, count, -1)
        x = torch.cat(
            [y[..., None], last_values[..., None], shared], -1
        )  # (time, batch, targets, …)
        cut = x.reshape(steps // self.segment, self.segment, rows * count, -1)
        s = relu(self.read(cut.permute(0, 2, 1, 3).flatten(2)))
        h, _ = self.recurrent(s)
        inner = self.enter(dropout(h[-1], self.rate, self.training)).reshape(1, rows, count, -1)
        ahead = batch.ahead[:, :, None].expand(-1, -1, count, -1)
        inner = inner + self.steps + self.variables
        inner = inner + self.known(torch.cat([ahead, base[..., None]], -1))
        z: Tensor = self.head(dropout(relu(inner), self.rate, self.training))
        return z.squeeze(-1)


class ForecastFamily(Family[ForecastSettings]):
    """A family of networks that forecast the steps after a window of steps."""

    network: ClassVar[type[ForecastNetwork]]

    def build(self, model: Model[ForecastSettings, Any, Any]) -> nn.Module:
        return self.network(model.settings, model.learned.static.width)

    def describe(self, settings: ForecastSettings) -> str:
        kind = self.kind(settings)
        return f"{kind}; {settings.look_back} steps back, {settings.horizon} ahead"

    @abstractmethod
    def kind(self, settings: ForecastSettings) -> str:
        """The network in a few words."""


class MixedFamily(ForecastFamily):
    """Solved members that a network corrects."""

    network = CorrectionForecast

    def kind(self, settings: ForecastSettings) -> str:
        network = f"{settings.cell} of {settings.hidden_size}"
        return f"seasonal, ridge and smoothing models, corrected by a {network}"


class StepwiseFamily(ForecastFamily):
    """Forecasts one step at a time, each from all steps before it."""

    network = RecurrentForecast

    def kind(self, settings: ForecastSettings) -> str:
        return f"{settings.layers} × {settings.cell} of {settings.hidden_size}, step by step"


class DirectFamily(ForecastFamily):
    """All steps ahead from the last state of a cell."""

    network = DirectForecast

    def kind(self, settings: ForecastSettings) -> str:
        return f"{settings.layers} × {settings.cell} of {settings.hidden_size}, all steps at once"


class SegmentFamily(ForecastFamily):
    """Segments of the window, each variable separately."""

    network = SegmentForecast

    def kind(self, settings: ForecastSettings) -> str:
        return (
            f"{settings.cell} of {settings.hidden_size} over segments of {settings.segment} steps"
        )


class LinearFamily(ForecastFamily):
    """A weighted sum of the window, by ridge regression."""

    network: ClassVar[type[LinearForecast]] = LinearForecast
    solved = True

    def kind(self, settings: ForecastSettings) -> str:
        return "weighted sum of the window"

    def solve(
        self, train: SeriesPart, validation: SeriesPart, model: Model[ForecastSettings, Any, Any]
    ) -> Solved:
        network = self.network(model.settings, model.learned.static.width)
        windows = model.learned.windows(train.series, model.settings)
        solve(network, windows, origins_of(train, model.settings), model.settings.ridge)
        network.eval()
        return Solved([network], "solved", model.task.validation(network, validation, model)())


FAMILIES: dict[str, ForecastFamily] = {
    "mixed": MixedFamily(),
    "recurrent": StepwiseFamily(),
    "direct": DirectFamily(),
    "segment": SegmentFamily(),
    "linear": LinearFamily(),
}
LONGEST = 3  # a window is at most this fraction of the training series


def search_of(settings: ForecastSettings, steps: int) -> dict[str, Searched]:
    """The search space of these settings. steps: number of steps of the shortest training series.
    Families that read only the targets ignore the calendar."""
    read = [*settings.covariates, *settings.known, *settings.static]
    left_out = {*TARGETS_ONLY} if read else set()
    if settings.look_back % settings.segment:
        left_out |= {"segment"}
    if settings.transform != "none" or settings.difference:
        left_out |= {*MIXED}
    alone: Sets = {name: {"model.calendar": []} for name in TARGETS_ONLY if settings.calendar}
    families = tuple(name for name in FAMILIES if name not in left_out)
    windows = Sizes(2, settings.segment, max(steps // LONGEST, 1))
    normalised = Choice(("none", "last", "mean", "instance"))
    networks = {"model.family": ("recurrent", "direct", "segment")}
    trained = {"model.family": ("mixed", "recurrent", "direct", "segment")}
    return {
        "model.family": Searched(Choice(families), sets=alone),
        "model.look_back": Searched(windows, networks),
        "model.cell": Searched(Choice(TRIED_CELLS), trained),
        "model.normalise": Searched(normalised, networks),
        "model.batch_windows": Searched(Sizes(1, 4), trained),
    }
