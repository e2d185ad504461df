"""The exported form of a layer: its cells in evaluation mode, and their parameters as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.cells import Cell
from ensue.equations import Equations
from ensue.errors import OptionError
from ensue.export.weights import Weights
from ensue.layers.dropin import DropIn
from ensue.layers.recurrent import OneWay, Recurrent

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Direction:
    """One cell in one direction: its equations, its parameters by name, and its initial state,
    (features,) for each part."""

    equations: Equations
    weights: Weights
    start: tuple[Floats, ...]

    @property
    def parts(self) -> dict[str, int]:
        """The number of features of each part of the state."""
        return {part: node.width for part, node in self.equations.old.items()}

    @property
    def state_size(self) -> int:
        return sum(self.parts.values())

    @property
    def input_size(self) -> int:
        return self.equations.x.width

    @property
    def output_size(self) -> int:
        return self.equations.output.width


@dataclass(frozen=True)
class Stack:
    """Layers of one or two directions each.

    backward_start, max_length, cut: as in `Recurrent`."""

    title: str
    layers: tuple[tuple[Direction, ...], ...]
    backward_start: str = "zero"
    max_length: int | None = None
    cut: str = "end"

    @property
    def directions(self) -> list[Direction]:
        """One entry for each layer and direction, in the order of the state."""
        return [direction for layer in self.layers for direction in layer]

    @property
    def one_way(self) -> bool:
        return all(len(layer) == 1 for layer in self.layers)

    @property
    def streams(self) -> bool:
        """Whether the stack can run one step at a time."""
        return self.one_way and self.max_length is None

    @property
    def input_size(self) -> int:
        return self.layers[0][0].input_size

    @property
    def output_size(self) -> int:
        return layer_width(self.layers[-1])

    @property
    def state_size(self) -> int:
        return sum(direction.state_size for direction in self.directions)

    @property
    def state_names(self) -> list[tuple[str, int]]:
        """A name and a number of features for each part of the state: h_0, c_0, h_1, …"""
        return [
            (f"{part}_{number}", width)
            for number, direction in enumerate(self.directions)
            for part, width in direction.parts.items()
        ]


def layer_width(layer: tuple[Direction, ...]) -> int:
    """The number of features of a layer's output, over both directions."""
    return sum(direction.output_size for direction in layer)


def stack_of(layer: Any, weights: str = "float32") -> Stack:
    """The exported form of a layer. weights: the kind in which its matrices are stored."""
    if isinstance(layer, Recurrent):
        return _of_recurrent(layer, weights)
    if isinstance(layer, DropIn):
        return _of_dropin(layer, weights)
    raise OptionError(
        f"export: expected a cell, a layer (Recurrent, RNN, GRU, LSTM, Recursive) or a fitted "
        f"model, got {type(layer).__name__}"
    )


def _of_recurrent(layer: Recurrent, weights: str) -> Stack:
    ways = [_direction(way, weights) for way in layer.ways]
    count = 1 + layer.bidirectional
    names = ", ".join(dict.fromkeys(type(way.cell).__name__ for way in layer.ways))
    return Stack(
        f"{layer.num_layers} × {'bidirectional ' * layer.bidirectional}{names}",
        tuple(tuple(ways[k : k + count]) for k in range(0, len(ways), count)),
        layer.backward_start,
        layer.max_length,
        layer.cut,
    )


def _direction(way: OneWay, weights: str) -> Direction:
    parameters = way.way().parameters
    if way.learned_start:
        start = [getattr(way, f"start_{part}") for part in way.cell.parts]
    else:
        start = [torch.zeros(size) for size in way.state_sizes]
    return direction_of(way.cell, parameters, way.input_size, way.hidden_size, start, weights)


def direction_of(
    cell: Cell,
    parameters: Any,
    input_size: int,
    hidden_size: int,
    start: list[Tensor],
    weights: str = "float32",
) -> Direction:
    equations = cell.equations(input_size, hidden_size, training=False)
    named = {name: numbers(value) for name, value in parameters.items()}
    return Direction(equations, Weights.of(named, weights), tuple(numbers(part) for part in start))


def _of_dropin(layer: DropIn, weights: str) -> Stack:
    width, layers = layer.input_size, []
    start = [torch.zeros(layer.hidden_size)] * len(layer.cell.parts)
    for ways in layer._ways():
        layers.append(
            tuple(
                direction_of(way.cell, way.parameters, width, layer.hidden_size, start, weights)
                for way in ways
            )
        )
        width = layer_width(layers[-1])
    name = type(layer).__name__
    return Stack(
        f"{layer.num_layers} × {'bidirectional ' * layer.bidirectional}{name}", tuple(layers)
    )


def numbers(value: Tensor | nn.Parameter) -> Floats:
    return np.ascontiguousarray(value.detach().cpu().numpy(), np.float32)
