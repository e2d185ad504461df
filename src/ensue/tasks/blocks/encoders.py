"""Encoders: what turns the vectors of a sequence's steps into features that know their context."""

from __future__ import annotations

import torch
from torch import Tensor

from ensue.cells import Cell, RecurrentDropout
from ensue.engine.recurrence import State
from ensue.engine.rows import reverse_time
from ensue.errors import OptionError, unknown
from ensue.layers.lengths import step_mask
from ensue.layers.recurrent import Recurrent, as_cell
from ensue.tasks.blocks.embeddings import check_rates
from ensue.tasks.blocks.encoder import (
    DROPOUT,
    Encoder,
    EncoderSettings,
    LayerSettings,
    last_step,
)
from ensue.tasks.blocks.parallel_encoders import ConvolutionEncoder, TransformerEncoder
from ensue.tasks.blocks.recurrent_layers import cell_of

__all__ = [
    "DROPOUT",
    "ENCODERS",
    "ConvolutionEncoder",
    "Encoder",
    "EncoderSettings",
    "LayerSettings",
    "PlainEncoder",
    "RecurrentEncoder",
    "TransformerEncoder",
    "TwoWayEncoder",
    "encoder_of",
]

FINALS = ("top", "all")


class RecurrentEncoder(Encoder):
    """Layers of any cell. final: the end states h of the "top" layer, both directions side by
    side, or of "all" layers, the lowest first."""

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
        own = as_cell(cell)
        self.recurrent = Recurrent(
            RecurrentDropout(own, recurrent_dropout) if recurrent_dropout else own,
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
        """(batch, final_size) of the state that the layers end in."""
        return torch.cat([parts[0] for parts in state[-self.last :]], -1)


class TwoWayEncoder(Encoder):
    """Two stacks of layers that meet at the top alone, as a forward and a backward language model:

        y_t = [l_t; r_t],  l = layers(x_1[:h] … x_t[:h]),  r = layers'(x_n[h:] … x_t[h:])

    h being half of a step's numbers: the word vectors of the one stand before those of the other.
    final: the end states of the top layers, or of all layers, those from the left first."""

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
        return y, torch.cat([parts[0] for own in (ends, starts) for parts in own[-self.last :]], -1)


class PlainEncoder(Encoder):
    """The steps as they are; final is the last real one, zero for an empty row."""

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
        return y, last_step(y, lengths)


ENCODERS: dict[str, type[Encoder]] = {
    "recurrent": RecurrentEncoder,
    "plain": PlainEncoder,
    "transformer": TransformerEncoder,
    "convolution": ConvolutionEncoder,
}


def encoder_of(settings: EncoderSettings, input_size: int) -> Encoder:
    """The one that the settings name, with fresh weights, for steps of that width."""
    return ENCODERS[settings.encoder].of(settings, input_size)
