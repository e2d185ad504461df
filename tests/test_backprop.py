"""The four equations against the automatic gradient; graphs of expressions; their commands."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch

from ensue.cli import main
from ensue.errors import EnsueError, EquationError, OptionError
from ensue.layers.feedforward import MLP
from ensue.study.foundations.backprop import (
    OUTPUTS,
    PROBABILITIES,
    SLOPES,
    backpropagate,
    walk_through,
)
from ensue.study.foundations.backprop_page import as_page
from ensue.study.foundations.backprop_text import as_text
from ensue.study.foundations.expression import as_text as graph_text
from ensue.study.foundations.expression import examine
from ensue.study.foundations.expression_picture import draw

COMBINATIONS = [
    (activation, output, cost)
    for activation in SLOPES
    for output in OUTPUTS
    for cost in ("squares", "cross-entropy")
    if cost == "squares" or output in PROBABILITIES
]

# --- the four equations ----------------------------------------------------------------------


@pytest.mark.parametrize(("activation", "output", "cost"), COMBINATIONS)
def test_the_four_equations_equal_the_automatic_gradient(
    activation: str, output: str, cost: str
) -> None:
    torch.manual_seed(3)
    network = MLP([4, 6, 5, 3], activation, skips=[(0, 2), (1, 3), (0, 3)]).double()
    with torch.no_grad():
        network.layers[-1].bias.fill_(1.0)  # a ReLU at the end is alive
    x = torch.randn(4, dtype=torch.float64)
    y = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)
    found = backpropagate(network, activation, output, cost, x, y)
    assert found.difference < 1e-12
    largest = max(float(own.weight_gradient.abs().max()) for own in found.layers)
    assert largest > 1e-6  # a gradient that is zero everywhere would prove nothing


def test_a_wrong_equation_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SLOPES, "tanh", lambda z, a: 1 - a)
    assert walk_through([2, 3, 1], activation="tanh").difference > 1e-3


def test_one_hidden_unit_is_golden() -> None:
    found = walk_through([1, 1, 1], weights=[0.5, -1, 2, -0.5], x=[2], y=[1])
    first, last = found.layers
    assert float(first.a) == pytest.approx(0.5)
    assert float(last.a) == pytest.approx(0.6224593, abs=1e-7)
    assert found.cost == pytest.approx(0.4740770, abs=1e-7)
    assert float(last.weight_gradient) == pytest.approx(-0.1887703, abs=1e-7)  # dw
    assert float(first.bias_gradient) == pytest.approx(-0.1887703, abs=1e-7)  # dc
    assert float(last.bias_gradient) == pytest.approx(-0.3775407, abs=1e-7)  # db
    assert float(first.weight_gradient) == pytest.approx(-0.3775407, abs=1e-7)  # du


def test_the_last_delta_has_the_right_sign() -> None:
    """(a − y)·σ', so that a step against it brings a nearer to y."""
    found = walk_through(
        [1, 1], output="logistic", cost="squares", weights=[0.0, 0.0], x=[1], y=[1]
    )
    assert float(found.layers[0].delta) == pytest.approx((0.5 - 1) * 0.25)


def test_softmax_needs_the_whole_jacobian() -> None:
    given = {"weights": [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0], "x": [1, 1, 1], "y": [0, 1, 0]}
    found = walk_through([3, 3], output="softmax", **given)  # type: ignore[arg-type]
    expected = torch.tensor([0.0900, -0.7553, 0.6652], dtype=torch.float64)
    torch.testing.assert_close(found.layers[0].delta, expected, atol=5e-5, rtol=0)
    squares = walk_through([3, 3], output="softmax", cost="squares", **given)  # type: ignore[arg-type]
    a = squares.layers[0].a
    diagonal = (a - squares.y) * a * (1 - a)
    assert float((squares.layers[0].delta - diagonal).abs().max()) > 0.01
    assert squares.difference < 1e-12


def test_what_is_drawn_can_be_followed() -> None:
    found = walk_through([3, 4, 2], seed=5)
    for own in found.layers:
        torch.testing.assert_close(own.weight * 10, (own.weight * 10).round())
    again = walk_through([3, 4, 2], seed=5)
    assert torch.equal(again.layers[0].weight, found.layers[0].weight)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"activation": "tahn"}, "unknown activation 'tahn': did you mean 'tanh'?"),
        ({"output": "tanh"}, "cross-entropy needs an output of probabilities, logistic or softmax"),
        ({"cost": "cubes"}, "unknown cost 'cubes'"),
        ({"weights": [1.0]}, "weights: expected 13 numbers, got 1"),
        ({"x": [1.0]}, "x: expected 2 numbers, got 1"),
        ({"y": [5.0]}, "y: expected probabilities from 0 to 1 with cross-entropy, got [5.0]"),
        ({"output": "softmax"}, "widths: expected two outputs or more with softmax, got 1"),
    ],
)
def test_wrong_walks_are_told(given: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError) as error:
        walk_through([2, 3, 1], **given)  # type: ignore[arg-type]
    assert message in str(error.value)


class Tags(HTMLParser):
    """Whether a page is whole, and needs nothing beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "rect", "path"):
            self.open.append(tag)
        self.outside += [v for n, v in attrs if n in ("src", "href") and v]

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()


def test_the_page_stands_by_itself() -> None:
    found = walk_through([2, 3, 1])
    page, seen = as_page(found), Tags()
    seen.feed(page)
    assert seen.open == []
    assert seen.outside == []
    for own in found.layers:
        for value in (*own.z, *own.a, *own.delta, *own.weight_gradient.flatten()):
            shown = f"{float(value):z.6f}".replace("-", "−")
            assert shown in page
            assert shown in as_text(found)


def test_negative_numbers_have_a_true_minus_and_brackets_as_factors() -> None:
    found = walk_through([2, 1, 1], weights=[1, -2, 0, 1, -0.5], x=[-0.3, 0], y=[1])
    assert "z1 = 1·(−0.3) − 2·0 + 0 = −0.300000" in as_text(found)
    assert "-0" not in as_text(found).replace("e-0", "")
    assert "-0.0" not in as_page(found)


# --- expressions -----------------------------------------------------------------------------


EXPRESSIONS = {
    "sin(x*y) + x": lambda x, y: torch.sin(x * y) + x,
    "x*x*y - y/x": lambda x, y: x * x * y - y / x,
    "exp(-x**2) * cos(3*y)": lambda x, y: torch.exp(-(x**2)) * torch.cos(3 * y),
    "log(x + 2) * sqrt(y) - -x": lambda x, y: torch.log(x + 2) * torch.sqrt(y) + x,
    "sigmoid(x) + tanh(y)*softplus(x*y)": lambda x, y: (
        torch.sigmoid(x) + torch.tanh(y) * torch.nn.functional.softplus(x * y)
    ),
    "maximum(x, y)**3 + relu(x - y) + pi": lambda x, y: (
        torch.maximum(x, y) ** 3 + torch.relu(x - y) + math.pi
    ),
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_values_and_derivatives_are_those_of_torch(text: str) -> None:
    x, y = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (1.5, 0.7))
    value = EXPRESSIONS[text](x, y)
    first = torch.autograd.grad(value, (x, y), create_graph=True)
    found = examine(text, {"x": 1.5, "y": 0.7})
    assert found.value == pytest.approx(float(value.detach()), abs=1e-12)
    assert found.derivatives() == pytest.approx(
        {"x": float(first[0].detach()), "y": float(first[1].detach())}, abs=1e-12
    )
    for name, slope in zip("xy", first, strict=True):
        second = torch.autograd.grad(slope, (x, y), retain_graph=True, allow_unused=True)
        for other, own in zip("xy", second, strict=True):
            wanted = 0.0 if own is None else float(own)
            assert found.second[name, other] == pytest.approx(wanted, abs=1e-11)


def test_a_node_that_is_used_twice_gets_the_sum() -> None:
    found = examine("x*x + x", {"x": 3.0})
    assert [own.label for own in found.places] == ["x", "×", "+"]  # one x, whatever its uses
    assert found.derivatives() == {"x": 7.0}


def test_every_derivative_of_a_node_is_that_of_a_change_of_it() -> None:
    """sin(x*y) + x: the node x*y, moved by itself, moves the result by cos(x*y)."""
    found = examine("sin(x*y) + x", {"x": 1.5, "y": 2.0})
    product = next(own for own in found.places if own.label == "×")
    assert product.value == 3.0
    assert product.derivative == pytest.approx(math.cos(3.0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x +", "is no expression"),
        ("__import__('os')", "expected numbers, variables"),
        ("x.real", "expected numbers, variables"),
        ("[x for x in y]", "expected numbers, variables"),
        ("sinn(x)", "unknown function 'sinn': did you mean 'sin'?"),
        ("x**y", "expected a number as the exponent; of a variable write exp(y*log(x))"),
        ("sin(x, y)", "sin: expected 1 argument, got 2"),
        ("z + 1", "expected a value of z: --at z=…"),
        ("log(x - x)", "log of 0 is -inf: choose other values with --at"),
        ("x" * 2000, "expected an expression of at most 1000 characters, got 2000"),
        ("-" * 990 + "x", "is no expression"),
        ("9" * 400 + "*x", "is no expression"),
        ("True + x", "expected numbers, variables"),
    ],
)
def test_nothing_else_is_an_expression(text: str, message: str) -> None:
    with pytest.raises(EnsueError) as error:
        examine(text, {"x": 1.0, "y": 2.0} if "y" in text else {"x": 1.0} if "x" in text else {})
    assert message in str(error.value)
    assert isinstance(error.value, EquationError | OptionError)


def test_the_graph_is_drawn() -> None:
    found = examine("sin(x*y) + x/2", {"x": 1.5, "y": 2.0})
    picture = draw(found)
    ElementTree.fromstring(picture)
    for own in found.places:
        assert f"{own.value:.4g}".replace("-", "−") in picture
    assert "∂result/∂node" in graph_text(found)
    ElementTree.fromstring(draw(examine("x", {"x": 1.0})))


# --- commands --------------------------------------------------------------------------------


def run(*words: str) -> None:
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 0


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, picture = tmp_path / "walk.html", tmp_path / "graph.svg"
    own = ["--weights", "0.5,-1,2,-0.5", "--x", "2", "--y", "1", "--html", str(page), "--json"]
    run("backprop", "--widths", "1,1,1", *own)
    facts = json.loads(capsys.readouterr().out)
    assert facts["cost"] == pytest.approx(0.4740770, abs=1e-7)
    assert page.read_text("utf-8").startswith("<!doctype html>")
    run("graph", "sin(x*y) + x", "--at", "x=1.5,y=2", "--picture", str(picture), "--json")
    assert json.loads(capsys.readouterr().out)["derivatives"]["y"] == pytest.approx(-1.484989)
    assert picture.read_text("utf-8").startswith("<svg")
    run("graph", "x*y")
    assert "∂²/∂x∂y = 1.000000" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["backprop", "--widths", "2,2.5"], "--widths: expected whole numbers with commas between"),
        (["backprop", "--x", "a,b"], "--x: expected numbers with commas between"),
        (["graph", "x", "--at", "x"], "--at: expected name=number with commas between, got 'x'"),
        (["graph", "x", "--at", "x=1,y=2"], "unknown variable 'y'"),
        (["graph", "x", "--at", "x=inf"], "x: expected a finite number, got inf"),
        (["lab", "--rates", "fast"], "--rates: expected numbers with commas between"),
        (["lab", "--picture", "lab.gif"], "lab.gif: expected a file name that ends in .svg"),
    ],
)
def test_wrong_commands_are_told(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    assert message in capsys.readouterr().err
