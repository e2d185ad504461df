"""Convolution and pooling over volumes (rows, channels, height, width), and networks of them.

z[o, i, j] = b[o] + Σ_{c,u,v} w[o, c, u, v] · x[c, s·i + u − p, s·j + v − p]

Filters are not flipped (cross-correlation). Each has a slice w[o, c] for every channel of its
input, and one bias. s is the stride, p the zeros on each side. A filter of size k has ⌊(n + 2p −
k)/s⌋ + 1 places along n pixels. Pooling works on each channel separately and has no parameters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import dropout, glu, linear

from ensue.errors import OptionError, ShapeError, check_rates, unknown
from ensue.layers.feedforward import MLP
from ensue.layers.lengths import step_mask

PART = re.compile(
    r"(?:(?P<channels>\d+)(?:x(?P<size>\d+))?|(?P<kind>max|mean)(?P<of>\d+)?)(?:/(?P<stride>\d+))?"
)
FILTER, POOL = 3, 2  # default sizes
NORMS = ("batch", "none")


def places(length: int, size: int, stride: int = 1, padding: int = 0, what: str = "filter") -> int:
    """The number of places of a filter along one axis: ⌊(n + 2p − k)/s⌋ + 1, at least one.

    4 pixels, a filter of 2: stride 1 → 3; stride 2 → 2; stride 2, padding 1 → 3."""
    room = length + 2 * padding - size
    if room < 0:
        around = f" with {padding} zeros on each side" if padding else ""
        raise ShapeError(
            f"a {what} of {size} does not fit: expected {size - 2 * padding} or more pixels in "
            f"height and width{around}, got {length}. Give larger images, or fewer or smaller "
            "filters and pools before it"
        )
    return room // stride + 1


def _check(least: dict[str, tuple[int, int]]) -> None:
    for name, (value, bound) in least.items():
        if value < bound:
            raise OptionError(f"{name}: expected a number ≥ {bound}, got {value}")


def _volumes(x: Tensor, channels: int | None, what: str) -> None:
    if x.dim() != 4 or (channels is not None and x.shape[1] != channels):
        expected = "channels" if channels is None else channels
        raise ShapeError(
            f"{what}: expected x of shape (rows, {expected}, height, width), got {tuple(x.shape)}"
        )


class Convolution(nn.Module):
    """Filters over volumes: (rows, channels_in, height, width) → (rows, channels_out, …).

    weight (channels_out, channels_in, size, size) begins He-normal, bias at 0. A filter of 3 over
    3 channels has 3·3·3 + 1 parameters, whatever the size of the picture."""

    def __init__(
        self,
        channels_in: int,
        channels_out: int,
        size: int,
        stride: int = 1,
        padding: int = 0,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        counts = {"channels_in": channels_in, "channels_out": channels_out, "size": size}
        bounds = {name: (value, 1) for name, value in {**counts, "stride": stride}.items()}
        _check({**bounds, "padding": (padding, 0)})
        self.size, self.stride, self.padding = size, stride, padding
        self.weight = nn.Parameter(torch.empty(channels_out, channels_in, size, size))
        self.bias = nn.Parameter(torch.zeros(channels_out)) if bias else None
        with torch.no_grad():
            nn.init.kaiming_normal_(self.weight, nonlinearity="relu")

    def shape(self, channels: int, height: int, width: int) -> tuple[int, int, int]:
        """The shape of the output for an input of this shape."""
        tall, wide = (places(n, self.size, self.stride, self.padding) for n in (height, width))
        return len(self.weight), tall, wide

    def forward(self, x: Tensor) -> Tensor:
        _volumes(x, self.weight.shape[1], "Convolution")
        self.shape(*x.shape[1:])
        return functional.conv2d(x, self.weight, self.bias, self.stride, self.padding)

    def extra_repr(self) -> str:
        out, into = self.weight.shape[:2]
        return f"{into}, {out}, {self.size}, stride={self.stride}, padding={self.padding}"


POOLS: dict[str, Callable[[Tensor, int, int], Tensor]] = {
    "max": functional.max_pool2d,
    "mean": functional.avg_pool2d,
}


class VolumePooling(nn.Module):
    """The maximum or the mean of each square of `size`, for each channel separately.

    2×2 with stride 2 leaves a quarter of the numbers. Among equal maxima one gets the
    derivative."""

    def __init__(self, kind: str = "max", size: int = POOL, stride: int | None = None) -> None:
        super().__init__()
        if kind not in POOLS:
            raise unknown("pooling", kind, POOLS)
        self.kind, self.size, self.stride = kind, size, size if stride is None else stride
        _check({"size": (size, 1), "stride": (self.stride, 1)})

    def shape(self, channels: int, height: int, width: int) -> tuple[int, int, int]:
        tall, wide = (places(n, self.size, self.stride, what="pool") for n in (height, width))
        return channels, tall, wide

    def forward(self, x: Tensor) -> Tensor:
        _volumes(x, None, "VolumePooling")
        self.shape(*x.shape[1:])
        return POOLS[self.kind](x, self.size, self.stride)

    def extra_repr(self) -> str:
        return f"{self.kind}, {self.size}, stride={self.stride}"


class ChannelNorm(nn.BatchNorm2d):
    """Batch normalisation of each channel, with a gain and a shift: over the batch in training,
    with the running means afterwards. A single number has no variance, so it uses the running means
    in training too."""

    def forward(self, x: Tensor) -> Tensor:
        if self.training and x.numel() > x.shape[1]:
            return super().forward(x)
        return functional.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, False, eps=self.eps
        )


class BlockPart(NamedTuple):
    """One word of a description: a number of filters, or a kind of pool."""

    channels: int
    kind: str
    size: int
    stride: int


def parts_of(description: str) -> list[BlockPart]:
    """Parses "32 32x5 64/2 max mean3/1": 32 filters of 3×3, 32 of 5×5, 64 of 3×3 with stride 2;
    pools of 2×2, and of 3×3 with stride 1."""
    parts = []
    for word in description.split():
        match = PART.fullmatch(word)
        if match is None or any(
            n and not int(n) for n in match.group("channels", "size", "of", "stride")
        ):
            raise OptionError(
                f"blocks {description!r}: expected words such as 32 (filters of 3×3), 32x5 (of "
                f"5×5), 64/2 (with stride 2), max or mean (pools of 2×2), max3/2, got {word!r}"
            )
        kind, stride = match["kind"] or "", int(match["stride"] or 0)
        size = int((match["of"] or POOL) if kind else (match["size"] or FILTER))
        parts.append(
            BlockPart(int(match["channels"] or 0), kind, size, stride or (size if kind else 1))
        )
    return parts


class ConvolutionBlocks(nn.Module):
    """Convolutions and pools one after another, as `parts_of` reads their description.

    A convolution of stride 1 keeps the size (padding ⌊k/2⌋). The norm ("batch", or "none") and ReLU
    follow each convolution."""

    def __init__(self, channels: int, description: str, *, norm: str = "batch") -> None:
        super().__init__()
        _check({"channels": (channels, 1)})
        if norm not in NORMS:
            raise unknown("norm", norm, NORMS)
        self.description, self.channels_in = description, channels
        layers: list[nn.Module] = []
        for part in parts_of(description):
            if part.kind:
                layers.append(VolumePooling(part.kind, part.size, part.stride))
                continue
            layers.append(
                Convolution(
                    channels,
                    part.channels,
                    part.size,
                    part.stride,
                    part.size // 2,
                    bias=norm == "none",
                )
            )
            if norm == "batch":
                layers.append(ChannelNorm(part.channels))
            layers.append(nn.ReLU())
            channels = part.channels
        self.layers = nn.Sequential(*layers)

    def shape(self, height: int, width: int) -> tuple[int, int, int]:
        """Channels, height and width of the output."""
        volume = self.channels_in, height, width
        for layer in self.layers:
            if isinstance(layer, Convolution | VolumePooling):
                volume = layer.shape(*volume)
        return volume

    def forward(self, x: Tensor) -> Tensor:
        _volumes(x, self.channels_in, "ConvolutionBlocks")
        # the kernels are fastest with this memory order
        y: Tensor = self.layers(x.contiguous(memory_format=torch.channels_last))
        return y


class ConvolutionNet(nn.Module):
    """Blocks, then an MLP: (rows, channels, height, width) → (rows, outputs).

    shape: channels, height and width of the pictures. hidden: units of the MLP's hidden layers; the
    MLP reads all numbers of the last volume. dropout: dropout rate of these numbers and of the
    hidden units.

    ConvolutionNet((1, 28, 28), "6x5 max 16x5 max", 10, norm="none") has 10,422 parameters."""

    def __init__(
        self,
        shape: tuple[int, int, int],
        description: str,
        outputs: int,
        *,
        hidden: Sequence[int] = (),
        dropout: float = 0.0,
        norm: str = "batch",
    ) -> None:
        super().__init__()
        channels, height, width = self.shape = shape
        self.blocks = ConvolutionBlocks(channels, description, norm=norm)
        tall = self.blocks.shape(height, width)
        self.dropout = dropout
        flat = tall[0] * tall[1] * tall[2]
        self.head = MLP([flat, *hidden, outputs], init="he", dropout=dropout)

    def forward(self, x: Tensor) -> Tensor:
        if tuple(x.shape[1:]) != self.shape:
            expected = ", ".join(map(str, self.shape))
            raise ShapeError(
                f"ConvolutionNet: expected x of shape (rows, {expected}), got {tuple(x.shape)}"
            )
        flat = functional.dropout(self.blocks(x).flatten(1), self.dropout, self.training)
        y: Tensor = self.head(flat)
        return y


# -------------------------------------------------------------------------------------------------
# Convolutions over sequences (time, batch, features): each step sees its neighbours.
#
#     y_t = b + Σ_{j=0}^{k−1} W_j · x_{t + d·(j − l)}
#
# k is the size of the filters and d their dilation, the distance between the steps they see. l is
# k − 1 if later steps may not be seen (causal), else ⌊(k − 1)/2⌋. Steps before the first and after
# the last one are zeros.


class SequenceConvolution(nn.Module):
    """(time, batch, inputs) → (time, batch, outputs), of the same length in time.

    weight (outputs, size·inputs): W_0 … W_{size−1} side by side, so that all steps are one matrix
    product."""

    def __init__(
        self, inputs: int, outputs: int, size: int, *, dilation: int = 1, causal: bool = False
    ) -> None:
        super().__init__()
        settings = {"inputs": inputs, "outputs": outputs, "size": size, "dilation": dilation}
        for name, value in settings.items():
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
        """The convolution of x. past (before, batch, inputs): the steps before the first; None
        means zeros."""
        if x.dim() != 3 or x.shape[2] != self.inputs:
            raise ShapeError(
                f"SequenceConvolution: expected x of shape (time, batch, {self.inputs}), "
                f"got {tuple(x.shape)}"
            )
        front = x.new_zeros(self.before, *x.shape[1:]) if past is None else past
        whole = torch.cat([front, x, x.new_zeros(self.behind, *x.shape[1:])])
        windows = [whole[j * self.dilation :][: x.shape[0]] for j in range(self.size)]
        return linear(torch.cat(windows, -1), self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{self.inputs}, {len(self.weight)}, {self.size}, dilation={self.dilation}"


class GatedConvolutions(nn.Module):
    """Layers x ← x + A * σ(B), [A; B] = convolution(LN(x)), and LN after the last.

    dilated: the layers' distances are 1, 2, 4, … instead of 1. A step of the output sees `field`
    steps of the input: 1 + (size − 1)·Σ distances. dropout: dropout rate of A * σ(B)."""

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
        check_rates({"dropout": dropout})
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
        """y for x (time, batch, width). Padding is not read, and y is zero there."""
        real = step_mask(lengths.to(x.device), x.shape[0])[..., None]
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = x + dropout(glu(layer(norm(x) * real)), self.dropout, self.training)
        y: Tensor = self.last(x) * real
        return y

    def begin(self, batch: int) -> tuple[Tensor, ...]:
        """The state before the first step: zeros (batch, earlier steps, width) for each layer."""
        weight = self.last.weight
        return tuple(
            weight.new_zeros(batch, convolution.before, self.width)
            for convolution in self._convolutions
        )

    def go_on(self, x: Tensor, past: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """y, and the state after the last step; for causal layers only. Pieces of any size give the
        same result as the whole."""
        states = []
        for norm, layer, before in zip(self.norms, self._convolutions, past, strict=True):
            front, inside = before.transpose(0, 1), norm(x)
            x = x + dropout(glu(layer(inside, front)), self.dropout, self.training)
            states.append(torch.cat([front, inside])[inside.shape[0] :].transpose(0, 1))
        return self.last(x), tuple(states)

    @property
    def _convolutions(self) -> list[SequenceConvolution]:
        return [layer for layer in self.layers if isinstance(layer, SequenceConvolution)]


def field_of(layers: int, size: int, dilated: bool) -> int:
    """The number of input steps that an output step sees."""
    distances = 2**layers - 1 if dilated else layers
    return 1 + (size - 1) * distances
