"""Checks the inputs of an engine once. Engines rely on the shapes when they read memory."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ensue.engine.recurrence import Recurrence
from ensue.equations import Equations, Mask
from ensue.errors import ShapeError


def under_autocast(v: Tensor) -> bool:
    """Whether torch would convert v to another type before computing with it."""
    if v.is_cpu:
        return torch.is_autocast_enabled("cpu")
    kind = v.device.type
    return torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)


def check_tensors(values: Mapping[str, object]) -> None:
    """Raises an error unless each value is a tensor; keys are names for messages."""
    for name, value in values.items():
        if not isinstance(value, Tensor):
            raise ShapeError(f"{name}: expected a torch tensor, got {type(value).__name__}")


def check_same_kind(name: str, value: Tensor, weight: Tensor) -> None:
    """Raises an error unless both tensors have the same dtype and device."""
    if value.device == weight.device and (value.dtype == weight.dtype or under_autocast(value)):
        return
    raise ShapeError(
        f"{name}: expected {_kind(weight.dtype, weight.device)} as the weights, "
        f"got {_kind(value.dtype, value.device)}"
    )


def check_given(equations: Equations, recurrence: Recurrence) -> None:
    """Raises an error unless every tensor has the shape, type and device that the step expects."""
    _, parameters, x, state, _, masks, _ = recurrence
    batch, dtype, device = x.shape[1], x.dtype, x.device
    for name, shape in equations.shapes.items():
        value = parameters.get(name)
        if value is None or value.shape != shape or value.dtype != dtype or value.device != device:
            raise _wrong("parameter", name, value, shape, x)
    if len(state) != len(equations.old):
        parts = ", ".join(equations.old)
        raise ShapeError(f"state: expected {len(equations.old)} parts ({parts}), got {len(state)}")
    for (part, leaf), value in zip(equations.old.items(), state, strict=True):
        shape = (batch, leaf.width)
        if value.shape != shape or value.dtype != dtype or value.device != device:
            raise _wrong("state", part, value, shape, x)
    for name in equations.masks if masks is not None else ():
        mask = equations.declarations[name]
        assert isinstance(mask, Mask)
        steps = (x.shape[0],) if mask.over == "step" else ()
        expected = (*steps, batch, equations.graph.width(mask.size))
        value = masks.get(name)  # type: ignore[union-attr]
        if (
            value is None
            or value.shape != expected
            or value.dtype != dtype
            or value.device != device
        ):
            raise _wrong("mask", name, value, expected, x)


def _wrong(
    kind: str, name: str, value: Tensor | None, shape: tuple[int, ...], x: Tensor
) -> ShapeError:
    if value is None:
        return ShapeError(f"{kind} {name}: expected a tensor of shape {shape}, got none")
    if value.shape != shape:
        return ShapeError(f"{kind} {name}: expected shape {shape}, got {tuple(value.shape)}")
    return ShapeError(
        f"{kind} {name}: expected {_kind(x.dtype, x.device)} as x, "
        f"got {_kind(value.dtype, value.device)}"
    )


def _kind(dtype: torch.dtype, device: torch.device) -> str:
    return f"{dtype} on {device}"
