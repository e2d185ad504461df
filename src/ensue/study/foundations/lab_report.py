"""The learning lab as a document, as JSON, and as one picture with a panel for each experiment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ensue.drawing.chart import (
    MARGIN,
    Axis,
    Key,
    Panel,
    colour_of,
    heading,
    labelled,
    legend,
    number_text,
)
from ensue.drawing.document import Block, Document, Paragraph, Section, Table
from ensue.drawing.svg import INK, QUIET, RULE, Drawing
from ensue.study.foundations.lab import COINS, START, VALLEY, Divergence, Lab, Walk

FORMAT = 1
SHOWN = 5  # places of a descent
WIDE, GAP, AXIS = 1120.0, 48.0, 44.0  # width; between panels; left of a field, for its numbers
PANEL, HIGH = (WIDE - 2 * MARGIN - GAP) / 2, 216.0
HEAD, FOOT = 82.0, 64.0  # above and below a panel's field
BESIDE = 290.0  # the legend at the right of the first panel
RIGHT = MARGIN + PANEL + GAP  # start of the second column
BLUE, RED = colour_of(0), colour_of(1)


# --- the document ------------------------------------------------------------------------------


def document(lab: Lab) -> Document:
    """A section for each experiment: its numbers, and what they show."""
    experiments = (_descent, _costs, _families, _networks, _estimators, _curves, _stopping)
    words = "f(x) = sin 10x + x: its minimum is sought, its values are learned from samples"
    about = f"{words}; seed {lab.seed}"
    return Document("The learning lab", about, [experiment(lab) for experiment in experiments])


def as_json(lab: Lab) -> dict[str, Any]:
    return {"format": FORMAT, **asdict(lab)}


def _experiment(title: str, rows: Sequence[Sequence[str]], note: str = "") -> Section:
    """The section of an experiment. rows: the first is the head of the table."""
    head, *others = rows
    notes: list[Block] = [Paragraph(note, quiet=True)] if note else []
    return Section(title, (Table(others, head), *notes))


def _descent(lab: Lab) -> Section:
    def places(walk: Walk) -> list[str]:
        return [f"{x:.6f}" for x in walk.places[:SHOWN]]

    head = ["rate", *(f"x{k}" for k in range(SHOWN)), "after all steps"]
    rows = [[f"{walk.rate:g}", *places(walk), walk.ending] for walk in lab.walks]
    return _experiment("Descent on sin 10x + x from −0.6: x ← x − rate·f'(x)", [head, *rows])


def _costs(lab: Lab) -> Section:
    costs = lab.costs
    rows = [["", "least at a", "cost there"]]
    for name, curve in (("expected", costs.expected), ("empirical", costs.empirical)):
        rows.append([name, f"{costs.best(name):.2f}", f"{min(curve):.6f}"])
    low, high = min(costs.minima), max(costs.minima)
    return _experiment(
        "The cost of the line a·x: expected over all x in [0, 1], and of ten noisy samples",
        rows,
        f"Over {len(costs.minima)} draws of ten samples, the least lies between a = {low:.2f} and "
        f"{high:.2f}: a sample's minimum is not the expected cost's.",
    )


def _families(lab: Lab) -> Section:
    rows = [["", "training", "validation", "test"]]
    for family in lab.families.all:
        test = "sealed" if family.test is None else f"{family.test:.4f}"
        rows.append([family.name, f"{family.train:.4f}", f"{family.validation:.4f}", test])
    winner = lab.families.winner.name
    return _experiment(
        "Families of hypotheses, mean squared error", rows, f"Validation chooses the {winner}."
    )


def _networks(lab: Lab) -> Section:
    networks = lab.networks
    rows = [
        ["units", *map(str, networks.units)],
        ["random first layer", *(f"{error:.4f}" for error in networks.random)],
        ["all layers tuned", *(f"{error:.4f}" for error in networks.tuned)],
    ]
    return _experiment("Networks of one hidden layer, mean squared test error", rows)


def _estimators(lab: Lab) -> Section:
    estimators = lab.estimators
    units = range(len(estimators.exact))
    head = ["", *(f"∂/∂z{k + 1}" for k in units), "bias, errors", "deviation of one draw"]
    rows = [head, ["exact", *(f"{number:.4f}" for number in estimators.exact), "", ""]]
    for estimator in estimators.all:
        bias = max(abs(estimator.mean[k] - estimators.exact[k]) / estimator.error[k] for k in units)
        spread = " ".join(f"{value:.2f}" for value in estimator.deviation)
        rows.append(
            [estimator.name, *(f"{value:.4f}" for value in estimator.mean), f"{bias:.1f}", spread]
        )
    return _experiment(
        f"Gradients through three coins, mean of {estimators.draws:,} draws",
        rows,
        "bias, errors: the farthest mean from the exact gradient, in standard errors; within 3 it "
        "may be chance.",
    )


def _curves(lab: Lab) -> Section:
    curves = lab.curves
    places = [curves.examples.index(n) for n in curves.examples if n % 128 == 0]
    rows = [
        ["examples seen", *(str(curves.examples[k]) for k in places)],
        ["gradient descent", *(f"{curves.descent[k]:.4f}" for k in places)],
        ["SGD", *(f"{curves.stochastic[k]:.4f}" for k in places)],
    ]
    note = (
        f"The closed form has {curves.least:.4f}. SGD is there sooner, and then wanders around it."
    )
    return _experiment("Gradient descent and SGD, mean squared error over all rows", rows, note)


def _stopping(lab: Lab) -> Section:
    stopping = lab.stopping
    marks = dict.fromkeys((0, stopping.best, stopping.stopped, stopping.updates[-1]))
    places = [stopping.updates.index(update) for update in marks]
    rows = [
        ["update", *(str(stopping.updates[k]) for k in places)],
        ["training", *(f"{stopping.train[k]:.4f}" for k in places)],
        ["validation", *(f"{stopping.validation[k]:.4f}" for k in places)],
    ]
    note = (
        f"Early stopping gives up at update {stopping.stopped}, "
        f"and keeps the weights of {stopping.best}."
    )
    return _experiment("Early stopping, a polynomial of degree 13 on sixteen rows", rows, note)


def divergence_text(divergence: Divergence) -> str:
    rows = {
        "KL(p‖q)": divergence.forward,
        "KL(q‖p)": divergence.backward,
        "H(p)": divergence.entropy,
        "H(p, q)": divergence.cross_entropy,
    }
    lines = [f"p = {_listed(divergence.p)}", f"q = {_listed(divergence.q)}", ""]
    for name, value in rows.items():
        if math.isfinite(value):
            lines.append(f"{name:<8} {value:z.6f} nats   {value / math.log(2):z.6f} bits")
        else:
            lines.append(f"{name:<8} infinite: a value that has probability 0 there does occur")
    return "\n".join([*lines, "", "KL(p‖q) = H(p, q) − H(p) ≥ 0, and is 0 for equal distributions"])


def _listed(values: Sequence[float]) -> str:
    return "(" + ", ".join(f"{value:.4g}" for value in values) + ")"


# --- as a picture ---------------------------------------------------------------------------------


def draw(lab: Lab) -> str:
    """The picture as SVG."""
    drawing = Drawing()
    page = document(lab)
    top = heading(drawing, page.title, page.about) + 12
    rows = [top + k * (HEAD + HIGH + FOOT) for k in range(5)]
    _draw_descent(drawing, lab, rows[0])
    _draw_costs(drawing, lab, rows[1])
    _draw_families(drawing, lab, rows[1])
    _draw_networks(drawing, lab, rows[2])
    _draw_estimators(drawing, lab, rows[2])
    _draw_curves(drawing, lab, rows[3])
    _draw_stopping(drawing, lab, rows[3])
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


def _draw_descent(drawing: Drawing, lab: Lab, top: float) -> None:
    wide = WIDE - 2 * MARGIN - BESIDE
    _titled(drawing, MARGIN, top, "Descent: how far is a step?", [Key("f(x) = sin 10x + x", QUIET)])
    panel = _field(drawing, MARGIN, top, (-2.2, 0.35), (-3.2, 1.4), wide)
    panel.axes("x", "f(x)")
    grid = [panel.x.low + (panel.x.high - panel.x.low) * k / 400 for k in range(401)]
    panel.curve([(x, _f(x)) for x in grid], QUIET, 2)
    at = MARGIN + wide + 34
    for k, walk in enumerate(lab.walks):
        inside = [x for x in walk.places[:14] if panel.x.low <= x <= panel.x.high]
        points = panel.curve([(x, _f(x)) for x in inside], colour_of(k), 1.1, "3 3")
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


def _draw_costs(drawing: Drawing, lab: Lab, top: float) -> None:
    costs = lab.costs
    curves = {"expected": costs.expected, "empirical": costs.empirical}
    names = ("expected, over all x", "empirical, of ten noisy samples")
    keys = [Key(name, colour_of(k)) for k, name in enumerate(names)]
    title = "Expected cost and empirical cost"
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


def _draw_families(drawing: Drawing, lab: Lab, top: float) -> None:
    families, winner = lab.families, lab.families.winner
    keys = [Key(family.name, colour_of(k)) for k, family in enumerate(families.all)]
    title = f"Validation chooses the {winner.name}"
    _titled(drawing, RIGHT, top, title, [*keys, Key("training rows", INK, mark=0, shape="")])
    panel = _field(drawing, RIGHT, top, (-1, 1), (-2.2, 2.2))
    panel.axes("x", "y")
    for k, family in enumerate(families.all):
        thick = 2.8 if family is winner else 1.6
        panel.curve(zip(families.grid, family.curve, strict=True), colour_of(k), thick)
    for at in zip(families.x, families.y, strict=True):
        drawing.mark(panel.at(*at), 0, INK, 3.4)
    errors = ", ".join(f"{family.name} {family.validation:.3f}" for family in families.all)
    words = f"validation error: {errors}"
    drawing.words((panel.x.end, panel.y.end - 16), words, 12, QUIET, "end")


def _draw_networks(drawing: Drawing, lab: Lab, top: float) -> None:
    networks = lab.networks
    bars = (
        ("first layer random", networks.random, RED),
        ("all layers tuned", networks.tuned, BLUE),
    )
    keys = [Key(name, colour, shape="area") for name, _, colour in bars]
    _titled(drawing, MARGIN, top, "Why all layers are tuned", keys)
    most = math.ceil(10 * max(*networks.random, *networks.tuned)) / 10
    panel = _field(drawing, MARGIN, top, (0, len(networks.units)), (0, most))
    ticks = [(k + 0.5, str(units)) for k, units in enumerate(networks.units)]
    panel.axes("units of the hidden layer", "mean squared test error", ticks)
    wide = panel.x(0.28) - panel.x(0)
    for side, (_, errors, colour) in enumerate(bars):
        for k, error in enumerate(errors):
            x, y = panel.at(k + 0.2 + 0.32 * side, error)
            drawing.bar(x, y, wide, max(panel.y.start - y, 1.0), colour)
            drawing.words((x + wide / 2, y - 9), f"{error:.2f}", 11, INK)


def _draw_estimators(drawing: Drawing, lab: Lab, top: float) -> None:
    estimators = lab.estimators
    units = [Key(f"z = {number_text(z)}", colour_of(k), mark=k) for k, z in enumerate(COINS)]
    keys = [*units, Key("exact", INK, shape="tick")]
    _titled(drawing, RIGHT, top, "Gradients through a coin", keys)
    spans = [
        (mean - deviation, mean + deviation)
        for estimator in estimators.all
        for mean, deviation in zip(estimator.mean, estimator.deviation, strict=True)
    ]
    ends = math.floor(min(low for low, _ in spans)), math.ceil(max(high for _, high in spans))
    panel = _field(drawing, RIGHT + 134, top, ends, (0, len(estimators.all)), PANEL - 134)
    for tick in panel.x.ticks():
        drawing.line([panel.at(tick, 0), panel.at(tick, len(estimators.all))], RULE)
    panel.axes("estimate of ∂E[C]/∂z, mean ± deviation", "", labelled(panel.x), [])
    for k, estimator in enumerate(estimators.all):
        line = len(estimators.all) - k - 0.5
        name, _, way = estimator.name.partition(", ")
        y = panel.y(line)
        drawing.words((RIGHT, y - (8 if way else 0)), name, 12.5, INK, "start", weight=600)
        drawing.words((RIGHT, y + 9), way, 11.5, QUIET, "start")
        for unit, exact in enumerate(estimators.exact):
            height, mean, deviation = (
                line + 0.25 * (1 - unit),
                estimator.mean[unit],
                estimator.deviation[unit],
            )
            span = [(mean - deviation, height), (mean + deviation, height)]
            panel.curve(span, colour_of(unit), 2)
            drawing.mark(panel.at(mean, height), unit, colour_of(unit), 5)
            x, y = panel.at(exact, height)
            drawing.line([(x, y - 6), (x, y + 6)], INK, 2.4)


def _draw_curves(drawing: Drawing, lab: Lab, top: float) -> None:
    curves = lab.curves
    keys = [Key("gradient descent", BLUE), Key("SGD", RED), Key("closed form", QUIET, "4 4")]
    _titled(drawing, MARGIN, top, "A step for all rows, or for each", keys)
    panel = _field(
        drawing, MARGIN, top, (0, curves.examples[-1]), (0, math.ceil(curves.descent[0]))
    )
    panel.axes("examples seen", "mean squared error over all rows")
    panel.curve([(0, curves.least), (curves.examples[-1], curves.least)], QUIET, 1.4, "4 4")
    for colour, costs in ((BLUE, curves.descent), (RED, curves.stochastic)):
        panel.curve(zip(curves.examples, costs, strict=True), colour)


def _draw_stopping(drawing: Drawing, lab: Lab, top: float) -> None:
    stopping = lab.stopping
    keys = [Key("training", BLUE), Key("validation", RED), Key("kept", INK, mark=0, shape="")]
    _titled(drawing, RIGHT, top, "Where early stopping stops", keys)
    most = max(max(stopping.validation), max(stopping.train))
    panel = _field(drawing, RIGHT, top, (0, stopping.updates[-1]), (0, math.ceil(2 * most) / 2))
    panel.axes("updates", "mean squared error")
    for colour, costs in ((BLUE, stopping.train), (RED, stopping.validation)):
        panel.curve(zip(stopping.updates, costs, strict=True), colour)
    x = panel.x(stopping.stopped)
    drawing.line([(x, panel.y.start), (x, panel.y.end)], QUIET, 1.4, "4 4")
    drawing.words((x + 6, panel.y.end + 8), f"stops at {stopping.stopped}", 12, QUIET, "start")
    drawing.mark(panel.at(stopping.best, stopping.best_cost), 0, INK, 5.5)
