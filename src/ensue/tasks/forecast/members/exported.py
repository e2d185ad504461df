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


WRITTEN = ("repeated", "ridge", "smoothing")  # kinds that the example and JavaScript have


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


class Corrected(nn.Module):
    """base + share·(network − base): what the solved members say, as far as it is corrected."""

    def __init__(self, members: Sequence[nn.Module], horizon: int, share: float) -> None:
        super().__init__()
        self.members, self.horizon, self.share = nn.ModuleList(members), horizon, share

    def forward(self, past: Tensor, base: Tensor) -> Tensor:
        nothing = past.new_zeros(self.horizon, past.shape[1], 0)
        batch = WindowBatch(past, nothing, nothing, base)
        found = torch.stack([own.point(batch) for own in self.members])  # type: ignore[operator]
        return base + self.share * (found.mean(0) - base)


def _mixed(model: ForecastModel) -> Step:
    """The solved members with their weights, and what they read of a series."""
    settings, learned = model.model, model.learned
    mixture = learned.mixture
    assert mixture is not None
    if len(settings.columns) > len(settings.targets):
        raise refuse("beside", "forecast")
    members = []
    for weight, own in zip(mixture.weights.tolist(), mixture.members, strict=True):
        facts = {**own.facts(), **{name: values.tolist() for name, values in own.arrays().items()}}
        if weight > 0 and (own.kind not in WRITTEN or facts.get("multiplies")):
            raise refuse("member", "forecast")
        if facts.get("form", {}).get("periods") and weight > 0:
            raise refuse("clock", "forecast")
        members.append({"kind": own.kind, "share": weight, **facts})
    floor = learned.scale.floor
    return {
        "members": [own for own in members if own["share"] > 0],
        "room": mixture.room,
        "horizon": settings.horizon,
        "least": settings.history,
        "floor": None if floor is None else floor.tolist(),
    }


def exported(model: ForecastModel) -> Exported:
    settings, learned = model.model, model.learned
    if settings.ahead or learned.static.width or settings.calendar:
        raise refuse("ahead", "forecast")
    if learned.scale.ids:
        raise refuse("panel", "forecast")
    scale, targets = learned.scale, len(settings.targets)
    members = list(model.networks)
    if learned.mixture is None:
        columns = len(settings.columns)
        network: nn.Module = Ahead(members, settings.horizon, targets)
        inputs = [Input("past", (settings.look_back, BATCH, columns))]
    else:
        columns = 2 * targets  # with whether each number was there
        network = Corrected(members, settings.horizon, learned.mixture.share)
        inputs = [Input("past", (settings.look_back, BATCH, columns))]
        inputs.append(Input("base", (settings.horizon, BATCH, targets)))
    graph = Graph("model", network, tuple(inputs), ("ahead",))
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
    if learned.mixture is not None:
        before = {**before, "step": "mixed series", **_mixed(model)}
    drawn = any(getattr(own, "says", None) is not None for own in members)
    after: Step = {
        "step": "steps ahead",
        "targets": list(settings.targets),
        "widening": None if drawn else learned.widening.tolist(),
        "share": settings.interval,
        **shared,
    }
    return Exported("forecast", (graph,), (before,), (after,))
