"""A walk through backpropagation as one HTML file, which needs nothing beside it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from torch import Tensor

from ensue.drawing.svg import BLUE, FAINT, GREY, INK, QUIET, RULE, STATES, Colour, Drawing, Point
from ensue.drawing.theme import PAPER, css_variables
from ensue.study.foundations.backprop import Backpropagation, LayerTrace
from ensue.study.foundations.backprop_text import (
    NAMES,
    SLOPE_TEXTS,
    first_equation,
    heading,
    number,
    numbered,
    signed,
)

ACROSS, DOWN, RADIUS = 250.0, 128.0, 31.0
MARGIN = 60.0
MOST_EDGES = 40  # with their numbers on them
HIGH = 17  # of a number on a line
SHARES = (0.26, 0.34, 0.42, 0.48, 0.54, 0.62, 0.7, 0.78, 0.15, 0.86)  # of a line, where numbers go
PLUS, MINUS = "#0f766e", "#be185d"
DELTA = Colour("#b45309", "#fff6e5")

COLOURS = css_variables(
    ink=INK, quiet=QUIET, rule=RULE, paper=PAPER, pale="#f8fafc", back=DELTA.line
)
STYLE = """
* { box-sizing: border-box; }
body { margin: 0; background: var(--pale); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", "Liberation Sans", Arial, sans-serif; }
main { max-width: 1060px; margin: 0 auto; padding: 40px 24px 64px; }
h1 { font-size: 26px; margin: 0 0 4px; }
h2 { font-size: 19px; margin: 40px 0 8px; }
p { margin: 6px 0; }
.quiet { color: var(--quiet); }
figure { margin: 24px 0; background: var(--paper); border: 1px solid var(--rule);
  border-radius: 10px; overflow-x: auto; text-align: center; }
figure svg { max-width: 100%; height: auto; }
section { background: var(--paper); border: 1px solid var(--rule); border-radius: 10px;
  padding: 14px 22px 20px; margin: 14px 0; overflow-x: auto; }
section h3 { font-size: 16px; margin: 4px 0 8px; }
.equation { font-family: "STIX Two Text", Cambria, "Liberation Serif", "Times New Roman", serif;
  font-size: 18px; }
.number { color: var(--quiet); margin-right: 10px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 6px 0 10px; }
th { text-align: right; font-weight: 600; color: var(--quiet); font-size: 13px; }
td, th { padding: 3px 14px; border-bottom: 1px solid var(--rule); text-align: right; }
td:first-child, th:first-child { text-align: left; padding-left: 0; color: var(--quiet); }
.back td { color: var(--back); }
.back td:first-child { color: var(--quiet); }
.verdict { font-weight: 600; }
"""


def as_page(found: Backpropagation) -> str:
    """The whole page."""
    parts = [
        f"<h1>Backpropagation, number by number</h1><p class='quiet'>{escape(heading(found))}</p>",
        f"<figure>{network_picture(found)}</figure>",
        "<h2>Forward</h2>",
        *(_forward(found, layer, k) for k, layer in enumerate(found.layers, 1)),
        f"<p>The cost is <b>C = {number(found.cost)}</b>.</p>",
        "<h2>Backward</h2>",
        *(_backward(found, found.layers[k - 1], k) for k in range(len(found.layers), 0, -1)),
        *_learning(found),
        "<h2>Beside the automatic gradient</h2>",
        f"<section><p class='verdict'>The largest difference is {found.difference:.1e}.</p>"
        "<p class='quiet'>The four equations above and torch's automatic differentiation were "
        "computed apart from each other, both in float64.</p></section>",
    ]
    return whole_page("Backpropagation", parts)


def whole_page(title: str, parts: Sequence[str]) -> str:
    """A page of its own, light or dark as its reader prefers."""
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(title)}</title><style>{COLOURS}{STYLE}</style></head>\n<body><main>\n"
        + "\n".join(parts)
        + "\n</main></body></html>\n"
    )


# --- tables ----------------------------------------------------------------------------------


def _rows(names: Sequence[str], columns: Sequence[tuple[str, Sequence[float]]], kind: str) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in ("", *names))
    body = "".join(
        f"<tr><td>{escape(name)}</td>" + "".join(f"<td>{number(v)}</td>" for v in values) + "</tr>"
        for name, values in columns
    )
    return f"<table class='{kind}'><tr>{head}</tr>{body}</table>"


def _units(count: int) -> list[str]:
    return [f"unit {k}" for k in range(1, count + 1)]


def _equation(mark: str, text: str) -> str:
    return f"<p class='equation'><span class='number'>{mark}</span>{escape(text)}</p>"


def _forward(found: Backpropagation, layer: LayerTrace, k: int) -> str:
    name = NAMES[found.output if k == len(found.layers) else found.activation]
    text = f"z = W·a + b,  a = {name}(z)"
    weights = [(f"W, from {j + 1}", _list(layer.weight[:, j])) for j in range(len(layer.given))]
    rows = [*weights, ("b", _list(layer.bias)), ("z", _list(layer.z)), ("a", _list(layer.a))]
    table = _rows(_units(len(layer.z)), rows, "forward")
    given = ", ".join(signed(f"{value:.6g}") for value in _list(layer.given))
    return (
        f"<section><h3>Layer {k}</h3>{_equation('', text)}"
        f"<p class='quiet'>given a = ({given})</p>{table}</section>"
    )


def _backward(found: Backpropagation, layer: LayerTrace, k: int) -> str:
    if k == len(found.layers):
        top = _equation("(1)", first_equation(found))
        steps = [("∂C/∂a", _list(layer.backward))]
    else:
        slope = SLOPE_TEXTS[found.activation]
        top = _equation("(2)", f"δ = (Wᵀ·δ of layer {k + 1})*g'(z),  g' = {slope}")
        steps = [("Wᵀ·δ", _list(layer.backward)), ("g'(z)", _list(layer.slope))]
    steps.append(("δ", _list(layer.delta)))
    gradients = [
        (f"∂C/∂W, from {j + 1}", _list(layer.weight_gradient[:, j]))
        for j in range(len(layer.given))
    ]
    gradients.append(("∂C/∂b", _list(layer.bias_gradient)))
    units = _units(len(layer.z))
    return (
        f"<section><h3>Layer {k}</h3>{top}{_rows(units, steps, 'back')}"
        f"{_equation('(3)', '∂C/∂W = δ·aᵀ')}{_equation('(4)', '∂C/∂b = δ')}"
        f"{_rows(units, gradients, 'back')}</section>"
    )


def _learning(found: Backpropagation) -> list[str]:
    """The update, over a minibatch where there is one."""
    batch = found.batch
    if batch is None:
        return []
    units = [f"example {k}" for k in range(1, len(batch.costs) + 1)]
    many = len(batch.costs) > 1
    costs = _rows(units, [("C", batch.costs)], "forward") if many else ""
    rows = [
        (f"{name}{unit}", [float(v) for v in (before, slope, after)])
        for name, before, slope, after in batch.weights()
        for unit, before, slope, after in numbered(before, slope, after)
    ]
    table = _rows(["before", "mean ∂C/∂w" if many else "∂C/∂w", "after"], rows, "back")
    equation = _equation("", f"w ← w − {batch.rate:g}·∂C/∂w, the mean over examples")
    change = f"C = {number(batch.cost)} → <b>{number(batch.cost_after)}</b>"
    return [f"<h2>One update</h2><section>{equation}{costs}{table}<p>{change}</p></section>"]


def _list(values: Tensor) -> list[float]:
    return [float(value) for value in values.flatten()]


# --- the picture -----------------------------------------------------------------------------


def network_picture(found: Backpropagation) -> str:
    """As SVG: units as circles with a above and δ below, weights as lines."""
    drawing, most = Drawing(), max(found.widths)
    high = 2 * MARGIN + DOWN * (most - 1) + 52
    wide = 2 * MARGIN + ACROSS * (len(found.widths) - 1)
    places = [
        [(MARGIN + ACROSS * k, 18 + high / 2 + DOWN * (j - (width - 1) / 2)) for j in range(width)]
        for k, width in enumerate(found.widths)
    ]
    for k, layer in enumerate(found.layers):
        _edges(drawing, places[k], places[k + 1], layer)
    for k, column in enumerate(places):
        if k == 0:
            values, deltas, name = _list(found.x), None, "x"
        else:
            own = found.layers[k - 1]
            values, deltas, name = _list(own.a), _list(own.delta), f"layer {k}"
        drawing.words((column[0][0], 20), name, 13, QUIET, weight=600)
        last = k == len(places) - 1
        colour = GREY if k == 0 else STATES[0] if last else BLUE
        for j, at in enumerate(column):
            _unit(drawing, at, values[j], None if deltas is None else deltas[j], colour)
            if k:
                _bias(drawing, at, found.layers[k - 1], j)
    return drawing.svg(wide, high + 20, "The network with its values and deltas")


def _unit(drawing: Drawing, at: Point, value: float, delta: float | None, colour: Colour) -> None:
    drawing.rectangle(at, 2 * RADIUS, 2 * RADIUS, RADIUS, colour)
    drawing.words((at[0], at[1]), signed(f"{value:z.3f}"), 14, INK, weight=600)
    if delta is not None:
        below = (at[0], at[1] + RADIUS + 14)
        drawing.rectangle(below, 78, 20, 10, DELTA)
        drawing.words(below, signed(f"δ {delta:z.3f}"), 12, DELTA.line, weight=600)


def _bias(drawing: Drawing, at: Point, layer: LayerTrace, unit: int) -> None:
    """Above its unit."""
    bias, slope = float(layer.bias[unit]), float(layer.bias_gradient[unit])
    above = (at[0], at[1] - RADIUS - 13)
    drawing.begin(signed(f"b = {bias:.6g}, ∂C/∂b = {slope:.6g}"))
    text = signed(f"b {bias:.3g}")
    drawing.rectangle(above, 12 + 7.5 * len(text), 18, 4, Colour(RULE, PAPER))
    colour = PLUS if bias > 0 else MINUS if bias < 0 else QUIET
    drawing.words(above, text, 12, colour, weight=600)
    drawing.end()


def _edges(
    drawing: Drawing, before: Sequence[Point], after: Sequence[Point], layer: LayerTrace
) -> None:
    """Lines first, and their numbers over all of them, where they cover none of the others."""
    strongest = max(float(layer.weight.abs().max()), 1e-9)
    pairs = [(i, j) for i in range(len(after)) for j in range(len(before))]
    ends = {
        (i, j): [(before[j][0] + RADIUS, before[j][1]), (after[i][0] - RADIUS - 3, after[i][1])]
        for i, j in pairs
    }
    colours = {
        (i, j): PLUS if layer.weight[i, j] > 0 else MINUS if layer.weight[i, j] < 0 else FAINT
        for i, j in pairs
    }
    for i, j in pairs:
        weight, slope = float(layer.weight[i, j]), float(layer.weight_gradient[i, j])
        drawing.begin(signed(f"w = {weight:.6g}, ∂C/∂w = {slope:.6g}"))
        thick = 0.8 + 2.2 * abs(weight) / strongest
        drawing.corners(ends[i, j], colours[i, j], thick=thick, radius=0, arrow=False)
        drawing.end()
    taken: list[tuple[Point, float]] = []
    for i, j in pairs if len(pairs) <= MOST_EDGES else ():
        text = signed(f"{float(layer.weight[i, j]):.3g}")
        wide = 9 + 7.5 * len(text)
        at = _free_place(ends[i, j], wide, taken)
        taken.append((at, wide))
        drawing.rectangle(at, wide, HIGH, 4, Colour(PAPER, PAPER))
        drawing.words(at, text, 12, colours[i, j], weight=600)


def _free_place(line: Sequence[Point], wide: float, taken: Sequence[tuple[Point, float]]) -> Point:
    """Where on its line a number of this width covers no other, near the beginning if it can; else
    where it covers least of them."""
    (x, y), (to_x, to_y) = line

    def covered(at: Point) -> float:
        found = 0.0
        for (other_x, other_y), other_wide in taken:
            across = (wide + other_wide) / 2 - abs(at[0] - other_x)
            down = HIGH - abs(at[1] - other_y)
            found += max(across, 0.0) * max(down, 0.0)
        return found

    places = [(x + share * (to_x - x), y + share * (to_y - y)) for share in SHARES]
    return min(places, key=covered)
