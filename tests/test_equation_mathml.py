"""Equations as MathML: well-formed, and sign by sign what the LaTeX says."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable

import pytest
from laws import CELL_ROWS, Row
from pages import check_page, ids, words

from ensue.cells import LSTM, Cell, Residual
from ensue.equations import Equations, Matrix, Vector, maximum, minimum, sqrt, tanh
from ensue.equations.node import Graph, MatrixRef
from ensue.equations.text import GREEK, Latex, MathML

INVISIBLE = "\u2062"
# A word of LaTeX and the sign it stands for; "" for what is no sign but a way of writing.
SIGNS = {
    **{f"\\{name}": letter for name, letter in GREEK.items()},
    **{f"\\{name}": name for name in ("tanh", "exp", "log", "max", "min")},
    **{"\\odot": "⊙", "\\cdot": "⋅", "\\infty": "∞", "\\top": "⊤", "\\partial": "∂", "\\sum": "∑"},
    **{f"\\{name}": "" for name in ("mathbf", "boldsymbol", "mathrm", "operatorname")},
    **{f"\\{name}": "" for name in ("frac", "sqrt", "left", "right", "textstyle")},
    **{"-": "−", "'": "′", "_": "", "^": "", "{": "", "}": "", "&": "", " ": "", "\n": ""},
}
LAYOUT = {"mfrac": r"\\frac", "msqrt": r"\\sqrt"}


def signs_of_latex(latex: str) -> str:
    """Every sign that a reader sees, in order."""
    inside = latex.replace("\\begin{aligned}", "").replace("\\end{aligned}", "")
    parts = re.findall(r"\\[a-z]+|.", inside.replace("\\\\\n", ""), flags=re.DOTALL)
    unknown = {part for part in parts if part.startswith("\\")} - SIGNS.keys()
    assert not unknown, f"signs that this test does not know: {unknown}"
    return "".join(SIGNS.get(part, part) for part in parts)


def signs_of(tree: ElementTree.Element) -> str:
    return "".join(tree.itertext()).replace(INVISIBLE, "")


def equations_of(row: Row) -> Equations:
    cell = row.build()
    assert isinstance(cell, Cell)
    return cell.equations(row.input_size, row.hidden_size, training=row.masked)


@pytest.mark.parametrize("row", CELL_ROWS, ids=lambda row: row.name)
def test_mathml_has_the_signs_of_the_latex(row: Row) -> None:
    equations = equations_of(row)
    latex, tree = equations.latex(), ElementTree.fromstring(equations.mathml())
    assert signs_of(tree) == signs_of_latex(latex)
    assert len(tree.findall(".//mtr")) == latex.count("&=")
    for tag, word in LAYOUT.items():
        assert len(tree.findall(f".//{tag}")) == len(re.findall(word, latex))
    indices = [element for element in tree.iter() if element.tag in ("msub", "msubsup")]
    assert len(indices) == latex.count("_{")


def one(function: Callable[..., object]) -> tuple[str, str]:
    """h' of a step of h, c, a matrix U and a vector b: as LaTeX, and as signs of the MathML."""

    class Pair(Cell):
        U, b = Matrix("h"), Vector()

        def step(self, x, h, c):
            return function(self, h, c), c

    equations = Pair().equations()
    return equations.latex(), signs_of(ElementTree.fromstring(equations.mathml()))


@pytest.mark.parametrize(
    "function",
    [
        lambda s, h, c: -h - c,
        lambda s, h, c: h - (c - s.b),
        lambda s, h, c: h / -2,
        lambda s, h, c: -(s.U @ h) + c,
        lambda s, h, c: tanh(-h) * 2.5e-7,
        lambda s, h, c: 1e-5 * h,
        lambda s, h, c: maximum(h, float("-inf")),
        lambda s, h, c: minimum(h, -c),
        lambda s, h, c: sqrt(h * h + 1) / (c / s.b),
    ],
)
def test_single_expressions(function: Callable[..., object]) -> None:
    latex, signs = one(function)
    assert signs == signs_of_latex(latex)


def test_a_derivative_can_be_written_too() -> None:
    """Transposed matrices, outer products and comparisons, which no step has."""
    graph = Graph({"hidden": 4})
    h, c = (graph.leaf("state", name, "hidden") for name in "hc")
    back = graph.product(MatrixRef("U", "i", "hidden", "hidden", transposed=True), h)
    for node in (back, graph.outer(h, c), graph.elementwise("greater", (h, c))):
        tree = ElementTree.fromstring(f"<math>{MathML({}).show(node)}</math>")
        assert signs_of(tree) == signs_of_latex(Latex({}).show(node))


def test_an_element_has_as_many_parts_as_it_needs() -> None:
    """msub, mfrac and their like mean something else with fewer or more."""
    needed = {"msub": 2, "msup": 2, "msubsup": 3, "mfrac": 2}
    for row in CELL_ROWS:
        for element in ElementTree.fromstring(equations_of(row).mathml()).iter():
            assert len(element) == needed.get(element.tag, len(element)), (row.name, element.tag)


# --- in a notebook ---------------------------------------------------------------------------


@pytest.mark.parametrize("row", CELL_ROWS[::3], ids=lambda row: row.name)
def test_a_cell_in_a_notebook(row: Row) -> None:
    cell = row.build()
    assert isinstance(cell, Cell)
    html = cell._repr_html_()
    tree = check_page(html)
    equations = cell._displayed_equations()
    assert {"math", "svg"} <= {element.tag for element in tree.iter()}
    page_words = words(tree)
    assert equations.title in page_words
    assert f"{equations.counts().parameters:,}" in page_words
    for name, shape in equations.shapes.items():
        assert f"{name} {' × '.join(map(str, shape))}" in page_words


def test_a_picture_shown_twice_has_ids_of_its_own() -> None:
    cell = LSTM()
    first, second = cell._repr_html_(), cell._repr_html_()
    assert ids(first)
    assert not {*ids(first)} & {*ids(second)}
    check_page(f"<div>{first}{second}</div>")


def test_a_cell_that_adds_x_to_its_state_is_shown() -> None:
    cell = Residual(LSTM())
    assert "64 inputs, 64 units" in cell._repr_html_()
    assert cell._repr_latex_().startswith("$$")


def test_the_equations_themselves_are_shown() -> None:
    assert "3 inputs, 4 units" in words(check_page(LSTM().equations(3, 4)._repr_html_()))
