"""A recurrent network unrolled for a given length, as a picture.

Time runs to the right, layers upwards. A box is one cell at one step; boxes with the same colour
and θ share their parameters, so the number of parameters does not depend on the length.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ensue.drawing.svg import (
    BLUE,
    GREY,
    INK,
    QUIET,
    STATES,
    VIOLET,
    Colour,
    Drawing,
    Point,
    name_width,
    text_width,
)
from ensue.drawing.theme import PAPER
from ensue.errors import OptionError

if TYPE_CHECKING:
    from ensue.layers.recurrent import OneWay, Recurrent

MARGIN, TITLE = 28.0, 80.0
MOST, HEAD, TAIL = 8, 4, 2  # of a longer sequence, the first and last steps are shown
BOX, PILL, BAR = 46.0, 30.0, 9.0  # heights
RISE = 34.0  # between rows
DOTS = "···"
COLOURS = (STATES[0], STATES[1], VIOLET, STATES[2], STATES[3], BLUE)


def unfold(layer: Recurrent, length: int) -> str:
    """The picture as SVG: columns are steps, rows are layers and directions."""
    if length < 1:
        raise OptionError(f"length: expected a number of steps ≥ 1, got {length}")
    return _Unfolded(layer, length).svg()


class _Row(NamedTuple):
    """One cell over all steps in one direction."""

    way: OneWay
    name: str  # of its parameters
    label: str
    colour: Colour
    y: float
    backward: bool


class _Unfolded:
    def __init__(self, layer: Recurrent, length: int) -> None:
        self.layer, self.length = layer, length
        self.drawing = Drawing()
        self.both = layer.bidirectional
        names = [type(way.cell).__name__ for way in layer.ways]
        self.box = max(64.0, *(text_width(name, 14) + 22 for name in names))
        self.aside = self.box / 4 + 8 if self.both else 0.0  # of a direction from the middle
        longest = max((way.cell.parts for way in layer.ways), key=lambda p: len("".join(p)))
        self.parts = max(40.0, name_width(", ".join(longest), 16) + 12 * len(longest) + 8)
        steps: list[int | None] = list(range(1, length + 1))
        if length > MOST:
            steps[HEAD:-TAIL] = [None]
        self.steps = steps
        self.pitch = self.box + 2 * self.aside + 44
        self.left = MARGIN + 66 + self.parts + 30 + self.box / 2 + self.aside
        right = self.middle(len(steps) - 1) + self.aside + self.box / 2 + 30 + self.parts / 2
        self.ends = MARGIN + 66 + self.parts / 2, right  # x of the states' start and end
        self.rows = self._rows()
        self.foot = self.rows[0].y + BOX / 2 + RISE + PILL / 2

    def _rows(self) -> list[_Row]:
        """The rows from the bottom up: layer 1 forward, layer 1 backward, layer 2 forward, …"""
        directions = 1 + self.both
        block = directions * (BOX + 22) - 22 + (22 + BAR if self.both else 0) + RISE
        lowest = TITLE + PILL + RISE + block * self.layer.num_layers - RISE
        rows = []
        for k, way in enumerate(self.layer.ways):
            number, backward = k // directions, k % directions == 1
            y = lowest - number * block - BOX / 2 - backward * (BOX + 22)
            words = f"layer {number + 1}"
            words += (", backward" if backward else ", forward") if self.both else ""
            name = f"θ_{number + 1}{chr(39) if backward else ''}"
            rows.append(_Row(way, name, words, COLOURS[k % len(COLOURS)], y, backward))
        return rows

    def middle(self, column: int) -> float:
        return self.left + column * self.pitch

    def centre(self, row: _Row, column: int) -> Point:
        side = self.aside if row.backward else -self.aside
        return self.middle(column) + side, row.y

    def _is_given(self, row: _Row, column: int) -> bool:
        """Whether this state is not computed but copied from the forward direction
        (backward_start)."""
        last = column == len(self.steps) - 1
        return last and row.backward and self.layer.backward_start == "shared_end"

    # ---------------------------------------------------------------- drawing
    def svg(self) -> str:
        wide = max(self.ends[1] + self.parts / 2 + MARGIN, 430.0)
        self._heading()
        for column, step in enumerate(self.steps):
            self._column(column, step)
        for row in self.rows:
            self._time(row)
            self._cells(row)
        bottom = self._legend(self.foot + PILL / 2 + 34, wide)
        return self.drawing.svg(wide, bottom + 26, f"A network unfolded over {self.length} steps")

    def _heading(self) -> None:
        cells = dict.fromkeys(type(way.cell).__name__ for way in self.layer.ways)
        many = self.layer.num_layers
        layers = f"{many} layers of " if many > 1 else ""
        both = ", both directions" if self.both else ""
        steps = "1 step" if self.length == 1 else f"{self.length:,} steps"
        title = f"{layers}{' and '.join(cells)}{both}, over {steps}"
        count = sum(_count(row.way) for row in self.rows)
        self.drawing.words((MARGIN, 30), title, 19, INK, "start", weight=600)
        note = f"{count:,} parameters, the same for every length"
        self.drawing.words((MARGIN, 52), note, 13, QUIET, "start")

    def _column(self, column: int, step: int | None) -> None:
        """Draws the flow upwards at one step: from x through the layers to y."""
        x, top = self.middle(column), TITLE + PILL / 2
        if step is None:
            for y in (self.foot, top):
                self.drawing.words((x, y), DOTS, 20, QUIET)
            return
        source = (x, self.foot - PILL / 2)
        directions = 1 + self.both
        for first in range(0, len(self.rows), directions):
            pair = self.rows[first : first + directions]
            source = self._through(pair, column, source)
        self.drawing.corners([source, (x, top + PILL / 2)], QUIET)
        for y, name in ((self.foot, f"x_{step}"), (top, f"y_{step}")):
            self.drawing.begin(f"{name}: {'input' if name[0] == 'x' else 'output'} of step {step}")
            self._pill((x, y), name, 18, BLUE if name[0] == "x" else GREY)
            self.drawing.end()

    def _through(self, pair: list[_Row], column: int, source: Point) -> Point:
        """Draws the arrows into and out of the cells of one layer; returns where the layer's output
        begins."""
        for row in pair:
            if self._is_given(row, column):
                continue
            at = self.centre(row, column)
            turn = source[1] - 13
            way = [source, (source[0], turn), (at[0], turn), (at[0], at[1] + BOX / 2)]
            self.drawing.corners(way if self.both else [source, way[-1]], QUIET, radius=7)
        if not self.both:
            return source[0], pair[0].y - BOX / 2
        bar = pair[1].y - BOX / 2 - 22 - BAR / 2
        for row in pair:
            x = self.centre(row, column)[0]
            self.drawing.corners([(x, row.y - BOX / 2), (x, bar + BAR / 2)], row.colour.line)
        self.drawing.begin("both directions, one after the other")
        for row in pair:
            x = source[0] + (self.aside + 12) / 2 * (1 if row.backward else -1)
            filled = Colour(row.colour.line, row.colour.line)
            self.drawing.rectangle((x, bar), self.aside + 12, BAR, 2, filled)
        self.drawing.end()
        return source[0], bar - BAR / 2

    def _cells(self, row: _Row) -> None:
        """Draws the row's label, and the same cell at every step."""
        cell = type(row.way.cell).__name__
        for column, step in enumerate(self.steps):
            x, y = self.centre(row, column)
            if step is None:
                self.drawing.words((x, y), DOTS, 20, row.colour.line)
                continue
            is_input = self._is_given(row, column)
            name = "= forward" if is_input else cell
            title = "the forward state" if is_input else f"{cell}, parameters {row.name}"
            self.drawing.begin(f"{row.label}, step {step}: {title}")
            self.drawing.rectangle((x, y), self.box, BOX, 6, row.colour)
            self.drawing.words((x, y - (0 if is_input else 8)), name, 13, INK, weight=600)
            if not is_input:
                self.drawing.name((x, y + 11), row.name, 15, row.colour.line)
            self.drawing.end()
        label = row.label.split(", ")
        for k, words in enumerate(label):
            height = row.y + (k - (len(label) - 1) / 2) * 15
            self.drawing.words((MARGIN, height), words, 12, QUIET, "start")

    def _time(self, row: _Row) -> None:
        """Draws the flow from step to step: the state, from its start to its end."""
        ahead, start, end = (-1, 1, 0) if row.backward else (1, 0, 1)
        half = self.parts / 2
        stops = [(self.ends[start], half)]
        for column, step in enumerate(self.steps):
            stops.append((self.centre(row, column)[0], self.box / 2 if step else 13.0))
        stops = [stops[0], *stops[1:][::ahead], (self.ends[end], half)]
        turned = row.backward and self.layer.backward_start != "zero"
        for (x, room), (to_x, to_room) in list(pairwise(stops))[turned:]:
            points = [(x + ahead * room, row.y), (to_x - ahead * to_room, row.y)]
            self.drawing.corners(points, row.colour.line, thick=1.8)
        parts = ", ".join(row.way.cell.parts)
        if turned:
            self._turn(row, stops[1])
        else:
            begin = "learned" if row.way.learned_start else "zero"
            self._state((self.ends[start], row.y), row, parts, begin)
        primes = ", ".join(f"{part}′" for part in row.way.cell.parts)
        self._state((self.ends[end], row.y), row, primes, "end")

    def _turn(self, row: _Row, first: tuple[float, float]) -> None:
        """Draws the line from the forward end state up to the start of the backward direction."""
        below = self.rows[self.rows.index(row) - 1]
        x = self.ends[1]
        points = [(x, below.y - PILL / 2), (x, row.y), (first[0] + first[1], row.y)]
        self.drawing.corners(points, below.colour.line, thick=1.8)

    def _state(self, at: Point, row: _Row, name: str, caption: str) -> None:
        self.drawing.begin(f"{row.label}: {caption} state {name}")
        self._pill(at, name, 16, row.colour, pale=True)
        self.drawing.words((at[0], at[1] + PILL / 2 + 9), caption, 11, QUIET)
        self.drawing.end()

    def _pill(
        self, at: Point, name: str, size: float, colour: Colour, *, pale: bool = False
    ) -> None:
        wide = self.parts if pale else max(44.0, name_width(name, size) + 18)
        filled = colour if pale else Colour(colour.line, colour.line)
        self.drawing.rectangle(at, wide, PILL, PILL / 2, filled)
        self.drawing.name(at, name, size, colour.line if pale else PAPER)

    def _legend(self, y: float, wide: float) -> float:
        """Draws the number of parameters of each colour, in lines; returns the height of the last
        line."""
        at = MARGIN
        for row in self.rows:
            text = f"{row.label}: {_count(row.way):,} parameters"
            room = 48 + text_width(text, 12)
            if at + room > wide - MARGIN and at > MARGIN:
                at, y = MARGIN, y + 24
            self.drawing.rectangle((at + 14, y), 28, 18, 4, row.colour)
            self.drawing.name((at + 14, y), row.name, 13, row.colour.line)
            self.drawing.words((at + 35, y), text, 12, QUIET, "start")
            at += room
        return y


def _count(way: OneWay) -> int:
    return sum(parameter.numel() for parameter in way.parameters())
