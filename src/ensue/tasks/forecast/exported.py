"""A forecaster for export: the last steps of a series in, the steps after them out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ensue.tasks.exported import BATCH, Exported, Graph, Input, Step, refuse
from ensue.tasks.forecast.networks import WindowBatch

if TYPE_CHECKING:
    from ensue.tasks.forecast.forecasts import ForecastModel


class Ahead(nn.Module):
    """The mean of the members' expected steps (horizon, batch, targets), as they see numbers."""

    def __init__(self, members: Sequence[nn.Module], horizon: int, targets: int) -> None:
        super().__init__()
        self.members, self.horizon, self.targets = nn.ModuleList(members), horizon, targets

    def forward(self, past: Tensor) -> Tensor:
        nothing = past.new_zeros(self.horizon, past.shape[1], 0)
        batch = WindowBatch(past, nothing, nothing)
        found = torch.stack([own.point(batch) for own in self.members])  # type: ignore[operator]
        return found.mean(0)[..., : self.targets]


def exported(model: ForecastModel) -> Exported:
    settings, learned = model.model, model.learned
    if learned.mixture is not None:
        raise refuse("mixed", "forecast")
    if settings.ahead or learned.static.width or settings.calendar:
        raise refuse("ahead", "forecast")
    if learned.scale.ids:
        raise refuse("panel", "forecast")
    scale, targets = learned.scale, len(settings.targets)
    members = list(model.networks)
    graph = Graph(
        "model",
        Ahead(members, settings.horizon, targets),
        (Input("past", (settings.look_back, BATCH, len(settings.columns))),),
        ("ahead",),
    )
    shared = {
        "transform": scale.transform,
        "lag": scale.lag,
        "mean": scale.mean.tolist(),
        "spread": scale.spread.tolist(),
    }
    before: Step = {
        "step": "series",
        "from": "question",
        "to": "past",
        "columns": list(settings.columns),
        "targets": targets,
        "look_back": settings.look_back,
        **shared,
    }
    drawn = any(getattr(own, "says", None) is not None for own in members)
    after: Step = {
        "step": "forecast",
        "targets": list(settings.targets),
        "widening": None if drawn else learned.widening.tolist(),
        "share": settings.interval,
        **shared,
    }
    return Exported("forecast", (graph,), (before,), (after,))
