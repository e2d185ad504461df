"""The engines by name."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from ensue.cells import Cell
from ensue.engine.bptt import explicit
from ensue.engine.eager import State, Tensors, eager
from ensue.errors import unknown

Engine = Callable[
    [Cell, Tensors, Tensor, State, Tensor | None, Tensors | None], tuple[Tensor, State]
]

ENGINES: dict[str, Engine] = {"auto": eager, "eager": eager, "bptt": explicit}


def run(
    cell: Cell,
    parameters: Tensors,
    x: Tensor,
    state: State,
    lengths: Tensor | None = None,
    masks: Tensors | None = None,
    engine: str = "auto",
) -> tuple[Tensor, State]:
    """The cell over x (time, batch, input): outputs (time, batch, features) and final state.

    Outputs beyond a row's end are zero, its final state is that of its last real step (the
    initial one for an empty row). `masks` are given in training; without them each mask is
    its expectation."""
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    return ENGINES[engine](cell, parameters, x, state, lengths, masks)
