"""The device of a training, and the processes that train together, started by torchrun and
connected by gloo."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import timedelta
from typing import Any, Literal, Protocol, TypeVar, cast, runtime_checkable

import torch
import torch.distributed as distributed
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from ensue.errors import OptionError, TrainingError
from ensue.settings import one_of

DeviceName = Literal["auto", "cpu", "cuda"]
NAMES = ("auto", "cpu", "cuda")
CPU = torch.device("cpu")
LENGTHS = "lengths"  # fields with this ending are read by the engine on the CPU

V = TypeVar("V")


@runtime_checkable
class Weighted(Protocol):
    """The interface of a network's weights."""

    def named_parameters(self) -> Iterable[tuple[str, Tensor]]: ...

    def state_dict(self) -> Mapping[str, Tensor]: ...


def device_of(setting: str) -> torch.device:
    """The device of a setting. auto: a GPU if there is one, else the CPU. With several GPUs, each
    process takes one."""
    if setting not in NAMES:
        raise OptionError(f"device: {one_of(NAMES, setting)}")
    has_cuda = torch.cuda.is_available()
    if setting == "cuda" and not has_cuda:
        built = torch.version.cuda is not None
        why = "torch finds no GPU" if built else f"torch {torch.__version__} is built without CUDA"
        what = "check the driver with nvidia-smi" if built else "install a torch with CUDA"
        raise OptionError(
            f"device: expected one that is there, cpu, got 'cuda': {why}; use --device cpu or "
            f"auto, or {what}"
        )
    if setting == "cpu" or not has_cuda:
        return CPU
    return torch.device("cuda", team().rank % torch.cuda.device_count())


def device_of_weights(network: object) -> torch.device:
    """The device of a network's weights; the CPU for networks without any."""
    if not isinstance(network, Weighted):
        return CPU
    first = next(iter(network.named_parameters()), None)
    if first is None:
        first = next(iter(network.state_dict().items()), None)
    return CPU if first is None else first[1].device


def moved(value: V, device: torch.device, name: str = "") -> V:
    """The value with its tensors on that device, also those inside dataclasses, mappings, tuples
    and lists. Lengths stay on the CPU, where the engine reads them."""
    result: Any = value
    if isinstance(value, Tensor):
        result = value if name.endswith(LENGTHS) else value.to(device)
    elif is_dataclass(value) and not isinstance(value, type):
        values = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        result = replace(value, **{key: moved(part, device, key) for key, part in values.items()})
    elif isinstance(value, Mapping):
        result = {key: moved(part, device, str(key)) for key, part in value.items()}
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        result = type(value)(
            *(moved(p, device, n) for p, n in zip(value, value._fields, strict=True))
        )
    elif isinstance(value, (tuple, list)):
        result = type(value)(moved(part, device, name) for part in value)
    return cast(V, result)


# --- several processes -----------------------------------------------------------------------

# The other processes wait while the first one evaluates and writes files.
LONGEST_WAIT = timedelta(hours=24)
CONNECTING = timedelta(minutes=2)  # timeout until all processes have connected


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
        """The maximum over the processes."""
        if self.world == 1:
            return number
        tensor = torch.tensor([number], dtype=torch.int64)
        distributed.all_reduce(tensor, distributed.ReduceOp.MAX)
        return int(tensor[0])

    def broadcast(self, text: str) -> str:
        """The first process's text, in every process."""
        if self.world == 1:
            return text
        written = list(text.encode()) if self.first else []
        size = self.most(len(written))
        tensor = torch.tensor(written or [0] * size, dtype=torch.uint8)
        distributed.broadcast(tensor, 0)
        return bytes(tensor.tolist()).decode()


def team() -> Team:
    """The processes that `begin` connected; only this process if it connected none."""
    if distributed.is_available() and distributed.is_initialized():
        return Team(distributed.get_rank(), distributed.get_world_size())
    return Team(0, 1)


def begin() -> Team:
    """Connects the processes if torchrun started this one."""
    if _whole_number("WORLD_SIZE", 1) > 1 and not distributed.is_initialized():
        _connect()
    return team()


def _connect() -> None:
    """Raises TrainingError if the other processes do not connect: another program may have set the
    variables of torchrun."""
    rank, world = _whole_number("RANK"), _whole_number("WORLD_SIZE")
    port = _whole_number("MASTER_PORT")
    if not (rank < world and 0 < port < 1 << 16 and os.environ.get("MASTER_ADDR")):
        raise _not_launched("expected RANK below it, MASTER_ADDR and MASTER_PORT, got others")
    try:
        store, rank, world = next(rendezvous("env://", timeout=CONNECTING))
        store.set_timeout(LONGEST_WAIT)
        # torchrun keeps one store over restarts, with addresses of dead processes
        starts = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = PrefixStore(f"start {starts} of {world}", store)
        distributed.init_process_group(
            "gloo", store=store, rank=rank, world_size=world, timeout=LONGEST_WAIT
        )
    except (RuntimeError, OSError, ValueError) as problem:
        why = str(problem).partition("\n")[0].rstrip(".")
        raise _not_launched(f"the other processes cannot be reached: {why}") from problem


def _whole_number(name: str, default: int | None = None) -> int:
    """The integer value of a variable that torchrun sets."""
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
    """Disconnects the processes that `begin` connected."""
    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()
