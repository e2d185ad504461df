"""Encoders: what turns the vectors of a sequence's steps into features that know their context.

Each is called as (x (time, batch, input), lengths (batch)) and gives y (time, batch,
output_size), zero beyond a row's end, and final (batch, final_size).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout as dropped

from ensue.cells import RecurrentDropout
from ensue.engine import State
from ensue.errors import unknown
from ensue.layers import Recurrent, step_mask
from ensue.layers.positions import placed
from ensue.layers.recurrent import as_cell
from ensue.layers.sequence_convolution import GatedConvolutions
from ensue.layers.transformer import Design, EncoderBlocks
from ensue.models.embed import check_rates

FINALS = ("top", "all")


class RecurrentEncoder(nn.Module):
    """Layers of any cell. final: the end states h of the "top" layer, both directions side by
    side, or of "all" layers, the lowest first."""

    def __init__(
        self,
        input_size: int,
        *,
        cell: str,
        hidden_size: int,
        num_layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        initial: str = "zero",
        init: str = "standard",
        final: str = "top",
        engine: str = "auto",
    ) -> None:
        super().__init__()
        check_rates({"recurrent_dropout": recurrent_dropout})
        if final not in FINALS:
            raise unknown("final", final, FINALS)
        own = as_cell(cell)
        self.recurrent = Recurrent(
            RecurrentDropout(own, recurrent_dropout) if recurrent_dropout else own,
            input_size,
            hidden_size,
            num_layers,
            bidirectional=bidirectional,
            dropout=dropout,
            initial=initial,
            init=init,
            engine=engine,
        )
        ways = self.recurrent.ways
        self.last = len(ways) if final == "all" else 1 + bidirectional
        self.output_size = self.recurrent.output_size
        self.final_size = sum(way.state_sizes[0] for way in ways[-self.last :])

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        y, state = self.recurrent(x, lengths=lengths)
        return y, self.final(state)

    def final(self, state: tuple[State, ...]) -> Tensor:
        """(batch, final_size) of the state that the layers end in."""
        return torch.cat([parts[0] for parts in state[-self.last :]], -1)


class PlainEncoder(nn.Module):
    """The steps as they are; final is the last real one, zero for an empty row."""

    def __init__(self, input_size: int) -> None:
        super().__init__()
        self.output_size = self.final_size = input_size

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        y = x * step_mask(lengths.to(x.device), len(x))[..., None]
        return y, _last(y, lengths)


class TransformerEncoder(nn.Module):
    """Blocks of self-attention: y = blocks(LN(W·x + b) + positions); final is y at the last real
    step, zero for an empty row.

    The norm gives features of any scale, word vectors as measurements, the scale of the
    sinusoids. Padding is never looked at. dropout: of the first sum and of each sublayer."""

    def __init__(
        self,
        input_size: int,
        *,
        width: int,
        heads: int,
        num_layers: int = 1,
        inner: int | None = None,
        norm: str = "before",
        dropout: float = 0.0,
        dropout_attention: float = 0.0,
    ) -> None:
        super().__init__()
        design = Design(width, heads, inner, norm, dropout, dropout_attention)
        self.dropout = dropout
        self.enter = nn.Linear(input_size, width)
        self.scale = nn.LayerNorm(width)
        self.blocks = EncoderBlocks(num_layers, design)
        self.output_size = self.final_size = width

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        x = dropped(placed(self.scale(self.enter(x))), self.dropout, self.training)
        y: Tensor = self.blocks(x, lengths)
        return y, _last(y, lengths)


class ConvolutionEncoder(nn.Module):
    """Gated convolutions over the steps: y = layers(W·x + b), each step seen with those around
    it, `convolutions.field` in all; final is y at the last real step, zero for an empty row.

    size, dilated: of the filters, as `GatedConvolutions` takes them. Nothing is seen of padding."""

    def __init__(
        self,
        input_size: int,
        *,
        width: int,
        num_layers: int = 1,
        size: int = 3,
        dilated: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.enter = nn.Linear(input_size, width)
        self.convolutions = GatedConvolutions(
            width, num_layers, size, dilated=dilated, dropout=dropout
        )
        self.output_size = self.final_size = width

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        y: Tensor = self.convolutions(self.enter(x), lengths)
        return y, _last(y, lengths)


def _last(y: Tensor, lengths: Tensor) -> Tensor:
    """(batch, width) of y (time, batch, width): at each row's last real step."""
    return (y * step_mask(lengths.to(y.device), len(y), first=-1)[..., None]).sum(0)


Encoder = RecurrentEncoder | PlainEncoder | TransformerEncoder | ConvolutionEncoder

ENCODERS: dict[str, type[Encoder]] = {
    "recurrent": RecurrentEncoder,
    "plain": PlainEncoder,
    "transformer": TransformerEncoder,
    "convolution": ConvolutionEncoder,
}
