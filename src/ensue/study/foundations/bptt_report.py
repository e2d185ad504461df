"""Backpropagation through time as a document, as JSON, and as pictures."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ensue.drawing.document import Document, Figure, Formula, Paragraph, Section, Table
from ensue.drawing.document import as_page as document_page
from ensue.drawing.document import as_text as document_text
from ensue.drawing.layout import aligned
from ensue.drawing.svg import BLUE, FAINT, GREY, INK, QUIET, RULE, STATES, Colour, Drawing, Point
from ensue.drawing.theme import PAPER, mixed
from ensue.study.foundations.backprop_report import DELTA, NAMES, compared, number, signed, vector
from ensue.study.foundations.bptt_walk import BpttWalk, Term, readout_names

FORMAT = 1
COST_TEXTS = {
    "linear": "½‖ŷ − y‖²",
    "logistic": "cross-entropy of σ",
    "softmax": "cross-entropy of softmax",
}
ACROSS, MARGIN, RADIUS = 176.0, 74.0, 36.0
COST_AT, GUESS_AT, STATE_AT, INPUT_AT = 84.0, 178.0, 300.0, 456.0  # heights
SQUARE = 92.0, 34.0  # maximum columns of the table of terms
STRONG = 0.42  # maximum share of a colour, so that text on it stays readable


# --- the document ------------------------------------------------------------------------------


def heading(walk: BpttWalk) -> str:
    sizes = f"{len(walk.steps[0].x)} → {walk.hidden_size} → {len(walk.steps[0].guess)}"
    return (
        f"{type(walk.cell).__name__}, {sizes}, "
        f"{len(walk.steps)} steps; J(t) = {COST_TEXTS[walk.output]} of the outputs "
        f"{walk.first} to {walk.last}, summed"
    )


def matrix_text(values: Tensor) -> str:
    """A single number as text, or the norm of several."""
    return number(values.flatten()[0]) if values.numel() == 1 else f"‖{number(values.norm())}‖"


def document(walk: BpttWalk) -> Document:
    """The steps forward, a path for each t and k, the terms of each gradient, one update."""
    through = "" if walk.output == "linear" else f", through {NAMES[walk.output]}"
    blocks = [
        (name, block)
        for name in walk.cell_parameters
        for block in walk.blocks(name, walk.parameters[name])
    ]
    update = f"θ ← θ − {walk.rate:g}·∂J/∂θ"
    return Document(
        "Backpropagation through time, term by term",
        heading(walk),
        (
            Figure(unrolled_picture(walk)),
            Section("The cell", [Formula(line) for line in equations_of(walk).splitlines()]),
            Section(
                f"forward: ŷ = {'·h + '.join(readout_names(walk.cell))}{through}",
                (_forward(walk), Paragraph(f"J = {number(walk.cost)}", strong=True)),
            ),
            Section(
                "backward: ∂J(t)/∂h_k, by the paths from the cost to each state", (_paths(walk),)
            ),
            *(_terms(walk, name, block) for name, block in blocks),
            Section(
                "One update",
                (
                    Formula(update),
                    _update(walk),
                    Paragraph(f"J = {number(walk.cost)} → {number(walk.cost_after)}", strong=True),
                ),
            ),
            compared(
                walk.difference,
                "The terms come from one step of the derivative graph at a time; torch's automatic "
                "differentiation goes through all steps at once. Both in float64.",
            ),
        ),
        (("back", DELTA.line),),
    )


def as_text(walk: BpttWalk) -> str:
    return document_text(document(walk))


def as_page(walk: BpttWalk) -> str:
    return document_page(document(walk))


def equations_of(walk: BpttWalk) -> str:
    return walk.cell.equations(len(walk.steps[0].x), walk.hidden_size).text()


def _forward(walk: BpttWalk) -> Table:
    head = ["t", "x", "state", "ŷ", "y", "J(t)"]
    rows = [
        [
            str(t),
            vector(step.x),
            vector(step.state),
            vector(step.guess),
            vector(step.target),
            "costs nothing" if step.cost is None else number(step.cost),
        ]
        for t, step in enumerate(walk.steps, 1)
    ]
    return Table(rows, head)


def _paths(walk: BpttWalk) -> Table:
    rows = [[term.path, vector(term.delta), number(term.delta.norm())] for term in walk.terms]
    return Table(rows, ["path", "∂J(t)/∂h_k", "norm"], "back")


def block_of(walk: BpttWalk, term: Term, parameter: str, block: str) -> Tensor:
    return walk.blocks(parameter, term.by_parameter[parameter])[block]


def _terms(walk: BpttWalk, parameter: str, block: str) -> Section:
    """∂J(t)/∂θ as a table of its terms, t downwards and k to the right."""
    last = max((term.k for term in walk.terms), default=0)
    rows = []
    for t in range(walk.first, walk.last + 1):
        values = {
            term.k: block_of(walk, term, parameter, block) for term in walk.terms if term.t == t
        }
        cells = [matrix_text(values[k]) if k in values else "" for k in range(1, last + 1)]
        total = sum(values.values(), start=0 * next(iter(values.values())))
        rows.append([f"t = {t}", *cells, matrix_text(total)])
    whole = walk.blocks(parameter, walk.gradient[parameter])[block]
    rows.append(["all", *[""] * last, matrix_text(whole)])
    table = aligned([["", *(f"k = {k}" for k in range(1, last + 1)), "sum"], *rows])
    return Section(
        f"∂J(t)/∂{block}: terms by t (downwards) and k (to the right)",
        (
            Formula(f"∂J(t)/∂{block} = Σ over k ≤ t"),
            Figure(terms_picture(walk, parameter, block), table),
            Paragraph(f"Summed over all t and k: ∂J/∂{block} = {vector(whole.flatten())}"),
        ),
    )


def _update(walk: BpttWalk) -> Table:
    rows = []
    for name, values in walk.parameters.items():
        kinds = (values, walk.gradient[name], walk.updated[name])
        before, slope, after = (walk.blocks(name, tensor) for tensor in kinds)
        rows += [
            [block, *(vector(tensors[block].flatten()) for tensors in (before, slope, after))]
            for block in before
        ]
    return Table(rows, ["", "before", "∂J/∂θ", "after"], "back")


def as_json(walk: BpttWalk) -> dict[str, Any]:
    def plain(values: dict[str, Tensor]) -> dict[str, Any]:
        return {name: value.tolist() for name, value in values.items()}

    return {
        "format": FORMAT,
        "cell": type(walk.cell).__name__,
        "output": walk.output,
        "cost_at": [walk.first, walk.last],
        "rate": walk.rate,
        "parameters": plain(walk.parameters),
        "steps": [
            {
                "x": step.x.tolist(),
                "state": step.state.tolist(),
                "output": step.guess.tolist(),
                "target": step.target.tolist(),
                "cost": step.cost,
            }
            for step in walk.steps
        ],
        "terms": [
            {
                "t": term.t,
                "k": term.k,
                "path": term.path,
                "delta": term.delta.tolist(),
                "norms": {name: float(v.norm()) for name, v in term.by_parameter.items()},
                "terms": plain(term.by_parameter),
            }
            for term in walk.terms
        ],
        "gradient": plain(walk.gradient),
        "updated": plain(walk.updated),
        "cost": walk.cost,
        "cost_after": walk.cost_after,
        "difference": walk.difference,
    }


# --- pictures -------------------------------------------------------------------------------------


def unrolled_picture(walk: BpttWalk) -> str:
    """The unrolled network as SVG: steps from left to right, costs above, and the gradients that
    flow back."""
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
        step_back = back[k]
        if step_back is not None:
            below = (x + 4, STATE_AT + RADIUS + 20)
            drawing.rectangle(below, 98, 20, 10, DELTA)
            drawing.words(below, signed(f"‖∂J/∂h‖ {float(step_back.norm()):.3g}"), 12, DELTA.line,
                          weight=600)  # fmt: skip
            if k:
                start = (x - RADIUS - 2, STATE_AT + 10)
                _arrow(drawing, start, (lefts[k - 1] + RADIUS + 4, STATE_AT + 10), DELTA.line, "")
    wide = lefts[-1] + MARGIN + 40
    return drawing.svg(wide, INPUT_AT + 44, "The network unrolled, with what flows back")


def _arriving(walk: BpttWalk, k: int) -> Tensor | None:
    """∂J/∂h_k, summed over all costs; None if no gradient arrives."""
    slopes = [term.delta for term in walk.terms if term.k == k]
    return sum(slopes[1:], start=slopes[0]) if slopes else None


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
    """The terms as SVG: a square for each t and k, the stronger the larger its term."""
    drawing, (wide, high) = Drawing(), SQUARE
    values = {(term.t, term.k): block_of(walk, term, parameter, block) for term in walk.terms}
    most = max(float(value.norm()) for value in values.values()) or 1.0
    last = max(k for _, k in values)
    left, top = 64.0, 34.0
    for k in range(1, last + 1):
        drawing.words((left + (k - 0.5) * wide, 18), f"k = {k}", 12, QUIET, weight=600)
    drawing.words((left + (last + 0.5) * wide, 18), "sum", 12, QUIET, weight=600)
    for row, t in enumerate(range(walk.first, walk.last + 1)):
        y = top + row * high
        drawing.words((left - 10, y + high / 2), f"t = {t}", 12, QUIET, "end", weight=600)
        blocks = [values[t, k] for k in range(1, t + 1)]
        for k, value in enumerate(blocks, 1):
            share = STRONG * float(value.norm()) / most
            colour = mixed(PAPER, DELTA.line, share)
            at = (left + (k - 1) * wide + 2, y + 2)
            drawing.begin(f"t = {t}, k = {k}: {vector(value.flatten())}")
            drawing.bar(*at, wide - 4, high - 4, colour, 4.0)
            middle = (left + (k - 0.5) * wide, y + high / 2)
            drawing.words(middle, matrix_text(value), 12, INK)
            drawing.end()
        total = sum(blocks[1:], start=blocks[0])
        middle = (left + (last + 0.5) * wide, y + high / 2)
        drawing.words(middle, matrix_text(total), 12, INK, weight=600)
    rows = walk.last - walk.first + 1
    line = [(left, top + rows * high + 4), (left + (last + 1) * wide, top + rows * high + 4)]
    drawing.line(line, RULE)
    return drawing.svg(left + (last + 1) * wide + 12, top + rows * high + 16, f"terms of {block}")
