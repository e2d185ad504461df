"""The families of forecasters by the value of `model.family`: networks, and how they are told."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from torch import nn

from ensue.tasks.forecast.members.correction import CorrectionForecast
from ensue.tasks.forecast.networks import (
    DirectForecast,
    ForecastNetwork,
    LinearForecast,
    RecurrentForecast,
    SegmentForecast,
)
from ensue.tasks.forecast.settings import MIXED, TARGETS_ONLY, ForecastSettings
from ensue.tasks.model import Model
from ensue.tasks.search.ranges import Choice, Searched, Sets, Sizes
from ensue.tasks.search.usual import TRIED_CELLS
from ensue.tasks.task import Family


class ForecastFamily(Family[ForecastSettings]):
    """A network from a window of steps to the steps after it."""

    network: ClassVar[type[ForecastNetwork]]

    def build(self, model: Model[ForecastSettings, Any, Any]) -> nn.Module:
        return self.network(model.model, model.learned.static.width)

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
    """One step at a time, each from the ones before it."""

    network = RecurrentForecast

    def kind(self, settings: ForecastSettings) -> str:
        return f"{settings.layers} × {settings.cell} of {settings.hidden_size}, step by step"


class DirectFamily(ForecastFamily):
    """All steps ahead from the last state of a cell."""

    network = DirectForecast

    def kind(self, settings: ForecastSettings) -> str:
        return f"{settings.layers} × {settings.cell} of {settings.hidden_size}, all steps at once"


class SegmentFamily(ForecastFamily):
    """Segments of the window, each variable by itself."""

    network = SegmentForecast

    def kind(self, settings: ForecastSettings) -> str:
        return (
            f"{settings.cell} of {settings.hidden_size} over segments of {settings.segment} steps"
        )


class LinearFamily(ForecastFamily):
    """A weighted sum of the window, by ridge regression."""

    network = LinearForecast
    solved = True

    def kind(self, settings: ForecastSettings) -> str:
        return "weighted sum of the window"


FAMILIES: dict[str, ForecastFamily] = {
    "mixed": MixedFamily(),
    "recurrent": StepwiseFamily(),
    "direct": DirectFamily(),
    "segment": SegmentFamily(),
    "linear": LinearFamily(),
}
LONGEST = 3  # a window is at most this part of the training series


def search_of(settings: ForecastSettings, steps: int) -> dict[str, Searched]:
    """What is searched of these settings. steps: of the shortest series to learn from. Families
    that read the targets alone do without the calendar."""
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
