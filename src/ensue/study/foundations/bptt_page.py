"""Backpropagation through time as one HTML file, and as a picture: the network unrolled."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from torch import Tensor

from ensue.drawing.svg import BLUE, FAINT, GREY, INK, QUIET, RULE, STATES, Colour, Drawing, Point
from ensue.drawing.theme import PAPER, mixed
from ensue.study.foundations.backprop_page import DELTA, whole_page
from ensue.study.foundations.backprop_text import number, signed, vector
from ensue.study.foundations.bptt_text import (
    block_of,
    equations_of,
    heading,
    shown,
)
from ensue.study.foundations.bptt_walk import BpttWalk

ACROSS, MARGIN, RADIUS = 176.0, 74.0, 36.0
COST_AT, GUESS_AT, STATE_AT, INPUT_AT = 84.0, 178.0, 300.0, 456.0  # heights
SQUARE = 92.0, 34.0  # of the table of terms
STRONG = 0.42  # of a colour, so that words on it can be read


def as_page(walk: BpttWalk) -> str:
    """The whole page."""
    blocks = [
        (name, block)
        for name in walk.cell_parameters
        for block in walk.blocks(name, walk.parameters[name])
    ]
    parts = [
        "<h1>Backpropagation through time, term by term</h1>"
        f"<p class='quiet'>{escape(heading(walk))}</p>",
        f"<figure>{unrolled_picture(walk)}</figure>",
        "<section><h3>The cell</h3>"
        + "".join(
            f"<p class='equation'>{escape(own)}</p>" for own in equations_of(walk).split("\n")
        )
        + "</section>",
        "<h2>Forward</h2>",
        _forward(walk),
        "<h2>Backward: a path for each pair of t and k</h2>",
        _paths(walk),
        "<h2>The terms of each gradient</h2>",
        *(_terms(walk, name, block) for name, block in blocks),
        "<h2>One update</h2>",
        _update(walk),
        "<h2>Beside the automatic gradient</h2>",
        f"<section><p class='verdict'>The largest difference is {walk.difference:.1e}.</p>"
        "<p class='quiet'>The terms come from one step of the derivative graph at a time; torch's "
        "automatic differentiation goes through all steps at once. Both in float64.</p></section>",
    ]
    return whole_page("Backpropagation through time", parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], kind: str) -> str:
    def line(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(own)}</{tag}>" for own in cells) + "</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table class='{kind}'>{line('th', head)}{body}</table>"


def _forward(walk: BpttWalk) -> str:
    rows = [
        [f"t = {t}", vector(own.x), vector(own.state), vector(own.guess), vector(own.wanted),
         "costs nothing" if own.cost is None else number(own.cost)]
        for t, own in enumerate(walk.steps, 1)
    ]  # fmt: skip
    table = _table(["", "x", "state", "ŷ", "y", "J(t)"], rows, "forward")
    return f"<section>{table}<p>The cost is <b>J = {number(walk.cost)}</b>.</p></section>"


def _paths(walk: BpttWalk) -> str:
    rows = [[own.path, vector(own.delta), number(own.delta.norm())] for own in walk.terms]
    return f"<section>{_table(['path', '∂J(t)/∂h_k', 'norm'], rows, 'back')}</section>"


def _terms(walk: BpttWalk, parameter: str, block: str) -> str:
    equation = f"∂J(t)/∂{block} = Σ over k ≤ t"
    whole = walk.blocks(parameter, walk.gradient[parameter])[block]
    total = vector(whole.flatten())
    return (
        f"<section><p class='equation'>{escape(equation)}</p>"
        f"{terms_picture(walk, parameter, block)}"
        f"<p>Summed over all t and k: <b>∂J/∂{escape(block)} = {total}</b></p></section>"
    )


def _update(walk: BpttWalk) -> str:
    rows = []
    for name, values in walk.parameters.items():
        kinds = (values, walk.gradient[name], walk.updated[name])
        split = [walk.blocks(name, own) for own in kinds]
        rows += [[block, *(vector(own[block].flatten()) for own in split)] for block in split[0]]
    table = _table(["", "before", "∂J/∂θ", "after"], rows, "back")
    return (
        f"<section><p class='equation'>θ ← θ − {walk.rate:g}·∂J/∂θ</p>{table}"
        f"<p>J = {number(walk.cost)} → <b>{number(walk.cost_after)}</b></p></section>"
    )


# --- pictures ---------------------------------------------------------------------------------


def unrolled_picture(walk: BpttWalk) -> str:
    """As SVG: the steps from left to right, costs above, what flows back from all of them."""
    drawing, count = Drawing(), len(walk.steps)
    lefts = [MARGIN + 40 + ACROSS * k for k in range(count)]
    back = [_arriving(walk, k) for k in range(1, count + 1)]
    for k, (x, step) in enumerate(zip(lefts, walk.steps, strict=True)):
        drawing.words((x, 26), f"t = {k + 1}", 13, QUIET, weight=600)
        costs = step.cost is not None
        _arrow(drawing, (x, INPUT_AT - 22), (x, STATE_AT + RADIUS + 2), FAINT, "W")
        _arrow(drawing, (x, STATE_AT - RADIUS), (x, GUESS_AT + 18), FAINT, "V")
        if k + 1 < count:
            ends = (x + RADIUS, STATE_AT - 8), (lefts[k + 1] - RADIUS - 2, STATE_AT - 8)
            _arrow(drawing, *ends, FAINT, "U")
        if costs:
            _arrow(drawing, (x, GUESS_AT - 18), (x, COST_AT + 18), FAINT, "")
            _box(drawing, (x, COST_AT), f"J({k + 1}) {_short(step.cost)}", DELTA)
        _box(drawing, (x, GUESS_AT), f"ŷ {_values(step.guess)}", STATES[0] if costs else GREY)
        colour = BLUE if back[k] is not None else GREY
        drawing.rectangle((x, STATE_AT), 2 * RADIUS, 2 * RADIUS, RADIUS, colour)
        for unit, value in enumerate(step.h):
            middle = STATE_AT + 18 * (unit - (len(step.h) - 1) / 2)
            drawing.words((x, middle), _short(float(value)), 13, INK, weight=600)
        _box(drawing, (x, INPUT_AT), f"x {_values(step.x)}", GREY)
        own = back[k]
        if own is not None:
            below = (x + 4, STATE_AT + RADIUS + 20)
            drawing.rectangle(below, 98, 20, 10, DELTA)
            drawing.words(below, signed(f"‖∂J/∂h‖ {float(own.norm()):.3g}"), 12, DELTA.line,
                          weight=600)  # fmt: skip
            if k:
                start = (x - RADIUS - 2, STATE_AT + 10)
                _arrow(drawing, start, (lefts[k - 1] + RADIUS + 4, STATE_AT + 10), DELTA.line, "")
    wide = lefts[-1] + MARGIN + 40
    return drawing.svg(wide, INPUT_AT + 44, "The network unrolled, with what flows back")


def _arriving(walk: BpttWalk, k: int) -> Tensor | None:
    """∂J/∂h_k, summed over all costs; None where none arrives."""
    found = [own.delta for own in walk.terms if own.k == k]
    return sum(found[1:], start=found[0]) if found else None


def _short(value: float | None) -> str:
    return signed(f"{value or 0.0:z.3f}")


def _values(values: Tensor) -> str:
    return ", ".join(signed(f"{float(v):z.2f}") for v in values)


def _box(drawing: Drawing, at: Point, text: str, colour: Colour) -> None:
    drawing.rectangle(at, max(76.0, 16 + 7.6 * len(text)), 32, 8, colour)
    drawing.words(at, text, 13, INK, weight=600)


def _arrow(drawing: Drawing, start: Point, end: Point, colour: str, name: str) -> None:
    drawing.corners([start, end], colour, radius=0)
    if name:
        level = start[1] == end[1]
        middle = (
            (start[0] + end[0]) / 2 + (0 if level else 13),
            start[1] - 12 if level else start[1] + 0.3 * (end[1] - start[1]),
        )
        drawing.name(middle, name, 15, QUIET)


def terms_picture(walk: BpttWalk, parameter: str, block: str) -> str:
    """As SVG: a square for each t and k, the stronger the larger its term."""
    drawing, (wide, high) = Drawing(), SQUARE
    values = {(own.t, own.k): block_of(walk, own, parameter, block) for own in walk.terms}
    most = max(float(own.norm()) for own in values.values()) or 1.0
    last = max(k for _, k in values)
    left, top = 64.0, 34.0
    for k in range(1, last + 1):
        drawing.words((left + (k - 0.5) * wide, 18), f"k = {k}", 12, QUIET, weight=600)
    drawing.words((left + (last + 0.5) * wide, 18), "sum", 12, QUIET, weight=600)
    for row, t in enumerate(range(walk.first, walk.last + 1)):
        y = top + row * high
        drawing.words((left - 10, y + high / 2), f"t = {t}", 12, QUIET, "end", weight=600)
        own = [values[t, k] for k in range(1, t + 1)]
        for k, value in enumerate(own, 1):
            share = STRONG * float(value.norm()) / most
            colour = mixed(PAPER, DELTA.line, share)
            at = (left + (k - 1) * wide + 2, y + 2)
            drawing.begin(f"t = {t}, k = {k}: {vector(value.flatten())}")
            drawing.bar(*at, wide - 4, high - 4, colour, 4.0)
            middle = (left + (k - 0.5) * wide, y + high / 2)
            drawing.words(middle, shown(value), 12, INK)
            drawing.end()
        total = sum(own[1:], start=own[0])
        middle = (left + (last + 0.5) * wide, y + high / 2)
        drawing.words(middle, shown(total), 12, INK, weight=600)
    rows = walk.last - walk.first + 1
    line = [(left, top + rows * high + 4), (left + (last + 1) * wide, top + rows * high + 4)]
    drawing.line(line, RULE)
    return drawing.svg(left + (last + 1) * wide + 12, top + rows * high + 16, f"terms of {block}")
