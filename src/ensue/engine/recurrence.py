"""The input of every engine: a cell, its parameters, and the sequences to run over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor

from ensue.cells.cell import Cell
from ensue.engine.rows import reverse_time
from ensue.errors import OptionError

State = tuple[Tensor, ...]
Tensors = Mapping[str, Tensor]


def hidden_size(cell: Cell, parameters: Tensors) -> int:
    """The hidden size, read off the parameters."""
    for name, declared in cell.parameters.items():
        if declared.size == "hidden":
            return parameters[name].shape[0] // len(declared.gates)
    raise OptionError(
        f"{type(cell).__name__} declares no parameter of size hidden: its width cannot be read off "
        "them; give one Matrix or Vector the size hidden"
    )


class Recurrence(NamedTuple):
    """A cell over a batch of sequences.

    x is (time, batch, input); state has a tensor (batch, features) for each part. lengths (batch,)
    int64, None if all sequences have the same length. masks are for training only. In reverse, the
    cell goes from each row's last real step to its first; x and masks stay in the order of time."""

    cell: Cell
    parameters: Tensors
    x: Tensor
    state: State
    lengths: Tensor | None = None
    masks: Tensors | None = None
    reverse: bool = False

    @property
    def sizes(self) -> tuple[int, int, bool]:
        """Input size, hidden size, and whether there are masks: the equations depend on these."""
        return self.x.shape[2], hidden_size(self.cell, self.parameters), self.masks is not None

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that may have a gradient: x, the state, the parameters."""
        return (self.x, *self.state, *self.parameters.values())

    @property
    def constants(self) -> Constants:
        """Everything else: the fields without gradients."""
        names = tuple(self.parameters)
        return Constants(self.cell, names, self.lengths, self.masks, self.reverse)

    def forwards(self) -> Recurrence:
        """An equivalent recurrence in the order of time: for a reverse one, x and the masks are
        reversed."""
        if not self.reverse:
            return self
        masks, of_cell = self.masks, self.cell.masks
        if masks is not None:
            masks = {
                name: reverse_time(m, self.lengths) if of_cell[name].over == "step" else m
                for name, m in masks.items()
            }
        x = reverse_time(self.x, self.lengths)
        return self._replace(x=x, masks=masks, reverse=False)


class Constants(NamedTuple):
    """A recurrence without the tensors that autograd saves."""

    cell: Cell
    names: tuple[str, ...]  # of the parameters
    lengths: Tensor | None
    masks: Tensors | None
    reverse: bool

    def recurrence(self, x: Tensor, rest: tuple[Tensor, ...]) -> Recurrence:
        """The recurrence from its tensors. rest: the state, then the parameters."""
        parts = len(self.cell.parts)
        parameters = dict(zip(self.names, rest[parts:], strict=True))
        return Recurrence(
            self.cell, parameters, x, rest[:parts], self.lengths, self.masks, self.reverse
        )
