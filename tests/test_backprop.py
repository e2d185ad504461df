"""The four equations against the automatic gradient; graphs of expressions; their commands."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import avg_pool2d, conv2d, max_pool2d, pad

from ensue.cells import GRU
from ensue.cli import main
from ensue.drawing.document import as_text as document_text
from ensue.errors import EnsueError, EquationError, OptionError
from ensue.layers.feedforward import MLP
from ensue.study.foundations.backprop import (
    OUTPUTS,
    PROBABILITIES,
    SLOPES,
    NetworkWalk,
    backpropagate,
    walk_through,
)
from ensue.study.foundations.backprop_report import as_page, as_text
from ensue.study.foundations.bptt_walk import TimeWalk
from ensue.study.foundations.expression import examine
from ensue.study.foundations.expression_report import document as graph_document
from ensue.study.foundations.expression_report import draw

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
    walk = backpropagate(network, activation, output, cost, x, y)
    assert walk.difference < 1e-12
    largest = max(float(layer.weight_gradient.abs().max()) for layer in walk.layers)
    assert largest > 1e-6  # a gradient that is zero everywhere would prove nothing


def test_a_wrong_equation_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SLOPES, "tanh", lambda z, a: 1 - a)
    assert walk_through([2, 3, 1], activation="tanh").difference > 1e-3


def test_one_hidden_unit_is_golden() -> None:
    walk = walk_through([1, 1, 1], weights=[0.5, -1, 2, -0.5], x=[2], y=[1])
    first, last = walk.layers
    assert float(first.a) == pytest.approx(0.5)
    assert float(last.a) == pytest.approx(0.6224593, abs=1e-7)
    assert walk.cost == pytest.approx(0.4740770, abs=1e-7)
    assert float(last.weight_gradient) == pytest.approx(-0.1887703, abs=1e-7)  # dw
    assert float(first.bias_gradient) == pytest.approx(-0.1887703, abs=1e-7)  # dc
    assert float(last.bias_gradient) == pytest.approx(-0.3775407, abs=1e-7)  # db
    assert float(first.weight_gradient) == pytest.approx(-0.3775407, abs=1e-7)  # du


def test_the_last_delta_has_the_right_sign() -> None:
    """(a − y)·σ', so that a step against it brings a nearer to y."""
    walk = walk_through([1, 1], output="logistic", cost="squares", weights=[0.0, 0.0], x=[1], y=[1])
    assert float(walk.layers[0].delta) == pytest.approx((0.5 - 1) * 0.25)


def test_softmax_needs_the_whole_jacobian() -> None:
    options = {"weights": [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0], "x": [1, 1, 1], "y": [0, 1, 0]}
    walk = walk_through([3, 3], output="softmax", **options)  # type: ignore[arg-type]
    expected = torch.tensor([0.0900, -0.7553, 0.6652], dtype=torch.float64)
    torch.testing.assert_close(walk.layers[0].delta, expected, atol=5e-5, rtol=0)
    squares = walk_through([3, 3], output="softmax", cost="squares", **options)  # type: ignore[arg-type]
    a = squares.layers[0].a
    diagonal = (a - squares.y) * a * (1 - a)
    assert float((squares.layers[0].delta - diagonal).abs().max()) > 0.01
    assert squares.difference < 1e-12


def test_what_is_drawn_can_be_followed() -> None:
    walk = walk_through([3, 4, 2], seed=5)
    for layer in walk.layers:
        torch.testing.assert_close(layer.weight * 10, (layer.weight * 10).round())
    again = walk_through([3, 4, 2], seed=5)
    assert torch.equal(again.layers[0].weight, walk.layers[0].weight)


@pytest.mark.parametrize(
    ("options", "message"),
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
def test_wrong_walks_are_told(options: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError) as error:
        walk_through([2, 3, 1], **options)  # type: ignore[arg-type]
    assert message in str(error.value)


@pytest.mark.parametrize("y", [[1.0, 1.0], [0.0, 0.0], [0.5, 0.6]])
def test_targets_of_a_softmax_are_a_distribution(y: list[float]) -> None:
    """Elsewhere δ is not a − y, which is printed next to it."""
    with pytest.raises(OptionError, match="targets of a softmax that sum to 1, such as 1,0"):
        walk_through([2, 2], output="softmax", y=y)
    with pytest.raises(OptionError, match="choose --output logistic"):
        TimeWalk(GRU(), steps=1, output="softmax", outputs=2, y=y).walked()
    walk_through([2, 2], output="logistic", y=y)
    walk_through([2, 2], output="softmax", cost="squares", y=y)
    walk_through([2, 2], output="softmax", y=[0.3, 0.7])


class Tags(HTMLParser):
    """Whether a page is whole, and needs no other file."""

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
    walk = walk_through([2, 3, 1])
    page, tags = as_page(walk), Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.outside == []
    for layer in walk.layers:
        for value in (*layer.z, *layer.a, *layer.delta, *layer.weight_gradient.flatten()):
            number = f"{float(value):z.6f}".replace("-", "−")
            assert number in page
            assert number in as_text(walk)


def test_negative_numbers_have_a_true_minus_and_brackets_as_factors() -> None:
    walk = walk_through([2, 1, 1], weights=[1, -2, 0, 1, -0.5], x=[-0.3, 0], y=[1])
    assert "z1 = 1·(−0.3) − 2·0 + 0 = −0.300000" in as_text(walk)
    assert "-0" not in as_text(walk).replace("e-0", "")
    assert "-0.0" not in as_page(walk)


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
    examination = examine(text, {"x": 1.5, "y": 0.7})
    assert examination.value == pytest.approx(float(value.detach()), abs=1e-12)
    assert examination.derivatives() == pytest.approx(
        {"x": float(first[0].detach()), "y": float(first[1].detach())}, abs=1e-12
    )
    for name, slope in zip("xy", first, strict=True):
        second = torch.autograd.grad(slope, (x, y), retain_graph=True, allow_unused=True)
        for other, gradient in zip("xy", second, strict=True):
            expected = 0.0 if gradient is None else float(gradient)
            assert examination.second[name, other] == pytest.approx(expected, abs=1e-11)


def test_a_node_that_is_used_twice_gets_the_sum() -> None:
    examination = examine("x*x + x", {"x": 3.0})
    assert [node.label for node in examination.nodes] == ["x", "×", "+"]  # one x, whatever its uses
    assert examination.derivatives() == {"x": 7.0}


def test_every_derivative_of_a_node_is_that_of_a_change_of_it() -> None:
    """sin(x*y) + x: the node x*y, moved by itself, moves the result by cos(x*y)."""
    examination = examine("sin(x*y) + x", {"x": 1.5, "y": 2.0})
    product = next(node for node in examination.nodes if node.label == "×")
    assert product.value == 3.0
    assert product.derivative == pytest.approx(math.cos(3.0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x +", "is not an expression"),
        ("__import__('os')", "expected numbers, variables"),
        ("x.real", "expected numbers, variables"),
        ("[x for x in y]", "expected numbers, variables"),
        ("sinn(x)", "unknown function 'sinn': did you mean 'sin'?"),
        ("x**y", "expected a number as the exponent; of a variable write exp(y*log(x))"),
        ("sin(x, y)", "sin: expected 1 argument, got 2"),
        ("z + 1", "expected a value of z: --at z=…"),
        ("log(x - x)", "log of 0 is -inf: choose other values with --at"),
        ("x" * 2000, "expected an expression of at most 1000 characters, got 2000"),
        ("-" * 990 + "x", "is not an expression"),
        ("9" * 400 + "*x", "is not an expression"),
        ("True + x", "expected numbers, variables"),
    ],
)
def test_nothing_else_is_an_expression(text: str, message: str) -> None:
    with pytest.raises(EnsueError) as error:
        examine(text, {"x": 1.0, "y": 2.0} if "y" in text else {"x": 1.0} if "x" in text else {})
    assert message in str(error.value)
    assert isinstance(error.value, EquationError | OptionError)


def test_the_graph_is_drawn() -> None:
    examination = examine("sin(x*y) + x/2", {"x": 1.5, "y": 2.0})
    picture = draw(examination)
    ElementTree.fromstring(picture)
    for node in examination.nodes:
        assert f"{node.value:.4g}".replace("-", "−") in picture
    assert "∂result/∂node" in document_text(graph_document(examination))
    ElementTree.fromstring(draw(examine("x", {"x": 1.0})))


# --- commands --------------------------------------------------------------------------------


def run(*words: str) -> None:
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 0


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, picture = tmp_path / "walk.html", tmp_path / "graph.svg"
    options = ["--weights", "0.5,-1,2,-0.5", "--x", "2", "--y", "1", "--html", str(page), "--json"]
    run("backprop", "--widths", "1,1,1", *options)
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
        (["backprop", "--widths", "2,2.5"], "--widths: expected comma-separated whole numbers"),
        (["backprop", "--x", "a,b"], "--x: expected comma-separated numbers"),
        (["graph", "x", "--at", "x"], "--at: expected comma-separated name=number, got 'x'"),
        (["graph", "x", "--at", "x=1,y=2"], "unknown variable 'y'"),
        (["graph", "x", "--at", "x=inf"], "x: expected a finite number, got inf"),
        (["lab", "--rates", "fast"], "--rates: expected comma-separated numbers"),
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


# --- to the update -----------------------------------------------------------------------------


def test_a_minibatch_ends_with_the_update_of_every_weight() -> None:
    """By autograd on the mean cost of all rows at once."""
    x, y = [0.5, -1.0, 2.0, 0.3, -0.7, 1.1], [1, 0, 1]
    walk = NetworkWalk(widths=[2, 3, 1], x=x, y=y, rows=3, rate=0.3, seed=4).walked()
    batch = walk.batch
    assert batch is not None
    leaves = [weight.clone().requires_grad_() for weight in batch.before]
    W1, b1, W2, b2 = leaves
    rows, targets = (torch.tensor(v, dtype=torch.float64).view(3, -1) for v in (x, y))

    def cost(W1: torch.Tensor, b1: torch.Tensor, W2: torch.Tensor, b2: torch.Tensor) -> Any:
        z = (rows @ W1.t() + b1).sigmoid() @ W2.t() + b2
        return torch.nn.functional.binary_cross_entropy_with_logits(z, targets)

    value = cost(W1, b1, W2, b2)
    assert batch.cost == pytest.approx(float(value.detach()), rel=1e-12)
    for slope, gradient in zip(torch.autograd.grad(value, leaves), batch.gradient, strict=True):
        assert torch.allclose(slope, gradient, atol=1e-12)
    for before, slope, after in zip(batch.before, batch.gradient, batch.after, strict=True):
        assert torch.equal(after, before - 0.3 * slope)
    assert batch.cost_after == pytest.approx(float(cost(*batch.after)), rel=1e-12)
    assert batch.cost_after < batch.cost
    text = as_text(walk)
    assert "the mean over a minibatch of 3" in text
    assert all(f"W1[{i},{j}]" in text for i in (1, 2, 3) for j in (1, 2))
    assert "One update" in as_page(walk)


@pytest.mark.parametrize("widths", [[2, 4, 4, 1], [3, 4, 2], [4, 4, 4]])
def test_no_number_of_the_picture_covers_another(widths: list[int]) -> None:
    from ensue.study.foundations.backprop_report import HIGH, network_picture

    svg = ElementTree.fromstring(network_picture(walk_through(widths, seed=1)))
    named = (element.attrib for element in svg.iter() if element.tag.endswith("rect"))
    boxes = [[float(attributes[key]) for key in ("x", "y", "width")] for attributes in named
             if attributes["height"] == str(HIGH)]  # fmt: skip
    assert len(boxes) == sum(a * b for a, b in pairwise(widths))
    for (x, y, wide), (other_x, other_y, other_wide) in combinations(boxes, 2):
        apart = x + wide <= other_x or other_x + other_wide <= x
        assert apart or abs(y - other_y) >= HIGH


def test_the_drawing_has_its_biases() -> None:
    from ensue.study.foundations.backprop_report import network_picture

    walk = walk_through([1, 2, 1], weights=[1, 1, 0.25, -0.75, 1, 1, 0.5])
    svg = network_picture(walk)
    assert all(f">b {bias}<" in svg for bias in ("0.25", "−0.75", "0.5"))


# --- vectors and matrices ----------------------------------------------------------------------

IMAGE = [[1.0, 0.5, 0.2, 1.5], [1.2, 0.1, 3.0, 0.7], [1.1, 2.0, 0.4, 0.6], [0.3, 1.4, 0.8, 1.9]]
SHAPED: dict[str, dict[str, Any]] = {
    "v @ tanh(U @ x + c)": {"U": [[1.0, 2.0], [0.5, -1.0]], "x": [1.0, -1.0], "v": [1.0, 2.0],
                            "c": [0.5, -0.5]},
    "sum(softmax(W @ x) * y)": {"W": [[1.0, 2.0], [0.5, -1.0], [0.1, 0.3]], "x": [1.0, -1.0],
                                "y": [0.2, 0.3, 0.5]},
    "sum(A @ B) / 2 - mean(A)**2": {"A": [[1.0, 2.0]], "B": [[3.0], [4.0]]},
    "x @ x + a*sum(x)": {"x": [1.0, -2.0, 3.0], "a": 0.5},
    "-log(sigmoid(x @ W @ y))": {"x": [0.3, 0.2], "W": [[1.0, 2.0], [0.5, -1.0]], "y": [1.0, 2.0]},
    "sum(maximum(x, y) + relu(x) + sqrt(exp(x)) + sin(x) + cos(y) + softplus(x))": {
        "x": [1.0, -2.0], "y": [0.5, 0.7]},
    "sum(conv(X, F)**2) + b": {"X": IMAGE, "F": [[-1.0, 2.0], [4.0, -2.0]], "b": 1.0},
    "sum(tanh(conv(pad(X, 1), F, 2)))": {"X": IMAGE, "F": [[-1.0, 0.2, 0.3], [0.4, -2.0, 1.0]]},
    "sum(maxpool(X, 2)**2) + sum(meanpool(X, 3)**2)": {"X": IMAGE},
}  # fmt: skip


@pytest.mark.parametrize("text", SHAPED)
def test_derivatives_by_vectors_and_matrices_are_those_of_autograd(text: str) -> None:
    examination = examine(text, SHAPED[text])
    leaves = {
        name: torch.tensor(entries, dtype=torch.float64, requires_grad=True)
        for name, entries in SHAPED[text].items()
    }
    names = (
        "sin",
        "cos",
        "tanh",
        "sigmoid",
        "exp",
        "log",
        "sqrt",
        "relu",
        "maximum",
        "sum",
        "mean",
    )
    functions: dict[str, Any] = {name: getattr(torch, name) for name in names}
    functions["softmax"] = lambda v: v.softmax(-1)
    functions["softplus"] = torch.nn.functional.softplus
    functions["conv"] = lambda x, f, s=1: conv2d(x[None, None], f[None, None], stride=s)[0, 0]
    functions["pad"] = lambda x, n: pad(x, [n] * 4)
    functions["maxpool"] = lambda x, n: max_pool2d(x[None, None], n)[0, 0]
    functions["meanpool"] = lambda x, n: avg_pool2d(x[None, None], n)[0, 0]
    value = eval(text, functions, dict(leaves))
    assert examination.value == pytest.approx(float(value.detach()), rel=1e-12)
    slopes = torch.autograd.grad(value, list(leaves.values()))
    derivatives = examination.derivatives()
    for name, slope in zip(leaves, slopes, strict=True):
        derivative = torch.tensor(derivatives[name], dtype=torch.float64)
        assert derivative.shape == slope.shape
        assert torch.allclose(derivative, slope, atol=1e-12), name
    ElementTree.fromstring(draw(examination))
    assert "shape" in document_text(graph_document(examination))


@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        ("W @ x", {"W": [[1, 2]], "x": [1, 2, 3]}, "shapes that multiply, got 1×2 and 3"),
        ("W @ x", {"W": [[1, 2], [3, 4]], "x": [1, 2]}, "a result that is one number, got shape 2"),
        ("sum(x + y)", {"x": [1, 2], "y": [1, 2, 3]}, "+: expected equal shapes"),
        ("sum(x)", {"x": [[1, 2], [3]]}, "a list of rows of equal length"),
        ("sum(x)", {"x": [[[1]]]}, "x: expected a number, a vector or a matrix"),
        ("x @ 2", {"x": [1]}, "MatMul: expected vectors or matrices"),
        ("sum(log(x))", {"x": [1, 0]}, "log of [1.0, 0.0] is not finite"),
        ("sum(x*y)", {"x": [1]}, "expected a value of y: --at y=…"),
        ("sum(x)", {"x": [1], "z": 2}, "unknown variable 'z'"),
        ("summ(x)", {"x": [1]}, "unknown function 'summ'"),
        ("sum(x, x)", {"x": [1]}, "sum: expected 1 argument, got 2"),
        ("softmax(W) @ W", {"W": [[1, 2], [3, 4]]}, "softmax: expected a vector"),
        ("sum(conv(x, x))", {"x": [1, 2]}, "conv: expected 2 matrices and a number, got 2 and 2"),
        ("sum(conv(x, y))", {"x": [[1]], "y": [[1, 2]]}, "conv: expected a patch that fits into"),
        ("sum(maxpool(x, 0))", {"x": [[1]]}, "maxpool: expected a whole number from 1 to 5, got 0"),
        ("sum(pad(x, 0.5))", {"x": [[1]]}, "pad: expected a whole number from 0 to 5, got 0.5"),
        ("sum(pad(x))", {"x": [[1]]}, "pad: expected 2 arguments, got 1"),
        ("sum(x.T)", {"x": [1]}, "expected numbers, variables, + − * / @ **"),
    ],
)  # fmt: skip
def test_wrong_shapes_are_told(text: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(EnsueError) as error:
        examine(text, values)
    assert message in str(error.value)


def test_numbers_and_vectors_of_one_entry_have_the_same_derivatives() -> None:
    """One graph for both: what holds for a number holds for the feature of a vector."""
    for text in EXPRESSIONS:
        numbers = examine(text, {"x": 1.5, "y": 0.7})
        vectors = examine(f"sum({text})", {"x": [1.5], "y": [0.7]})
        of_vectors = {name: derivative[0] for name, derivative in vectors.derivatives().items()}
        assert of_vectors == pytest.approx(numbers.derivatives(), rel=1e-15)
        assert vectors.value == numbers.value


def test_a_derivative_of_a_vector_that_is_not_finite_is_told() -> None:
    with pytest.raises(OptionError, match=r"is not finite: choose other values with --at"):
        examine("sum(sqrt(x))", {"x": [0.0, 1.0]})


@pytest.mark.parametrize("text", ["sum(x**y)", "sum(" + "9" * 400 + "*x)", "sum(x ^ 2)"])
def test_what_is_no_expression_of_numbers_is_none_of_vectors(text: str) -> None:
    with pytest.raises(EquationError):
        examine(text, {"x": [1.0, 2.0], "y": 2.0} if "y" in text else {"x": [1.0, 2.0]})


def test_an_expression_may_begin_with_a_minus(capsys: pytest.CaptureFixture[str]) -> None:
    run("graph", "-log(sigmoid(x))", "--at", "x=-2")
    out = capsys.readouterr().out
    assert re.search(r"−\(#2\) +2\.126928 +1\.000000", out)
    assert "-" not in out.removeprefix("-log"), "a true minus everywhere"
    run("graph", "--at", "x=1", "-tanh(x)")
    assert "−0.761594" in capsys.readouterr().out
    at = "U=[[1,2],[0,1]],x=[1,-1],v=[1,2]"
    run("graph", "-log(sigmoid(v @ tanh(U @ x)))", "--at", at, "--json")
    assert len(json.loads(capsys.readouterr().out)["derivatives"]["U"][0]) == 2
