"""Shapes drawn into pictures, many at once: coverage of each pixel from a signed distance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
SIDE = 48  # pixels of a picture, each way
SLOPE = np.sqrt(np.float32(0.75))  # of a triangle: the cosine of 30°
INNER = 0.45  # of a star: its inner corners' distance from the centre, by that of its points


def _circle(x: Floats, y: Floats, r: Floats) -> Floats:
    return np.sqrt(x * x + y * y) - r


def _square(x: Floats, y: Floats, r: Floats) -> Floats:
    return np.maximum(abs(x), abs(y)) - r


def _triangle(x: Floats, y: Floats, r: Floats) -> Floats:
    """Equilateral, on its base: its corners are r away from the centre, its edges r/2."""
    half = np.float32(0.5)
    found: Floats = np.maximum(SLOPE * abs(x) - half * y, y) - half * r
    return found


def _cross(x: Floats, y: Floats, r: Floats) -> Floats:
    """Two bars of length 2r and a third as wide."""
    x, y = abs(x), abs(y)
    return np.maximum(np.maximum(x, y) - r, np.minimum(x, y) - r / 3)


def _star(x: Floats, y: Floats, r: Floats) -> Floats:
    """Five points, one upwards. All edges are folded onto one: from (r, 0) to the inner corner,
    36° further on."""
    fifth = np.float32(2 * np.pi / 5)
    angle = np.arctan2(x, -y)
    angle -= fifth * np.round(angle / fifth)
    far = np.sqrt(x * x + y * y)
    edge = np.array([INNER * np.cos(fifth / 2) - 1, INNER * np.sin(fifth / 2)], np.float32)
    across, along = edge[::-1] / np.float32(np.hypot(*edge))
    found: Floats = (far * np.cos(angle) - r) * across - far * abs(np.sin(angle)) * along
    return found


class Kind(NamedTuple):
    """distance: of points to the edge of a shape of radius r around 0, negative inside; reach:
    its radius where that of a circle of the same size is 1."""

    distance: Callable[[Floats, Floats, Floats], Floats]
    reach: float
    extent: float  # of its corners from the centre, by its radius


KINDS: dict[str, Kind] = {
    "circle": Kind(_circle, 1.0, 1.0),
    "square": Kind(_square, 0.9, 2.0**0.5),
    "triangle": Kind(_triangle, 1.3, 1.0),
    "cross": Kind(_cross, 1.15, 1.06),
    "star": Kind(_star, 1.3, 1.0),
}


class Placed(NamedTuple):
    """Shapes of many pictures, one each: numbers of their kinds, radii, centres from the left and
    the top in pixels, angles that they are turned by; all (pictures,)."""

    kind: NDArray[np.int64]
    radius: NDArray[Any]
    x: NDArray[Any]
    y: NDArray[Any]
    turned: NDArray[Any]


def coverage(shapes: Placed) -> Floats:
    """The share of each pixel that lies inside (pictures, height, width)."""
    found = np.empty((len(shapes.kind), SIDE, SIDE), np.float32)
    pixels = np.arange(SIDE, dtype=np.float32) + np.float32(0.5)
    for number, own in enumerate(KINDS.values()):
        rows = np.flatnonzero(shapes.kind == number)
        r, cx, cy, turned = (
            values[rows].astype(np.float32)[:, None, None] for values in shapes[1:]
        )
        dx, dy = pixels - cx, pixels[:, None] - cy
        cos, sin = np.cos(turned), np.sin(turned)
        distance = own.distance(cos * dx + sin * dy, cos * dy - sin * dx, r)
        found[rows] = np.clip(np.float32(0.5) - distance, 0, 1)
    return found


def boxes(covered: Floats) -> NDArray[np.int64]:
    """(pictures, 4): left, top, right and bottom of the pixels that are covered by half or more,
    right and bottom just outside."""
    inside = covered >= 0.5
    ends = []
    for axis in (1, 2):  # what is left are columns, then rows
        lines = np.logical_or.reduce(inside, axis)
        ends.append((lines.argmax(1), SIDE - lines[:, ::-1].argmax(1)))
    (left, right), (top, bottom) = ends
    return np.stack([left, top, right, bottom], 1)


def painted(picture: Floats, covered: Floats, colour: Floats) -> None:
    """Lays colours (pictures, 3) over pictures (pictures, height, width, 3), in place."""
    picture += covered[..., None] * (colour[:, None, None] - picture)
