"""The cost of a softmax over many classes, without the matrix of all scores.

cost = Σ_r log Σ_k e^{z_rk} − z_{r,target(r)},   z = h·Wᵀ + b

Rows are taken a piece at a time: scores, costs, and — since the cost is one sum, whose gradient
is known up to a factor — the products of the backward pass at once, while the piece is there.

Inside autocast the products are taken in bfloat16; costs, sums and gradients stay as they are.
"""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ensue.engine.check import under_autocast
from ensue.engine.native import why_not_native
from ensue.engine.native.kernel import DEFINES
from ensue.engine.native.softmax import softmax_rows
from ensue.errors import ShapeError

SCORES = 2_500_000  # numbers of a piece: what the last cache holds


def softmax_cost(h: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
    """The cost summed over rows, one number. h (rows, width), weight (classes, width), bias
    (classes,) or None, targets (rows,) class numbers."""
    _check(h, weight, targets)
    low = under_autocast(h)
    with torch.autocast(h.device.type, enabled=False):
        h = h.to(weight.dtype)
        found = _SoftmaxCost.apply(h, weight, bias, targets, low)  # type: ignore[no-untyped-call]
    cost: Tensor = found
    return cost


@torch.no_grad()
def softmax_costs(h: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
    """The cost of each row (rows,), without derivatives."""
    _check(h, weight, targets)
    operand = weight.bfloat16() if under_autocast(h) else weight
    with torch.autocast(h.device.type, enabled=False):
        h = h.to(weight.dtype)
        found = [
            _costs(_scores(h[own], operand, bias), targets[own], False)
            for own in _pieces(h, weight)
        ]
    return torch.cat(found) if found else h.new_zeros(0)


class _SoftmaxCost(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, h: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, low: bool
    ) -> Tensor:
        operand = weight.bfloat16() if low else weight
        want = [bool(t is not None and t.requires_grad) for t in (h, weight, bias)]
        d_h = torch.empty_like(h) if want[0] else None
        d_weight = torch.zeros_like(weight) if want[1] else None
        d_bias = torch.zeros_like(bias) if want[2] and bias is not None else None
        total = h.new_zeros((), dtype=torch.float64)
        for own in _pieces(h, weight):
            z = _scores(h[own], operand, bias)
            total += _costs(z, targets[own], any(want)).sum(dtype=torch.float64)
            if d_h is not None:
                _product(z, operand, d_h[own])
            if d_weight is not None:
                _product(z.t(), h[own].to(operand.dtype), d_weight, add=True)
            if d_bias is not None:
                d_bias += z.sum(0)
        ctx.save_for_backward(d_h, d_weight, d_bias)
        return total.to(h.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *adjoint: Tensor) -> tuple[Tensor | None, ...]:
        found = (None if d is None else d * adjoint[0] for d in ctx.saved_tensors)
        return (*found, None, None)


def _pieces(h: Tensor, weight: Tensor) -> list[slice]:
    size = max(1, SCORES // len(weight))
    return [slice(at, at + size) for at in range(0, len(h), size)]


_own = threading.local()


def _room(rows: int, classes: int, like: Tensor) -> Tensor:
    """(rows, classes) of this thread's own memory, which the next call overwrites: memory that is
    new for each piece costs a tenth of a training step in page faults."""
    kind = (like.dtype, like.device)
    flat: Tensor | None = getattr(_own, "flat", None)
    if flat is None or (flat.dtype, flat.device) != kind or len(flat) < rows * classes:
        flat = _own.flat = like.new_empty(rows * classes)
    return flat[: rows * classes].view(rows, classes)


def _scores(h: Tensor, operand: Tensor, bias: Tensor | None) -> Tensor:
    """z (rows, classes) of h's type, in this thread's own memory; operand: the weights, of the
    product's type."""
    z = _room(len(h), len(operand), h)
    if bias is not None and operand.dtype == h.dtype:
        return torch.addmm(bias, h, operand.t(), out=z)
    _product(h, operand.t(), z)
    return z if bias is None else z.add_(bias)


def _product(a: Tensor, b: Tensor, out: Tensor, add: bool = False) -> None:
    """out = a·b, or out + a·b; the product is of b's type."""
    same = b.dtype == out.dtype
    if same and add:
        out.addmm_(a, b)
    elif same:
        torch.mm(a, b, out=out)
    elif add:
        out += torch.mm(a.to(b.dtype), b)
    else:
        out.copy_(torch.mm(a.to(b.dtype), b))


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
