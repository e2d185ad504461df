"""The recursive network: the same cell over a tree instead of a chain."""

from __future__ import annotations

from collections.abc import Sequence
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
    """The height of each node of a forest: 0 for a leaf, else 1 + the height of its highest child.

    parents[k] is the parent of node k, −1 for a root."""
    count = len(parents)
    height = torch.zeros(count, dtype=torch.int64, device=parents.device)
    bad = ((parents < -1) | (parents >= count)).nonzero()
    if len(bad):
        k = int(bad[0])
        raise ShapeError(
            f"parents[{k}] = {int(parents[k])}: expected −1 (a root) or 0 to {count - 1}"
        )
    waiting = torch.bincount(parents[parents >= 0], minlength=count)  # number of children left
    ready, visited, level = (waiting == 0).nonzero()[:, 0], 0, 0
    while len(ready):
        height[ready] = level
        visited, level = visited + len(ready), level + 1
        above = parents[ready]
        above = above[above >= 0]
        waiting.index_add_(0, above, torch.full_like(above, -1, dtype=waiting.dtype))
        ready = torch.unique(above[waiting[above] == 0])
    if visited < count:
        raise ShapeError("parents: the nodes form a cycle; every node must lead to a root (−1)")
    return height


class Recursive(nn.Module):
    """A cell over trees: the state of a node comes from its own x and its children's states.

    state = step(x, combined states of the children)

    combine: "sum" or "mean" of the children, part by part; or "ordered", with a matrix for each
    place: the output part is L·h_first + Σ M·h_between + R·h_last (an only child is the first), the
    other parts are summed. A leaf starts from zero. On a chain, "sum" is `Recurrent`. Masks are
    always their expectations, in training too.

    x is (nodes, input), parents (nodes,) with −1 for roots; nodes may be in any order, but siblings
    are in the order of x. Several trees form one forest. All nodes of the same height are computed
    in one step. Returns y (nodes, features) and the state parts of all nodes.

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
        levels = _Levels.of(parents.long())
        by_level: list[tuple[Tensor, ...]] = []  # y and the state parts of each level
        sent: list[list[State]] = [[] for _ in levels.sizes]
        for level, entering in enumerate(x[levels.order].split_with_sizes(levels.sizes)):
            below = self.inner.start(entering[None])
            if level:
                arrived = [torch.cat(parts) for parts in zip(*sent[level], strict=True)]
                below = self._combined(levels.below[level], arrived, len(entering))
            y, new = one_step(bound, entering, below, self.output_size)
            by_level.append((y, *new))
            pieces = zip(
                *(part.split_with_sizes(levels.counts[level]) for part in new), strict=True
            )
            for above, piece in zip(levels.above[level], pieces, strict=True):
                sent[above].append(piece)
        whole = [torch.cat(parts)[levels.rank] for parts in zip(*by_level, strict=True)]
        return whole[0], tuple(whole[1:])

    def _combined(self, below: _Children, parts: Sequence[Tensor], nodes: int) -> State:
        """Combines the states of children: parts (children, features) → (nodes, features)."""
        combined = []
        for number, part in enumerate(parts):
            total = part.new_zeros(nodes, part.shape[1])
            if self.combine == "ordered" and not number:
                for place, matrix in enumerate(self.places):
                    here = (below.place == place).nonzero()[:, 0]
                    total = total.index_add(0, below.into[here], part[here] @ matrix.T)
            else:
                total = total.index_add(0, below.into, part)
            if self.combine == "mean":
                total = total / torch.bincount(below.into, minlength=nodes)[:, None]
            combined.append(total)
        return tuple(combined)

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
    """The children of the nodes of a level: for each child, the index of its parent in the level,
    and its place among its siblings, an index of PLACES."""

    into: Tensor
    place: Tensor


class _Levels(NamedTuple):
    """The nodes of a forest by their height. Each state is copied only twice, to the level of its
    parent and to the result, so time and memory grow with the nodes, not with nodes times levels.

    order: the nodes by height; in a level, roots come first, then nodes by the height of their
    parents. rank: the position of each node in `order`. sizes: the number of nodes of each level.
    above: for each level, the levels of its nodes' parents (0 for roots: level 0 has leaves only,
    so nothing is combined there). counts: how many states go to each of them. below: the children
    of each level, in the order in which their states arrive."""

    order: Tensor
    rank: Tensor
    sizes: list[int]
    above: list[list[int]]
    counts: list[list[int]]
    below: list[_Children]

    @classmethod
    def of(cls, parents: Tensor) -> _Levels:
        height = heights(parents)
        above = torch.where(parents < 0, 0, height[parents])
        sizes = torch.bincount(height, minlength=1)
        move = height * len(sizes) + above
        order = move.argsort(stable=True)
        rank = torch.empty_like(order)
        rank[order] = torch.arange(len(order), device=order.device)
        levels: list[list[int]] = [[] for _ in sizes]
        counts: list[list[int]] = [[] for _ in sizes]
        moves, many = torch.unique_consecutive(move[order], return_counts=True)
        for at_move, count in zip(moves.tolist(), many.tolist(), strict=True):
            levels[at_move // len(sizes)].append(at_move % len(sizes))
            counts[at_move // len(sizes)].append(count)
        arriving = order[above[order].argsort(stable=True)]
        position = rank - (sizes.cumsum(0) - sizes)[height]  # in its level
        into, place = position[parents[arriving]], _places(parents)[arriving]
        arrivals = torch.bincount(above, minlength=len(sizes)).tolist()
        pairs = zip(into.split_with_sizes(arrivals), place.split_with_sizes(arrivals), strict=True)
        below = [_Children(*pair) for pair in pairs]
        return cls(order, rank, sizes.tolist(), levels, counts, below)


def _places(parents: Tensor) -> Tensor:
    """The place of each node among its siblings, an index of PLACES."""
    siblings = parents.argsort(stable=True)  # siblings next to each other, in order
    parent = parents[siblings]
    begins = torch.ones_like(parent, dtype=torch.bool)
    begins[1:] = parent[1:] != parent[:-1]
    ends = torch.ones_like(begins)
    ends[:-1] = begins[1:]
    place = torch.empty_like(parent)
    place[siblings] = torch.where(begins, 0, torch.where(ends, 2, 1))
    return place


def _listed(names: tuple[str, ...]) -> str:
    quoted = [f'"{name}"' for name in names]
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}"
