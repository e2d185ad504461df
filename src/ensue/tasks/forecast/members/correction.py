"""The network of a mixed forecast: what the solved members leave of each step ahead.

Each target is read by itself with the same weights, in segments of the window: its values off the
last one, whether they were there, and all that stands beside them. It begins as no correction at
all.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, relu

from ensue.tasks.blocks.recurrent_layers import layers_of
from ensue.tasks.forecast.networks import ForecastNetwork, Normalisation, WindowBatch
from ensue.tasks.forecast.settings import ForecastSettings

MOST_SEGMENTS = 24


class CorrectionForecast(ForecastNetwork):
    """y_j = base_j + V·ReLU(A·h + p_j + v_c + K·[known_j, base_j − y_0]), h the last state of a
    cell over the segments of the window of target c, y_0 its last value."""

    def __init__(self, settings: ForecastSettings, static: int = 0) -> None:
        super().__init__(settings, static)
        hidden = settings.hidden_size
        self.columns += self.outputs  # whether each value of a target was there
        self.segment = -(-settings.look_back // MOST_SEGMENTS)
        self.kept = settings.look_back // self.segment * self.segment  # the newest steps
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

    def seen(self, batch: WindowBatch, normal: Normalisation) -> Tensor:
        """normal: the last value of each window, which is taken off."""
        base = normal.inward(batch.base)  # (horizon, batch, targets)
        return (base + self.correction(batch, normal, base))[..., None]

    def correction(self, batch: WindowBatch, normal: Normalisation, base: Tensor) -> Tensor:
        """(horizon, batch, targets)."""
        count = self.outputs
        past = batch.past[-self.kept :]
        end = self.columns - self.ahead
        there = past[..., end - count : end]
        y = normal.inward(past[..., :count]) * there
        others = torch.cat([past[..., count : end - count], past[..., end:]], -1)
        steps, rows = past.shape[:2]
        shared = others[:, :, None].expand(-1, -1, count, -1)
        x = torch.cat([y[..., None], there[..., None], shared], -1)  # (time, batch, targets, …)
        cut = x.reshape(steps // self.segment, self.segment, rows * count, -1)
        s = relu(self.read(cut.permute(0, 2, 1, 3).flatten(2)))
        h, _ = self.recurrent(s)
        inner = self.enter(dropout(h[-1], self.rate, self.training)).reshape(1, rows, count, -1)
        ahead = batch.ahead[:, :, None].expand(-1, -1, count, -1)
        inner = inner + self.steps + self.variables
        inner = inner + self.known(torch.cat([ahead, base[..., None]], -1))
        z: Tensor = self.head(dropout(relu(inner), self.rate, self.training))
        return z.squeeze(-1)
