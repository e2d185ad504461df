"""The eager engine: the one time loop, over any cell, on torch tensors. The reference.

Tensors are (time, batch, features); state is a tuple of (batch, features), one a part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from ensue.cells import Cell, as_tuple
from ensue.engine.rows import Rows
from ensue.errors import OptionError

State = tuple[Tensor, ...]
Tensors = Mapping[str, Tensor]


def sort_masks(cell: Cell, masks: Tensors | None, rows: Rows) -> dict[str, Tensor] | None:
    """The masks with rows in the order in which they run."""
    if masks is None:
        return None
    axis = {name: 0 if mask.over == "sequence" else 1 for name, mask in cell.masks.items()}
    return {name: rows.sort(masks[name], axis[name]) for name in axis}


def masks_at(cell: Cell, masks: Tensors | None, t: int, alive: int) -> dict[str, Tensor] | None:
    """The masks of one step, for the rows that are alive."""
    if masks is None:
        return None
    return {
        name: masks[name][:alive] if mask.over == "sequence" else masks[name][t, :alive]
        for name, mask in cell.masks.items()
    }


def one_step(bound: Any, x: Tensor, state: Sequence[Tensor], width: int) -> tuple[Tensor, State]:
    """(output, new state), each with one value for every row and feature."""
    new = as_tuple(bound.step(x, *state))
    new = tuple(n.expand(s.shape) for n, s in zip(new, state, strict=True))
    y: Tensor = bound.output(x, *new)
    return y.expand(x.shape[0], width), new


def steps(
    cell: Cell, parameters: Tensors, x: Tensor, state: State, rows: Rows, masks: Tensors | None
) -> Iterator[tuple[int, State, Tensor, State]]:
    """For each t: (rows alive, old state, output, new state), of sorted rows alive at t."""
    width = cell.equations(
        x.shape[2], hidden_size(cell, parameters), masks is not None
    ).output.width
    steady = masks is None or all(m.over == "sequence" for m in cell.masks.values())
    frames = x.unbind(0)  # indexing x in the loop would make a gradient of its size at each step
    bound, bound_rows = None, -1
    for t, alive in enumerate(rows.alive):
        if bound is None or not steady or alive != bound_rows:
            bound = cell.on_tensors(parameters, masks_at(cell, masks, t, alive))
            bound_rows = alive
        old = tuple(s[:alive] for s in state)
        y, state = one_step(bound, frames[t][:alive], old, width)
        yield alive, old, y, state


def eager(
    cell: Cell,
    parameters: Tensors,
    x: Tensor,
    state: State,
    lengths: Tensor | None = None,
    masks: Tensors | None = None,
) -> tuple[Tensor, State]:
    """Runs the cell over x: outputs (time, batch, features), zero beyond a row's end, and the
    state after each row's last real step."""
    rows = Rows.of(lengths, x.shape[0], x.shape[1])
    x, masks = rows.sort(x, 1), sort_masks(cell, masks, rows)
    state = tuple(rows.sort(s, 0) for s in state)
    outputs: list[Tensor] = []
    ended: list[State] = []  # states of rows that have ended, shortest rows first
    for alive, _, y, new in steps(cell, parameters, x, state, rows, masks):
        ended.append(tuple(s[alive:] for s in state))
        outputs.append(pad(y, (0, 0, 0, x.shape[1] - alive)))
        state = new
    final = tuple(torch.cat(parts[::-1]) for parts in zip(*ended, state, strict=True))
    y = torch.stack(outputs) if outputs else empty_output(cell, parameters, x, state)
    return rows.restore(y, 1), tuple(rows.restore(s, 0) for s in final)


def hidden_size(cell: Cell, parameters: Tensors) -> int:
    """The hidden size, read off the parameters."""
    for name, declared in cell.parameters.items():
        if declared.size == "hidden":
            return parameters[name].shape[0] // len(declared.gates)
    raise OptionError(
        f"{type(cell).__name__} declares no parameter of size hidden: its width cannot be read off "
        "them; give one Matrix or Vector the size hidden"
    )


def empty_output(cell: Cell, parameters: Tensors, x: Tensor, state: State) -> Tensor:
    """The output of no steps: that of a step with no rows, so that gradients (zeros) exist."""
    width = cell.equations(x.shape[2], hidden_size(cell, parameters)).output.width
    none = x.reshape(0, x.shape[2])
    y, _ = one_step(cell.on_tensors(parameters), none, [s[:0] for s in state], width)
    return y.reshape(0, x.shape[1], width)
