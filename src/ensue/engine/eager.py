"""The eager engine: the one time loop, over any cell, on torch tensors. The reference.

Tensors are (time, batch, features); state is a tuple of tensors (batch, features), one for each
part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from ensue.cells.cell import Cell, as_tuple
from ensue.engine.recurrence import Recurrence, State, Tensors, hidden_size
from ensue.engine.rows import Rows

__all__ = ["State", "Tensors", "eager", "hidden_size", "one_step"]


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
    """(output, new state), each expanded to one value for every row and feature."""
    new = as_tuple(bound.step(x, *state))
    new = tuple(n.expand(s.shape) for n, s in zip(new, state, strict=True))
    y: Tensor = bound.output(x, *new)
    return y.expand(x.shape[0], width), new


def sort_rows(recurrence: Recurrence) -> tuple[Recurrence, Rows]:
    """The recurrence with its rows in the order in which they run, longest first; and that
    order."""
    cell, _, x, state, lengths, masks, _ = recurrence
    rows = Rows.of(lengths, x.shape[0], x.shape[1])
    ordered = recurrence._replace(
        x=rows.sort(x, 1),
        state=tuple(rows.sort(part, 0) for part in state),
        masks=sort_masks(cell, masks, rows),
    )
    return ordered, rows


Step = tuple[int, State, Tensor, State]  # rows alive, old state, output, new state


def steps(recurrence: Recurrence, rows: Rows) -> Iterator[Step]:
    """Yields (rows alive, old state, output, new state) for each t. Rows are sorted by length, and
    each tensor has only those alive at t."""
    cell, parameters, x, state, _, masks, _ = recurrence
    width = cell.equations(*recurrence.sizes).output.width
    steady = masks is None or all(m.over == "sequence" for m in cell.masks.values())
    frames = x.unbind(0)  # x[t] would allocate a full-size gradient at each step
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
    return eager_engine(Recurrence(cell, parameters, x, state, lengths, masks))


def eager_engine(recurrence: Recurrence) -> tuple[Tensor, State]:
    """`eager` of a `Recurrence`, in the order of time."""
    ordered, rows = sort_rows(recurrence)
    return assembled(ordered, rows, steps(ordered, rows))


def assembled(ordered: Recurrence, rows: Rows, made: Iterable[Step]) -> tuple[Tensor, State]:
    """Outputs and final state of all steps, with rows in the order of the batch."""
    state, batch = ordered.state, ordered.x.shape[1]
    outputs: list[Tensor] = []
    ended: list[State] = []  # states of rows that have ended, shortest rows first
    for alive, _, y, new in made:
        ended.append(tuple(s[alive:] for s in state))
        outputs.append(pad(y, (0, 0, 0, batch - alive)))
        state = new
    final = tuple(torch.cat(parts[::-1]) for parts in zip(*ended, state, strict=True))
    y = torch.stack(outputs) if outputs else empty_output(ordered)
    return rows.restore(y, 1), tuple(rows.restore(s, 0) for s in final)


def empty_output(recurrence: Recurrence) -> Tensor:
    """The output for zero steps. It comes from a step with no rows, so that gradients (zeros)
    exist."""
    cell, parameters, x, state, *_ = recurrence
    width = cell.equations(x.shape[2], hidden_size(cell, parameters)).output.width
    none = x.reshape(0, x.shape[2])
    y, _ = one_step(cell.on_tensors(parameters), none, [s[:0] for s in state], width)
    return y.reshape(0, x.shape[1], width)
