"""The gradient of a matrix: the sum of outer products over all rows and steps."""

from __future__ import annotations

import torch
from torch import Tensor

PIECE, SMALL = 128, 512  # rows of a piece, and numbers of a small matrix


def add_outer(adjoint: Tensor, operand: Tensor, out: Tensor, fresh: bool) -> None:
    """out = adjointᵀ·operand, or added to it. For small matrices the sum over many rows is taken
    in pieces: the BLAS makes one long sum of it there, which loses digits (and is no quicker)."""
    count = len(adjoint) // PIECE
    if count > 1 and out.numel() <= SMALL:
        first = adjoint[: count * PIECE].view(count, PIECE, adjoint.shape[1])
        second = operand[: count * PIECE].view(count, PIECE, operand.shape[1])
        whole = torch.bmm(first.transpose(1, 2), second, out=out.new_empty(count, *out.shape))
        torch.sum(whole, 0, out=out) if fresh else out.add_(whole.sum(0))
        adjoint, operand, fresh = adjoint[count * PIECE :], operand[count * PIECE :], False
    if fresh:
        torch.mm(adjoint.t(), operand, out=out)
    else:
        out.addmm_(adjoint.t(), operand)
