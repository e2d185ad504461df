"""Rows whose network is a `PooledNetwork`."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor, nn

from ensue.tasks.blocks.pooled_network import PooledNetwork
from ensue.tasks.explaining.methods import Sides
from ensue.tasks.explaining.rows import RowExplainer, batch_of
from ensue.tasks.rows.batch import Columns
from ensue.tasks.rows.part import Part


class PooledExplainer(RowExplainer):
    @abstractmethod
    def columns(self, part: Part) -> Columns:
        """A part as the networks see it."""

    @abstractmethod
    def measured(self, z: Tensor) -> Tensor:
        """(rows, answers) of the network's scores z (rows, outputs)."""

    def embedded(self, network: nn.Module, part: Part) -> Sides:
        assert isinstance(network, PooledNetwork)
        return (network.embed(batch_of(self.columns(part)).inputs),)

    def outputs(self, network: nn.Module, sides: Sides) -> Tensor:
        assert isinstance(network, PooledNetwork)
        batch = batch_of(self.columns(self.part), sides[0].shape[1])
        return self.measured(network.scores_of(sides[0], batch))
