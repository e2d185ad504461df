"""The exported form of a forecaster, which computes the steps after a series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from ensue.data.series import MISSING
from ensue.tasks.codec import packed
from ensue.tasks.exported import BATCH, Exported, Graph, Input, Step, reads_of
from ensue.tasks.forecast.evaluation import levels_asked
from ensue.tasks.forecast.networks import WindowBatch

if TYPE_CHECKING:
    from ensue.tasks.forecast.forecasts import ForecastModel


class Ahead(nn.Module):
    """The mean of the networks' expected steps (horizon, batch, targets), in their scale. known:
    columns known ahead, if any."""

    def __init__(self, networks: Sequence[nn.Module], horizon: int, targets: int) -> None:
        super().__init__()
        self.networks, self.horizon, self.targets = nn.ModuleList(networks), horizon, targets

    def forward(self, past: Tensor, known: Tensor | None = None) -> Tensor:
        points = self.points(past, past.new_zeros(self.horizon, past.shape[1], 0), known)
        return points[..., : self.targets]

    def points(self, past: Tensor, base: Tensor, known: Tensor | None) -> Tensor:
        nothing = past.new_zeros(self.horizon, past.shape[1], 0)
        batch = WindowBatch(past, nothing if known is None else known, nothing, base)
        stacked = torch.stack([network.point(batch) for network in self.networks])  # type: ignore[operator]
        return stacked.mean(0)


class Corrected(Ahead):
    """base + share·(networks − base): the corrected forecast of the solved members."""

    def __init__(self, networks: Sequence[nn.Module], horizon: int, share: float) -> None:
        super().__init__(networks, horizon, 0)
        self.share = share

    def forward(self, past: Tensor, base: Tensor, known: Tensor | None = None) -> Tensor:  # type: ignore[override]
        return base + self.share * (self.points(past, base, known) - base)


# --- what is done to a series --------------------------------------------------------------------


def _members(model: ForecastModel) -> list[dict[str, Any]]:
    """The solved members with a weight above 0, and their weights. For a panel, typical parameters
    follow the parameters of each series."""
    mixture = model.learned.mixture
    if mixture is None:
        return []
    members = []
    for share, each in zip(mixture.weights.tolist(), mixture.members, strict=True):
        member = packed(each)
        arrays = dict(member.arrays)
        if "parameters" in arrays:
            every = arrays["parameters"]
            arrays["parameters"] = np.concatenate([every, np.median(every, 0, keepdims=True)])
        facts = {**member.facts, **{name: values.tolist() for name, values in arrays.items()}}
        facts.pop("ids", None)
        if share > 0:
            members.append({"kind": each.kind, "share": share, **facts})
    return members


def _needs_time(model: ForecastModel, members: Sequence[dict[str, Any]]) -> bool:
    """Whether the model reads the times of steps, not only their order."""
    periods = any(
        member.get("periods") or member.get("form", {}).get("periods") for member in members
    )
    return bool(model.settings.calendar) or (bool(model.settings.time) and periods)


def _series_step(model: ForecastModel) -> Step:
    settings, learned, members = model.settings, model.learned, _members(model)
    scale, mixture = learned.scale, learned.mixture
    codes = zip(settings.static, packed(learned.static).facts.get("static", []), strict=True)
    return {
        "step": "series",
        "from": "question",
        "to": "past",
        "columns": list(settings.columns),
        "targets": len(settings.targets),
        "known": len(settings.known),
        "time": settings.time_columns,
        "needs_time": _needs_time(model, members),
        "reads": reads_of(settings.time, settings.dates),
        "calendar": list(settings.calendar),
        "ids": list(settings.ids),
        "series": [list(ids) for ids in scale.ids],
        "static": [list(code) for code in codes],
        "missing": sorted(MISSING),
        "look_back": settings.look_back,
        "horizon": settings.horizon,
        "least": settings.history if mixture is not None else learned.history(settings),
        "history": settings.history,
        "transform": scale.transform,
        "lag": scale.lag,
        "floor": None if scale.floor is None else scale.floor.tolist(),
        "mean": np.atleast_2d(scale.mean).tolist(),
        "spread": np.atleast_2d(scale.spread).tolist(),
        "typical": np.median(np.atleast_2d(scale.spread), 0).tolist(),
        "members": members,
        "season": 1 if mixture is None else mixture.season,
        "room": 0 if mixture is None else mixture.room,
    }


def _steps_ahead(model: ForecastModel, drawn: bool) -> Step:
    """The step of the answer. drawn: bounds come from drawn paths, which an export does not
    have."""
    settings, learned = model.settings, model.learned
    levels, quantiles = levels_asked(settings), None
    if settings.quantiles and learned.shifts is not None and not drawn:
        quantiles = {
            "levels": sorted(levels),
            "shifts": learned.shifts.tolist(),
            "named": list(settings.quantiles),
        }
    return {
        "step": "steps ahead",
        "targets": list(settings.targets),
        "transform": learned.scale.transform,
        "lag": learned.scale.lag,
        "widening": None if drawn else learned.widening.tolist(),
        "quantiles": quantiles,
        "panel": bool(learned.scale.ids),
        "share": settings.interval,
    }


def exported(model: ForecastModel) -> Exported:
    settings, learned = model.settings, model.learned
    targets, ahead = len(settings.targets), settings.ahead + learned.static.width
    networks, columns = list(model.networks), len(settings.columns) + 2 * len(settings.calendar)
    columns += learned.static.width
    if learned.mixture is None:
        network: nn.Module = Ahead(networks, settings.horizon, targets)
        inputs = [Input("past", (settings.look_back, BATCH, columns))]
    else:
        network = Corrected(networks, settings.horizon, learned.mixture.share)
        inputs = [
            Input("past", (settings.look_back, BATCH, columns + targets)),  # with what was there
            Input("base", (settings.horizon, BATCH, targets)),
        ]
    if ahead:
        inputs.append(Input("known", (settings.horizon, BATCH, ahead)))
    graph = Graph("model", network, tuple(inputs), ("ahead",))
    drawn = any(getattr(network, "says", None) is not None for network in networks)
    return Exported("forecast", (graph,), (_series_step(model),), (_steps_ahead(model, drawn),))
