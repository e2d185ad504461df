"""The learning lab as one picture: a panel for each experiment."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ensue.drawing.chart import (
    MARGIN,
    Axis,
    Key,
    Panel,
    colour_of,
    heading,
    labelled,
    legend,
    shown,
)
from ensue.drawing.svg import INK, QUIET, RULE, Drawing
from ensue.study.foundations.lab import COINS, START, VALLEY, Lab

WIDE, GAP, AXIS = 1120.0, 48.0, 44.0  # of all; between panels; left of a field, for its numbers
PANEL, HIGH = (WIDE - 2 * MARGIN - GAP) / 2, 216.0
HEAD, FOOT = 82.0, 64.0  # above and below a panel's field
BESIDE = 290.0  # the legend at the right of the first panel
RIGHT = MARGIN + PANEL + GAP  # where the second column begins
BLUE, RED = colour_of(0), colour_of(1)


def draw(lab: Lab) -> str:
    """The picture as SVG."""
    drawing = Drawing()
    words = "f(x) = sin 10x + x: its minimum is sought, its values are learned from samples"
    top = heading(drawing, "The learning lab", f"{words}; seed {lab.seed}") + 12
    rows = [top + k * (HEAD + HIGH + FOOT) for k in range(5)]
    _descent(drawing, lab, rows[0])
    _costs(drawing, lab, rows[1])
    _families(drawing, lab, rows[1])
    _networks(drawing, lab, rows[2])
    _estimators(drawing, lab, rows[2])
    _curves(drawing, lab, rows[3])
    _stopping(drawing, lab, rows[3])
    return drawing.svg(WIDE, rows[4], "The learning lab")


def _titled(drawing: Drawing, left: float, top: float, title: str, keys: Sequence[Key]) -> None:
    drawing.words((left, top + 10), title, 16, INK, "start", weight=600)
    legend(drawing, keys, left, top + 36, WIDE)


def _field(
    drawing: Drawing,
    left: float,
    top: float,
    x: tuple[float, float],
    y: tuple[float, float],
    wide: float = PANEL,
) -> Panel:
    """An empty panel whose axes go from the first to the second number."""
    bottom = top + HEAD + HIGH
    return Panel(drawing, Axis(*x, left + AXIS, left + wide), Axis(*y, bottom, top + HEAD))


def _f(x: float) -> float:
    return math.sin(10 * x) + x


def _descent(drawing: Drawing, lab: Lab, top: float) -> None:
    wide = WIDE - 2 * MARGIN - BESIDE
    _titled(drawing, MARGIN, top, "Descent: how far is a step?", [Key("f(x) = sin 10x + x", QUIET)])
    panel = _field(drawing, MARGIN, top, (-2.2, 0.35), (-3.2, 1.4), wide)
    panel.axes("x", "f(x)")
    grid = [panel.x.low + (panel.x.high - panel.x.low) * k / 400 for k in range(401)]
    panel.curve([(x, _f(x)) for x in grid], QUIET, 2)
    at = MARGIN + wide + 34
    for k, walk in enumerate(lab.walks):
        seen = [x for x in walk.places[:14] if panel.x.low <= x <= panel.x.high]
        points = panel.curve([(x, _f(x)) for x in seen], colour_of(k), 1.1, "3 3")
        for point in points[1:]:
            drawing.mark(point, k, colour_of(k), 4.4)
        y = top + HEAD + 18 + 50 * k
        drawing.mark((at, y), k, colour_of(k), 6)
        drawing.words((at + 16, y), f"rate {walk.rate:g}", 13, INK, "start", weight=600)
        drawing.words((at + 16, y + 18), walk.ending, 12, QUIET, "start")
    start, valley = (panel.at(x, _f(x)) for x in (START, VALLEY))
    drawing.mark(start, 0, INK, 6)
    drawing.words((start[0] + 12, start[1]), "start −0.6", 12, INK, "start", weight=600)
    drawing.words((valley[0], valley[1] + 18), "minimum −0.7954", 12, INK)


def _costs(drawing: Drawing, lab: Lab, top: float) -> None:
    costs = lab.costs
    curves = {"expected": costs.expected, "empirical": costs.empirical}
    names = ("expected, over all x", "empirical, of ten noisy samples")
    keys = [Key(name, colour_of(k)) for k, name in enumerate(names)]
    title = "The cost one wants, and the cost one has"
    _titled(drawing, MARGIN, top, title, [*keys, Key("least", INK, mark=0, shape="")])
    most = math.ceil(2 * max(map(max, curves.values()))) / 2
    panel = _field(drawing, MARGIN, top, (-2, 4), (0, most))
    panel.axes("slope a of the hypothesis a·x", "mean squared error")
    for x in costs.minima:
        foot = panel.at(x, 0)
        drawing.line([foot, (foot[0], foot[1] - 9)], RED, 1.2)
    beside = panel.at(max(costs.minima), 0)
    words = f"least of {len(costs.minima)} draws"
    drawing.words((beside[0] + 8, beside[1] - 8), words, 11, QUIET, "start")
    for k, curve in enumerate(curves.values()):
        panel.curve(zip(costs.slopes, curve, strict=True), colour_of(k))
    for k, (which, curve) in enumerate(curves.items()):
        drawing.mark(panel.at(costs.best(which), min(curve)), 0, colour_of(k), 7 - 2 * k)


def _families(drawing: Drawing, lab: Lab, top: float) -> None:
    found, winner = lab.families, lab.families.winner
    keys = [Key(own.name, colour_of(k)) for k, own in enumerate(found.all)]
    title = f"Validation chooses the {winner.name}"
    _titled(drawing, RIGHT, top, title, [*keys, Key("training rows", INK, mark=0, shape="")])
    panel = _field(drawing, RIGHT, top, (-1, 1), (-2.2, 2.2))
    panel.axes("x", "y")
    for k, family in enumerate(found.all):
        thick = 2.8 if family is winner else 1.6
        panel.curve(zip(found.grid, family.curve, strict=True), colour_of(k), thick)
    for at in zip(found.x, found.y, strict=True):
        drawing.mark(panel.at(*at), 0, INK, 3.4)
    errors = ", ".join(f"{own.name} {own.validation:.3f}" for own in found.all)
    words = f"validation error: {errors}"
    drawing.words((panel.x.end, panel.y.end - 16), words, 12, QUIET, "end")


def _networks(drawing: Drawing, lab: Lab, top: float) -> None:
    found = lab.networks
    bars = (("first layer random", found.random, RED), ("all layers tuned", found.tuned, BLUE))
    keys = [Key(name, colour, shape="area") for name, _, colour in bars]
    _titled(drawing, MARGIN, top, "Why all layers are tuned", keys)
    most = math.ceil(10 * max(*found.random, *found.tuned)) / 10
    panel = _field(drawing, MARGIN, top, (0, len(found.units)), (0, most))
    ticks = [(k + 0.5, str(units)) for k, units in enumerate(found.units)]
    panel.axes("units of the hidden layer", "mean squared test error", ticks)
    wide = panel.x(0.28) - panel.x(0)
    for side, (_, errors, colour) in enumerate(bars):
        for k, error in enumerate(errors):
            x, y = panel.at(k + 0.2 + 0.32 * side, error)
            drawing.bar(x, y, wide, max(panel.y.start - y, 1.0), colour)
            drawing.words((x + wide / 2, y - 9), f"{error:.2f}", 11, INK)


def _estimators(drawing: Drawing, lab: Lab, top: float) -> None:
    found = lab.estimators
    units = [Key(f"z = {shown(z)}", colour_of(k), mark=k) for k, z in enumerate(COINS)]
    keys = [*units, Key("exact", INK, shape="tick")]
    _titled(drawing, RIGHT, top, "Gradients through a coin", keys)
    spans = [
        (mean - deviation, mean + deviation)
        for own in found.all
        for mean, deviation in zip(own.mean, own.deviation, strict=True)
    ]
    ends = math.floor(min(low for low, _ in spans)), math.ceil(max(high for _, high in spans))
    panel = _field(drawing, RIGHT + 134, top, ends, (0, len(found.all)), PANEL - 134)
    for tick in panel.x.ticks():
        drawing.line([panel.at(tick, 0), panel.at(tick, len(found.all))], RULE)
    panel.axes("estimate of ∂E[C]/∂z, mean ± deviation", "", labelled(panel.x), [])
    for k, own in enumerate(found.all):
        line = len(found.all) - k - 0.5
        name, _, way = own.name.partition(", ")
        y = panel.y(line)
        drawing.words((RIGHT, y - (8 if way else 0)), name, 12.5, INK, "start", weight=600)
        drawing.words((RIGHT, y + 9), way, 11.5, QUIET, "start")
        for unit, exact in enumerate(found.exact):
            height, mean, deviation = line + 0.25 * (1 - unit), own.mean[unit], own.deviation[unit]
            span = [(mean - deviation, height), (mean + deviation, height)]
            panel.curve(span, colour_of(unit), 2)
            drawing.mark(panel.at(mean, height), unit, colour_of(unit), 5)
            x, y = panel.at(exact, height)
            drawing.line([(x, y - 6), (x, y + 6)], INK, 2.4)


def _curves(drawing: Drawing, lab: Lab, top: float) -> None:
    own = lab.curves
    keys = [Key("gradient descent", BLUE), Key("SGD", RED), Key("closed form", QUIET, "4 4")]
    _titled(drawing, MARGIN, top, "A step for all rows, or for each", keys)
    panel = _field(drawing, MARGIN, top, (0, own.seen[-1]), (0, math.ceil(own.descent[0])))
    panel.axes("examples seen", "mean squared error over all rows")
    panel.curve([(0, own.least), (own.seen[-1], own.least)], QUIET, 1.4, "4 4")
    for colour, costs in ((BLUE, own.descent), (RED, own.stochastic)):
        panel.curve(zip(own.seen, costs, strict=True), colour)


def _stopping(drawing: Drawing, lab: Lab, top: float) -> None:
    own = lab.stopping
    keys = [Key("training", BLUE), Key("validation", RED), Key("kept", INK, mark=0, shape="")]
    _titled(drawing, RIGHT, top, "Where early stopping stops", keys)
    most = max(max(own.validation), max(own.train))
    panel = _field(drawing, RIGHT, top, (0, own.updates[-1]), (0, math.ceil(2 * most) / 2))
    panel.axes("updates", "mean squared error")
    for colour, costs in ((BLUE, own.train), (RED, own.validation)):
        panel.curve(zip(own.updates, costs, strict=True), colour)
    x = panel.x(own.stopped)
    drawing.line([(x, panel.y.start), (x, panel.y.end)], QUIET, 1.4, "4 4")
    drawing.words((x + 6, panel.y.end + 8), f"stops at {own.stopped}", 12, QUIET, "start")
    drawing.mark(panel.at(own.best, own.kept), 0, INK, 5.5)
