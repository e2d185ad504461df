"""`RNN`, `GRU`, `LSTM`: drop-ins for torch.nn's with the same arguments, weights, layouts and
results.

Beyond torch.nn they take `lengths`, a plain integer tensor, instead of packed sequences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from ensue.cells import GRU as GRUCell
from ensue.cells import LSTM as LSTMCell
from ensue.cells import Cell, SimpleRNN
from ensue.engine.recurrence import State
from ensue.engine.rows import check_lengths
from ensue.errors import OptionError, ShapeError, unknown
from ensue.layers.lengths import refuse_lengths
from ensue.layers.stack import Way, in_type, run_stack

Sequences = TypeVar("Sequences", Tensor, PackedSequence)


class DropIn(nn.Module):
    """Shared code: torch.nn's parameters, and their conversion to a stack of cells."""

    gates: int
    cell: Cell
    weight_ih_l0: nn.Parameter

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if proj_size:
            raise OptionError(
                f"proj_size={proj_size}: projections are not supported; write the cell with "
                "`part_sizes`, or use torch.nn.LSTM"
            )
        if num_layers < 1 or not 0 <= dropout <= 1:
            raise OptionError(
                f"expected num_layers ≥ 1 and 0 ≤ dropout ≤ 1, got {num_layers} and {dropout}"
            )
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.cell.read()
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.engine = bidirectional, "auto"
        rows = self.gates * hidden_size
        for suffix, width in self._suffixes():
            shapes = {"weight_ih": (rows, width), "weight_hh": (rows, hidden_size)}
            if bias:
                shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}  # type: ignore[dict-item]
            for name, shape in shapes.items():
                tensor = torch.empty(shape, device=device, dtype=dtype)
                self.register_parameter(name + suffix, nn.Parameter(tensor))
        self.reset_parameters()

    def _suffixes(self) -> list[tuple[str, int]]:
        """("_l0", input size), ("_l0_reverse", …), … in torch's order."""
        ends = ("", "_reverse") if self.bidirectional else ("",)
        wide = self.hidden_size * len(ends)
        return [
            (f"_l{layer}{end}", wide if layer else self.input_size)
            for layer in range(self.num_layers)
            for end in ends
        ]

    def reset_parameters(self) -> None:
        bound = self.hidden_size**-0.5 if self.hidden_size > 0 else 0.0
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def flatten_parameters(self) -> None:
        """Does nothing; exists so that code written for torch.nn's layers works."""

    def _biases(self, ih: Tensor, hh: Tensor) -> dict[str, Tensor]:
        """The cell's biases from torch's two."""
        return {"b": ih + hh}

    def _ways(self) -> list[list[Way]]:
        """The one or two directions of each layer."""
        ways = []
        for suffix, _ in self._suffixes():
            W, U = getattr(self, "weight_ih" + suffix), getattr(self, "weight_hh" + suffix)
            zeros = W.new_zeros(W.shape[0])
            ih, hh = (getattr(self, f"bias_{k}{suffix}", zeros) for k in ("ih", "hh"))
            ways.append(Way(self.cell, {"W": W, "U": U, **self._biases(ih, hh)}))
        directions = 1 + self.bidirectional
        return [ways[k : k + directions] for k in range(0, len(ways), directions)]

    def _run(
        self,
        input: Sequences,
        hx: Tensor | tuple[Tensor, ...] | None,
        lengths: Tensor | None,
    ) -> tuple[Sequences, tuple[Tensor, ...]]:
        """Outputs in the input's form (packed, batch first, unbatched), and the state's parts."""
        y, final = self._any(input, self._parts(hx), lengths)
        return cast(Sequences, y), final

    def _any(
        self,
        input: Tensor | PackedSequence,
        state: tuple[Tensor, ...] | None,
        lengths: Tensor | None,
    ) -> tuple[Tensor | PackedSequence, tuple[Tensor, ...]]:
        if isinstance(input, PackedSequence):
            if lengths is not None:
                raise OptionError("lengths: a packed sequence already has lengths; pass only one")
            x, lengths = pad_packed_sequence(input)
            y, final = self._run_batch(x, state, lengths)
            return _packed_like(input, y, lengths), final
        if input.dim() not in (2, 3) or input.shape[-1] != self.input_size:
            raise ShapeError(
                f"input: expected (time, {self.input_size}) or 3 axes, the last with "
                f"{self.input_size} features, got {tuple(input.shape)}"
            )
        if input.dim() == 2:
            begin = None if state is None else tuple(s.unsqueeze(1) for s in state)
            y, final = self._run_batch(input.unsqueeze(1), begin, lengths)
            return y.squeeze(1), tuple(s.squeeze(1) for s in final)
        y, final = self._run_batch(
            input.transpose(0, 1) if self.batch_first else input, state, lengths
        )
        return y.transpose(0, 1) if self.batch_first else y, final

    def _parts(self, hx: Tensor | tuple[Tensor, ...] | None) -> tuple[Tensor, ...] | None:
        """The parts of the initial state: h, or h and c."""
        if hx is None:
            return None
        refuse_lengths(hx, "hx")
        parts = (hx,) if isinstance(hx, Tensor) else tuple(hx)
        if len(parts) != len(self.cell.parts):
            raise ShapeError(
                f"hx: expected {' and '.join(self.cell.parts)}, one tensor each, got {len(parts)}"
            )
        return parts

    def _run_batch(
        self, x: Tensor, state: tuple[Tensor, ...] | None, lengths: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """x (time, batch, input); the state's parts (layers·directions, batch, hidden)."""
        layers, dtype = self._ways(), self.weight_ih_l0.dtype
        x = in_type("input", x, dtype)
        count = self.num_layers * (1 + self.bidirectional)
        shape = (count, x.shape[1], self.hidden_size)
        parts = state if state is not None else tuple(x.new_zeros(shape) for _ in self.cell.parts)
        for name, part in zip(self.cell.parts, parts, strict=True):
            if tuple(part.shape) != shape:
                raise ShapeError(
                    f"initial {name}: expected (layers·directions, batch, hidden) = {shape}, "
                    f"got {tuple(part.shape)}"
                )
        parts = tuple(
            in_type(f"initial {name}", part, dtype)
            for name, part in zip(self.cell.parts, parts, strict=True)
        )
        begin: list[State] = list(zip(*(part.unbind(0) for part in parts), strict=True))
        lengths = check_lengths(lengths, x.shape[0], x.shape[1])
        between = self.dropout if self.training else 0.0
        y, final = run_stack(layers, x, begin, lengths, [None] * count, self.engine, between)
        return y, tuple(torch.stack(part) for part in zip(*final, strict=True))

    def extra_repr(self) -> str:
        sizes = f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}"
        return f"{sizes}, bidirectional={self.bidirectional}"


def _packed_like(sequence: PackedSequence, y: Tensor, lengths: Tensor) -> PackedSequence:
    """y (time, batch, features) packed with the order of the given sequence."""
    order = sequence.sorted_indices
    if order is not None:
        y, lengths = y.index_select(1, order), lengths[order.cpu()]
    data = pack_padded_sequence(y, lengths, enforce_sorted=True).data
    return PackedSequence(data, sequence.batch_sizes, order, sequence.unsorted_indices)


class OneState(DropIn):
    """Layers with the single state part h."""

    def forward(
        self,
        input: Sequences,
        hx: Tensor | None = None,
        lengths: Tensor | None = None,
    ) -> tuple[Sequences, Tensor]:
        y, (h,) = self._run(input, hx, lengths)
        return y, h

    if TYPE_CHECKING:
        __call__ = forward


class RNN(OneState):
    """torch.nn.RNN: h' = tanh or relu of W_ih·x + b_ih + W_hh·h + b_hh.

    >>> y, h = RNN(8, 16, nonlinearity="relu")(torch.zeros(5, 3, 8))
    >>> y.shape, h.shape
    (torch.Size([5, 3, 16]), torch.Size([1, 3, 16]))
    """

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise unknown("nonlinearity", nonlinearity, ("tanh", "relu"))
        self.cell = SimpleRNN(nonlinearity)
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            0,
            device,
            dtype,
        )
        self.nonlinearity = nonlinearity


class GRU(OneState):
    """torch.nn.GRU: reset after the product, as the cell `GRU`.

    >>> theirs, ours = torch.nn.GRU(8, 16), GRU(8, 16)
    >>> ours.load_state_dict(theirs.state_dict())
    <All keys matched successfully>
    """

    gates = 3
    cell = GRUCell()

    def _biases(self, ih: Tensor, hh: Tensor) -> dict[str, Tensor]:
        """The biases of reset and update gates are sums of torch's two biases; the biases of the
        candidate stay separate."""
        edge = 2 * self.hidden_size
        return {"b": torch.cat([ih[:edge] + hh[:edge], ih[edge:]]), "d": hh[edge:]}


class LSTM(DropIn):
    """torch.nn.LSTM without projections, as the cell `LSTM`.

    >>> y, (h, c) = LSTM(8, 16, num_layers=2)(torch.zeros(5, 3, 8))
    >>> y.shape, h.shape, c.shape
    (torch.Size([5, 3, 16]), torch.Size([2, 3, 16]), torch.Size([2, 3, 16]))
    """

    gates = 4
    cell = LSTMCell()

    def forward(
        self,
        input: Sequences,
        hx: tuple[Tensor, Tensor] | None = None,
        lengths: Tensor | None = None,
    ) -> tuple[Sequences, tuple[Tensor, Tensor]]:
        y, (h, c) = self._run(input, hx, lengths)
        return y, (h, c)

    if TYPE_CHECKING:
        __call__ = forward
