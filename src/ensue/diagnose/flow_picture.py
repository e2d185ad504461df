"""A flow as one picture, with a panel for each measurement."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ensue.diagnose.findings import LEFT, Finding
from ensue.diagnose.flow import Flow, PassageFlow, TrackFlow
from ensue.drawing.chart import MARGIN, Axis, Key, Panel, Ticks, colour_of, heading, legend
from ensue.drawing.svg import BLUE, INK, QUIET, RULE, Drawing, Point
from ensue.drawing.theme import PAPER, mixed

WIDE, GAP, AXIS = 1120.0, 48.0, 58.0  # total width; between panels; left margin, for numbers
PANEL, HIGH = (WIDE - 2 * MARGIN - GAP) / 2, 216.0
HEAD, FOOT = 76.0, 66.0  # above and below a panel's field
LOWEST, HIGHEST = 1e-12, 1e12  # smallest and largest norm that is drawn
MOST_SQUARES = 60
SAID = {"healthy": "#15803d", "vanishing": "#b45309", "exploding": "#be123c"}
LINE = 96  # characters of a finding

Curve = Sequence[tuple[float, float]]


def number(value: float) -> str:
    """
    >>> number(0.0312), number(1234.5), number(-2e-9)
    ('0.031', '1.2e+03', '−2e−09')
    """
    return f"{value:.2g}".replace("-", "−") if value else "0"


def pooled(rows: Sequence[Sequence[float]], most: int) -> list[list[float]]:
    """A map with at most `most` squares per side; each has the maximum of the squares that it
    replaces."""
    size = -(-len(rows) // most) or 1
    starts = range(0, len(rows), size)
    return [
        [max(v for row in rows[i : i + size] for v in row[j : j + size]) for j in starts]
        for i in starts
    ]


def draw(flow: Flow, titled: bool = True) -> str:
    """The picture as SVG. titled: draw title and findings too, which a page already has."""
    drawing, top = Drawing(), 8.0
    if titled:
        top = heading(drawing, "Gradient flow", flow.title)
        for finding in flow.findings:
            top = _finding(drawing, finding, top, len(flow.tracks) > 1)
    panels = [_jacobians, _gradients, _states]
    panels += [_gates] * any(track.gates for track in flow.tracks)
    panels += [_shortcuts] * any(track.shortcuts for track in flow.tracks)
    places = [
        (MARGIN + (PANEL + GAP) * (k % 2), top + 14 + (HEAD + HIGH + FOOT) * (k // 2))
        for k in range(len(panels) + sum(bool(passage.map) for passage in flow.passages))
    ]
    for panel, at in zip(panels, places, strict=False):
        panel(drawing, flow, at)
    maps = [passage for passage in flow.passages if passage.map]
    for passage, at in zip(maps, places[len(panels) :], strict=True):
        _map(drawing, passage, at)
    bottom = max(y for _, y in places) + HEAD + HIGH + FOOT
    return drawing.svg(WIDE, bottom, "Gradient flow")


def _finding(drawing: Drawing, finding: Finding, top: float, several: bool) -> float:
    name = f"{finding.name} ({finding.where})" if several else finding.name
    drawing.words(
        (MARGIN, top + 4), name, 14, SAID.get(finding.name, "#6d28d9"), "start", weight=600
    )
    words, lines = finding.why.split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) >= LINE:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    for line in lines:
        drawing.words((MARGIN + 260, top + 4), line.replace("e-", "e−"), 13, INK, "start")
        top += 20
    return top + 4


# --- panels ----------------------------------------------------------------------------------


def _titled(drawing: Drawing, at: Point, title: str, keys: Iterable[Key]) -> None:
    drawing.words((at[0], at[1] + 10), title, 16, INK, "start", weight=600)
    legend(drawing, keys, at[0], at[1] + 34, at[0] + PANEL)


def _field(drawing: Drawing, at: Point, x: tuple[float, float], y: Axis) -> Panel:
    return Panel(drawing, Axis(*x, at[0] + AXIS, at[0] + PANEL), y)


def _norms(at: Point, values: Iterable[float]) -> Axis:
    """A logarithmic axis over the values that can be drawn."""
    clipped = [min(max(value, LOWEST), HIGHEST) for value in values if value > 0] or [1.0]
    low, high = math.floor(math.log10(min(clipped))), math.ceil(math.log10(max(clipped)))
    ends = (10.0 ** min(low, high - 1), 10.0**high)
    return Axis(*ends, at[1] + HEAD + HIGH, at[1] + HEAD, logarithmic=True)


def _ticks(axis: Axis) -> Ticks:
    low, high = (round(math.log10(end)) for end in (axis.low, axis.high))
    every = -(-(high - low) // 6) or 1
    return [(10.0**k, _tens(k)) for k in range(low, high + 1, every)]


def _tens(power: int) -> str:
    return f"{10.0**power:g}" if -3 < power < 5 else f"1e{power}".replace("-", "−")


def _jacobians(drawing: Drawing, flow: Flow, at: Point) -> None:
    curves = [(track.name, [math.exp(min(v, 700)) for v in track.logs]) for track in flow.tracks]
    bounds = [track for track in flow.tracks if track.bound]
    keys = [Key(name, colour_of(k)) for k, (name, _) in enumerate(curves)]
    keys += [Key("bound (λσ_max)^(t−k)", QUIET, "5 4")] * bool(bounds)
    _titled(drawing, at, "How much of h_k is left in h_t", keys)
    steps = max(track.steps for track in flow.tracks)
    drawn = [v for _, values_of_curve in curves for v in values_of_curve] + [LEFT]
    drawn += [bound.bound**bound.steps for bound in bounds if bound.bound]
    panel = _field(drawing, at, (0, steps), _norms(at, drawn))
    panel.axes("distance t − k, in steps", "‖∂h_t/∂h_k‖₂", None, _ticks(panel.y))
    panel.curve([(0, LEFT), (steps, LEFT)], RULE, 1.4, "2 3")
    drawing.words((panel.x.end, panel.y(LEFT) - 9), "1 %", 11, QUIET, "end")
    for track in bounds:
        assert track.bound is not None
        log = math.log(track.bound)
        line = [(d, math.exp(min(d * log, 700))) for d in range(track.steps + 1)]
        panel.curve(_above(line), QUIET, 1.6, "5 4")
    for k, (_, values) in enumerate(curves):
        panel.curve(_above(list(enumerate(values))), colour_of(k))


def _above(curve: Curve) -> list[tuple[float, float]]:
    """The part of a curve before it leaves the field at its bottom."""
    lines = []
    for x, y in curve:
        lines.append((x, max(y, LOWEST)))
        if y <= LOWEST:
            break
    return lines


def _gradients(drawing: Drawing, flow: Flow, at: Point) -> None:
    keys = [Key(track.name, colour_of(k)) for k, track in enumerate(flow.tracks)]
    _titled(drawing, at, "Where the gradient arrives", keys)
    values = [v for track in flow.tracks for v in track.gradient]
    panel = _field(drawing, at, _steps(flow), _norms(at, values))
    panel.axes("step t", "‖∂L/∂h_t‖₂", None, _ticks(panel.y))
    for k, track in enumerate(flow.tracks):
        points = [(t, max(v, LOWEST)) for t, v in enumerate(track.gradient, 1) if v > 0]
        if points:
            panel.curve(points, colour_of(k))


def _steps(flow: Flow) -> tuple[float, float]:
    return 1, max(2, *(len(track.gradient) for track in flow.tracks))


def _states(drawing: Drawing, flow: Flow, at: Point) -> None:
    series = [
        (name if not track.forward else f"{name}, same weights", values)
        for track in flow.tracks
        for name, values in (track.forward or {track.name: track.states}).items()
    ]
    _titled(drawing, at, "How large the state is", _keys(series))
    values = [v for _, curve in series for v in curve]
    panel = _field(drawing, at, _steps(flow), _norms(at, values))
    panel.axes("step t", "‖h_t‖₂", None, _ticks(panel.y))
    for k, (_, curve) in enumerate(series):
        panel.curve([(t, max(v, LOWEST)) for t, v in enumerate(curve, 1)], colour_of(k))


def _keys(series: Sequence[tuple[str, object]]) -> list[Key]:
    return [Key(name, colour_of(k)) for k, (name, _) in enumerate(series)]


def _named(flow: Flow, track: TrackFlow, name: str) -> str:
    return f"{track.name}, {name}" if len(flow.tracks) > 1 else name


def _gates(drawing: Drawing, flow: Flow, at: Point) -> None:
    series = [(_named(flow, t, g.name), g.mean) for t in flow.tracks for g in t.gates]
    _titled(drawing, at, "How far the gates are open", _keys(series))
    low, high = at[1] + HEAD + HIGH, at[1] + HEAD
    panel = _field(drawing, at, _steps(flow), Axis(0, 1, low, high))
    panel.axes("step t", "mean over units")
    for k, (_, curve) in enumerate(series):
        panel.curve(list(enumerate(curve, 1)), colour_of(k))


def _shortcuts(drawing: Drawing, flow: Flow, at: Point) -> None:
    series = [
        (_named(flow, t, f"{shortcut.part}: {shortcut.equation}"), shortcut.arriving)
        for t in flow.tracks
        for shortcut in t.shortcuts
    ]
    _titled(drawing, at, "What the shortcut carries to the end", _keys(series))
    panel = _field(drawing, at, _steps(flow), _norms(at, [v for _, curve in series for v in curve]))
    panel.axes("step k of writing", "share left at the end", None, _ticks(panel.y))
    for k, (_, curve) in enumerate(series):
        points = [(t, max(v, LOWEST)) for t, v in enumerate(curve, 1) if v > 0]
        panel.curve(points, colour_of(k))


def _map(drawing: Drawing, passage: PassageFlow, at: Point) -> None:
    squares = pooled(passage.map, MOST_SQUARES)
    most = max((v for row in squares for v in row if math.isfinite(v)), default=0.0)
    words = "what it read held fixed" if passage.in_turn else f"strongest {number(most)}"
    _titled(drawing, at, f"What an output depends on: {passage.name}", [])
    drawing.words(
        (at[0], at[1] + 34), f"‖∂L_t/∂x_k‖₂, each tenth fainter; {words}", 12.5, QUIET, "start"
    )
    size = HIGH / len(squares)
    left, top = at[0] + AXIS, at[1] + HEAD
    for i, row in enumerate(squares):
        for j, value in enumerate(row):
            share = 1 + math.log10(value / most) / 5 if value > 0 and most > 0 else 0.0
            if share > 0:
                colour = mixed(PAPER, BLUE.line, 0.06 + 0.94 * share)
                drawing.bar(left + j * size, top + i * size, size, size, colour, 0.0)
    steps = len(passage.map)
    edge = [(left, top), (left, top + HIGH), (left + HIGH, top + HIGH)]
    drawing.line(edge, RULE)
    for step, share in ((1, 0.5 / steps), (steps, 1 - 0.5 / steps)):
        drawing.words((left - 8, top + HIGH * share), str(step), 11, QUIET, "end")
        drawing.words((left + HIGH * share, top + HIGH + 16), str(step), 11, QUIET)
    drawing.words((left + HIGH / 2, top + HIGH + 38), "step k of the input", 12, QUIET)
    drawing.words((left, top - 14), "step t of the output", 12, QUIET, "start")
