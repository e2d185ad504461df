"""Pictures: well-formed, complete, calm — nothing overlaps, and the same every time."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.cells import (
    CELLS,
    GRU,
    LSTM,
    Cell,
    LeakyRNN,
    RecurrentDropout,
    Residual,
    SimpleRNN,
    Zoneout,
)
from ensue.drawing.arrange import GAP, Box, arrange
from ensue.drawing.svg import GREY, VIOLET, Drawing
from ensue.equations import Matrix, Vector, below, maximum, sigmoid, tanh
from ensue.equations.picture import draw
from ensue.errors import OptionError
from ensue.layers import Recurrent

SVG = "{http://www.w3.org/2000/svg}"


class Crowded(Cell):
    """Everything at once: division, subtraction, numbers, a product inside the step, an
    output that is not a state part, a new state that is an old one, a bias that meets no x."""

    W, U, V, b = Matrix("x", "ab"), Matrix("h", "ab"), Matrix("h"), Vector("ab")

    def step(self, x: Any, h: Any, c: Any) -> Any:
        first = sigmoid(self.W.a @ x + self.U.a @ h + self.b.a)
        second = maximum(self.W.b @ x - self.U.b @ h, 0.1 * c) / (1 + first)
        return tanh(self.V @ (first * second) + 2 - sigmoid(self.b.b) * c), h

    def output(self, x: Any, h: Any, c: Any) -> Any:
        return h - c


SUBJECTS: dict[str, Cell] = {
    **{name: make() for name, make in CELLS.items()},
    "prelu": SimpleRNN("prelu"),
    "maxout": SimpleRNN("maxout", pieces=3),
    "learned leak": LeakyRNN(learned=True),
    "zoneout": Zoneout(LSTM()),
    "recurrent dropout": RecurrentDropout(GRU()),
    "residual": Residual(GRU()),
    "crowded": Crowded(),
}


def picture(cell: Cell) -> str:
    return cell.equations(64, 64).svg()


def rectangles(svg: str) -> list[tuple[float, float, float, float]]:
    """Left, top, right, bottom of every shape but the paper, which has no corner radius."""
    boxes = []
    for shape in ElementTree.fromstring(svg).iter(f"{SVG}rect"):
        if "rx" in shape.attrib:
            x, y, w, h = (float(shape.attrib[key]) for key in ("x", "y", "width", "height"))
            boxes.append((x, y, x + w, y + h))
    return boxes


def overlaps(boxes: list[tuple[float, float, float, float]], slack: float = 0.2) -> list[Any]:
    return [
        (a, b)
        for a, b in combinations(boxes, 2)
        if min(a[2], b[2]) - max(a[0], b[0]) > slack and min(a[3], b[3]) - max(a[1], b[1]) > slack
    ]


@pytest.mark.parametrize("cell", SUBJECTS.values(), ids=SUBJECTS)
def test_a_step_is_drawn_whole(cell: Cell) -> None:
    equations = cell.equations(64, 64)
    root = ElementTree.fromstring(equations.svg())
    titles = [title.text or "" for title in root.iter(f"{SVG}title")]
    names = {equations.names[n] for n in below(equations.roots) if n in equations.names}
    for name in names | {f"{part}'" for part in cell.parts}:
        assert any(text.startswith(f"{name} = ") for text in titles), name
    for name in ("x", *cell.parts):
        assert f"{name}, as it comes in" in titles
    drawn = {"".join(text.itertext()).replace("′", "'") for text in root.iter(f"{SVG}text")}
    for node in below(equations.roots):
        if node.op in ("product", "vector"):
            assert node.attr.name + node.attr.gate in drawn
        elif node.op == "mask":
            assert node.attr.replace("_", "") in drawn
    for name in names | set(cell.parts) | {"x"}:
        assert name.replace("_", "", 1) in drawn


@pytest.mark.parametrize("cell", SUBJECTS.values(), ids=SUBJECTS)
def test_nothing_overlaps_and_all_is_on_the_paper(cell: Cell) -> None:
    svg = picture(cell)
    boxes = rectangles(svg)
    assert len(boxes) > 8
    assert overlaps(boxes) == []
    paper = ElementTree.fromstring(svg)
    wide, high = float(paper.attrib["width"]), float(paper.attrib["height"])
    assert all(x > 0 and y > 0 and to_x < wide and to_y < high for x, y, to_x, to_y in boxes)


@pytest.mark.parametrize("name", CELLS)
def test_gates_stand_in_the_order_of_the_equations(name: str) -> None:
    """Those of a cell that are drawn one below another."""
    equations = CELLS[name]().equations()
    drawn = ElementTree.fromstring(draw(equations))
    named = {*equations.names.values()}
    columns: dict[float, list[tuple[float, str]]] = {}
    for element in drawn.iter(f"{SVG}text"):
        word = "".join(element.itertext())
        if word in named and element.get("fill") == VIOLET.line:
            columns.setdefault(float(element.get("x", 0)), []).append(
                (float(element.get("y", 0)), word)
            )
    written = [line.split(" ")[0] for line in str(equations).splitlines()]
    for column in columns.values():
        order = [word for _, word in sorted(column)]
        assert order == [word for word in written if word in order]
    if name == "LSTM":
        assert [[word for _, word in sorted(column)] for column in columns.values()] == [[*"ifgo"]]


def test_an_overlap_is_seen() -> None:
    drawing = Drawing()
    for x in (20, 40):
        drawing.rectangle((x, 20), 30, 10, 2, GREY)
    assert len(overlaps(rectangles(drawing.svg(80, 40, "two")))) == 1


def test_a_value_that_depends_on_one_value_is_one_thing() -> None:
    svg = picture(CELLS["LayerNormLSTM"]())
    assert svg.count(">· − mean(·)<") == 5
    assert svg.count(">· / √(mean(·²) + 1e−05)<") == 5
    assert picture(GRU()).count(">1−<") == 1


class Twice(Cell):
    """A value that reaches the same sum twice, once subtracted."""

    W, U = Matrix("x"), Matrix("h")

    def step(self, x: Any, h: Any) -> Any:
        s = tanh(self.W @ x)
        return s + (self.U @ h - s)


def test_a_value_that_is_used_twice_has_two_arrows() -> None:
    svg = picture(Twice())
    root = ElementTree.fromstring(svg)
    assert [text.text for text in root.iter(f"{SVG}text")].count("−") == 1
    ends = [path.attrib["d"] for path in root.iter(f"{SVG}path") if "marker-end" in path.attrib]
    assert len(ends) == len(set(ends))


@pytest.mark.parametrize("seed", ["0", "1"])
def test_a_picture_is_the_same_in_every_process(seed: str) -> None:
    code = (
        "from ensue.cells import LayerNormLSTM; from ensue.layers import Recurrent\n"
        "print(LayerNormLSTM().equations(8, 8).svg(), Recurrent('GRU', 2, 3).unfolded(4))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    layer_norm = CELLS["LayerNormLSTM"]().equations(8, 8).svg()
    assert run.stdout == f"{layer_norm} {Recurrent('GRU', 2, 3).unfolded(4)}\n"


def test_words_are_escaped() -> None:
    strange = type('A<b>&"c', (LSTM,), {})()
    for svg in (picture(strange), Recurrent(strange, 2, 3).unfolded(2)):
        assert "<b>" not in svg
        titles = [title.text or "" for title in ElementTree.fromstring(svg).iter(f"{SVG}title")]
        assert any('A<b>&"c' in text for text in titles)


# --- layout ---------------------------------------------------------------------------


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Box], list[tuple[int, int]], int, list[int]]:
    """Boxes, edges from lower to higher numbers, how many inputs, which results."""
    inputs, inner, results = (draw(st.integers(1, most)) for most in (3, 9, 3))
    count = inputs + inner + results
    sizes = st.sampled_from([10.0, 30.0, 75.0])
    boxes = [Box(draw(sizes), draw(sizes), draw(sizes)) for _ in range(count)]
    pairs = [(a, b) for b in range(inputs, count) for a in range(min(b, inputs + inner))]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=24, unique=True))
    return boxes, edges, inputs, list(range(inputs + inner, count))


@given(graphs())
def test_every_graph_has_room(graph: tuple[Any, ...]) -> None:
    boxes, edges, inputs, results = graph
    placed = arrange(boxes, edges, inputs, results)
    areas = [
        (x - b.width / 2, y - b.above, x + b.width / 2, y + b.below)
        for (x, y), b in zip(placed.centres, boxes, strict=True)
    ]
    assert overlaps(areas, slack=0.01 - GAP) == []  # there is a gap, too
    left = min(x for x, _, _, _ in areas)
    assert left >= 0
    assert min(y for _, y, _, _ in areas) >= -0.01
    assert max(x for _, _, x, _ in areas) <= placed.width + 0.01
    assert max(y for _, _, _, y in areas) <= placed.height + 0.01
    columns = [side for side, _ in placed.sides]
    assert all(columns[k] == 0 for k in range(inputs))
    assert all(columns[k] == max(columns) for k in results)
    for (a, b), way in zip(edges, placed.ways, strict=True):
        across = [placed.sides[a][1], *(x for x, _ in way), placed.sides[b][0]]
        assert across == sorted(across)  # an edge never turns back
        for x, y in way:  # nor runs through a box
            assert not any(
                left < x < right and top < y < bottom for left, top, right, bottom in areas
            )


def test_crossings_that_need_not_be_are_taken_out() -> None:
    box = Box(10, 5, 5)
    placed = arrange([box] * 6, [(0, 3), (1, 2), (2, 5), (3, 4)], 2, [4, 5])
    y = [height for _, height in placed.centres]
    assert (y[0] - y[1]) * (y[3] - y[2]) > 0
    assert (y[3] - y[2]) * (y[4] - y[5]) > 0
    assert y[0] == pytest.approx(y[3])
    assert y[3] == pytest.approx(y[4])


# --- unfolding ------------------------------------------------------------------------

NETWORKS: dict[str, Recurrent] = {
    "one layer": Recurrent("SimpleRNN", 2, 3),
    "two layers, two cells": Recurrent([LSTM(), GRU()], 2, 3),
    "both directions": Recurrent("GRU", 2, 3, 2, bidirectional=True),
    "forward end": Recurrent("LSTM", 2, 3, bidirectional=True, backward_start="forward_end"),
    "shared end": Recurrent("LSTM", 2, 3, bidirectional=True, backward_start="shared_end"),
    "learned start": Recurrent("LSTM", 2, 3, initial="learned"),
}


@pytest.mark.parametrize("length", [1, 2, 8, 9, 500])
@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_an_unfolded_network(network: Recurrent, length: int) -> None:
    svg = network.unfolded(length)
    root = ElementTree.fromstring(svg)
    assert overlaps(rectangles(svg), slack=1.5) == []  # halves of a bar touch
    drawn = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    count = sum(p.numel() for p in network.parameters())
    assert f"{count:,} parameters, the same for every length" in drawn
    steps = range(1, length + 1) if length <= 8 else [1, 2, 3, 4, length - 1, length]
    assert [text for text in drawn if text[0] == "x"] == [f"x{step}" for step in steps]
    assert [text for text in drawn if text[0] == "y"] == [f"y{step}" for step in steps]
    for way in range(len(network.ways)):
        directions = 1 + network.bidirectional
        name = f"θ{'′' if way % directions else ''}{way // directions + 1}"
        shared_start = way % 2 == 1 and network.backward_start == "shared_end"
        assert drawn.count(name) == len(steps) - shared_start + 1  # one in the legend


def test_the_picture_grows_and_the_parameters_do_not() -> None:
    network = NETWORKS["one layer"]
    widths = [float(ElementTree.fromstring(network.unfolded(k)).attrib["width"]) for k in (4, 8)]
    assert widths[0] < widths[1]


def test_a_network_over_no_steps_is_refused() -> None:
    with pytest.raises(OptionError, match="length: expected a number of steps ≥ 1, got 0"):
        NETWORKS["one layer"].unfolded(0)
