"""What is given to an engine, checked once: engines read memory by these shapes."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ensue.engine.recurrence import Recurrence
from ensue.equations import Equations, Mask
from ensue.errors import ShapeError


def under_autocast(v: Tensor) -> bool:
    """Whether torch would compute with v in another type than its own."""
    if v.is_cpu:
        return torch.is_autocast_enabled("cpu")
    kind = v.device.type
    return torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)


def check_tensors(given: Mapping[str, object]) -> None:
    """Raises unless each of these, by its name, is a tensor."""
    for name, own in given.items():
        if not isinstance(own, Tensor):
            raise ShapeError(f"{name}: expected a torch tensor, got {type(own).__name__}")


def check_same_kind(name: str, given: Tensor, weight: Tensor) -> None:
    """Raises unless torch can multiply the two: numbers of one type, on one device."""
    if given.device == weight.device and (given.dtype == weight.dtype or under_autocast(given)):
        return
    raise ShapeError(
        f"{name}: expected {_kind(weight.dtype, weight.device)} as the weights, "
        f"got {_kind(given.dtype, given.device)}"
    )


def check_given(equations: Equations, recurrence: Recurrence) -> None:
    """Raises unless every tensor has the shape, type and device that the step expects."""
    _, parameters, x, state, _, masks, _ = recurrence
    batch, dtype, device = x.shape[1], x.dtype, x.device
    for name, shape in equations.shapes.items():
        given = parameters.get(name)
        if given is None or given.shape != shape or given.dtype != dtype or given.device != device:
            raise _wrong("parameter", name, given, shape, x)
    if len(state) != len(equations.old):
        parts = ", ".join(equations.old)
        raise ShapeError(f"state: expected {len(equations.old)} parts ({parts}), got {len(state)}")
    for (part, leaf), given in zip(equations.old.items(), state, strict=True):
        shape = (batch, leaf.width)
        if given.shape != shape or given.dtype != dtype or given.device != device:
            raise _wrong("state", part, given, shape, x)
    for name in equations.masks if masks is not None else ():
        mask = equations.declarations[name]
        assert isinstance(mask, Mask)
        steps = (x.shape[0],) if mask.over == "step" else ()
        wanted = (*steps, batch, equations.graph.width(mask.size))
        given = masks.get(name)  # type: ignore[union-attr]
        if given is None or given.shape != wanted or given.dtype != dtype or given.device != device:
            raise _wrong("mask", name, given, wanted, x)


def _wrong(
    kind: str, name: str, given: Tensor | None, shape: tuple[int, ...], x: Tensor
) -> ShapeError:
    if given is None:
        return ShapeError(f"{kind} {name}: expected a tensor of shape {shape}, got none")
    if given.shape != shape:
        return ShapeError(f"{kind} {name}: expected shape {shape}, got {tuple(given.shape)}")
    return ShapeError(
        f"{kind} {name}: expected {_kind(x.dtype, x.device)} as x, "
        f"got {_kind(given.dtype, given.device)}"
    )


def _kind(dtype: torch.dtype, device: torch.device) -> str:
    return f"{dtype} on {device}"
