"""A selection as a picture: quality against size, and against time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ensue.data.layout import score_text, size_text, time_text
from ensue.drawing.svg import FAINT, INK, QUIET, Point, text_width
from ensue.study.memory.picture import COLOURS, RULE, SOLVED, Chart

if TYPE_CHECKING:
    from ensue.study.selection.selection import Entry, Selection

WIDE, MARGIN, BETWEEN = 1060.0, 36.0, 40.0
AXIS, HIGH = 58.0, 330.0  # room left of a panel for its numbers; its height
ROOM = 0.12  # of an axis, beyond the outermost marks
MINUTE, HOUR = 60, 3600
# what the numbers of an axis are taken from: few of them, or more where it is short
SECONDS = (
    (0.01, 0.1, 1, 10, MINUTE, 10 * MINUTE, HOUR, 10 * HOUR, 100 * HOUR),
    (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, MINUTE, 2 * MINUTE, 5 * MINUTE,
     10 * MINUTE, 20 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 5 * HOUR, 10 * HOUR, 20 * HOUR),
)  # fmt: skip
BYTES = (
    tuple(10.0**k for k in range(1, 13)),
    tuple(m * 10.0**k for k in range(1, 13) for m in (1, 2, 5)),
)
LABEL = 12.5  # height of a name beside its mark
Box = tuple[float, float, float, float]  # left, right, top, bottom


@dataclass(frozen=True)
class Axis:
    """Values to places from `start` to `end`; by their logarithms, or as they are."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool

    @classmethod
    def over(
        cls, values: Sequence[float], start: float, end: float, logarithmic: bool = False
    ) -> Axis:
        """With room beyond the outermost, also where all are the same."""
        scaled = [math.log(own) for own in values] if logarithmic else list(values)
        low, high = min(scaled), max(scaled)
        room = ROOM * (high - low) or 0.5 * abs(high) or 1.0
        return cls(low - room, high + room, start, end, logarithmic)

    def __call__(self, value: float) -> float:
        scaled = math.log(value) if self.logarithmic else value
        return self.start + (self.end - self.start) * (scaled - self.low) / (self.high - self.low)

    def inside(self, value: float) -> bool:
        return self.low <= (math.log(value) if self.logarithmic else value) <= self.high

    def ticks(self, wanted: Sequence[Sequence[float]]) -> list[float]:
        """Those that are inside, of the first list that has two of them; else both ends."""
        for own in wanted:
            found = [value for value in own if self.inside(value)]
            if len(found) >= 2:
                return found
        ends = (0.9 * self.low + 0.1 * self.high, 0.1 * self.low + 0.9 * self.high)
        return [math.exp(own) if self.logarithmic else own for own in ends]


def round_steps(low: float, high: float) -> Iterator[float]:
    """Four to ten numbers from low to high: multiples of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = next(power * k for k in (5, 2, 1) if (high - low) / (power * k) >= 4)
    yield from (step * k for k in range(math.ceil(low / step), math.floor(high / step) + 1))


def draw(selection: Selection) -> str:
    """The picture as SVG; only candidates with a score are in it."""
    return _Panels(selection).svg()


class _Panels:
    def __init__(self, selection: Selection) -> None:
        self.selection, self.chart = selection, Chart()
        self.rows = [row for row in selection.rows if row.score is not None]
        names = sorted(row.name for row in self.rows)
        self.styles = {name: k for k, name in enumerate(names)}
        self.wide = (WIDE - 2 * MARGIN - BETWEEN) / 2

    def svg(self) -> str:
        title = f"Models for {self.selection.task}: quality, size and time"
        self.chart.words((MARGIN, 38), title, 22, INK, "start", weight=600)
        y = 64.0
        for line in self._lines():
            self.chart.words((MARGIN, y), line, 13, QUIET, "start")
            y += 20
        for k, (what, value, wanted, words) in enumerate(
            (
                ("size of what was learned", _size, BYTES, size_text),
                ("time to train", _seconds, SECONDS, time_text),
            )
        ):
            left = MARGIN + k * (self.wide + BETWEEN)
            self._panel(left, y + 34, what, value, wanted, words)
        return self.chart.svg(WIDE, y + 34 + HIGH + 64, title)

    def _lines(self) -> list[str]:
        test, best = self.selection.test, self.rows[0]
        lines = [f"best on validation: {best.name} ({best.what})"]
        if test:
            others = "".join(f"; {name} {score_text(v)}" for name, v in test.baselines.items())
            lines.append(f"{test.name} on the test part: {score_text(test.value)}{others}")
        failed = [row.name for row in self.selection.rows if row.failure]
        return [*lines, *([f"failed: {', '.join(failed)}"] if failed else [])]

    def _panel(
        self,
        left: float,
        top: float,
        what: str,
        value: Callable[[Entry], float],
        wanted: Sequence[Sequence[float]],
        words: Callable[[float], str],
    ) -> None:
        better = "higher" if self.selection.higher_is_better else "lower"
        title = f"validation {self.selection.measure} ({better} is better)"
        self.chart.words((left, top - 20), title, 12, QUIET, "start")
        across = Axis.over([value(row) for row in self.rows], left + AXIS, left + self.wide, True)
        up = Axis.over([row.score or 0.0 for row in self.rows], top + HIGH, top)
        for score in round_steps(up.low, up.high):
            self.chart.line([(across.start, up(score)), (across.end, up(score))], RULE, 1)
            self.chart.words((across.start - 9, up(score)), f"{score:.4g}", 11, QUIET, "end")
        bottom = top + HIGH
        self.chart.line([(across.start, bottom), (across.end, bottom)], FAINT, 1)
        for tick in across.ticks(wanted):
            x = across(tick)
            self.chart.line([(x, bottom), (x, bottom + 5)], FAINT, 1)
            self.chart.words((x, bottom + 18), words(tick), 11, QUIET)
        self.chart.words(((across.start + across.end) / 2, bottom + 42), what, 12, QUIET)
        places = {row.name: (across(value(row)), up(row.score or 0.0)) for row in self.rows}
        labels = beside(places, across.end)
        for row in reversed(self.rows):  # the best one lies on top
            self._mark(row, places[row.name], labels[row.name])

    def _mark(self, row: Entry, at: Point, label: Point) -> None:
        style = self.styles[row.name]
        colour = COLOURS[style % len(COLOURS)]
        first = row is self.rows[0]
        self.chart.begin(
            f"{row.name}: {score_text(row.score)}, {size_text(row.size)}, {time_text(row.seconds)}"
        )
        if label[1] != at[1]:
            near = -4.0 if label[0] > at[0] else 4.0
            self.chart.line([at, (label[0] + near, label[1])], FAINT, 0.8)
        anchor, ink = "start" if label[0] > at[0] else "end", SOLVED if first else INK
        self.chart.words(label, row.name, LABEL, ink, anchor, weight=600 if first else 400)
        self.chart.mark(at, style, colour, 7.5 if first else 5.6)
        self.chart.end()


def beside(places: Mapping[str, Point], end: float) -> dict[str, Point]:
    """Where the name of each mark begins: at its right, or left where there is no room before
    `end`, and lowered until it covers neither a mark nor a name above."""
    taken = [(x - 7, x + 7, y - 7, y + 7) for x, y in places.values()]
    found: dict[str, Point] = {}
    for name, (x, y) in sorted(places.items(), key=lambda own: own[1][1]):
        width, height = text_width(name, LABEL), y
        right = x + 15 + width < end
        left = x + 12 if right else x - 12 - width
        while any(_cover(_box(left, width, height), own) for own in taken):
            height += 3
        taken.append(_box(left, width, height))
        found[name] = (left if right else x - 12, height)
    return found


def _box(left: float, width: float, height: float) -> Box:
    return left, left + width, height - LABEL / 2, height + LABEL / 2


def _cover(one: Box, other: Box) -> bool:
    beside = one[1] <= other[0] or other[1] <= one[0]
    return not beside and one[2] < other[3] and other[2] < one[3]


def _size(row: Entry) -> float:
    return max(row.size, 1)


def _seconds(row: Entry) -> float:
    return max(row.seconds, 1e-3)
