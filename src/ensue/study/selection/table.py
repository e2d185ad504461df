"""A selection as a document: one table, the winner's test, and the picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ensue.drawing.chart import GOOD, MARGIN, WIDE, Axis, Panel, colour_of, heading
from ensue.drawing.document import Block, Document, Figure, Paragraph, Section, Table
from ensue.drawing.layout import score_text, size_text, time_text
from ensue.drawing.svg import FAINT, INK, Drawing, Point, text_width
from ensue.escape import in_shell
from ensue.study.selection.entries import TOGETHER

if TYPE_CHECKING:
    from ensue.study.selection.entries import Entry, Selection, WinnerVerdict

LEFT = 2  # columns of words; numbers are aligned right


def document(selection: Selection) -> Document:
    head = (
        "", "model", f"validation {selection.measure}", "parameters", "size", "epochs",
        "time in all", "tokens/s",
    )  # fmt: skip
    rows = [_cells_of(k, row) for k, row in enumerate(selection.rows, 1) if not row.failure]
    failed = [f"{row.name} failed: {row.failure}" for row in selection.rows if row.failure]
    blocks: list[Block] = [Table(rows, head, left=LEFT), *map(Paragraph, failed)]
    blocks += _search_blocks(selection)
    blocks += [_tested(selection.test)] if selection.test else []
    picture = [Figure(draw(selection))] if selection.winner else []
    return Document(f"Models for {selection.task}", "", [*blocks, *picture])


def _cells_of(rank: int, row: Entry) -> tuple[str, ...]:
    return (
        str(rank),
        row.title,
        score_text(row.score),
        "–" if row.parameters is None else f"{row.parameters:,}",
        size_text(row.size),
        str(row.epochs or "–"),
        time_text(row.seconds),
        "–" if row.speed is None else f"{row.speed:,.0f}",
    )


def _search_blocks(selection: Selection) -> list[Block]:
    """The blocks of a search: the number of stopped trials, and the settings of the winner."""
    if not selection.search or selection.winner is None:
        return []
    winner, trials = selection.winner, [row for row in selection.rows if row.name != TOGETHER]
    stopped = sum(bool(trial.stopped) for trial in trials)
    verb = "was" if stopped == 1 else "were"
    count = f"{stopped} of {len(trials)} trials {verb} stopped early" if stopped else ""
    best_settings = (
        winner.what if winner.name == TOGETHER else _as_options(selection.changed(winner))
    )
    return [Paragraph(count), Section(f"{winner.name}: {best_settings}", ())]


def _as_options(settings: Mapping[str, Any]) -> str:
    """Settings in the form of a command."""
    words = " ".join(f"--set {in_shell(f'{key}={value}')}" for key, value in settings.items())
    return words or "the default settings"


def _tested(test: WinnerVerdict) -> Section:
    """The winner's score, what it must beat, and whether it does."""
    times = "once" if test.opened == 1 else f"{test.opened} times"
    title = (
        f"{test.name} on the test part ({test.rows:,} rows, opened {times}): {test.measure} "
        f"{score_text(test.value)}, 95 % interval {score_text(test.low)} … {score_text(test.high)}"
    )
    blocks = []
    if test.baselines:
        others = ", ".join(f"{name} {score_text(v)}" for name, v in test.baselines.items())
        blocks.append(Paragraph(f"for comparison, {test.measure}: {others}"))
    sign = 1 if test.higher_is_better else -1
    better = [name for name, v in test.baselines.items() if sign * v >= sign * test.value]
    if better:
        blocks.append(Paragraph(f"The winner does not beat the {', nor the '.join(better)}."))
    return Section(title, blocks)


BETWEEN, AXIS, HIGH = 40.0, 58.0, 330.0  # two panels; space left of one; its height
ROOM = 0.12  # of an axis, beyond the outermost marks
# times at an axis: few, or more on a short axis
FEW = {0.01: "10 ms", 0.1: "0.1 s", 1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h",
       36_000: "10 h", 360_000: "100 h"}  # fmt: skip
MORE = {0.02: "20 ms", 0.05: "50 ms", 0.2: "0.2 s", 0.5: "0.5 s", 2: "2 s", 5: "5 s", 20: "20 s",
        30: "30 s", 120: "2 min", 300: "5 min", 1200: "20 min", 1800: "30 min", 7200: "2 h",
        18_000: "5 h", 72_000: "20 h"}  # fmt: skip
LABEL = 12.5  # height of a name next to its mark
Box = tuple[float, float, float, float]  # left, right, top, bottom


def draw(selection: Selection) -> str:
    """The picture as SVG; only candidates with a score are in it."""
    return _Panels(selection).svg()


class _Panels:
    def __init__(self, selection: Selection) -> None:
        self.selection, self.drawing = selection, Drawing()
        scored = [row for row in selection.rows if row.score is not None]
        self.rows = [row for row in scored if not row.stopped] or scored
        names = sorted(row.name for row in self.rows)
        self.styles = {name: k for k, name in enumerate(names)}
        self.wide = (WIDE - 2 * MARGIN - BETWEEN) / 2

    def svg(self) -> str:
        title = f"Models for {self.selection.task}: quality, size and time"
        top = heading(self.drawing, title, *self._lines()) + 34
        left = MARGIN + self.wide + BETWEEN
        self._panel(MARGIN, top, "size of what was learned", _size, _size_ticks)
        self._panel(left, top, "time in all", _seconds, _time_ticks)
        return self.drawing.svg(WIDE, top + HIGH + 64, title)

    def _lines(self) -> list[str]:
        test, best = self.selection.test, self.rows[0]
        lines = [f"best on validation: {best.name} ({best.what})"]
        if test:
            others = "".join(f"; {name} {score_text(v)}" for name, v in test.baselines.items())
            lines.append(f"{test.name} on the test part: {score_text(test.value)}{others}")
        failed = [row.name for row in self.selection.rows if row.failure]
        stopped = [row.name for row in self.selection.rows if row.stopped]
        lines += [f"stopped early: {len(stopped)} of {len(self.selection.rows)}"] * bool(stopped)
        return [*lines, *([f"failed: {', '.join(failed)}"] if failed else [])]

    def _panel(
        self,
        left: float,
        top: float,
        what: str,
        value: Callable[[Entry], float],
        ticks: Callable[[Axis], Sequence[tuple[float, str]]],
    ) -> None:
        better = "higher" if self.selection.higher_is_better else "lower"
        title = f"validation {self.selection.measure} ({better} is better)"
        ends = left + AXIS, left + self.wide
        x = Axis.over(map(value, self.rows), *ends, logarithmic=True, room=ROOM)
        y = Axis.over([row.score or 0.0 for row in self.rows], top + HIGH, top, room=ROOM)
        panel = Panel(self.drawing, x, y)
        panel.axes(what, title, ticks(x))
        places = {row.name: panel.at(value(row), row.score or 0.0) for row in self.rows}
        labels = beside(places, x.end, {row.name: row.short for row in self.rows})
        for row in reversed(self.rows):  # the best one is drawn on top
            self._mark(row, places[row.name], labels[row.name])

    def _mark(self, row: Entry, at: Point, label: Point) -> None:
        style, first = self.styles[row.name], row is self.rows[0]
        self.drawing.begin(
            f"{row.name}: {score_text(row.score)}, {size_text(row.size)}, {time_text(row.seconds)}"
        )
        if label[1] != at[1]:
            near = -4.0 if label[0] > at[0] else 4.0
            self.drawing.line([at, (label[0] + near, label[1])], FAINT, 0.8)
        anchor, ink = "start" if label[0] > at[0] else "end", GOOD if first else INK
        self.drawing.words(label, row.short, LABEL, ink, anchor, weight=600 if first else 400)
        self.drawing.mark(at, style, colour_of(style), 7.5 if first else 5.6)
        self.drawing.end()


def beside(
    places: Mapping[str, Point], end: float, labels: Mapping[str, str] | None = None
) -> dict[str, Point]:
    """The places where the names of marks begin. A name is at the right of its mark, or at the left
    if there is no space before `end`. It is lowered until it overlaps no mark and no name above.
    labels: shorter names."""
    boxes = [(x - 7, x + 7, y - 7, y + 7) for x, y in places.values()]
    found_places: dict[str, Point] = {}
    for name, (x, y) in sorted(places.items(), key=lambda item: item[1][1]):
        width, height = text_width((labels or {}).get(name, name), LABEL), y
        right = x + 15 + width < end
        left = x + 12 if right else x - 12 - width
        while any(_cover(_box(left, width, height), box) for box in boxes):
            height += 3
        boxes.append(_box(left, width, height))
        found_places[name] = (left if right else x - 12, height)
    return found_places


def _box(left: float, width: float, height: float) -> Box:
    return left, left + width, height - LABEL / 2, height + LABEL / 2


def _cover(one: Box, other: Box) -> bool:
    beside = one[1] <= other[0] or other[1] <= one[0]
    return not beside and one[2] < other[3] and other[2] < one[3]


def _size(row: Entry) -> float:
    return max(row.size, 1)


def _seconds(row: Entry) -> float:
    return max(row.seconds, 1e-3)


def _size_ticks(axis: Axis) -> list[tuple[float, str]]:
    return [(size, size_text(size)) for size in axis.ticks()]


def _time_ticks(axis: Axis) -> list[tuple[float, str]]:
    words = {**FEW, **MORE}
    ticks = axis.ticks(list(FEW), sorted(words))
    return [(seconds, words.get(seconds) or time_text(seconds)) for seconds in ticks]
