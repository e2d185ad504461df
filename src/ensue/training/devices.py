"""Where a model computes: the device by its setting, and values that are brought there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Literal, Protocol, TypeVar, cast, runtime_checkable

import torch
from torch import Tensor

from ensue.errors import OptionError
from ensue.settings import one_of
from ensue.training.processes import team

DeviceName = Literal["auto", "cpu", "cuda"]
NAMES = ("auto", "cpu", "cuda")
CPU = torch.device("cpu")
LENGTHS = "lengths"  # what ends with this is read by the engine, step by step, on the CPU

V = TypeVar("V")


@runtime_checkable
class Weighted(Protocol):
    """A network, as far as its weights."""

    def named_parameters(self) -> Iterable[tuple[str, Tensor]]: ...

    def state_dict(self) -> Mapping[str, Tensor]: ...


def device_of(setting: str) -> torch.device:
    """auto: the GPU where there is one, else the CPU. Of several GPUs each process takes one."""
    if setting not in NAMES:
        raise OptionError(f"device: {one_of(NAMES, setting)}")
    there = torch.cuda.is_available()
    if setting == "cuda" and not there:
        built = torch.version.cuda is not None
        why = "torch finds no GPU" if built else f"torch {torch.__version__} is built without CUDA"
        what = "check the driver with nvidia-smi" if built else "install a torch with CUDA"
        raise OptionError(
            f"device: expected one that is there, cpu, got 'cuda': {why}; use --device cpu or "
            f"auto, or {what}"
        )
    if setting == "cpu" or not there:
        return CPU
    return torch.device("cuda", team().rank % torch.cuda.device_count())


def device_of_weights(network: object) -> torch.device:
    """Where a network's weights are; the CPU for one that has none."""
    if not isinstance(network, Weighted):
        return CPU
    found = next(iter(network.named_parameters()), None)
    if found is None:
        found = next(iter(network.state_dict().items()), None)
    return CPU if found is None else found[1].device


def moved(value: V, device: torch.device, name: str = "") -> V:
    """The value with its tensors on that device: itself, or those inside of dataclasses, tables,
    tuples and lists. Lengths stay where they are: the engine reads them on the CPU."""
    found: Any = value
    if isinstance(value, Tensor):
        found = value if name.endswith(LENGTHS) else value.to(device)
    elif is_dataclass(value) and not isinstance(value, type):
        own = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        found = replace(value, **{key: moved(part, device, key) for key, part in own.items()})
    elif isinstance(value, Mapping):
        found = {key: moved(part, device, str(key)) for key, part in value.items()}
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        found = type(value)(
            *(moved(p, device, n) for p, n in zip(value, value._fields, strict=True))
        )
    elif isinstance(value, (tuple, list)):
        found = type(value)(moved(part, device, name) for part in value)
    return cast(V, found)
