"""What is given to an engine, checked once: engines read memory by these shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ensue.equations import Equations, Mask
from ensue.errors import ShapeError


def under_autocast(v: Tensor) -> bool:
    """Whether torch would compute with v in another type than its own."""
    kind = v.device.type
    available = kind == "cpu" or torch.amp.is_autocast_available(kind)
    return available and torch.is_autocast_enabled(kind)


def check_given(
    equations: Equations,
    parameters: Mapping[str, Tensor],
    x: Tensor,
    state: Sequence[Tensor],
    masks: Mapping[str, Tensor] | None,
) -> None:
    """Raises unless every tensor has the shape, type and device that the step expects."""
    batch = x.shape[1]
    for name, shape in equations.shapes.items():
        _check("parameter", name, parameters.get(name), shape, x)
    if len(state) != len(equations.old):
        parts = ", ".join(equations.old)
        raise ShapeError(f"state: expected {len(equations.old)} parts ({parts}), got {len(state)}")
    for (part, leaf), given in zip(equations.old.items(), state, strict=True):
        _check("state", part, given, (batch, leaf.width), x)
    for name in equations.masks if masks is not None else ():
        mask = equations.declarations[name]
        assert isinstance(mask, Mask)
        steps = (x.shape[0],) if mask.over == "step" else ()
        shape = (*steps, batch, equations.graph.width(mask.size))
        _check("mask", name, masks.get(name), shape, x)  # type: ignore[union-attr]


def _check(kind: str, name: str, given: Tensor | None, shape: tuple[int, ...], x: Tensor) -> None:
    if given is None:
        raise ShapeError(f"{kind} {name}: expected a tensor of shape {shape}, got none")
    if given.shape != shape:
        raise ShapeError(f"{kind} {name}: expected shape {shape}, got {tuple(given.shape)}")
    if given.dtype != x.dtype or given.device != x.device:
        raise ShapeError(
            f"{kind} {name}: expected {_kind(x.dtype, x.device)} as x, "
            f"got {_kind(given.dtype, given.device)}"
        )


def _kind(dtype: torch.dtype, device: torch.device) -> str:
    return f"{dtype} on {device}"
