"""The points where a derivative is a matter of choice, NaN, and functions far from zero.

The graph and the eager step make the same choice."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ensue.engine.interpreter import Blocks, evaluate
from ensue.equations import (
    Graph,
    Node,
    maximum,
    minimum,
    prelu,
    relu,
    reverse,
    sigmoid,
    softplus,
    tanh,
)
from ensue.equations.symbol import Symbol


def value(node: Node, leaves: dict[Node, Tensor]) -> Tensor:
    return evaluate([node], leaves, Blocks.__new__(Blocks))[node]


def by_graph(function: Callable, *values: Tensor) -> tuple[Tensor, list[Tensor]]:
    """(value, derivative by each argument) by the graph."""
    graph = Graph({"hidden": values[0].shape[-1]})
    leaves = [graph.leaf("given", f"v{k}", "hidden") for k in range(len(values))]
    t = graph.leaf("given", "t", "hidden")
    node = function(*map(Symbol, leaves)).node
    given_values = {**dict(zip(leaves, values, strict=True)), t: torch.ones_like(values[0])}
    back = reverse([(node, t)]).leaves
    return value(node, given_values), [value(back[leaf], given_values) for leaf in leaves]


def by_torch(function: Callable, *values: Tensor) -> tuple[Tensor, list[Tensor]]:
    leaves = [v.clone().requires_grad_() for v in values]
    result = function(*leaves)
    return result.detach(), list(torch.autograd.grad(result.sum(), leaves))


ZERO = torch.zeros(1, 1, dtype=torch.float64)
BOTH = pytest.mark.parametrize("way", [by_graph, by_torch])


@BOTH
@pytest.mark.parametrize(
    ("function", "arguments", "derivatives"),
    [
        (relu, 1, [0.0]),
        (maximum, 2, [1.0, 0.0]),
        (minimum, 2, [1.0, 0.0]),
        (lambda v: maximum(v, 0.0), 1, [1.0]),
        (lambda v: maximum(0.0, v), 1, [0.0]),
        (lambda v: minimum(v, 0.0), 1, [1.0]),
        (lambda v: prelu(v, 0.25), 1, [0.25]),
        (lambda v: maximum(v, -v), 1, [1.0]),
    ],
)
def test_derivatives_at_kinks(
    way: Callable, function: Callable, arguments: int, derivatives: list[float]
) -> None:
    got_value, got = way(function, *[ZERO] * arguments)
    assert got_value.item() == 0.0
    assert [g.item() for g in got] == derivatives


@BOTH
@pytest.mark.parametrize("function", [maximum, minimum])
@pytest.mark.parametrize("pair", [(math.nan, 1.0), (1.0, math.nan), (math.nan, math.nan)])
def test_nan_passes_through_maximum(way: Callable, function: Callable, pair: tuple) -> None:
    a, b = (torch.tensor([[v]], dtype=torch.float64) for v in pair)
    assert math.isnan(way(function, a, b)[0].item())


@BOTH
@pytest.mark.parametrize("function", [relu, lambda v: prelu(v, 0.25), softplus, sigmoid, tanh])
def test_nan_passes_through_functions(way: Callable, function: Callable) -> None:
    assert math.isnan(way(function, torch.full_like(ZERO, math.nan))[0].item())


@BOTH
@pytest.mark.parametrize("v", [-40.0, -1.0, 0.0, 1.0, 19.9, 20.1, 25.0, 33.0, 40.0, 800.0])
def test_softplus_is_exact_everywhere(way: Callable, v: float) -> None:
    """torch's own is v itself beyond 20, 2e-9 off in float64."""
    got, (slope,) = way(softplus, torch.tensor([[v]], dtype=torch.float64))
    expected = max(v, 0.0) + math.log1p(math.exp(-abs(v)))
    assert got.item() == pytest.approx(expected, rel=1e-15, abs=0)
    assert slope.item() == pytest.approx(1 / (1 + math.exp(-v)), rel=1e-15)
