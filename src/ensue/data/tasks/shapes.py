"""Drawn pictures of one or two shapes with captions: "a small red circle left of a blue square".

A shape is small, large, or of medium size, which captions do not mention. The smaller of two shapes
is named first; of two equal ones, the left or upper one. The axis on which their centres are
clearly further apart decides between left of, right of, above and below.

Some pairs of colour and shape occur in one part only: no training caption has a red circle, but
every test picture has a shape of `HELD["test"]`, and every validation picture one of
`HELD["validation"]`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.data.split import SHARES
from ensue.data.tasks.task import Draws, below, draws, key_of, uniform
from ensue.errors import OptionError, unknown

Floats = NDArray[np.float32]
SIDE = 48  # pixels of a picture, each way
SLOPE = np.sqrt(np.float32(0.75))  # of a triangle: the cosine of 30°
INNER = 0.45  # of a star: distance of inner corners from the centre, relative to its points


def _circle(x: Floats, y: Floats, r: Floats) -> Floats:
    return np.sqrt(x * x + y * y) - r


def _square(x: Floats, y: Floats, r: Floats) -> Floats:
    return np.maximum(abs(x), abs(y)) - r


def _triangle(x: Floats, y: Floats, r: Floats) -> Floats:
    """An equilateral triangle on its base: corners are r away from the centre, edges r/2."""
    half = np.float32(0.5)
    distance: Floats = np.maximum(SLOPE * abs(x) - half * y, y) - half * r
    return distance


def _cross(x: Floats, y: Floats, r: Floats) -> Floats:
    """A cross: two bars of length 2r, a third as wide."""
    x, y = abs(x), abs(y)
    return np.maximum(np.maximum(x, y) - r, np.minimum(x, y) - r / 3)


def _star(x: Floats, y: Floats, r: Floats) -> Floats:
    """A star with five points, one upwards. All edges are folded onto one: from (r, 0) to the inner
    corner, 36° further on."""
    fifth = np.float32(2 * np.pi / 5)
    angle = np.arctan2(x, -y)
    angle -= fifth * np.round(angle / fifth)
    far = np.sqrt(x * x + y * y)
    edge = np.array([INNER * np.cos(fifth / 2) - 1, INNER * np.sin(fifth / 2)], np.float32)
    across, along = edge[::-1] / np.float32(np.hypot(*edge))
    distance: Floats = (far * np.cos(angle) - r) * across - far * abs(np.sin(angle)) * along
    return distance


class Kind(NamedTuple):
    """A kind of shape. distance: the distance of points to the edge of a shape of radius r around
    0, negative inside; reach: the radius of the shape relative to a circle of the same size."""

    distance: Callable[[Floats, Floats, Floats], Floats]
    reach: float
    extent: float  # distance of its corners from the centre, relative to its radius


KINDS: dict[str, Kind] = {
    "circle": Kind(_circle, 1.0, 1.0),
    "square": Kind(_square, 0.9, 2.0**0.5),
    "triangle": Kind(_triangle, 1.3, 1.0),
    "cross": Kind(_cross, 1.15, 1.06),
    "star": Kind(_star, 1.3, 1.0),
}


class Placed(NamedTuple):
    """One shape for each of many pictures: indices of kinds, radii, centres from the left and the
    top in pixels, angles of rotation; all (pictures,)."""

    kind: NDArray[np.int64]
    radius: NDArray[Any]
    x: NDArray[Any]
    y: NDArray[Any]
    turned: NDArray[Any]


def coverage(shapes: Placed) -> Floats:
    """The share of each pixel that lies inside (pictures, height, width)."""
    covered = np.empty((len(shapes.kind), SIDE, SIDE), np.float32)
    pixels = np.arange(SIDE, dtype=np.float32) + np.float32(0.5)
    for number, kind in enumerate(KINDS.values()):
        rows = np.flatnonzero(shapes.kind == number)
        r, cx, cy, turned = (
            values[rows].astype(np.float32)[:, None, None] for values in shapes[1:]
        )
        dx, dy = pixels - cx, pixels[:, None] - cy
        cos, sin = np.cos(turned), np.sin(turned)
        distance = kind.distance(cos * dx + sin * dy, cos * dy - sin * dx, r)
        covered[rows] = np.clip(np.float32(0.5) - distance, 0, 1)
    return covered


def boxes(covered: Floats) -> NDArray[np.int64]:
    """Left, top, right and bottom of the pixels that are at least half covered;
    right and bottom are exclusive; shape (pictures, 4)."""
    inside = covered >= 0.5
    ends = []
    for axis in (1, 2):  # reduced to columns, then rows
        lines = np.logical_or.reduce(inside, axis)
        ends.append((lines.argmax(1), SIDE - lines[:, ::-1].argmax(1)))
    (left, right), (top, bottom) = ends
    return np.stack([left, top, right, bottom], 1)


def painted(picture: Floats, covered: Floats, colour: Floats) -> None:
    """Lays colours (pictures, 3) over pictures (pictures, height, width, 3), in place."""
    picture += covered[..., None] * (colour[:, None, None] - picture)


COLOURS: dict[str, tuple[int, int, int]] = {
    "red": (220, 38, 38),
    "yellow": (250, 204, 21),
    "green": (34, 150, 70),
    "blue": (37, 99, 235),
    "purple": (126, 34, 206),
    "pink": (247, 140, 196),
    "brown": (120, 72, 36),
    "black": (28, 28, 32),
    "grey": (130, 132, 138),
    "cyan": (34, 190, 205),
}
SIZES: dict[str, float] = {"small": 4.2, "middle": 5.8, "large": 8.0}  # radius of a circle
RELATIONS = ("left of", "right of", "above", "below")
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "colour": tuple(COLOURS),
    "relation": ("left", "right", "above", "below"),
    "shape": tuple(KINDS),
    "size": ("small", "large"),
}
HELD: dict[str, tuple[tuple[str, str], ...]] = {
    "train": (),
    "validation": (
        ("pink", "circle"),
        ("brown", "square"),
        ("black", "triangle"),
        ("grey", "cross"),
        ("cyan", "star"),
    ),
    "test": (
        ("red", "circle"),
        ("yellow", "square"),
        ("green", "triangle"),
        ("blue", "cross"),
        ("purple", "star"),
    ),
}
ALONE = 0.25  # share of pictures with one shape
GAP, MARGIN = 2.0, 1.0  # pixels between shapes, and to the edge
ASIDE = 0.4  # maximum distance from the axis, relative to the distance along it
VARIED, TURNED = 0.05, 0.2  # variation of size as a share, of angle in radians
TINTED, PAPER, NOISE = 14.0, 12.0, 6.0  # of 255: colours, the ground, each pixel
AT_ONCE = 1000  # pictures drawn together


class Shape(NamedTuple):
    """A shape. box: left, top, right, bottom in pixels; right and bottom are exclusive."""

    kind: str
    colour: str
    size: str
    box: tuple[int, int, int, int]

    def __str__(self) -> str:
        words = [self.size] if self.size in ATTRIBUTES["size"] else []
        return " ".join(["a", *words, self.colour, self.kind])


@dataclass(frozen=True)
class Scene:
    """A picture (3, height, width) of bytes, and its shapes in the order of the caption; relation:
    of the first to the second, "" for a single shape.

    >>> scene = shapes(1, "train", 1)[0]
    >>> scene.picture.shape
    (3, 48, 48)
    """

    picture: NDArray[np.uint8]
    shapes: tuple[Shape, ...]
    relation: str

    @property
    def caption(self) -> str:
        if not self.relation:
            return str(self.shapes[0])
        return f"{self.shapes[0]} {self.relation} {self.shapes[1]}"


def shapes(seed: int, part: str, count: int, *, first: int = 0) -> list[Scene]:
    """Scenes first … first + count − 1 of "train", "validation" or "test"; each is a pure function
    of seed, part and number.

    >>> shapes(1, "train", 1)[0].caption
    'a small grey circle below a large grey square'
    """
    if part not in SHARES:
        raise unknown("part", part, SHARES)
    if first < 0 or count < 1:
        raise OptionError(f"expected first ≥ 0 and count ≥ 1, got {first} and {count}")
    scenes: list[Scene] = []
    for start in range(first, first + count, AT_ONCE):
        numbers = np.arange(start, min(start + AT_ONCE, first + count))
        scenes += _scenes(key_of("shapes", seed, part), part, numbers)
    return scenes


# --- what is on a picture ------------------------------------------------------------------


@cache
def _combinations(part: str) -> list[tuple[int, int]]:
    """Indices of the colours and kinds that a part may show; those in this part alone come
    first."""
    others = {pair for part_pairs in HELD.values() for pair in part_pairs}
    held_out = list(HELD[part])
    held_out += [(c, k) for c in COLOURS for k in KINDS if (c, k) not in others]
    return [(list(COLOURS).index(colour), list(KINDS).index(kind)) for colour, kind in held_out]


class _Pair(NamedTuple):
    """The first and the second shape of each picture, (2, pictures) each; pictures with one shape
    do not show the second."""

    colour: NDArray[np.int64]
    size: NDArray[np.int64]
    placed: Placed
    alone: NDArray[np.bool_]
    relation: NDArray[np.int64]


def _pair(drawn: Draws, part: str) -> _Pair:
    """The shapes from random numbers: drawn (pictures, 14)."""
    known = np.array(_combinations(part))
    rare = below(drawn[:, 0], len(HELD[part]) or len(known))
    other = below(drawn[:, 1], len(known) - 1)
    other += other >= rare  # another one
    colour, kind = known[np.stack([rare, other])].transpose(2, 0, 1)
    size = np.stack([below(drawn[:, column], len(SIZES)) for column in (2, 3)])
    varied = 1 + VARIED * (2 * uniform(drawn[:, 4:6]).T - 1)
    reach = np.array([kind.reach for kind in KINDS.values()])[kind]
    extent = np.array([kind.extent for kind in KINDS.values()])[kind]
    radius = np.array(list(SIZES.values()))[size] * reach * varied
    turned = TURNED * (2 * uniform(drawn[:, 6:8]).T - 1)
    alone = uniform(drawn[:, 8]) < ALONE
    relation = below(drawn[:, 9], len(RELATIONS))
    x, y = _places(radius * extent, alone, relation, uniform(drawn[:, 10:14]).T)
    # the smaller first; of equal ones the left or upper one
    later = (size[0] > size[1]) | ((size[0] == size[1]) & (relation % 2 == 1))
    swapped = later & ~alone
    relation = np.where(swapped, relation ^ 1, relation)
    placed = Placed(*(_swapped(values, swapped) for values in (kind, radius, x, y, turned)))
    return _Pair(_swapped(colour, swapped), _swapped(size, swapped), placed, alone, relation)


def _swapped(values: NDArray[Any], where: NDArray[np.bool_]) -> NDArray[Any]:
    return np.where(where, values[::-1], values)


def _places(
    extent: NDArray[np.float64],
    alone: NDArray[np.bool_],
    relation: NDArray[np.int64],
    drawn: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """x and y (2, pictures) of the centres, inside the picture; pairs are separated along one axis.
    extent (2, pictures), drawn (4, pictures)."""
    low, high = MARGIN + extent, SIDE - MARGIN - extent
    room, both = SIDE - 2 * MARGIN, extent.sum(0)
    apart = both + GAP + drawn[0] * np.maximum(room - 2 * both - GAP, 0)
    sign = np.where(relation % 2 == 0, 1.0, -1.0)  # the second lies right of or below the first
    along = _fitting(low, high, sign * apart, drawn[1])
    aside = _fitting(low, high, ASIDE * apart * (2 * drawn[2] - 1), drawn[3])
    single = low + drawn[[1, 3]][:, None] * (high - low)  # (axes, 2, pictures)
    along, aside = np.where(alone, single, np.stack([along, aside]))
    level = relation < 2
    return np.where(level, along, aside), np.where(level, aside, along)


def _fitting(
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    offset: NDArray[np.float64],
    drawn: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Positions of the first and the second, at distance `offset`; shape (2, pictures)."""
    least, most = np.maximum(low[0], low[1] - offset), np.minimum(high[0], high[1] - offset)
    at = least + drawn * (most - least)
    return np.stack([at, at + offset])


# --- drawn ---------------------------------------------------------------------------------


def _scenes(key: int, part: str, numbers: NDArray[np.int64]) -> list[Scene]:
    noise_columns = SIDE * SIDE * 3 // 8  # a byte each
    drawn = draws(key, numbers, 14 + 9 + noise_columns)
    pair = _pair(drawn[:, :14], part)
    tints = 2 * uniform(drawn[:, 14:23]) - 1
    paper = 238 + PAPER * tints[:, :3]
    pictures = np.empty((len(numbers), SIDE, SIDE, 3), np.float32)
    pictures[:] = paper[:, None, None]
    colours = np.array(list(COLOURS.values()))
    scenes = []
    for k in range(2):
        covered = coverage(Placed(*(values[k] for values in pair.placed)))
        scenes.append(boxes(covered))
        if k:
            covered[pair.alone] = 0
        colour = colours[pair.colour[k]] + TINTED * tints[:, 3 * k + 3 : 3 * k + 6]
        painted(pictures, covered, colour.astype(np.float32))
    grains = np.ascontiguousarray(drawn[:, 23:]).view(np.uint8).reshape(pictures.shape)
    pictures += (grains.astype(np.float32) - 127.5) * np.float32(NOISE / 127.5)
    found_bytes = np.clip(np.rint(pictures), 0, 255).astype(np.uint8)
    volumes = np.ascontiguousarray(found_bytes.transpose(0, 3, 1, 2))
    return [_scene(volumes[row], pair, np.stack(scenes), row) for row in range(len(numbers))]


def _scene(picture: NDArray[np.uint8], pair: _Pair, drawn: NDArray[np.int64], row: int) -> Scene:
    colours, kinds, sizes = list(COLOURS), list(KINDS), list(SIZES)
    alone = bool(pair.alone[row])
    named = tuple(
        Shape(
            kinds[int(pair.placed.kind[k, row])],
            colours[pair.colour[k, row]],
            sizes[pair.size[k, row]],
            tuple(drawn[k, row].tolist()),
        )
        for k in range(1 if alone else 2)
    )
    return Scene(picture, named, "" if alone else RELATIONS[pair.relation[row]])
