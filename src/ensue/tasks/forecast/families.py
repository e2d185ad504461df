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
from ensue.tasks.forecast.settings import ForecastSettings
from ensue.tasks.model import Model
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
