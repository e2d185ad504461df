"""Several processes that train one model: torchrun starts them, gloo connects them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as distributed

# The others wait while the first one evaluates and writes files.
LONGEST_WAIT = timedelta(hours=24)


@dataclass(frozen=True)
class Team:
    """The processes of this run. Every method is called by all of them, at the same point."""

    rank: int
    world: int

    @property
    def first(self) -> bool:
        """Whether this process writes the files and prints."""
        return self.rank == 0

    def total(self, values: Sequence[float]) -> list[float]:
        """Each value summed over the processes."""
        if self.world == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        distributed.all_reduce(tensor)
        return [float(value) for value in tensor]

    def most(self, number: int) -> int:
        """The largest of the processes' numbers."""
        if self.world == 1:
            return number
        tensor = torch.tensor([number], dtype=torch.int64)
        distributed.all_reduce(tensor, distributed.ReduceOp.MAX)
        return int(tensor[0])

    def told(self, text: str) -> str:
        """The first process's text, in every process."""
        if self.world == 1:
            return text
        written = list(text.encode()) if self.first else []
        size = self.most(len(written))
        tensor = torch.tensor(written or [0] * size, dtype=torch.uint8)
        distributed.broadcast(tensor, 0)
        return bytes(tensor.tolist()).decode()


def team() -> Team:
    """The processes that `begin` connected; this one alone if it did not."""
    if distributed.is_available() and distributed.is_initialized():
        return Team(distributed.get_rank(), distributed.get_world_size())
    return Team(0, 1)


def begin() -> Team:
    """Connects the processes if torchrun started this one."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not distributed.is_initialized():
        distributed.init_process_group("gloo", timeout=LONGEST_WAIT)
    return team()


def end() -> None:
    """Parts what `begin` connected."""
    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()
