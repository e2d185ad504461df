"""How a row of the table of laws is run: one face for cells, layers, drop-ins and trees.

Tensors are (time, batch, features). A state is a flat tuple of (batch, features), the parts of
each layer and direction in turn, whatever structure the layer itself wants it in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ensue.cells import Cell
from ensue.layers import Recurrent, Recursive
from ensue.layers.dropin import DropIn

State = tuple[Tensor, ...]
Masks = tuple[dict[str, Tensor] | None, ...]
Tensors = Mapping[str, Tensor]


class CannotRun(Exception):
    """The subject offers no such thing."""


# --- what goes in and comes out ----------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """x (time, batch, input), the initial state (None: the subject's own), masks (None: drawn
    by the subject), lengths (None: all rows are full)."""

    x: Tensor
    state: State | None
    masks: Masks | None
    lengths: Tensor | None = None

    def of_lengths(self, *lengths: int) -> Data:
        return replace(self, lengths=torch.tensor(lengths, dtype=torch.int64))

    def rows(self, rows: slice) -> Data:
        """Some rows of the batch."""
        return Data(
            self.x[:, rows],
            None if self.state is None else tuple(s[rows] for s in self.state),
            self._each_mask(lambda m: m[..., rows, :]),
            None if self.lengths is None else self.lengths[rows],
        )

    def steps(self, first: int, last: int) -> Data:
        """Steps first to last, last not included."""
        lengths = self.lengths
        if lengths is not None:
            lengths = (lengths - first).clamp(0, max(0, min(last, len(self.x)) - first))
        masks = self._each_mask(lambda m: m[first:last] if m.dim() == 3 else m)
        return replace(self, x=self.x[first:last], masks=masks, lengths=lengths)

    def padded(self, steps: int) -> Data:
        """With more steps at the end, which lengths must leave out."""

        def longer(v: Tensor) -> Tensor:
            return torch.cat([v, v.new_ones(steps, *v.shape[1:])])

        masks = self._each_mask(lambda m: longer(m) if m.dim() == 3 else m)
        return replace(self, x=longer(self.x), masks=masks)

    def filled(self, value: float) -> Data:
        """With this value in the padding of x."""
        real = torch.arange(len(self.x))[:, None] < self.lengths
        return replace(self, x=self.x.masked_fill(~real[:, :, None], value))

    def to(self, dtype: torch.dtype) -> Data:
        state = None if self.state is None else tuple(s.to(dtype) for s in self.state)
        masks = self._each_mask(lambda m: m.to(dtype))
        return replace(self, x=self.x.to(dtype), state=state, masks=masks)

    def _each_mask(self, change: Callable[[Tensor], Tensor]) -> Masks:
        assert self.masks is not None
        return tuple(m and {name: change(v) for name, v in m.items()} for m in self.masks)


class Result(NamedTuple):
    """Outputs (time, batch, features) and the final state; or weights of a cost by both."""

    y: Tensor
    final: State

    def rows(self, rows: slice) -> Result:
        return Result(self.y[:, rows], tuple(s[rows] for s in self.final))

    def steps(self, steps: int) -> Result:
        return Result(self.y[:steps], self.final)

    def to(self, dtype: torch.dtype) -> Result:
        return Result(self.y.to(dtype), tuple(s.to(dtype) for s in self.final))


def random_like(v: Tensor, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(v.shape, generator=generator, dtype=v.dtype)


def weights_of(result: Result) -> Result:
    """Weights of a cost that uses every output and every part of the final state."""
    y, *final = (random_like(v, 100 + k) for k, v in enumerate((result.y, *result.final)))
    return Result(y, tuple(final))


def cost(result: Result, weights: Result) -> Tensor:
    pairs = list(zip((result.y, *result.final), (weights.y, *weights.final), strict=True))
    assert all(v.shape == w.shape for v, w in pairs), "outputs of another shape than foreseen"
    return sum((v * w).sum() for v, w in pairs)


# --- the subjects ------------------------------------------------------------------------


class Subject(ABC):
    """A module, and what a law needs to know of it."""

    takes_state = True

    def __init__(self, module: nn.Module, input_size: int) -> None:
        self.module, self.input_size = module, input_size

    @abstractmethod
    def run(self, data: Data, parameters: Tensors | None = None) -> Result:
        """Over the data; with other tensors in the place of its parameters if they are given."""

    @abstractmethod
    def state_sizes(self) -> list[int]:
        """Features of each part of the state that it takes."""

    def output_steps(self, steps: int) -> int:
        """The number of output steps for a number of input steps."""
        return steps

    def masks(self, time: int, batch: int) -> Masks:
        return ()

    def pieces(self, data: Data, size: int) -> Iterator[Result]:
        raise CannotRun("there are no pieces")

    def forward_gradients(self, data: Data, dy: Tensor) -> dict[str, Tensor]:
        """The gradients of Σ dy·y by RTRL."""
        raise CannotRun("there is no RTRL")

    def data(self, time: int, batch: int, with_state: bool, masked: bool) -> Data:
        """Random numbers; masks have fractions, so that a mask used as a condition shows."""
        x = random_like(torch.empty(time, batch, self.input_size, dtype=torch.float64), 1)
        state = None
        if with_state:
            shapes = (x.new_empty(batch, size) for size in self.state_sizes())
            state = tuple(0.7 * random_like(s, 10 + k) for k, s in enumerate(shapes))
        masks = self.masks(time, batch)
        return Data(x, state, masks if masked else (None,) * len(masks))


def random_mask(*shape: int, seed: int) -> Tensor:
    chosen = torch.randint(4, shape, generator=torch.Generator().manual_seed(seed))
    return torch.tensor([0.0, 0.3, 1.0, 1.5], dtype=torch.float64)[chosen]


class Sequences(Subject):
    """`Recurrent`."""

    module: Recurrent

    def _takes(self) -> list[bool]:
        """For each layer and direction: does it start from a state that is given?"""
        own_start = self.module.backward_start == "zero"
        return [own_start or not backward for backward in self._backward()]

    def _backward(self) -> list[bool]:
        return [self.module.bidirectional and k % 2 == 1 for k in range(len(self.module.ways))]

    def state_sizes(self) -> list[int]:
        pairs = zip(self.module.ways, self._takes(), strict=True)
        return [size for way, takes in pairs if takes for size in way.state_sizes]

    def output_steps(self, steps: int) -> int:
        return steps if self.module.max_length is None else self.module.max_length

    def masks(self, time: int, batch: int) -> Masks:
        masks_of_steps: list[dict[str, Tensor] | None] = []
        for number, way in enumerate(self.module.ways):
            widths = way.cell.widths(way.input_size, way.hidden_size)
            shapes = {
                name: (*((time,) if mask.over == "step" else ()), batch, widths[mask.size])
                for name, mask in way.cell.masks.items()
            }
            seeds = range(20 + 5 * number, 100)
            drawn = {
                name: random_mask(*shape, seed=seed)
                for (name, shape), seed in zip(shapes.items(), seeds, strict=False)
            }
            masks_of_steps.append(drawn or None)
        return tuple(masks_of_steps)

    def _nested(self, state: State | None) -> list[State | None] | None:
        if state is None:
            return None
        if len(state) != len(self.state_sizes()):
            raise CannotRun("the backward direction takes no state")
        rest, nested = list(state), []
        for way, takes in zip(self.module.ways, self._takes(), strict=True):
            count = len(way.cell.parts) if takes else 0
            nested.append(tuple(rest[:count]) if takes else None)
            rest = rest[count:]
        return nested

    def run(self, data: Data, parameters: Tensors | None = None) -> Result:
        options = {"lengths": data.lengths, "masks": data.masks}
        arguments = (data.x, self._nested(data.state))
        y, final = functional_call(self.module, dict(parameters or {}), arguments, options)
        return Result(y, tuple(part for parts in final for part in parts))

    def pieces(self, data: Data, size: int) -> Iterator[Result]:
        state = self._nested(data.state)
        for y, final in self.module.pieces(data.x, size, state, data.lengths):
            yield Result(y, tuple(part for parts in final for part in parts))

    def forward_gradients(self, data: Data, dy: Tensor) -> dict[str, Tensor]:
        learner = self.module.rtrl(data.x.shape[1], self._nested(data.state))
        sums: dict[str, Tensor] = {}
        assert len(dy) >= len(data.x), "fewer steps come out than go in"
        for t, x in enumerate(data.x):
            now = [m and {n: v[t] if v.dim() == 3 else v for n, v in m.items()} for m in data.masks]
            learner.step(x, now)
            for k, layer in enumerate(learner.gradient(dy[t])):
                for name, gradient in layer.items():
                    key = f"forwards.{k}.{name}"
                    sums[key] = sums.get(key, 0) + gradient
        return sums


class TorchLike(Subject):
    """`RNN`, `GRU` and `LSTM`: the state is one tensor a part, layers and directions first."""

    module: DropIn

    def _ways(self) -> int:
        return self.module.num_layers * (1 + self.module.bidirectional)

    def state_sizes(self) -> list[int]:
        return [self.module.hidden_size] * (self._ways() * len(self.module.cell.parts))

    def run(self, data: Data, parameters: Tensors | None = None) -> Result:
        parts, hx = len(self.module.cell.parts), None
        if data.state is not None:
            stacked = tuple(torch.stack(data.state[k::parts]) for k in range(parts))
            hx = stacked if parts > 1 else stacked[0]
        options = {"lengths": data.lengths}
        y, final = functional_call(self.module, dict(parameters or {}), (data.x, hx), options)
        final = final if parts > 1 else (final,)
        return Result(y, tuple(part[k] for k in range(self._ways()) for part in final))


class Trees(Subject):
    """`Recursive`: row b of x holds the nodes of one tree, children before parents, and all
    trees are one forest; the final state is that of a tree's last node. Of a tree that is cut
    to a length only the first nodes stand, those without their parent as roots."""

    module: Recursive
    takes_state = False
    PARENT = (2, 2, 3, 5, 5, -1)

    def state_sizes(self) -> list[int]:
        return []

    def run(self, data: Data, parameters: Tensors | None = None) -> Result:
        if data.state:
            raise CannotRun("a tree starts from no state")
        time, batch, _ = data.x.shape
        lengths = torch.full((batch,), time) if data.lengths is None else data.lengths
        real = torch.arange(time)[:, None] < lengths  # (time, batch)
        number = torch.full((time, batch), -1)
        number[real] = torch.arange(int(real.sum()))
        parents = torch.full((time, batch), -1)
        for t, parent in enumerate(self.PARENT[:time]):
            if 0 <= parent < time:
                parents[t] = number[parent]  # −1 where the row ends before it
        leaves = (data.x[real], parents[real])
        y, state = functional_call(self.module, dict(parameters or {}), leaves)
        rows = lengths.nonzero()[:, 0]
        ends = number[lengths[rows] - 1, rows]
        return Result(
            y.new_zeros(time, batch, y.shape[1]).index_put((real,), y),
            tuple(s.new_zeros(batch, s.shape[1]).index_put((rows,), s[ends]) for s in state),
        )


def subject_of(built: Cell | nn.Module, input_size: int, hidden_size: int, seed: int) -> Subject:
    """The subject of what a row builds, in float64, with no parameter at a special value."""
    module = Recurrent(built, input_size, hidden_size) if isinstance(built, Cell) else built
    kinds = {Recurrent: Sequences, Recursive: Trees}
    for k, parameter in enumerate(module.double().parameters()):
        parameter.data = 0.5 * random_like(parameter, seed + k)
    return kinds.get(type(module), TorchLike)(module, input_size)
