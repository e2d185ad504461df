"""Convolutions over sequences (time, batch, features): each step sees its neighbours.

    y_t = b + Σ_{j=0}^{k−1} W_j · x_{t + d·(j − l)}

k is the size of the filters and d their dilation, the distance between the steps they see. l is
k − 1 where nothing later may be seen (causal), else ⌊(k − 1)/2⌋. Before the first step and after
the last one there are zeros.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, glu, linear

from ensue.errors import OptionError, ShapeError
from ensue.layers.lengths import step_mask


class SequenceConvolution(nn.Module):
    """(time, batch, inputs) → (time, batch, outputs), of the same time.

    weight (outputs, size·inputs): W_0 … W_{size−1} side by side, so that all steps are one matrix
    product."""

    def __init__(
        self, inputs: int, outputs: int, size: int, *, dilation: int = 1, causal: bool = False
    ) -> None:
        super().__init__()
        own = {"inputs": inputs, "outputs": outputs, "size": size, "dilation": dilation}
        for name, value in own.items():
            if value < 1:
                raise OptionError(f"{name}: expected a number ≥ 1, got {value}")
        self.inputs, self.size, self.dilation = inputs, size, dilation
        reach = (size - 1) * dilation
        self.before = reach if causal else (size - 1) // 2 * dilation  # steps seen before each
        self.behind = reach - self.before
        self.weight = nn.Parameter(torch.empty(outputs, size * inputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        with torch.no_grad():
            nn.init.xavier_uniform_(self.weight)

    def forward(self, x: Tensor, past: Tensor | None = None) -> Tensor:
        """past (before, batch, inputs): the steps before the first; None is zeros."""
        if x.dim() != 3 or x.shape[2] != self.inputs:
            raise ShapeError(
                f"SequenceConvolution: expected x of shape (time, batch, {self.inputs}), "
                f"got {tuple(x.shape)}"
            )
        front = x.new_zeros(self.before, *x.shape[1:]) if past is None else past
        whole = torch.cat([front, x, x.new_zeros(self.behind, *x.shape[1:])])
        seen = [whole[j * self.dilation :][: x.shape[0]] for j in range(self.size)]
        return linear(torch.cat(seen, -1), self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{self.inputs}, {len(self.weight)}, {self.size}, dilation={self.dilation}"


class GatedConvolutions(nn.Module):
    """Layers x ← x + A * σ(B), [A; B] = convolution(LN(x)), and LN after the last.

    dilated: the distances are 1, 2, 4, …, one for each layer, else all are 1. A step of the
    output sees `field` steps of the input: 1 + (size − 1)·Σ distances. dropout: of A * σ(B)."""

    def __init__(
        self,
        width: int,
        layers: int,
        size: int,
        *,
        dilated: bool = False,
        causal: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if layers < 1:
            raise OptionError(f"layers: expected a number ≥ 1, got {layers}")
        if not 0 <= dropout < 1:
            raise OptionError(f"dropout: expected a number 0 ≤ rate < 1, got {dropout}")
        self.width, self.dropout = width, dropout
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.layers = nn.ModuleList(
            SequenceConvolution(
                width, 2 * width, size, dilation=2**k if dilated else 1, causal=causal
            )
            for k in range(layers)
        )
        self.last = nn.LayerNorm(width)
        self.field = field_of(layers, size, dilated)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (time, batch, width); nothing is seen of padding, and y is zero there."""
        real = step_mask(lengths.to(x.device), x.shape[0])[..., None]
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = x + dropout(glu(layer(norm(x) * real)), self.dropout, self.training)
        found: Tensor = self.last(x) * real
        return found

    def begin(self, batch: int) -> tuple[Tensor, ...]:
        """What is carried before the first step: zeros (batch, steps before, width), a layer."""
        weight = self.last.weight
        return tuple(weight.new_zeros(batch, own.before, self.width) for own in self._convolutions)

    def go_on(self, x: Tensor, past: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """For causal layers: y, and what is carried after the last step. Pieces of any size give
        what the whole gives."""
        kept = []
        for norm, layer, before in zip(self.norms, self._convolutions, past, strict=True):
            front, own = before.transpose(0, 1), norm(x)
            x = x + dropout(glu(layer(own, front)), self.dropout, self.training)
            kept.append(torch.cat([front, own])[own.shape[0] :].transpose(0, 1))
        return self.last(x), tuple(kept)

    @property
    def _convolutions(self) -> list[SequenceConvolution]:
        return [own for own in self.layers if isinstance(own, SequenceConvolution)]


def field_of(layers: int, size: int, dilated: bool) -> int:
    """How many steps of the input a step of the output sees."""
    distances = 2**layers - 1 if dilated else layers
    return 1 + (size - 1) * distances
