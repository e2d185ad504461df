"""The cost of a softmax over many classes, without the matrix of all scores.

cost = Σ_r log Σ_k e^{z_rk} − z_{r,target(r)},   z = h·Wᵀ + b

Rows are taken a piece at a time: scores, costs, and — since the cost is one sum, whose gradient
is known up to a factor — the products of the backward pass at once, while the piece is there.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ensue.engine.native import why_not_native
from ensue.engine.native.kernel import DEFINES
from ensue.engine.native.softmax import softmax_rows
from ensue.errors import ShapeError

SCORES = 2_500_000  # numbers of a piece: what the last cache holds


def softmax_cost(h: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
    """The cost summed over rows, one number. h (rows, width), weight (classes, width), bias
    (classes,) or None, targets (rows,) class numbers."""
    _check(h, weight, targets)
    cost: Tensor = _SoftmaxCost.apply(h, weight, bias, targets)  # type: ignore[no-untyped-call]
    return cost


@torch.no_grad()
def softmax_costs(h: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
    """The cost of each row (rows,), without derivatives."""
    _check(h, weight, targets)
    found = [
        _costs(_scores(h[own], weight, bias), targets[own], False) for own in _pieces(h, weight)
    ]
    return torch.cat(found) if found else h.new_zeros(0)


class _SoftmaxCost(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, h: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor
    ) -> Tensor:
        want = [bool(t is not None and t.requires_grad) for t in (h, weight, bias)]
        d_h = torch.empty_like(h) if want[0] else None
        d_weight = torch.zeros_like(weight) if want[1] else None
        d_bias = torch.zeros_like(bias) if want[2] and bias is not None else None
        total = h.new_zeros((), dtype=torch.float64)
        for own in _pieces(h, weight):
            z = _scores(h[own], weight, bias)
            total += _costs(z, targets[own], any(want)).sum(dtype=torch.float64)
            if d_h is not None:
                torch.mm(z, weight, out=d_h[own])
            if d_weight is not None:
                d_weight.addmm_(z.t(), h[own])
            if d_bias is not None:
                d_bias += z.sum(0)
        ctx.save_for_backward(d_h, d_weight, d_bias)
        return total.to(h.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *adjoint: Tensor) -> tuple[Tensor | None, ...]:
        found = (None if d is None else d * adjoint[0] for d in ctx.saved_tensors)
        return (*found, None)


def _pieces(h: Tensor, weight: Tensor) -> list[slice]:
    size = max(1, SCORES // len(weight))
    return [slice(at, at + size) for at in range(0, len(h), size)]


def _scores(h: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return torch.mm(h, weight.t()) if bias is None else torch.addmm(bias, h, weight.t())


def _costs(z: Tensor, targets: Tensor, derive: bool) -> Tensor:
    """Costs (rows,) of scores; with `derive`, z becomes their derivative."""
    if z.dtype in DEFINES and not why_not_native(z.device, z.dtype):
        costs = z.new_empty(len(z))
        softmax_rows(z, targets.contiguous(), costs, derive)
        return costs
    costs = cross_entropy(z, targets, reduction="none")
    if derive:
        z.copy_(z.softmax(1))
        z[torch.arange(len(z), device=z.device), targets] -= 1
    return costs


def _check(h: Tensor, weight: Tensor, targets: Tensor) -> None:
    if h.dim() != 2 or weight.dim() != 2 or h.shape[1] != weight.shape[1]:
        raise ShapeError(
            f"expected h (rows, width) and weight (classes, width), got {tuple(h.shape)} "
            f"and {tuple(weight.shape)}"
        )
    if targets.shape != h.shape[:1] or targets.dtype != torch.int64:
        raise ShapeError(
            f"targets: expected {len(h)} class numbers (int64), got {tuple(targets.shape)} "
            f"of {targets.dtype}"
        )
    if len(targets) and not 0 <= int(targets.min()) <= int(targets.max()) < len(weight):
        raise ShapeError(
            f"targets: expected class numbers from 0 to {len(weight) - 1}, got "
            f"{int(targets.min())} to {int(targets.max())}"
        )
