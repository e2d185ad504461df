"""The graph of an expression as a document and a picture: values blue, derivatives brown."""

from __future__ import annotations

from itertools import chain, repeat

from ensue.drawing.arrange import Box, arrange
from ensue.drawing.document import Block, Document, Figure, Formula, Table
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
from ensue.study.foundations.expression import Expression, ExpressionNode, Value

MOST_SECOND = 3  # variables whose second derivatives are printed
MARGIN, TITLE = 36.0, 84.0
HALF, LINE = 17.0, 14.0  # half the height of a node; of a line of numbers
FORWARD, BACK = "#2563eb", "#b45309"

# --- the document ---------------------------------------------------------------------------------


def number(value: Value, digits: int = 6) -> str:
    """
    >>> number(-0.5), number([1.0, -2.0], 1)
    ('−0.500000', '[1.0, −2.0]')
    """
    if isinstance(value, list):
        return "[" + ", ".join(number(item, digits) for item in value) + "]"
    return f"{value:z.{digits}f}".replace("-", "−")


def document(expression: Expression) -> Document:
    """A line for each node, then the second derivatives (if the variables are few enough), and the
    picture."""
    few = len(expression.derivatives()) <= MOST_SECOND
    pairs = expression.second.items() if few else ()
    second = [f"∂²/∂{a}∂{b} = {number(value)}" for (a, b), value in pairs if a <= b]
    head = ["node", "is", *["shape"] * expression.has_shapes, "value", "∂result/∂node"]
    table = Table(_node_rows(expression), head, left=2)
    blocks: list[Block] = [table, *map(Formula, second), Figure(draw(expression))]
    return Document("The graph of an expression", expression.text, blocks)


def _node_rows(expression: Expression) -> list[list[str]]:
    """A row for each node, with its shape if it has one; matrices row by row."""
    rows = []
    for node in expression.nodes:
        inside = ", ".join(f"#{k}" for k in node.inputs)
        what = f"{node.label}({inside})" if node.inputs else node.label
        head = [f"#{node.number}", what]
        if not expression.has_shapes:
            slope = "" if node.is_constant else number(node.derivative)
            rows.append([*head, number(node.value), slope])
            continue
        head.append("×".join(map(str, node.shape)) or "1")
        slopes = [""] * len(_rows(node.value)) if node.is_constant else _rows(node.derivative)
        lines = zip(chain([head], repeat([""] * 3)), _rows(node.value), slopes, strict=False)
        rows += [[*first, value, slope] for first, value, slope in lines]
    return rows


def _rows(value: Value) -> list[str]:
    """A number or a vector on one line, a matrix on a line for each row."""
    if isinstance(value, list) and isinstance(value[0], list):
        return [number(row, 4) for row in value]
    return [number(value, 4)]


# --- as a picture ---------------------------------------------------------------------------------


def draw(expression: Expression) -> str:
    """The picture as SVG, with variables on the left and the result on the right."""
    places = sorted(expression.nodes, key=lambda node: (not node.is_variable, node.number))
    index = {node.number: k for k, node in enumerate(places)}
    edges = [(index[source], index[node.number]) for node in places for source in node.inputs]
    boxes = [Box(_wide(node), _above(node), _above(node)) for node in places]
    inputs = sum(node.is_variable for node in places)
    last = index[expression.nodes[-1].number]
    placed = arrange(boxes, edges, inputs, () if last < inputs else (last,))
    shift = (MARGIN + 10, TITLE + 10)
    centres = [(x + shift[0], y + shift[1]) for x, y in placed.centres]
    drawing = Drawing()
    drawing.words((MARGIN, 32), expression.text, 20, INK, "start", weight=600)
    drawing.words((MARGIN, 58), "value", 13, FORWARD, "start", weight=600)
    note = "derivative of the result by it"
    drawing.words((MARGIN + 58, 58), note, 13, BACK, "start", weight=600)
    for (source, to), way in zip(edges, placed.ways, strict=True):
        begin = (centres[source][0] + _shape(places[source]) / 2, centres[source][1])
        end = (centres[to][0] - _shape(places[to]) / 2 - 1, centres[to][1])
        # level next to a wide value: it bends between the columns only
        out = (placed.sides[source][1] + shift[0], begin[1])
        into = (placed.sides[to][0] + shift[0], end[1])
        passed = [(x + shift[0], y + shift[1]) for x, y in way]
        drawing.curve([begin, out, *passed, into, end], QUIET)
    for node, centre in zip(places, centres, strict=True):
        _draw(drawing, node, centre, node is expression.nodes[-1])
    wide = max(placed.width + 2 * shift[0], text_width(expression.text, 22) + 2 * MARGIN, 340.0)
    return drawing.svg(wide, placed.height + shift[1] + MARGIN, expression.text)


def _shape(node: ExpressionNode) -> float:
    return 34.0 if len(node.label) <= 2 else text_width(node.label, 14) + 20


def _above(node: ExpressionNode) -> float:
    """The room of a value above its node. The derivative below it has the same room."""
    return HALF + 6 + LINE * len(_lines(node.value)) + (LINE if node.shape else 0)


def _wide(node: ExpressionNode) -> float:
    lines = [*_lines(node.value), *_lines(node.derivative)]
    return max(_shape(node), *(text_width(line, 12) for line in lines))


def _lines(value: Value) -> list[str]:
    """A number or a vector on one line, a matrix on a line for each row."""
    if isinstance(value, list) and isinstance(value[0], list):
        return [_number(row) for row in value]
    return [_number(value)]


def _number(value: Value) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_number(item) for item in value) + "]"
    return f"{value:.4g}".replace("-", "−")


def _shape_text(node: ExpressionNode) -> str:
    return "×".join(map(str, node.shape))


def _draw(drawing: Drawing, node: ExpressionNode, at: tuple[float, float], last: bool) -> None:
    variable = node.is_variable
    colour = STATES[0] if last else BLUE if variable else GREY if not node.inputs else VIOLET
    if node.inputs and node.label in ("+", "×", "÷", "−", "^", "MatMul") and not last:
        colour = Colour(QUIET, PAPER)
    drawing.begin(f"{node.label} = {_number(node.value)}, derivative {_number(node.derivative)}")
    drawing.rectangle(at, _shape(node), 2 * HALF, HALF if node.inputs else 6, colour)
    if variable:
        drawing.name(at, node.label, 18, INK)
    else:
        drawing.words(at, node.label.replace("-", "−"), 15, INK)
    above = list(reversed(_lines(node.value)))
    for k, line in enumerate(above):
        drawing.words((at[0], at[1] - HALF - 11 - LINE * k), line, 12, FORWARD, weight=600)
    if node.shape:
        top = at[1] - HALF - 11 - LINE * len(above)
        drawing.words((at[0], top), _shape_text(node), 11, QUIET)
    for k, line in enumerate([] if node.is_constant else _lines(node.derivative)):
        drawing.words((at[0], at[1] + HALF + 11 + LINE * k), line, 12, BACK, weight=600)
    drawing.end()
