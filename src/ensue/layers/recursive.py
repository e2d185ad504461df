"""The recursive network: the same cell over a tree in place of a chain."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ensue.cells import Cell
from ensue.engine.check import check_same_kind, check_tensors
from ensue.engine.eager import one_step
from ensue.engine.recurrence import State
from ensue.errors import OptionError, ShapeError
from ensue.layers.recurrent import OneWay, as_cell

COMBINED = ("sum", "mean", "ordered")
PLACES = ("first", "between", "last")  # of a child among its siblings


def heights(parents: Tensor) -> Tensor:
    """The height of each node of a forest: 0 for a leaf, else 1 + that of its highest child.

    parents[k] is the parent of node k, −1 for a root."""
    count = len(parents)
    height = torch.zeros(count, dtype=torch.int64, device=parents.device)
    bad = ((parents < -1) | (parents >= count)).nonzero()
    if len(bad):
        k = int(bad[0])
        raise ShapeError(
            f"parents[{k}] = {int(parents[k])}: expected −1 (a root) or 0 to {count - 1}"
        )
    inner = parents >= 0
    for _ in range(count):
        raised = height.scatter_reduce(0, parents[inner], height[inner] + 1, "amax")
        if torch.equal(raised, height):
            return height
        height = raised
    if count:
        raise ShapeError("parents: the nodes form a cycle; every node must lead to a root (−1)")
    return height


class Recursive(nn.Module):
    """A cell over trees: the state of a node comes from its own x and its children's states.

        state = step(x, combined states of the children)

    combine: children by "sum" or "mean", part by part, or "ordered", each by a matrix of its place:
    the output part is L·h_first + Σ M·h_between + R·h_last (an only child is the first), the other
    parts are summed. A leaf starts from zero. On a chain, "sum" is `Recurrent`. Masks are their
    expectations, in training too.

    x (nodes, input), parents (nodes,) with −1 for roots, in any order; several trees at once are
    one forest, and all nodes of the same height are one step. The children of a node are ordered
    as they stand in x. Returns y (nodes, features) and the state parts of all nodes.

    >>> tree = Recursive(ensue.cells.LSTM(), 8, 16, combine="ordered")
    >>> y, (h, c) = tree(torch.zeros(3, 8), parents=torch.tensor([2, 2, -1]))
    >>> y.shape
    torch.Size([3, 16])
    """

    def __init__(
        self,
        cell: Cell | str,
        input_size: int,
        hidden_size: int,
        *,
        combine: str = "sum",
        init: str = "standard",
    ) -> None:
        super().__init__()
        if combine not in COMBINED:
            raise OptionError(f"combine: expected {_listed(COMBINED)}, got {combine!r}")
        self.combine, cell = combine, as_cell(cell)
        self.inner = OneWay(cell, input_size, hidden_size, init, learned_start=False)
        self.output_size = cell.equations(input_size, hidden_size, training=False).output.width
        if combine == "ordered":
            size = self.inner.state_sizes[0]
            self.places = nn.ParameterList(torch.empty(size, size) for _ in PLACES)
            for matrix in self.places:
                nn.init.orthogonal_(matrix)

    def forward(self, x: Tensor, parents: Tensor) -> tuple[Tensor, State]:
        self._check(x, parents)
        cell, parameters = self.inner.way()
        bound = cell.on_tensors(parameters)
        y = x.new_zeros(len(x), self.output_size)
        state = self.inner.start(x[None])
        for level, nodes in enumerate(_levels(parents)):
            below = tuple(s[nodes] for s in state)
            if level:
                below = self._combined(nodes, _children(nodes, parents), state)
            y_here, new = one_step(bound, x[nodes], below, self.output_size)
            y = y.index_copy(0, nodes, y_here)
            state = tuple(s.index_copy(0, nodes, n) for s, n in zip(state, new, strict=True))
        return y, state

    def _combined(self, nodes: Tensor, below: _Children, state: State) -> State:
        """The combined states of the children of nodes."""
        found = []
        for number, part in enumerate(state):
            own = part[below.child]
            if self.combine == "ordered" and not number:
                matrices = torch.stack(list(self.places))
                maps = own.new_zeros(len(own), own.shape[1])
                for place, matrix in enumerate(matrices):
                    here = (below.place == place).nonzero()[:, 0]
                    maps = maps.index_copy(0, here, own[here] @ matrix.T)
                own = maps
            total = own.new_zeros(len(nodes), own.shape[1]).index_add(0, below.into, own)
            if self.combine == "mean":
                count = torch.bincount(below.into, minlength=len(nodes))
                total = total / count[:, None]
            found.append(total)
        return tuple(found)

    def _check(self, x: Tensor, parents: Tensor) -> None:
        check_tensors({"x": x, "parents": parents})
        if x.dim() != 2 or parents.shape != x.shape[:1]:
            raise ShapeError(
                f"expected x (nodes, input) and parents (nodes,), got {tuple(x.shape)} "
                f"and {tuple(parents.shape)}"
            )
        if x.shape[1] != self.inner.input_size:
            raise ShapeError(
                f"x: expected {self.inner.input_size} features for each node, got {x.shape[1]}"
            )
        if parents.dtype not in (torch.int64, torch.int32):
            raise ShapeError(
                f"parents: expected node numbers, torch.int64, got {parents.dtype}; "
                "parents.long() makes them"
            )
        check_same_kind("x", x, next(self.parameters()))


class _Children(NamedTuple):
    """The children of some nodes: their numbers, which of the nodes is the parent of each, and
    the place of each among its siblings, a number of PLACES."""

    child: Tensor
    into: Tensor
    place: Tensor


def _levels(parents: Tensor) -> list[Tensor]:
    """The nodes of each height, leaves first; one level without nodes, where there are none."""
    height = heights(parents)
    ends = torch.bincount(height).cumsum(0)[:-1]
    return list(height.argsort(stable=True).tensor_split(ends.cpu()))


def _children(nodes: Tensor, parents: Tensor) -> _Children:
    number = torch.full((len(parents) + 1,), -1, dtype=torch.int64, device=parents.device)
    number[nodes] = torch.arange(len(nodes), device=parents.device)
    into = number[parents]  # of a root, whose parent is −1: the last one, which is no node
    child = (into >= 0).nonzero()[:, 0]
    into = into[child]
    before = into.argsort(stable=True)  # siblings side by side, in their order
    child, into = child[before], into[before]
    begins = torch.ones_like(into, dtype=torch.bool)
    begins[1:] = into[1:] != into[:-1]
    ends = torch.ones_like(begins)
    ends[:-1] = begins[1:]
    place = torch.where(begins, 0, torch.where(ends, 2, 1))
    return _Children(child, into, place)


def _listed(names: tuple[str, ...]) -> str:
    quoted = [f'"{name}"' for name in names]
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}"
