"""Encoders that read all steps at once: self-attention, and convolutions."""

from __future__ import annotations

import math

from torch import Tensor, nn
from torch.nn.functional import dropout as dropped

from ensue.layers.lengths import step_mask
from ensue.layers.positions import placed
from ensue.layers.sequence_convolution import GatedConvolutions, field_of
from ensue.layers.transformer import CausalBlocks, Design, EncoderBlocks
from ensue.tasks.blocks.encoder import Encoder, EncoderSettings, last_step


def bridge(width: int, other: int) -> nn.Module:
    """A linear map without bias between two widths; nothing where they are the same."""
    return nn.Identity() if width == other else nn.Linear(width, other, bias=False)


class TransformerEncoder(Encoder):
    """Blocks of self-attention: y = blocks(LN(W·x + b) + positions); final is y at the last real
    step, zero for an empty row.

    The norm gives features of any scale, word vectors as measurements, the scale of the
    sinusoids. Padding is never looked at. dropout: of the first sum and of each sublayer."""

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
        return y, last_step(y, lengths)


class CausalTransformerEncoder(Encoder):
    """What a Transformer language model computes: y = blocks(√width·W·x + positions), where a step
    looks at itself and the context − 1 steps before it; positions are counted modulo `context`.
    Its weights have the names of such a model's; W is missing where x is as wide as the blocks."""

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
        return y, last_step(y, lengths)


class ConvolutionEncoder(Encoder):
    """Gated convolutions over the steps: y = layers(W·x + b), each step seen with those around
    it, `convolutions.field` in all; final is y at the last real step, zero for an empty row.

    size, dilated: of the filters, as `GatedConvolutions` takes them. Nothing is seen of padding.
    causal: nor of later steps, and b is missing, W too where x is as wide as the layers, as in a
    language model of convolutions."""

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
        seen = field_of(settings.layers, settings.filter_size, settings.dilated)
        causal = "causal " if settings.causal else ""
        width = settings.hidden_size
        return f"{settings.layers} × {causal}convolution of {width}, {seen} steps seen"

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        y: Tensor = self.convolutions(self.enter(x), lengths)
        return y, last_step(y, lengths)
