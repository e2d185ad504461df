"""`Recurrent`: any cell, deep, in both directions, over sequences of any length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from ensue.cells import CELLS, Cell, OutputLayer, initialise
from ensue.cells.expression import cell_of_text
from ensue.cells.reference import CellReference
from ensue.engine.recurrence import State, Tensors
from ensue.engine.rows import check_lengths
from ensue.engine.rtrl import RTRL
from ensue.engine.run import NAMES
from ensue.errors import OptionError, ShapeError, check_rates, unknown
from ensue.layers.lengths import CUTS, refuse_lengths, to_length
from ensue.layers.stack import STARTS, Masks, Way, in_type, run_stack, sample_masks
from ensue.layers.stepper import Stepper


class OneWay(nn.Module):
    """The parameters of one cell: its declared parameters, and its initial state if this is
    learned."""

    def __init__(
        self, cell: Cell, input_size: int, hidden_size: int, init: str, learned_start: bool
    ) -> None:
        super().__init__()
        self.cell, self.init, self.learned_start = cell, init, learned_start
        self.input_size, self.hidden_size = input_size, hidden_size
        cell.read()
        self._sizes = cell.changes, cell.state_sizes(input_size, hidden_size)
        names = [*cell.parameters, *cell.masks, *(f"start_{part}" for part in cell.parts)]
        for name in names:
            if hasattr(self, name) or names.count(name) > 1:
                raise OptionError(
                    f"{type(cell).__name__}.{name}: the layer has a {name} of its own; "
                    "give the parameter another name"
                )
        for name, shape in cell.shapes(input_size, hidden_size).items():
            self.register_parameter(name, nn.Parameter(torch.empty(shape)))
        if learned_start:
            for part, size in zip(cell.parts, self.state_sizes, strict=True):
                self.register_parameter(f"start_{part}", nn.Parameter(torch.zeros(size)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        initialise(self.cell.parameters, self.way().parameters, self.init, self.hidden_size)

    @property
    def state_sizes(self) -> tuple[int, ...]:
        changes, sizes = self._sizes
        if changes == self.cell.changes:
            return sizes
        return self.cell.state_sizes(self.input_size, self.hidden_size)

    @property
    def dtype(self) -> torch.dtype:
        """The type of the parameters."""
        parameter = next(iter(self._parameters.values()), None)
        return next(self.parameters()).dtype if parameter is None else parameter.dtype

    def way(self) -> Way:
        parameters = self._parameters  # a parametrisation may have replaced some
        tensors = {
            n: parameters[n] if n in parameters else getattr(self, n) for n in self.cell.parameters
        }
        return Way(self.cell, cast(Tensors, tensors))

    @property
    def starts(self) -> Tensors:
        """The learned initial values of the parts of the state, by name; empty if they are zero."""
        names = [f"start_{part}" for part in self.cell.parts] if self.learned_start else []
        return {name: getattr(self, name) for name in names}

    def start(self, x: Tensor) -> State:
        """The state before the first step, for the rows of x (time, batch, input)."""
        if self.learned_start:
            return tuple(start.expand(x.shape[1], -1) for start in self.starts.values())
        return tuple(x.new_zeros(x.shape[1], size) for size in self.state_sizes)

    def extra_repr(self) -> str:
        return type(self.cell).__name__


class Recurrent(nn.Module):
    """Layers of a cell over sequences.

    x is (time, batch, input), or (batch, time, input) with `batch_first`. Returns y with the
    features of the last layer (both directions concatenated) and the state: a tuple with one
    entry for each layer and direction (layer 0 forward, layer 0 backward, layer 1 forward, …),
    each a tuple of the cell's parts, (batch, features). Feed it back to continue.

    cell: a Cell, its name, or one Cell for each layer.
    backward_start: initial state of the backward direction — "zero", "forward_end" (the forward
    direction's end state) or "shared_end" (its state at the last step is the forward one). Only
    "zero" uses a backward state that is passed in or learned.
    dropout: between layers; weight_dropout: of single entries of the matrices that multiply the
    state, the same for all rows and steps of a call.
    initial: "zero" or "learned". output_layers: an `OutputLayer`, V·h + d, between each two layers.
    max_length: cut (at the "end" or "start") or pad x to it.
    engine: "auto", or one of ensue.engine.ENGINES by name.

    >>> layer = Recurrent("GRU", 8, 16, num_layers=2)
    >>> y, state = layer(torch.zeros(5, 3, 8), lengths=torch.tensor([5, 2, 0]))
    >>> y.shape, len(state), state[0][0].shape
    (torch.Size([5, 3, 16]), 2, torch.Size([3, 16]))
    """

    def __init__(
        self,
        cell: Cell | str | Sequence[Cell | str],
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        bidirectional: bool = False,
        backward_start: str = "zero",
        dropout: float = 0.0,
        weight_dropout: float = 0.0,
        batch_first: bool = False,
        initial: str = "zero",
        init: str = "standard",
        output_layers: bool = False,
        max_length: int | None = None,
        cut: str = "end",
        engine: str = "auto",
    ) -> None:
        super().__init__()
        cells = _cells(cell, num_layers)
        if output_layers:
            cells = [*map(OutputLayer, cells[:-1]), cells[-1]]
        _check(input_size, hidden_size, initial, backward_start, engine)
        check_rates({"dropout": dropout, "weight_dropout": weight_dropout})
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, len(cells)
        self.bidirectional, self.backward_start = bidirectional, backward_start
        self.dropout, self.weight_dropout = dropout, weight_dropout
        self.batch_first, self.engine = batch_first, engine
        if cut not in CUTS:
            raise unknown("cut", cut, CUTS)
        if max_length is not None and max_length < 0:
            raise OptionError(f"max_length: expected a number ≥ 0, got {max_length}")
        self.max_length, self.cut = max_length, cut
        self.forwards, self.backwards = nn.ModuleList(), nn.ModuleList()
        width = input_size
        for c in cells:
            outputs = c.equations(width, hidden_size).output.width
            for ways in (self.forwards, self.backwards)[: 1 + bidirectional]:
                ways.append(OneWay(c, width, hidden_size, init, initial == "learned"))
            width = outputs * (1 + bidirectional)
        self.output_size = width

    def reset_parameters(self) -> None:
        for way in self.ways:
            way.reset_parameters()

    @property
    def ways(self) -> list[OneWay]:
        """One entry for each layer and direction, in the order of the state."""
        forwards, backwards = (
            cast(Iterable[OneWay], self._modules[name]._modules.values())  # type: ignore[union-attr]
            for name in ("forwards", "backwards")
        )
        if not self.bidirectional:
            return list(forwards)
        return [way for pair in zip(forwards, backwards, strict=True) for way in pair]

    def forward(
        self,
        x: Tensor,
        state: Sequence[State | None] | None = None,
        lengths: Tensor | None = None,
        masks: Sequence[Masks | None] | None = None,
    ) -> tuple[Tensor, tuple[State, ...]]:
        """The layer over x. masks: one for each layer and direction; None: drawn here in
        training."""
        refuse_lengths(state, "state")
        ways = self.ways
        x, lengths = self._entering(ways, x, lengths)
        if masks is None:
            masks = self._masks(ways, x)
        y, final = self._run(ways, x, state, lengths, masks)
        return y.transpose(0, 1) if self.batch_first else y, final

    if TYPE_CHECKING:
        __call__ = forward

    def _entering(
        self, ways: Sequence[OneWay], x: Tensor, lengths: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """x (time, batch, input), cut or padded to `max_length` if that is set, and its checked
        lengths."""
        _check_input(x, self.input_size)
        x = in_type("x", x, ways[0].dtype)
        x = x.transpose(0, 1) if self.batch_first else x
        if self.max_length is not None:
            return to_length(x, lengths, self.max_length, self.cut)
        return x, check_lengths(lengths, x.shape[0], x.shape[1])

    def _run(
        self,
        ways: Sequence[OneWay],
        x: Tensor,
        state: Sequence[State | None] | None,
        lengths: Tensor | None,
        masks: Sequence[Masks | None],
    ) -> tuple[Tensor, tuple[State, ...]]:
        """All layers over x (time, batch, input)."""
        directions = 1 + self.bidirectional
        weights = [w.way().thinned(self.weight_dropout * self.training) for w in ways]
        layers = [weights[k : k + directions] for k in range(0, len(weights), directions)]
        y, final = run_stack(
            layers,
            x,
            _states(ways, state, x),
            lengths,
            masks,
            self.engine,
            self.dropout if self.training else 0.0,
            self.backward_start,
        )
        return y, tuple(final)

    def _masks(self, ways: Sequence[OneWay], x: Tensor) -> Sequence[Masks | None]:
        return _drawn(ways, x) if self.training else [None] * len(ways)

    def sample_masks(self, x: Tensor) -> list[Masks | None]:
        """Masks for x (time, batch, input), one entry for each layer and direction."""
        return _drawn(self.ways, x)

    def masks_at(self, masks: Sequence[Masks | None], at: int, size: int = 1) -> list[Masks | None]:
        """The masks of `size` steps, starting at step `at`."""
        return [_slice_masks(w.cell, m, at, size) for w, m in zip(self.ways, masks, strict=True)]

    # ---------------------------------------------------------------- other ways to run it
    def pieces(
        self,
        x: Tensor,
        size: int,
        state: Sequence[State | None] | None = None,
        lengths: Tensor | None = None,
    ) -> Iterator[tuple[Tensor, tuple[State, ...]]]:
        """Truncated BPTT: (y, state) of consecutive pieces of `size` steps.

        The state is carried from piece to piece and detached between them, so that a backward
        pass stays inside its piece. Masks over a sequence are drawn once."""
        self._one_direction("pieces")
        if size < 1:
            raise OptionError(f"size: expected a number of steps ≥ 1, got {size}")
        ways = self.ways
        x, lengths = self._entering(ways, x, lengths)
        masks = self._masks(ways, x)
        for at in range(0, x.shape[0], size):
            piece = x[at : at + size]
            rest = None if lengths is None else (lengths - at).clamp(0, piece.shape[0])
            masks_of_piece = self.masks_at(masks, at, size)
            y, new = self._run(ways, piece, state, rest, masks_of_piece)
            yield y.transpose(0, 1) if self.batch_first else y, new
            state = detach(new)

    def rtrl(self, batch: int, state: Sequence[State] | None = None) -> RTRL:
        """Exact forward-time gradients of this layer, for `batch` parallel streams. They include a
        learned initial state, unless `state` replaces it."""
        self._one_direction("RTRL")
        like = next(self.parameters()).new_zeros(1, batch, self.input_size)
        states = [None] * len(self.ways) if state is None else state
        begin = [s for s in _states(self.ways, state, like) if s is not None]
        starts = [w.starts if s is None else {} for w, s in zip(self.ways, states, strict=True)]
        return RTRL([w.way() for w in self.ways], begin, starts)

    def unfolded(self, length: int) -> str:
        """An SVG picture of this network unrolled over `length` steps."""
        from ensue.layers.unfold import unfold

        return unfold(self, length)

    def stepper(self, batch: int = 1) -> Stepper:
        """This layer one step at a time, for `batch` parallel streams: see `Stepper`."""
        self._one_direction("stepping")
        like = next(self.parameters()).new_zeros(1, batch, self.input_size)
        layers = [(*w.way(), w.input_size) for w in self.ways]
        return Stepper(layers, [w.start(like) for w in self.ways], batch)

    def _one_direction(self, what: str) -> None:
        if self.bidirectional:
            raise OptionError(f"{what}: a bidirectional layer needs the whole sequence at once")

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, batch_first={self.batch_first}"


def detach(state: Sequence[State]) -> tuple[State, ...]:
    """The same state, detached from the graph of autograd.

    >>> y, state = Recurrent("GRU", 8, 16)(torch.zeros(5, 3, 8))
    >>> detach(state)[0][0].requires_grad
    False
    """
    return tuple(tuple(part.detach() for part in parts) for parts in state)


def _drawn(ways: Sequence[OneWay], x: Tensor) -> list[Masks | None]:
    return [sample_masks(w.cell, w.input_size, w.hidden_size, x) for w in ways]


def _slice_masks(cell: Cell, masks: Masks | None, at: int, size: int) -> Masks | None:
    if masks is None:
        return None
    over = {name: mask.over for name, mask in cell.masks.items()}
    return {n: m[at : at + size] if over[n] == "step" else m for n, m in masks.items()}


def as_cell(cell: object) -> Cell:
    """The cell itself, or the built-in one of that name."""
    if isinstance(cell, CellReference):
        return cell.ready()
    if isinstance(cell, str):
        return CELLS[cell]() if cell in CELLS else cell_of_text(cell)
    if isinstance(cell, type) and issubclass(cell, Cell):
        raise OptionError(f"cell: expected a cell, got the class; write {cell.__name__}()")
    if not isinstance(cell, Cell):
        raise OptionError(f"cell: expected a Cell such as LSTM(), or its name, got {cell!r}")
    return cell


def _states(
    ways: Sequence[OneWay], state: Sequence[State | None] | None, x: Tensor
) -> list[State | None]:
    """The initial states: `state` if it is given, else each cell's start."""
    if state is None:
        return [way.start(x) for way in ways]
    if len(state) != len(ways):
        raise ShapeError(
            f"state: expected {len(ways)} entries, one for each layer and direction, "
            f"got {len(state)}"
        )
    states: list[State | None] = []
    for k, (way, state_of_way) in enumerate(zip(ways, state, strict=True)):
        if state_of_way is None:
            states.append(way.start(x))
            continue
        parts = (state_of_way,) if isinstance(state_of_way, Tensor) else tuple(state_of_way)
        expected = [(x.shape[1], n) for n in way.state_sizes]
        if [tuple(p.shape) for p in parts] != expected:
            shapes = [tuple(p.shape) for p in parts]
            raise ShapeError(
                f"state[{k}]: expected {', '.join(way.cell.parts)} of shapes {expected} "
                f"(batch, features), got {shapes}"
            )
        states.append(tuple(in_type(f"state[{k}]", p, way.dtype) for p in parts))
    return states


def _cells(cell: Cell | str | Sequence[Cell | str], num_layers: int) -> list[Cell]:
    """One cell for each layer."""
    if not isinstance(num_layers, int) or num_layers < 1:
        raise OptionError(f"num_layers: expected a whole number ≥ 1, got {num_layers!r}")
    if not isinstance(cell, (list, tuple)):
        return [as_cell(cell)] * num_layers
    if not cell or num_layers not in (1, len(cell)):
        raise OptionError(f"num_layers: {len(cell)} cells are given, got {num_layers}")
    return [as_cell(c) for c in cell]


def _check(input_size: int, hidden_size: int, initial: str, start: str, engine: str) -> None:
    for name, size in {"input_size": input_size, "hidden_size": hidden_size}.items():
        if not isinstance(size, Integral) or isinstance(size, bool) or size < 1:
            raise OptionError(f"{name}: expected a whole number ≥ 1, got {size!r}")
    for what, name, known in (
        ("initial state", initial, ("zero", "learned")),
        ("backward start", start, STARTS),
        ("engine", engine, NAMES),
    ):
        if name not in known:
            raise unknown(what, name, known)


def _check_input(x: Tensor, input_size: int) -> None:
    if not isinstance(x, Tensor):
        packed = ": unpack it, and give its lengths by name, lengths=" * hasattr(x, "batch_sizes")
        raise ShapeError(f"x: expected a torch tensor, got {type(x).__name__}{packed}")
    if x.dim() != 3 or x.shape[2] != input_size:
        alone = "; one sequence alone is x.unsqueeze(1) (or unsqueeze(0) with batch_first)"
        raise ShapeError(
            f"x: expected 3 axes, the last with {input_size} features, got {tuple(x.shape)}"
            + alone * (x.dim() < 3)
        )
