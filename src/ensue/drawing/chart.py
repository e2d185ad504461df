"""Charts: axes with their numbers, curves and bands, legends, and the heading above them.

Charts use the colours of Okabe and Ito, which colour-blind people can distinguish. Colours whose
contrast with the paper was too low are darkened. Each series also has its own mark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ensue.drawing.svg import FAINT, INK, QUIET, RULE, Drawing, Point, text_width

WIDE, MARGIN = 1060.0, 36.0  # width of a picture with charts
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#c4659a", "#b87f00", "#3b93c8", "#1e293b")
GOOD = "#15803d"
ROOM = 0.06  # margin of an axis beyond the outermost values
MOST_TICKS = 7
DECADES = tuple(10.0**k for k in range(-12, 13))
HALVED_DECADES = tuple(m * power for power in DECADES for m in (1, 2, 5))

Ticks = Sequence[tuple[float, str]]


def colour_of(series: int) -> str:
    return COLOURS[series % len(COLOURS)]


def number_text(value: float) -> str:
    """
    >>> number_text(-0.5), number_text(12000.0)
    ('−0.5', '12,000')
    """
    return f"{value:,.6g}".replace("-", "−")


def round_numbers(low: float, high: float, most: int = MOST_TICKS) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, from low to high.

    >>> round_numbers(97, 640)
    [100.0, 200.0, 300.0, 400.0, 500.0, 600.0]
    """
    rough = max(high - low, 1e-12) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(size * power for size in (1, 2, 5, 10) if size * power >= rough)
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


@dataclass(frozen=True)
class Axis:
    """Maps values from `low` to `high` to positions from `start` to `end`; values outside are
    clipped."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    @classmethod
    def over(
        cls,
        values: Iterable[float],
        start: float,
        end: float,
        *,
        logarithmic: bool = False,
        room: float = ROOM,
    ) -> Axis:
        """An axis with a margin beyond the outermost values, also if all are equal."""
        scaled = [math.log(value) if logarithmic else value for value in values]
        low, high = min(scaled), max(scaled)
        room = room * (high - low) or 0.5 * abs(high) or 1.0
        low, high = low - room, high + room
        if logarithmic:
            low, high = math.exp(low), math.exp(high)
        return cls(low, high, start, end, logarithmic)

    def __call__(self, value: float) -> float:
        within = min(max(value, self.low), self.high)
        if self.logarithmic:
            share = math.log(within / self.low) / math.log(self.high / self.low)
        else:
            share = (within - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * share

    def ticks(self, *candidates: Sequence[float]) -> list[float]:
        """Round numbers on the axis. A logarithmic axis takes the first list with at least two
        numbers inside, else two numbers near its ends."""
        if not self.logarithmic:
            return round_numbers(self.low, self.high)
        for values in candidates or (DECADES, HALVED_DECADES):
            inside = [value for value in values if self.low <= value <= self.high]
            if len(inside) >= 2:
                return inside
        ratio = self.high / self.low
        return [self.low * ratio**0.1, self.low * ratio**0.9]


class Panel:
    """A field of a drawing with an axis below and one at its left."""

    def __init__(self, drawing: Drawing, x: Axis, y: Axis) -> None:
        self.drawing, self.x, self.y = drawing, x, y

    def at(self, x: float, y: float) -> Point:
        return self.x(x), self.y(y)

    def axes(
        self, x_title: str, y_title: str, x_ticks: Ticks | None = None, y_ticks: Ticks | None = None
    ) -> None:
        """Draws rules, numbers and titles. ticks: the default is the ticks of the axes."""
        x, y, draw = self.x, self.y, self.drawing
        for value, words in labelled(y) if y_ticks is None else y_ticks:
            draw.line([(x.start, y(value)), (x.end, y(value))], RULE)
            draw.words((x.start - 9, y(value)), words, 11, QUIET, "end")
        draw.line([(x.start, y.start), (x.end, y.start)], FAINT)
        for value, words in labelled(x) if x_ticks is None else x_ticks:
            draw.line([(x(value), y.start), (x(value), y.start + 5)], FAINT)
            draw.words((x(value), y.start + 18), words, 11, QUIET)
        draw.words(((x.start + x.end) / 2, y.start + 40), x_title, 12, QUIET)
        draw.words((x.start, y.end - 16), y_title, 12, QUIET, "start")

    def curve(
        self,
        values: Iterable[tuple[float, float]],
        colour: str,
        thick: float = 2.2,
        dashes: str = "",
    ) -> list[Point]:
        """Draws a line through pairs of x and y; returns their positions."""
        points = [self.at(x, y) for x, y in values]
        self.drawing.line(points, colour, thick, dashes)
        return points


def labelled(axis: Axis) -> Ticks:
    return [(value, number_text(value)) for value in axis.ticks()]


class Key(NamedTuple):
    """An entry of a legend. mark: index of the mark, if any; shape: a line, an area, a tick, or
    nothing next to the mark."""

    name: str
    colour: str
    dashes: str = ""
    mark: int | None = None
    shape: Literal["line", "area", "tick", ""] = "line"


def legend(drawing: Drawing, keys: Iterable[Key], left: float, y: float, right: float) -> float:
    """Draws keys next to each other, in as many lines as they need; returns the height of the last
    line."""
    x = left
    for name, colour, dashes, mark, shape in keys:
        room = 30 + text_width(name, 12.5)
        if x + room > right and x > left:
            x, y = left, y + 20
        if shape == "area":
            drawing.bar(x, y - 6, 24, 12, colour)
        elif shape == "line":
            drawing.line([(x, y), (x + 24, y)], colour, 2.4, dashes)
        elif shape == "tick":
            drawing.line([(x + 12, y - 6), (x + 12, y + 6)], colour, 2.4)
        if mark is not None:
            drawing.mark((x + 12, y), mark, colour, 5)
        drawing.words((x + 30, y), name, 12.5, INK, "start")
        x += room + 14
    return y


def heading(drawing: Drawing, title: str, *lines: str) -> float:
    """Draws the title of a picture and its subtitle; returns where the rest begins."""
    drawing.words((MARGIN, 38), title, 22, INK, "start", weight=600)
    for k, line in enumerate(lines):
        drawing.words((MARGIN, 64 + 20 * k), line, 13, QUIET, "start")
    return 68.0 + 20 * len(lines)
