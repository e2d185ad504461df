"""Encoders: from the vectors of a sequence's steps to features in context.

Each is called as (x (time, batch, input), lengths (batch)) and gives y (time, batch, output_size),
zero beyond a row's end, and final (batch, final_size).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout as dropped

from ensue.cells import Cell, RecurrentDropout
from ensue.engine.recurrence import State
from ensue.engine.rows import reverse_time
from ensue.errors import OptionError, check_rates, unknown
from ensue.layers.convolution import GatedConvolutions, field_of
from ensue.layers.lengths import step_mask
from ensue.layers.recurrent import Recurrent, as_cell
from ensue.layers.transformer import CausalBlocks, Design, EncoderBlocks, placed
from ensue.tasks.blocks.layer_settings import EncoderSettings
from ensue.tasks.blocks.recurrent_layers import cell_of

FINALS = ("top", "all")


class Encoder(nn.Module, ABC):
    """The interface of encoders. A new one is a class here and a row of `ENCODERS`.

    keys: the settings that determine its weights and function, except the number of layers;
    entrance: prefixes of the names of weights before the lowest layer."""

    keys: ClassVar[tuple[str, ...]] = ()
    entrance: ClassVar[tuple[str, ...]] = ()
    output_size: int
    final_size: int

    @staticmethod
    def layer(number: int) -> tuple[str, ...]:
        """The prefix of the names of a layer's weights; the lowest layer is 0."""
        return ()

    @classmethod
    @abstractmethod
    def of(cls, settings: EncoderSettings, input_size: int) -> Encoder:
        """An encoder with these settings and fresh weights, for steps of this width."""

    @staticmethod
    @abstractmethod
    def describe(settings: EncoderSettings) -> str:
        """A short description: "2 × LSTM of 200"."""

    @abstractmethod
    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """y (time, batch, output_size) and final (batch, final_size) of x (time, batch, input)."""


class RecurrentEncoder(Encoder):
    """Layers of any cell. final: the end states h of the "top" layer, both directions concatenated,
    or of "all" layers, lowest first."""

    keys = (
        "cell",
        "hidden_size",
        "bidirectional",
        "backward_start",
        "directions",
        "initial_state",
        "output_layers",
    )

    @staticmethod
    def layer(number: int) -> tuple[str, ...]:
        ways = ("recurrent.forwards", "recurrent.backwards", "from_right.forwards")
        return tuple(f"{way}.{number}." for way in ways)

    def __init__(
        self,
        input_size: int,
        *,
        cell: Cell | str,
        hidden_size: int,
        num_layers: int = 1,
        bidirectional: bool = False,
        backward_start: str = "zero",
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        initial: str = "zero",
        init: str = "standard",
        output_layers: bool = False,
        final: str = "top",
        engine: str = "auto",
    ) -> None:
        super().__init__()
        check_rates({"recurrent_dropout": recurrent_dropout})
        if final not in FINALS:
            raise unknown("final", final, FINALS)
        cell_of_layer = as_cell(cell)
        self.recurrent = Recurrent(
            RecurrentDropout(cell_of_layer, recurrent_dropout)
            if recurrent_dropout
            else cell_of_layer,
            input_size,
            hidden_size,
            num_layers,
            bidirectional=bidirectional,
            backward_start=backward_start,
            dropout=dropout,
            initial=initial,
            init=init,
            output_layers=output_layers,
            engine=engine,
        )
        ways = self.recurrent.ways
        self.last = len(ways) if final == "all" else 1 + bidirectional
        self.output_size = self.recurrent.output_size
        self.final_size = sum(way.state_sizes[0] for way in ways[-self.last :])

    @classmethod
    def of(cls, settings: EncoderSettings, input_size: int) -> Encoder:
        if settings.bidirectional and settings.directions == "apart":
            return TwoWayEncoder.of(settings, input_size)
        return cls(
            input_size,
            cell=cell_of(settings),
            hidden_size=settings.hidden_size,
            num_layers=settings.layers,
            bidirectional=settings.bidirectional,
            backward_start=settings.backward_start,
            dropout=settings.dropout_layers,
            initial=settings.initial_state,
            init=settings.init,
            output_layers=settings.output_layers,
            final=settings.final_states,
        )

    @staticmethod
    def describe(settings: EncoderSettings) -> str:
        both = "two-way " if settings.directions == "apart" else "bidirectional "
        ways = both if settings.bidirectional else ""
        return f"{settings.layers} × {ways}{settings.cell} of {settings.hidden_size}"

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        y, state = self.recurrent(x, lengths=lengths)
        return y, self.final(state)

    def final(self, state: tuple[State, ...]) -> Tensor:
        """(batch, final_size) from the end state of the layers."""
        return torch.cat([parts[0] for parts in state[-self.last :]], -1)


class TwoWayEncoder(Encoder):
    """Two stacks of layers that are joined only at the top, like a forward and a backward language
    model:

    y_t = [l_t; r_t], l = layers(x_1[:h] … x_t[:h]), r = layers'(x_n[h:] … x_t[h:])

    h is half of a step's numbers: the word vectors of the first stack come before those of the
    second. final: the end states of the top layers, or of all layers; the forward stack comes
    first."""

    def __init__(self, left: RecurrentEncoder, right: RecurrentEncoder) -> None:
        super().__init__()
        self.recurrent, self.from_right = left.recurrent, right.recurrent
        self.last = left.last
        self.output_size = left.output_size + right.output_size
        self.final_size = left.final_size + right.final_size

    @classmethod
    def of(cls, settings: EncoderSettings, input_size: int) -> TwoWayEncoder:
        if input_size % 2:
            raise OptionError(
                "model.directions = apart: each direction reads half of a step's numbers; expected "
                f"an even number of them, got {input_size}"
            )
        one_way = settings.model_copy(update={"bidirectional": False})
        left, right = (RecurrentEncoder.of(one_way, input_size // 2) for _ in range(2))
        assert isinstance(left, RecurrentEncoder)
        assert isinstance(right, RecurrentEncoder)
        return cls(left, right)

    @staticmethod
    def describe(settings: EncoderSettings) -> str:
        return RecurrentEncoder.describe(settings)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        lengths = lengths.cpu()
        left, right = x.chunk(2, -1)
        ahead, ends = self.recurrent(left, lengths=lengths)
        back, starts = self.from_right(reverse_time(right, lengths), lengths=lengths)
        y = torch.cat([ahead, reverse_time(back, lengths)], -1)
        return y, torch.cat(
            [parts[0] for states in (ends, starts) for parts in states[-self.last :]], -1
        )


class PlainEncoder(Encoder):
    """Returns the steps unchanged; final is the last real step, zero for an empty row."""

    def __init__(self, input_size: int) -> None:
        super().__init__()
        self.output_size = self.final_size = input_size

    @classmethod
    def of(cls, settings: EncoderSettings, input_size: int) -> PlainEncoder:
        return cls(input_size)

    @staticmethod
    def describe(settings: EncoderSettings) -> str:
        return "no encoder"

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        y = x * step_mask(lengths.to(x.device), x.shape[0])[..., None]
        return y, _last(y, lengths)


def bridge(width: int, other: int) -> nn.Module:
    """A linear map without bias between two widths; the identity if they are equal."""
    return nn.Identity() if width == other else nn.Linear(width, other, bias=False)


class TransformerEncoder(Encoder):
    """Blocks of self-attention: y = blocks(LN(W·x + b) + positions); final is y at the last real
    step, zero for an empty row.

    The norm brings features of any scale, such as word vectors or measurements, to the scale of the
    sinusoids. Padding is never attended to. dropout: dropout rate of the first sum and of each
    sublayer."""

    keys = ("hidden_size", "heads", "inner_size", "norm", "causal", "context")
    entrance = ("enter.", "scale.")

    @staticmethod
    def layer(number: int) -> tuple[str, ...]:
        return (f"blocks.layers.{number}.",)

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

    @classmethod
    def of(cls, settings: EncoderSettings, input_size: int) -> Encoder:
        if settings.causal:
            return CausalTransformerEncoder.of(settings, input_size)
        return cls(
            input_size,
            width=settings.hidden_size,
            heads=settings.heads,
            num_layers=settings.layers,
            inner=settings.inner_size,
            norm=settings.norm,
            dropout=settings.dropout_layers,
            dropout_attention=settings.dropout_attention,
        )

    @staticmethod
    def describe(settings: EncoderSettings) -> str:
        causal = "causal " if settings.causal else ""
        width, heads = settings.hidden_size, settings.heads
        return f"{settings.layers} × {causal}transformer of {width}, {heads} heads"

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        x = dropped(placed(self.scale(self.enter(x))), self.dropout, self.training)
        y: Tensor = self.blocks(x, lengths)
        return y, _last(y, lengths)


class CausalTransformerEncoder(Encoder):
    """The encoder of a Transformer language model: y = blocks(√width·W·x + positions). A step
    attends to itself and to the context − 1 steps before it; positions are modulo `context`.
    Weights have the names of the language model; there is no W if x has the width of the blocks."""

    def __init__(self, input_size: int, design: Design, layers: int, context: int) -> None:
        super().__init__()
        self.width, self.dropout = design.width, design.dropout
        self.enter = bridge(input_size, design.width)
        self.blocks = CausalBlocks(layers, design, context)
        self.output_size = self.final_size = design.width

    @classmethod
    def of(cls, settings: EncoderSettings, input_size: int) -> CausalTransformerEncoder:
        design = Design(
            settings.hidden_size,
            settings.heads,
            settings.inner_size,
            settings.norm,
            settings.dropout_layers,
            settings.dropout_attention,
        )
        return cls(input_size, design, settings.layers, settings.context)

    @staticmethod
    def describe(settings: EncoderSettings) -> str:
        return TransformerEncoder.describe(settings)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        x = placed(self.enter(x) * math.sqrt(self.width), 0, self.blocks.context)
        x = dropped(x, self.dropout, self.training)
        nothing = x.new_zeros(x.shape[1], 0, 2 * self.width)
        y, _ = self.blocks(x, (nothing,) * len(self.blocks.layers))
        y = y * step_mask(lengths.to(y.device), y.shape[0])[..., None]
        return y, _last(y, lengths)


class ConvolutionEncoder(Encoder):
    """Gated convolutions over the steps: y = layers(W·x + b). Each step sees its neighbours,
    `convolutions.field` steps in all; final is y at the last real step, zero for an empty row.

    size, dilated: see `GatedConvolutions`. Padding is not read. causal: later steps are not read
    either; as in a convolutional language model there is no b, and no W if x has the width of the
    layers."""

    keys = ("hidden_size", "filter_size", "dilated", "causal")
    entrance = ("enter.",)

    @staticmethod
    def layer(number: int) -> tuple[str, ...]:
        return (f"convolutions.layers.{number}.", f"convolutions.norms.{number}.")

    def __init__(
        self,
        input_size: int,
        *,
        width: int,
        num_layers: int = 1,
        size: int = 3,
        dilated: bool = False,
        causal: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.enter = bridge(input_size, width) if causal else nn.Linear(input_size, width)
        self.convolutions = GatedConvolutions(
            width, num_layers, size, dilated=dilated, causal=causal, dropout=dropout
        )
        self.output_size = self.final_size = width

    @classmethod
    def of(cls, settings: EncoderSettings, input_size: int) -> ConvolutionEncoder:
        return cls(
            input_size,
            width=settings.hidden_size,
            num_layers=settings.layers,
            size=settings.filter_size,
            dilated=settings.dilated,
            causal=settings.causal,
            dropout=settings.dropout_layers,
        )

    @staticmethod
    def describe(settings: EncoderSettings) -> str:
        field = field_of(settings.layers, settings.filter_size, settings.dilated)
        causal = "causal " if settings.causal else ""
        width = settings.hidden_size
        return f"{settings.layers} × {causal}convolution of {width}, {field} steps seen"

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        y: Tensor = self.convolutions(self.enter(x), lengths)
        return y, _last(y, lengths)


def _last(y: Tensor, lengths: Tensor) -> Tensor:
    """(batch, width) of y (time, batch, width): at each row's last real step."""
    return (y * step_mask(lengths.to(y.device), y.shape[0], first=-1)[..., None]).sum(0)


ENCODERS: dict[str, type[Encoder]] = {
    "recurrent": RecurrentEncoder,
    "plain": PlainEncoder,
    "transformer": TransformerEncoder,
    "convolution": ConvolutionEncoder,
}


def encoder_of(settings: EncoderSettings, input_size: int) -> Encoder:
    """The encoder of these settings, with fresh weights, for steps of this width."""
    return ENCODERS[settings.encoder].of(settings, input_size)
