"""The recursive network: the same cell over a tree in place of a chain."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ensue.cells import Cell
from ensue.engine.check import check_same_kind, check_tensors
from ensue.engine.eager import one_step
from ensue.engine.recurrence import State
from ensue.errors import OptionError, ShapeError
from ensue.layers.recurrent import OneWay, as_cell


def heights(parents: Tensor) -> Tensor:
    """The height of each node of a forest: 0 for a leaf, else 1 + that of its highest child.

    parents[k] is the parent of node k, −1 for a root."""
    count = len(parents)
    height = torch.zeros(count, dtype=torch.int64)
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

    Children are combined by "sum" or "mean", part by part; a leaf starts from zero. On a chain
    this is `Recurrent`. Masks are their expectations, in training too. x (nodes, input),
    parents (nodes,) with −1 for roots, in any order; several trees at once are one forest.
    Returns y (nodes, features) and the state parts of all nodes.

    >>> tree = Recursive(ensue.cells.LSTM(), 8, 16)
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
        if combine not in ("sum", "mean"):
            raise OptionError(f'combine: expected "sum" or "mean", got {combine!r}')
        self.combine, cell = combine, as_cell(cell)
        self.inner = OneWay(cell, input_size, hidden_size, init, learned_start=False)
        self.output_size = cell.equations(input_size, hidden_size, training=False).output.width

    def forward(self, x: Tensor, parents: Tensor) -> tuple[Tensor, State]:
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
        height = heights(parents)
        cell, parameters = self.inner.way()
        bound = cell.on_tensors(parameters)
        y = x.new_zeros(len(x), self.output_size)
        state = self.inner.start(x[None])
        for level in range(int(height.max()) + 1 if len(x) else 1):
            nodes = (height == level).nonzero()[:, 0]
            below = self._children(nodes, parents, state, level)
            y_here, new = one_step(bound, x[nodes], below, self.output_size)
            y = y.index_copy(0, nodes, y_here)
            state = tuple(s.index_copy(0, nodes, n) for s, n in zip(state, new, strict=True))
        return y, state

    def _children(self, nodes: Tensor, parents: Tensor, state: State, level: int) -> State:
        """The combined states of each node's children; zero for a leaf."""
        if level == 0:
            return tuple(s[nodes] for s in state)
        children = (parents >= 0).nonzero()[:, 0]
        into = parents[children]
        found = []
        for part in state:
            total = torch.zeros_like(part).index_add(0, into, part[children])
            if self.combine == "mean":
                count = torch.bincount(into, minlength=len(part)).clamp(min=1)
                total = total / count[:, None]
            found.append(total[nodes])
        return tuple(found)
