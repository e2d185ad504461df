"""The layout of a graph: columns from left to right, few crossings, straight lines.

Four steps (Sugiyama et al. 1981): a column for each node, the order inside each column by
barycentre sweeps, heights that keep neighbours level, and routes for edges that pass columns.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise, permutations, product
from typing import NamedTuple

Point = tuple[float, float]

SWEEPS = 16
FEW_INPUTS = 4  # maximum number of inputs whose orders are all tried
TURNED = 1.2  # penalty of two boxes in the wrong order, in crossings
SETTLING = 240  # rounds of levelling
GAP = 16.0  # distance between nodes in a column
ALMOST = 8.0  # smaller bends are removed


class Box(NamedTuple):
    """The space of one node: its width, and its extent above and below its line."""

    width: float
    above: float
    below: float


class Arrangement(NamedTuple):
    """Centres of the boxes, the left and right sides of their columns, and for each edge the
    points where it passes other columns."""

    centres: list[Point]
    sides: list[tuple[float, float]]
    ways: list[list[Point]]
    width: float
    height: float


PASSING = Box(0.0, 3.0, 3.0)  # the space of an edge that passes a column


@dataclass
class _Grid:
    """Nodes in columns: the boxes, and a node wherever an edge passes a column."""

    boxes: list[Box]
    columns: list[list[int]]  # nodes from top to bottom
    links: list[tuple[int, int]]  # between neighbouring columns
    chains: list[list[int]]  # for each edge its nodes, including both ends
    real: int  # nodes with a smaller index are boxes
    ordered: frozenset[int]  # boxes that should be sorted in their column by index

    @cached_property
    def before(self) -> dict[int, list[int]]:
        return {n: [a for a, b in self.links if b == n] for n in range(len(self.boxes))}

    @cached_property
    def after(self) -> dict[int, list[int]]:
        return {n: [b for a, b in self.links if a == n] for n in range(len(self.boxes))}

    @cached_property
    def weights(self) -> dict[tuple[int, int], float]:
        """The weights with which links are made level: highest for long edges, then for one-to-one
        links."""
        return {(a, b): self._weight(a, b) for a, b in self.links}

    def _weight(self, a: int, b: int) -> float:
        if a >= self.real and b >= self.real:
            return 8.0
        alone = len(self.after[a]) == 1 and len(self.before[b]) == 1
        return 6.0 if alone else 2.0 if a >= self.real or b >= self.real else 1.0


def arrange(
    boxes: Sequence[Box],
    edges: Sequence[tuple[int, int]],
    inputs: int,
    results: Collection[int],
    ordered: Collection[int] = (),
) -> Arrangement:
    """Places boxes. Edges go from lower to higher numbers; the first `inputs` boxes are in the
    first column, `results` in the last; `ordered` boxes are sorted downwards by their numbers, if
    that costs few crossings."""
    columns = _columns(len(boxes), edges, inputs, results)
    grid = _grid(boxes, edges, columns, frozenset(ordered))
    _order(grid)
    heights = _heights(grid)
    lefts, widths = _sides(grid)
    column = {node: k for k, nodes in enumerate(grid.columns) for node in nodes}
    sides = [(lefts[column[n]], lefts[column[n]] + widths[column[n]]) for n in sorted(column)]
    centres = [((sides[n][0] + sides[n][1]) / 2, heights[n]) for n in range(len(boxes))]
    ways = [
        [(side, heights[node]) for node in chain[1:-1] for side in sides[node]]
        for chain in grid.chains
    ]
    bottom = max((heights[n] + grid.boxes[n].below for n in range(len(grid.boxes))), default=0.0)
    return Arrangement(centres, sides[: len(boxes)], ways, lefts[-1] + widths[-1], bottom)


# -------------------------------------------------------------------- columns
def _columns(
    count: int, edges: Sequence[tuple[int, int]], inputs: int, results: Collection[int]
) -> list[int]:
    """Columns as far left as possible; nodes without inputs are just before their users."""
    column = [0 if n < inputs else 1 for n in range(count)]
    for a, b in sorted(edges, key=lambda edge: edge[1]):
        column[b] = max(column[b], column[a] + 1)
    last = max([2, *(column[n] + (n not in results) for n in range(count))])
    for n in results:
        column[n] = last
    fed = {b for _, b in edges}
    for n in reversed(range(inputs, count)):
        users = [column[b] for a, b in edges if a == n]
        if n not in fed and users:
            column[n] = min(users) - 1
    return column


def _grid(
    boxes: Sequence[Box],
    edges: Sequence[tuple[int, int]],
    column: list[int],
    ordered: frozenset[int],
) -> _Grid:
    """Cuts edges into links; edges from one node share the nodes on their common path."""
    rooms = list(boxes)
    columns: list[list[int]] = [[] for _ in range(max(column, default=0) + 1)]
    for n, k in enumerate(column):
        columns[k].append(n)
    passing: dict[tuple[int, int], int] = {}
    chains = []
    for a, b in edges:
        chain = [a]
        for k in range(column[a] + 1, column[b]):
            if (a, k) not in passing:
                passing[a, k] = len(rooms)
                columns[k].append(len(rooms))
                rooms.append(PASSING)
            chain.append(passing[a, k])
        chains.append([*chain, b])
    links = list(dict.fromkeys(link for chain in chains for link in pairwise(chain)))
    return _Grid(rooms, columns, links, chains, len(boxes), ordered)


# -------------------------------------------------------------------- order
def _order(grid: _Grid) -> None:
    """Orders each column for few crossings and sorted `ordered` boxes: barycentre sweeps, then
    swaps of neighbours, from every order of the inputs, with ordered boxes free and fixed."""
    columns, orders = grid.columns, list[tuple[float, list[list[int]]]]()
    starts = permutations(columns[0]) if len(columns[0]) <= FEW_INPUTS else [columns[0]]
    for start, by_number in product(starts, (False, True)):
        grid.columns = [list(start), *(list(c) for c in columns[1:])]
        orders.append(_swept(grid, by_number))
    grid.columns = min(orders, key=lambda order: order[0])[1]


def _swept(grid: _Grid, by_number: bool) -> tuple[float, list[list[int]]]:
    """The best columns of all sweeps. by_number: ordered boxes keep the order of their indices."""
    best, fewest = [list(c) for c in grid.columns], _untidy(grid)
    for sweep in range(SWEEPS):
        onward = sweep % 2 == 0
        near = grid.before if onward else grid.after
        numbers = range(1, len(grid.columns))
        for k in numbers if onward else reversed(range(len(grid.columns) - 1)):
            place = {n: i for column in grid.columns for i, n in enumerate(column)}
            grid.columns[k].sort(key=lambda n: _mean([place[m] for m in near[n]], place[n]))
        _swap(grid)
        if by_number:
            grid.columns = [_by_number(column, grid.ordered) for column in grid.columns]
        untidy = _untidy(grid)
        if untidy < fewest:
            best, fewest = [list(c) for c in grid.columns], untidy
    return fewest, best


def _by_number(column: list[int], ordered: frozenset[int]) -> list[int]:
    boxes = iter(sorted(ordered.intersection(column)))
    return [next(boxes) if n in ordered else n for n in column]


def _untidy(grid: _Grid) -> float:
    """The number of crossings, and of pairs of ordered boxes in the wrong order."""
    pairs = (combinations(filter(grid.ordered.__contains__, c), 2) for c in grid.columns)
    turned = sum(a > b for column in pairs for a, b in column)
    return _crossings(grid) + TURNED * turned


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _crossings(grid: _Grid) -> int:
    place = {n: i for column in grid.columns for i, n in enumerate(column)}
    number = {n: k for k, column in enumerate(grid.columns) for n in column}
    between: list[list[tuple[int, int]]] = [[] for _ in grid.columns]
    for a, b in grid.links:
        between[number[a]].append((place[a], place[b]))
    return sum(
        (a - c) * (b - d) < 0
        for links in between
        for k, (a, b) in enumerate(links)
        for c, d in links[:k]
    )


def _swap(grid: _Grid) -> None:
    """Swaps neighbours in a column while that reduces crossings."""
    place = {n: i for column in grid.columns for i, n in enumerate(column)}

    def cost(upper: int, lower: int) -> int:
        """Crossings between the links of two nodes, the first above the second."""
        return sum(
            place[a] > place[b]
            for near in (grid.before, grid.after)
            for a in near[upper]
            for b in near[lower]
        )

    better = True
    while better:
        better = False
        for column in grid.columns:
            for i, (upper, lower) in enumerate(pairwise(column)):
                if cost(lower, upper) < cost(upper, lower):
                    column[i], column[i + 1] = lower, upper
                    place[lower], place[upper] = i, i + 1
                    better = True
                    break


# -------------------------------------------------------------------- heights and sides
def _heights(grid: _Grid) -> list[float]:
    """The height of each node's line: links as level as the space in the columns allows."""
    y = [0.0] * len(grid.boxes)
    gaps = []
    for column in grid.columns:
        rooms = [grid.boxes[n] for n in column]
        gaps.append([a.below + GAP + b.above for a, b in pairwise(rooms)])
        for n, height in zip(column, _apart([0.0] * len(rooms), None, gaps[-1]), strict=True):
            y[n] = height
    for sweep in range(SETTLING):
        numbers = range(len(grid.columns))
        for k in numbers if sweep % 2 else reversed(numbers):
            column, heights, weights = grid.columns[k], [], []
            for n in column:
                pulls = [(y[m], grid.weights[m, n]) for m in grid.before[n]]
                pulls += [(y[m], grid.weights[n, m]) for m in grid.after[n]]
                if sweep >= SETTLING // 3:  # distances instead of their squares: fewer bends
                    pulls = [(v, w / max(abs(v - y[n]), 0.3)) for v, w in pulls]
                weight = sum(w for _, w in pulls)
                heights.append(sum(v * w for v, w in pulls) / weight if pulls else y[n])
                weights.append(weight or 0.1)
            for n, height in zip(column, _apart(heights, weights, gaps[k]), strict=True):
                y[n] = height
    straight = _Straight(grid, y, gaps)
    straight.long_edges()
    straight.small_bends()
    top = min((y[n] - grid.boxes[n].above for n in range(len(y))), default=0.0)
    return [v - top for v in y]


class _Straight:
    """Removes small bends from almost final heights."""

    def __init__(self, grid: _Grid, y: list[float], gaps: list[list[float]]) -> None:
        self.grid, self.y, self.gaps = grid, y, gaps
        columns = enumerate(grid.columns)
        self.place = {n: (k, i) for k, column in columns for i, n in enumerate(column)}

    def room(self, n: int) -> tuple[float, float]:
        """The range of heights of a node between its neighbours in the column."""
        k, i = self.place[n]
        column, gap = self.grid.columns[k], self.gaps[k]
        low = self.y[column[i - 1]] + gap[i - 1] if i else -math.inf
        return low, self.y[column[i + 1]] - gap[i] if i + 1 < len(column) else math.inf

    def long_edges(self) -> None:
        """Makes each long edge level if there is space: at the height of its start, else of its
        end."""
        y = self.y
        for chain in sorted(self.grid.chains, key=len):
            rooms = [self.room(n) for n in chain[1:-1]] or [(0.0, 0.0)]
            low, high = max(r[0] for r in rooms), min(r[1] for r in rooms)
            if low <= high:
                ends = y[chain[0]], y[chain[-1]]
                level = next((v for v in ends if low <= v <= high), min(max(ends[1], low), high))
                for n in chain[1:-1]:
                    y[n] = level

    def small_bends(self) -> None:
        """Levels links that are almost level; all nodes level with one end move with it."""
        for a, b in sorted(self.grid.links, key=lambda link: self.place[link[1]]):
            bend = self.y[a] - self.y[b]
            if 0.1 < abs(bend) < ALMOST and not self._move(b, a, bend):
                self._move(a, b, -bend)

    def _move(self, n: int, other: int, distance: float) -> bool:
        """Moves n and all nodes level with it, if nothing is in the way."""
        group, todo = {other}, [n]
        while todo:
            node = todo.pop()
            group.add(node)
            near = set(self.grid.before[node] + self.grid.after[node]) - group
            todo += [m for m in sorted(near) if abs(self.y[m] - self.y[node]) <= 0.1]
        group.remove(other)
        rooms = {m: self.room(m) for m in group}
        free = all(low <= self.y[m] + distance <= high for m, (low, high) in rooms.items())
        for m in group if free else ():
            self.y[m] += distance
        return free


def _apart(
    heights: Sequence[float], weights: Sequence[float] | None, gaps: Sequence[float]
) -> list[float]:
    """The positions nearest to `heights` (weighted squares) that keep the gaps. After the gaps are
    subtracted, this is an isotonic regression, solved by pooling adjacent violators."""
    offsets = [0.0]
    for gap in gaps:
        offsets.append(offsets[-1] + gap)
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many
    for k, value in enumerate(heights):
        mean, weight, count = value - offsets[k], weights[k] if weights else 1.0, 1
        while pools and pools[-1][0] > mean:
            before = pools.pop()
            mean = (before[0] * before[1] + mean * weight) / (before[1] + weight)
            weight, count = weight + before[1], count + before[2]
        pools.append((mean, weight, count))
    flat = [mean for mean, _, count in pools for _ in range(count)]
    return [value + offset for value, offset in zip(flat, offsets, strict=False)]


def _sides(grid: _Grid) -> tuple[list[float], list[float]]:
    """The left side and the width of each column; more links need a wider gap."""
    number = {n: k for k, column in enumerate(grid.columns) for n in column}
    lefts, widths, at = [], [], 0.0
    for k, column in enumerate(grid.columns):
        widths.append(max((grid.boxes[n].width for n in column), default=0.0))
        lefts.append(at)
        links = sum(number[a] == k for a, _ in grid.links)
        at += widths[-1] + min(34.0 + 3.0 * links, 80.0)
    return lefts, widths
