"""Rates by layer: which weights learn, from when on, and at which share of the learning rate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class LayerGroup:
    """parameters: by name; share: of the learning rate; begins: after how many epochs they learn,
    None never."""

    name: str
    parameters: frozenset[str]
    share: float = 1.0
    begins: float | None = 0.0

    def learns(self, update: int, in_epoch: int) -> bool:
        """Whether they learn in an update (the first is 0). in_epoch: updates of an epoch."""
        return self.begins is not None and update >= math.ceil(self.begins * in_epoch)


@dataclass(frozen=True)
class LayerRates:
    """A function of the update's number and of nothing else, so that a training which goes on from
    a checkpoint finds every layer as it was. Parameters in no group learn at the full rate."""

    groups: tuple[LayerGroup, ...] = ()

    def shares(self, update: int, in_epoch: int) -> dict[str, float]:
        """By group, what it has of the learning rate in an update; 0 where it is frozen."""
        return {g.name: g.share * g.learns(update, in_epoch) for g in self.groups}

    def group_of(self, parameter: str) -> str:
        """The name of its group, "" where it is in none."""
        return next((g.name for g in self.groups if parameter in g.parameters), "")

    def frozen(self, shares: Mapping[str, float]) -> frozenset[str]:
        """The parameters that do not learn at these shares."""
        still = [g.parameters for g in self.groups if not shares[g.name]]
        return frozenset().union(*still)


ALL_LEARN = LayerRates()
