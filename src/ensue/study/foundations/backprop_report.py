"""A walk through backpropagation as a document, as JSON, and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from torch import Tensor

from ensue.drawing.document import (
    Block,
    Document,
    Figure,
    Formula,
    Lines,
    Paragraph,
    Section,
    Table,
)
from ensue.drawing.document import as_page as document_page
from ensue.drawing.document import as_text as document_text
from ensue.drawing.svg import BLUE, FAINT, GREY, INK, QUIET, RULE, STATES, Colour, Drawing, Point
from ensue.drawing.theme import PAPER
from ensue.study.foundations.backprop import Backpropagation, LayerTrace, Minibatch

FORMAT = 1
NAMES = {"logistic": "σ", "tanh": "tanh", "relu": "ReLU", "linear": "linear", "softmax": "softmax"}
SLOPE_TEXTS = {
    "logistic": "a·(1 − a)",
    "tanh": "1 − a²",
    "relu": "1 where z > 0, else 0",
    "linear": "1",
}
MOST_TERMS = 6  # maximum terms of a sum that is written out
ACROSS, DOWN, RADIUS = 250.0, 128.0, 31.0
MARGIN = 60.0
MOST_EDGES = 40  # maximum lines with numbers on them
HIGH = 17  # height of a number on a line
SHARES = (0.26, 0.34, 0.42, 0.48, 0.54, 0.62, 0.7, 0.78, 0.15, 0.86)  # along a line
PLUS, MINUS = "#0f766e", "#be185d"
DELTA = Colour("#b45309", "#fff6e5")


# --- the document -------------------------------------------------------------------------------


def number(value: Tensor | float) -> str:
    """
    >>> number(-0.18877), number(2.0), number(-1e-9)
    ('−0.188770', '2.000000', '0.000000')
    """
    return signed(f"{float(value):z.6f}")


def signed(text: str) -> str:
    """A number with a typographic minus."""
    return text.replace("-", "−")


def factor(value: float, digits: str) -> str:
    """
    >>> factor(-0.3, ".4g"), factor(0.3, ".4g")
    ('(−0.3)', '0.3')
    """
    text = signed(f"{value:{digits}}")
    return f"({text})" if value < 0 else text


def vector(values: Tensor) -> str:
    return "(" + ", ".join(number(value) for value in values) + ")"


def heading(backpropagation: Backpropagation) -> str:
    widths = " → ".join(map(str, backpropagation.widths))
    return (
        f"{widths}, {NAMES[backpropagation.activation]} inside, "
        f"{NAMES[backpropagation.output]} at the end, cost "
        f"{'½‖a − y‖²' if backpropagation.cost_name == 'squares' else 'cross-entropy'}"
    )


def first_equation(backpropagation: Backpropagation) -> str:
    """Equation (1) for this output and cost."""
    if backpropagation.cost_name == "cross-entropy":
        return "δ = a − y, as cross-entropy undoes the derivative of the output"
    if backpropagation.output == "softmax":
        return "δ = Jᵀ·(a − y), J = diag(a) − a·aᵀ: every z moves every a"
    return f"δ = (a − y)*g'(z), g' = {SLOPE_TEXTS[backpropagation.output]}"


def document(backpropagation: Backpropagation) -> Document:
    """The walk: forward pass, backward pass, one update, and the automatic gradient."""
    layers = [(k, layer) for k, layer in enumerate(backpropagation.layers, 1)]
    forward = [_forward(backpropagation, layer, k) for k, layer in layers]
    backward = [_backward(backpropagation, layer, k) for k, layer in reversed(layers)]
    return Document(
        "Backpropagation, number by number",
        heading(backpropagation),
        (
            Paragraph(f"x = {vector(backpropagation.x)}   y = {vector(backpropagation.y)}"),
            Figure(network_picture(backpropagation)),
            Section(
                "Forward", (*forward, Paragraph(f"C = {number(backpropagation.cost)}", strong=True))
            ),
            Section("Backward", backward),
            *([] if backpropagation.batch is None else [_update(backpropagation.batch)]),
            compared(
                backpropagation.difference,
                "The four equations above and torch's automatic differentiation were computed "
                "apart from each other, both in float64.",
            ),
        ),
        (("back", DELTA.line),),
    )


def compared(difference: float, how: str) -> Section:
    """A line that compares a walk with the automatic gradient."""
    text = f"largest difference from the automatic gradient: {difference:.1e}"
    return Section("Check", (Paragraph(text, strong=True), Paragraph(how, quiet=True)))


def as_text(backpropagation: Backpropagation) -> str:
    return document_text(document(backpropagation))


def as_page(backpropagation: Backpropagation) -> str:
    return document_page(document(backpropagation))


def _forward(backpropagation: Backpropagation, layer: LayerTrace, k: int) -> Section:
    name = NAMES[
        backpropagation.output if k == len(backpropagation.layers) else backpropagation.activation
    ]
    weights = [(f"W, from {j + 1}", layer.weight[:, j]) for j in range(len(layer.inputs))]
    rows = [*weights, ("b", layer.bias), ("z", layer.z), ("a", layer.a)]
    sums = [] if layer.weight.shape[1] > MOST_TERMS else [Lines(_sums(layer))]
    blocks: tuple[Block, ...] = (
        Formula(f"z = W·a + b,  a = {name}(z)"),
        *sums,
        _by_unit(rows, len(layer.z)),
    )
    return Section(f"Layer {k}", blocks)


def _sums(layer: LayerTrace) -> list[str]:
    """The sum z of each unit, written out."""
    lines = []
    for unit, row in enumerate(layer.weight):
        terms = zip(row, layer.inputs, strict=True)
        total = " + ".join(f"{float(w):g}·{factor(float(v), '.4g')}" for w, v in terms)
        text = signed(f"{total} + {float(layer.bias[unit]):g}".replace("+ -", "− "))
        lines.append(f"z{unit + 1} = {text} = {number(layer.z[unit])}")
    return lines


def _backward(backpropagation: Backpropagation, layer: LayerTrace, k: int) -> Section:
    if k == len(backpropagation.layers):
        top = Formula(first_equation(backpropagation), "(1)")
        steps = [("∂C/∂a", layer.backward)]
    else:
        slope = SLOPE_TEXTS[backpropagation.activation]
        top = Formula(f"δ = (Wᵀ·δ of layer {k + 1})*g'(z),  g' = {slope}", "(2)")
        steps = [("Wᵀ·δ", layer.backward), ("g'(z)", layer.slope)]
    gradients = [
        (f"∂C/∂W, from {j + 1}", layer.weight_gradient[:, j]) for j in range(len(layer.inputs))
    ]
    units = len(layer.z)
    blocks: tuple[Block, ...] = (
        top,
        _by_unit([*steps, ("δ", layer.delta)], units, "back"),
        Formula("∂C/∂W = δ·aᵀ", "(3)"),
        Formula("∂C/∂b = δ", "(4)"),
        _by_unit([*gradients, ("∂C/∂b", layer.bias_gradient)], units, "back"),
    )
    return Section(f"Layer {k}", blocks)


def _by_unit(rows: Sequence[tuple[str, Tensor]], units: int, kind: str = "") -> Table:
    head = ["", *(f"unit {unit}" for unit in range(1, units + 1))]
    return Table([[name, *map(number, values)] for name, values in rows], head, kind)


def _update(batch: Minibatch) -> Section:
    """The table of every weight before and after the update."""
    many = len(batch.costs)
    mean = f", the mean over a minibatch of {many}" if many > 1 else ""
    costs = f"C of each: {', '.join(map(number, batch.costs))}"
    rows = [
        [f"{name}{unit}", *map(number, values)]
        for name, before, slope, after in batch.weights()
        for unit, *values in numbered(before, slope, after)
    ]
    blocks: tuple[Block, ...] = (
        Formula(f"w ← w − {batch.rate:g}·∂C/∂w{mean}"),
        *([Paragraph(costs)] if many > 1 else []),
        Table(rows, ["", "before", "∂C/∂w", "after"], "back"),
        Paragraph(f"C = {number(batch.cost)} → {number(batch.cost_after)}", strong=True),
    )
    return Section("One update", blocks)


def numbered(*values: Tensor) -> list[tuple[Any, ...]]:
    """The entries of tensors of one shape with their index, "[2,1]" or "[2]"."""
    shape = values[0].shape
    places = product(*(range(size) for size in shape))
    return [
        (f"[{','.join(str(k + 1) for k in at)}]", *(float(value[at]) for value in values))
        for at in places
    ]


def as_json(backpropagation: Backpropagation) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "widths": list(backpropagation.widths),
        "activation": backpropagation.activation,
        "output": backpropagation.output,
        "cost_name": backpropagation.cost_name,
        "x": backpropagation.x.tolist(),
        "y": backpropagation.y.tolist(),
        "cost": backpropagation.cost,
        "difference": backpropagation.difference,
        "layers": [
            {
                "weight": layer.weight.tolist(),
                "bias": layer.bias.tolist(),
                "z": layer.z.tolist(),
                "a": layer.a.tolist(),
                "delta": layer.delta.tolist(),
                "weight_gradient": layer.weight_gradient.tolist(),
                "bias_gradient": layer.bias_gradient.tolist(),
            }
            for layer in backpropagation.layers
        ],
        "update": None if backpropagation.batch is None else _update_json(backpropagation.batch),
    }


def _update_json(batch: Minibatch) -> dict[str, Any]:
    return {
        "rate": batch.rate,
        "costs": list(batch.costs),
        "weights": {
            name: {"before": b.tolist(), "gradient": g.tolist(), "after": a.tolist()}
            for name, b, g, a in batch.weights()
        },
        "cost": batch.cost,
        "cost_after": batch.cost_after,
    }


# --- the picture ----------------------------------------------------------------------------------


def network_picture(backpropagation: Backpropagation) -> str:
    """The network as SVG: units as circles with a above and δ below, weights as lines."""
    drawing, most = Drawing(), max(backpropagation.widths)
    high = 2 * MARGIN + DOWN * (most - 1) + 52
    wide = 2 * MARGIN + ACROSS * (len(backpropagation.widths) - 1)
    places = [
        [(MARGIN + ACROSS * k, 18 + high / 2 + DOWN * (j - (width - 1) / 2)) for j in range(width)]
        for k, width in enumerate(backpropagation.widths)
    ]
    for k, layer in enumerate(backpropagation.layers):
        _edges(drawing, places[k], places[k + 1], layer)
    for k, column in enumerate(places):
        if k == 0:
            values, deltas, name = _list(backpropagation.x), None, "x"
        else:
            trace = backpropagation.layers[k - 1]
            values, deltas, name = _list(trace.a), _list(trace.delta), f"layer {k}"
        drawing.words((column[0][0], 20), name, 13, QUIET, weight=600)
        last = k == len(places) - 1
        colour = GREY if k == 0 else STATES[0] if last else BLUE
        for j, at in enumerate(column):
            _unit(drawing, at, values[j], None if deltas is None else deltas[j], colour)
            if k:
                _bias(drawing, at, backpropagation.layers[k - 1], j)
    return drawing.svg(wide, high + 20, "The network with its values and deltas")


def _list(values: Tensor) -> list[float]:
    return [float(value) for value in values.flatten()]


def _unit(drawing: Drawing, at: Point, value: float, delta: float | None, colour: Colour) -> None:
    drawing.rectangle(at, 2 * RADIUS, 2 * RADIUS, RADIUS, colour)
    drawing.words((at[0], at[1]), signed(f"{value:z.3f}"), 14, INK, weight=600)
    if delta is not None:
        below = (at[0], at[1] + RADIUS + 14)
        drawing.rectangle(below, 78, 20, 10, DELTA)
        drawing.words(below, signed(f"δ {delta:z.3f}"), 12, DELTA.line, weight=600)


def _bias(drawing: Drawing, at: Point, layer: LayerTrace, unit: int) -> None:
    """Draws a bias above its unit."""
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
    """Draws the lines, then their numbers on top, where they do not overlap."""
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
    boxes: list[tuple[Point, float]] = []
    for i, j in pairs if len(pairs) <= MOST_EDGES else ():
        text = signed(f"{float(layer.weight[i, j]):.3g}")
        wide = 9 + 7.5 * len(text)
        at = _free_place(ends[i, j], wide, boxes)
        boxes.append((at, wide))
        drawing.rectangle(at, wide, HIGH, 4, Colour(PAPER, PAPER))
        drawing.words(at, text, 12, colours[i, j], weight=600)


def _free_place(line: Sequence[Point], wide: float, boxes: Sequence[tuple[Point, float]]) -> Point:
    """A position on the line where a number of this width overlaps no other, near the beginning if
    possible; else the position with the smallest overlap."""
    (x, y), (to_x, to_y) = line

    def covered(at: Point) -> float:
        area = 0.0
        for (other_x, other_y), other_wide in boxes:
            across = (wide + other_wide) / 2 - abs(at[0] - other_x)
            down = HIGH - abs(at[1] - other_y)
            area += max(across, 0.0) * max(down, 0.0)
        return area

    places = [(x + share * (to_x - x), y + share * (to_y - y)) for share in SHARES]
    return min(places, key=covered)
