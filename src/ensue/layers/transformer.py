"""The blocks of a Transformer, in three stacks: an encoder, a decoder that attends to a source, and
a decoder without a source. Decoders take and return their state, so they can run single steps.

Inputs and outputs of stacks are (time, batch, width); inside, rows come first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from ensue.errors import OptionError, check_rates, unknown
from ensue.layers.lengths import step_mask
from ensue.layers.multihead import MultiHead

LONGEST = 10_000.0  # longest wavelength, in units of 2π


def sinusoids(positions: Tensor, width: int, dtype: torch.dtype | None = None) -> Tensor:
    """PE(p, 2i) = sin(p / 10000^(2i/width)), PE(p, 2i+1) = cos of the same: positions (…) integers
    → (…, width). dtype: torch's default unless given."""
    if width < 1:
        raise OptionError(f"width: expected a number ≥ 1, got {width}")
    pairs = torch.arange(0, width, 2, dtype=torch.float64, device=positions.device)
    # in double precision: the angle of a far position would lose its digits after the point
    angles = positions.double()[..., None] * LONGEST ** (-pairs / width)
    waves = torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)[..., :width]
    return waves.to(torch.get_default_dtype() if dtype is None else dtype)


def placed(x: Tensor, first: int | Tensor = 0, period: int | None = None) -> Tensor:
    """x (time, batch, width) plus the sinusoids of its positions first, first + 1, …, modulo
    `period` if there is one."""
    positions = first + torch.arange(x.shape[0], device=x.device)
    if period is not None:
        positions = positions % period
    return x + sinusoids(positions, x.shape[-1], x.dtype)[:, None]


NORMS = ("before", "after")
INNER = 4  # factor of the width, for the feed-forward layer, as in the paper


@dataclass(frozen=True)
class Design:
    """The options that all blocks of a stack share.

    inner: width of the feed-forward layer, 4·width if None; norm: "after" each sum, as in the
    paper, or "before" each sublayer, with one more after the last block; dropout: dropout rate of
    each sublayer's output; dropout_attention: dropout rate of the weights α."""

    width: int
    heads: int
    inner: int | None = None
    norm: str = "before"
    dropout: float = 0.0
    dropout_attention: float = 0.0

    def __post_init__(self) -> None:
        if self.norm not in NORMS:
            raise unknown("place of the norm", self.norm, NORMS)
        if self.inner is not None and self.inner < 1:
            raise OptionError(f"inner: expected a width ≥ 1, got {self.inner}")
        check_rates({"dropout": self.dropout})

    def attention(self) -> MultiHead:
        return MultiHead(self.width, self.heads, self.dropout_attention)

    def last_norm(self) -> nn.Module:
        return nn.LayerNorm(self.width) if self.norm == "before" else nn.Identity()


class Source(NamedTuple):
    """The source that a decoder block attends to: memory (batch, time, 2·width), and mask, True =
    real."""

    memory: Tensor
    mask: Tensor | None


class Block(nn.Module):
    """Self-attention, cross-attention if there is a source, and FFN(x) = W₂·max(0, W₁·x + b₁) + b₂,
    each added to its input, with a norm: LN(x + f(x)) or x + f(LN(x)).

    Parameters have the names of torch.nn.TransformerEncoderLayer, with `cross` those of
    torch.nn.TransformerDecoderLayer, so their state_dicts can be loaded."""

    def __init__(self, design: Design, cross: bool = False) -> None:
        super().__init__()
        width = design.width
        inner = INNER * width if design.inner is None else design.inner
        self.before, self.rate = design.norm == "before", design.dropout
        self.self_attn = design.attention()
        self.linear1, self.linear2 = nn.Linear(width, inner), nn.Linear(inner, width)
        for layer in (self.linear1, self.linear2):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.multihead_attn = design.attention() if cross else None
        self.norm3 = nn.LayerNorm(width) if cross else None

    def forward(
        self, x: Tensor, past: Tensor | None, mask: Tensor | None, source: Source | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """The block over x (batch, time, width), with the memory of earlier steps (batch, before,
        2·width). Returns y, the memory of all steps, and the queries of cross-attention."""
        queries, keys = self.self_attn.own_keys(self._into(self.norm1, x))
        memory = keys if past is None else torch.cat([past, keys], 1)
        x = self._added(self.norm1, x, self.self_attn.attend(queries, memory, mask))
        looked = None
        if self.multihead_attn is not None and source is not None:
            looked = self.multihead_attn.queries(self._into(self.norm2, x))
            x = self._added(self.norm2, x, self.multihead_attn.attend(looked, *source))
        last = self.norm2 if self.norm3 is None else self.norm3
        fed = self.linear2(self.linear1(self._into(last, x)).relu())
        return self._added(last, x, fed), memory, looked

    def _into(self, norm: nn.LayerNorm, x: Tensor) -> Tensor:
        inner: Tensor = norm(x) if self.before else x
        return inner

    def _added(self, norm: nn.LayerNorm, x: Tensor, inner: Tensor) -> Tensor:
        x = x + dropout(inner, self.rate, self.training)
        y: Tensor = x if self.before else norm(x)
        return y


class EncoderBlocks(nn.Module):
    """Every step attends to all real steps of its row."""

    def __init__(self, layers: int, design: Design) -> None:
        super().__init__()
        self.layers = _blocks(layers, design)
        self.norm = design.last_norm()

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """y (time, batch, width), zero beyond a row's end."""
        real = step_mask(lengths.to(x.device), x.shape[0]).t()  # (batch, time)
        y, mask = x.transpose(0, 1).contiguous(), real[:, None, None]
        for block in self.layers:
            y, _, _ = block(y, None, mask)
        return torch.where(real[..., None], self.norm(y), 0).transpose(0, 1)


class Decoded(NamedTuple):
    """y (time, batch, width); past, the memories of all steps so far; looked (batch, time, width),
    the queries of the last block's cross-attention, from which `weights` computes α."""

    y: Tensor
    past: tuple[Tensor, ...]
    looked: Tensor


class DecoderBlocks(nn.Module):
    """Every step attends to itself, to earlier steps, and to a source."""

    def __init__(self, layers: int, design: Design) -> None:
        super().__init__()
        self.layers = _blocks(layers, design, cross=True)
        self.norm = design.last_norm()

    def memories(self, source: Tensor) -> tuple[Tensor, ...]:
        """Keys and values of source (time, batch, width) for each block: (batch, time, 2·width).
        Steps read these instead of the source."""
        rows = source.transpose(0, 1).contiguous()
        return tuple(_cross(block).memory(rows) for block in self.layers)

    def forward(
        self,
        x: Tensor,
        memories: tuple[Tensor, ...],
        real: Tensor,
        past: tuple[Tensor, ...] | None = None,
    ) -> Decoded:
        """The decoder over x (time, rows, width). real (batch, source time); past: the past that an
        earlier call returned. Each row of the memories has one or several consecutive rows of x."""
        before = past[0].shape[1] if past else 0
        mask = _causal(x.shape[0], before, None, x.device)
        y, keys, looked = x.transpose(0, 1).contiguous(), [], None
        for k, block in enumerate(self.layers):
            source = Source(memories[k], real[:, None, None])
            y, memory, looked = block(y, past[k] if past else None, mask, source)
            keys.append(memory)
        assert looked is not None
        return Decoded(self.norm(y).transpose(0, 1), tuple(keys), looked)

    def weights(self, looked: Tensor, memory: Tensor, real: Tensor) -> Tensor:
        """α (rows, time, source time), the mean over the heads of the last block. looked (rows,
        time, width): the queries; memory: the memory of that block."""
        alpha = _cross(self.layers[-1]).weights(looked, memory, real[:, None, None]).mean(1)
        return alpha.reshape(*looked.shape[:2], memory.shape[1])


class CausalBlocks(nn.Module):
    """Every step attends to itself and to the context − 1 steps before it.

    Consecutive pieces, with `past` passed on, give the same result as the whole. Through the first
    block, a step of the second one depends on steps that are farther away."""

    def __init__(self, layers: int, design: Design, context: int) -> None:
        super().__init__()
        if context < 1:
            raise OptionError(f"context: expected a number of steps ≥ 1, got {context}")
        self.context = context
        self.layers = _blocks(layers, design)
        self.norm = design.last_norm()

    def forward(self, x: Tensor, past: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """y (time, batch, width) and the new past: for each block (batch, before, 2·width)."""
        mask = _causal(x.shape[0], past[0].shape[1], self.context, x.device)
        y, states = x.transpose(0, 1).contiguous(), []
        for block, state in zip(self.layers, past, strict=True):
            y, memory, _ = block(y, state, mask)
            states.append(memory[:, max(0, memory.shape[1] - self.context + 1) :].contiguous())
        return self.norm(y).transpose(0, 1), tuple(states)


def _blocks(layers: int, design: Design, cross: bool = False) -> nn.ModuleList:
    if layers < 1:
        raise OptionError(f"layers: expected a number ≥ 1, got {layers}")
    return nn.ModuleList(Block(design, cross) for _ in range(layers))


def _cross(block: nn.Module) -> MultiHead:
    assert isinstance(block, Block)
    assert block.multihead_attn is not None
    return block.multihead_attn


def _causal(time: int, before: int, context: int | None, device: torch.device) -> Tensor | None:
    """True where a step may attend: to itself and earlier steps within the context; shape (time,
    before + time). None for a single step, which may attend to everything that is stored."""
    if time == 1:
        return None
    behind = torch.arange(before, before + time, device=device)[:, None] - torch.arange(
        before + time, device=device
    )
    return behind >= 0 if context is None else (behind >= 0) & (behind < context)
