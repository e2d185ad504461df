"""The cost of a softmax over many classes, without the matrix of all scores.

cost = Σ_r log Σ_k e^{z_rk} − (1 − ε)·z_{r,target(r)} − ε·mean_k z_rk, z = h·Wᵀ + b

Rows are processed in pieces. Each piece computes its scores, its costs and the products of the
backward pass: the cost is a sum, so its gradient is known up to a factor. On a CPU one compiled
kernel does all of this; elsewhere torch computes the products.

Inside autocast the products use bfloat16; costs, sums and gradients keep their type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ensue.engine.check import under_autocast
from ensue.engine.native import why_not_native
from ensue.engine.native.call import DEFINES
from ensue.engine.native.softmax import GradientBuffers, softmax_of_rows, softmax_rows
from ensue.errors import OptionError, ShapeError

SCORES = 2_500_000  # numbers in a piece of torch's products: about the last-level cache


def softmax_cost(
    h: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float = 0.0
) -> Tensor:
    """The cost summed over rows, a single number. h (rows, width), weight (classes, width), bias
    (classes,) or None, targets (rows,) class numbers. smoothing ε: this share of the targets'
    probability is spread over all classes."""
    _check(h, weight, bias, targets)
    if not 0 <= smoothing <= 1:
        raise OptionError(f"smoothing: expected a number from 0 to 1, got {smoothing}")
    low = under_autocast(h)
    with torch.autocast(h.device.type, enabled=False):
        h = h.to(weight.dtype)
        total_cost = _SoftmaxCost.apply(  # type: ignore[no-untyped-call]
            h, weight, bias, targets, smoothing, low, torch.is_grad_enabled()
        )
    cost: Tensor = total_cost
    return cost


@torch.no_grad()
def softmax_costs(h: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
    """The cost of each row (rows,), without derivatives."""
    _check(h, weight, bias, targets)
    low = under_autocast(h)
    with torch.autocast(h.device.type, enabled=False):
        h = h.to(weight.dtype)
        if not low and _is_native(h):
            return softmax_of_rows(h, weight, bias, targets)
        operand = weight.bfloat16() if low else weight
        costs = [
            _costs(_scores(h[piece], operand, bias), targets[piece], False)
            for piece in _pieces(h, weight)
        ]
    return torch.cat(costs) if costs else h.new_zeros(0)


class _SoftmaxCost(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        low: bool,
        derive: bool,
    ) -> Tensor:
        ctx.save_for_backward(h, weight, bias, targets)
        ctx.how = (
            smoothing,
            low,
            [derive and needs_slope for needs_slope in ctx.needs_input_grad[:3]],
        )
        total, ctx.gradients = _computed(h, weight, bias, targets, *ctx.how)
        return total.to(h.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *adjoint: Tensor) -> tuple[Tensor | None, ...]:
        """Multiplies the gradients in place and returns them without a copy. A second backward pass
        computes them again."""
        gradients, ctx.gradients = ctx.gradients, None
        if gradients is None:
            gradients = _computed(*ctx.saved_tensors, *ctx.how)[1]
        nothing = (None,) * 4
        return (*(None if d is None else d.mul_(adjoint[0]) for d in gradients), *nothing)


def _computed(
    h: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    smoothing: float,
    low: bool,
    needs: Sequence[bool],
) -> tuple[Tensor, GradientBuffers]:
    """The cost in float64, and those gradients of (h, weight, bias) that are needed."""
    gradients = GradientBuffers(
        *(
            None if v is None or not want else v.new_empty(v.shape)
            for v, want in zip((h, weight, bias), needs, strict=True)
        )
    )
    if len(h) and not low and _is_native(h):
        costs = softmax_of_rows(h, weight, bias, targets, smoothing, gradients)
        return costs.sum(dtype=torch.float64), gradients
    operand = weight.bfloat16() if low else weight
    return _by_torch(h, operand, bias, targets, smoothing, gradients), gradients


def _is_native(like: Tensor) -> bool:
    return like.dtype in DEFINES and not why_not_native(like.device, like.dtype)


# ------------------------------------------------------------- by torch's products
def _by_torch(
    h: Tensor,
    operand: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    smoothing: float,
    gradients: GradientBuffers,
) -> Tensor:
    """The cost, computed by torch. operand: the weights, in the dtype of the products."""
    total = h.new_zeros((), dtype=torch.float64)
    for sums in (gradients.weight, gradients.bias):
        if sums is not None:
            sums.zero_()
    derive = any(gradient is not None for gradient in gradients)
    for piece in _pieces(h, operand):
        z, piece_targets = _scores(h[piece], operand, bias), targets[piece]
        if smoothing:
            target_scores = z.gather(1, piece_targets[:, None])[:, 0]
            total += smoothing * (target_scores - z.mean(1)).sum(dtype=torch.float64)
        total += _costs(z, piece_targets, derive).sum(dtype=torch.float64)
        if smoothing and derive:
            z[torch.arange(len(z), device=z.device), piece_targets] += smoothing
            z -= smoothing / z.shape[1]
        if gradients.h is not None:
            _product(z, operand, gradients.h[piece])
        if gradients.weight is not None:
            _product(z.t(), h[piece].to(operand.dtype), gradients.weight, add=True)
        if gradients.bias is not None:
            gradients.bias.add_(z.sum(0))
    return total


def _pieces(h: Tensor, weight: Tensor) -> list[slice]:
    size = max(1, SCORES // len(weight))
    return [slice(at, at + size) for at in range(0, len(h), size)]


def _scores(h: Tensor, operand: Tensor, bias: Tensor | None) -> Tensor:
    """z (rows, classes) in h's dtype; operand: the weights, in the dtype of the product."""
    if bias is not None and operand.dtype == h.dtype:
        return torch.addmm(bias, h, operand.t())
    z = h.new_empty(len(h), len(operand))
    _product(h, operand.t(), z)
    return z if bias is None else z.add_(bias)


def _product(a: Tensor, b: Tensor, out: Tensor, add: bool = False) -> None:
    """out = a·b, or out + a·b; the product has b's dtype."""
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


def _check(h: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> None:
    if h.dim() != 2 or weight.dim() != 2 or h.shape[1] != weight.shape[1]:
        raise ShapeError(
            f"expected h (rows, width) and weight (classes, width), got {tuple(h.shape)} "
            f"and {tuple(weight.shape)}"
        )
    for name, v in {"h": h, "bias": bias, "targets": targets}.items():
        if v is not None and v.device != weight.device:
            raise ShapeError(
                f"{name}: expected {weight.device}, the device of weight, got {v.device}"
            )
    if bias is not None and (bias.shape != weight.shape[:1] or bias.dtype != weight.dtype):
        raise ShapeError(
            f"bias: expected {len(weight)} numbers of {weight.dtype}, like weight, got "
            f"{tuple(bias.shape)} of {bias.dtype}"
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
