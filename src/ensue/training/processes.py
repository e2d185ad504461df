"""Several processes that train one model: torchrun starts them, gloo connects them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as distributed
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from ensue.errors import TrainingError

# The others wait while the first one evaluates and writes files.
LONGEST_WAIT = timedelta(hours=24)
CONNECTING = timedelta(minutes=2)  # until all of them are there


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
    if _whole_number("WORLD_SIZE", 1) > 1 and not distributed.is_initialized():
        _connect()
    return team()


def _connect() -> None:
    """TrainingError where the others do not come: the variables of torchrun may have been set by
    somebody else."""
    rank, world = _whole_number("RANK"), _whole_number("WORLD_SIZE")
    port = _whole_number("MASTER_PORT")
    if not (rank < world and 0 < port < 1 << 16 and os.environ.get("MASTER_ADDR")):
        raise _not_launched("expected RANK below it, MASTER_ADDR and MASTER_PORT, got others")
    try:
        store, rank, world = next(rendezvous("env://", timeout=CONNECTING))
        store.set_timeout(LONGEST_WAIT)
        # torchrun keeps one store for all its starts: addresses of dead processes are still there
        starts = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = PrefixStore(f"start {starts} of {world}", store)
        distributed.init_process_group(
            "gloo", store=store, rank=rank, world_size=world, timeout=LONGEST_WAIT
        )
    except (RuntimeError, OSError, ValueError) as problem:
        why = str(problem).partition("\n")[0].rstrip(".")
        raise _not_launched(f"the other processes cannot be reached: {why}") from problem


def _whole_number(name: str, default: int | None = None) -> int:
    """A variable that torchrun sets."""
    text = os.environ.get(name)
    if text is None and default is not None:
        return default
    if text is None or not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        got = "nothing" if text is None else repr(text)
        raise _not_launched(f"expected a whole number in {name}, got {got}")
    return int(text)


def _not_launched(reason: str) -> TrainingError:
    return TrainingError(
        f"WORLD_SIZE={os.environ['WORLD_SIZE']}: {reason}. Start several processes with torchrun; "
        "for one, unset WORLD_SIZE"
    )


def end() -> None:
    """Parts what `begin` connected."""
    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()
