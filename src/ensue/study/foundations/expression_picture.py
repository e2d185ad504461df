"""The graph of an expression as a picture: values in blue, derivatives in brown."""

from __future__ import annotations

from ensue.drawing.arrange import Box, arrange
from ensue.drawing.svg import (
    BLUE,
    GREY,
    INK,
    QUIET,
    STATES,
    VIOLET,
    Colour,
    Drawing,
    text_width,
)
from ensue.drawing.theme import PAPER
from ensue.study.foundations.expression import Expression, TextSpan

MARGIN, TITLE = 36.0, 84.0
HALF = 17.0
FORWARD, BACK = "#2563eb", "#b45309"


def draw(found: Expression) -> str:
    """The picture as SVG. Variables stand on the left, the result on the right."""
    places = sorted(found.places, key=lambda own: (not own.is_variable, own.number))
    index = {own.number: k for k, own in enumerate(places)}
    edges = [(index[source], index[own.number]) for own in places for source in own.inputs]
    boxes = [Box(_wide(own), HALF + 20, HALF + 20) for own in places]
    inputs = sum(own.is_variable for own in places)
    last = index[found.places[-1].number]
    placed = arrange(boxes, edges, inputs, () if last < inputs else (last,))
    shift = (MARGIN + 10, TITLE + 10)
    centres = [(x + shift[0], y + shift[1]) for x, y in placed.centres]
    drawing = Drawing()
    drawing.words((MARGIN, 32), found.text, 20, INK, "start", weight=600)
    drawing.words((MARGIN, 58), "value", 13, FORWARD, "start", weight=600)
    note = "derivative of the result by it"
    drawing.words((MARGIN + 58, 58), note, 13, BACK, "start", weight=600)
    for (source, to), way in zip(edges, placed.ways, strict=True):
        begin = (centres[source][0] + _shape(places[source]) / 2, centres[source][1])
        end = (centres[to][0] - _shape(places[to]) / 2 - 1, centres[to][1])
        passed = [(x + shift[0], y + shift[1]) for x, y in way]
        drawing.curve([begin, *passed, end], QUIET)
    for own, centre in zip(places, centres, strict=True):
        _draw(drawing, own, centre, own is found.places[-1])
    wide = max(placed.width + 2 * shift[0], text_width(found.text, 22) + 2 * MARGIN, 340.0)
    return drawing.svg(wide, placed.height + shift[1] + MARGIN, found.text)


def _shape(own: TextSpan) -> float:
    return 34.0 if len(own.label) <= 2 else text_width(own.label, 14) + 20


def _wide(own: TextSpan) -> float:
    return max(
        _shape(own), text_width(_number(own.value), 12), text_width(_number(own.derivative), 12)
    )


def _number(value: float) -> str:
    return f"{value:.4g}".replace("-", "−")


def _draw(drawing: Drawing, own: TextSpan, at: tuple[float, float], last: bool) -> None:
    variable = own.is_variable
    colour = STATES[0] if last else BLUE if variable else GREY if not own.inputs else VIOLET
    if own.inputs and own.label in "+×÷−^" and not last:
        colour = Colour(QUIET, PAPER)
    drawing.begin(f"{own.label} = {own.value:.6g}, derivative {own.derivative:.6g}")
    drawing.rectangle(at, _shape(own), 2 * HALF, HALF if own.inputs else 6, colour)
    if variable:
        drawing.name(at, own.label, 18, INK)
    else:
        drawing.words(at, own.label.replace("-", "−"), 15, INK)
    drawing.words((at[0], at[1] - HALF - 11), _number(own.value), 12, FORWARD, weight=600)
    if not own.is_constant:
        text = _number(own.derivative)
        drawing.words((at[0], at[1] + HALF + 11), text, 12, BACK, weight=600)
    drawing.end()
