"""The graph of a step: its simplifications keep values, its derivatives are the right ones."""

import cProfile
import math
from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from derivatives import OneStep, assert_same, first, random_seeds, second, tangent
from hypothesis import assume, given
from hypothesis import strategies as st
from random_cells import random_data
from torch import Tensor

from ensue.cells import (
    CELLS,
    GRU,
    LSTM,
    Cell,
    LayerNormLSTM,
    LeakyRNN,
    RecurrentDropout,
    Residual,
    SimpleRNN,
    Zoneout,
)
from ensue.engine import jacobian
from ensue.engine.interpreter import Blocks, evaluate
from ensue.equations import (
    Equations,
    Graph,
    Matrix,
    Node,
    Vector,
    below,
    forward,
    mean,
    reverse,
    sigmoid,
    tanh,
    total,
)

SIZE = 4  # of both input and hidden, for Residual
EVERY: dict[str, Callable[[], Cell]] = {
    **CELLS,
    "SimpleRNN prelu": lambda: SimpleRNN("prelu"),
    "SimpleRNN maxout": lambda: SimpleRNN("maxout", pieces=3),
    "SimpleRNN relu": lambda: SimpleRNN("relu"),
    "LeakyRNN learned": lambda: LeakyRNN(0.3, learned=True),
    "Zoneout LSTM": lambda: Zoneout(LSTM(), {"h": 0.2, "c": 0.5}),
    "RecurrentDropout GRU": lambda: RecurrentDropout(GRU()),
    "Residual LSTM": lambda: Residual(LSTM()),
}
every_cell = pytest.mark.parametrize("name", EVERY)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(5)


def one_step(name: str) -> OneStep:
    cell = EVERY[name]()
    return OneStep.of(cell, random_data(cell, SIZE, SIZE))


def a_graph() -> tuple[Graph, Node, Node]:
    """A graph with two leaves of four features."""
    graph = Graph({"input": 4, "hidden": 4, "memory": 4})
    return graph, graph.leaf("given", "a", "hidden"), graph.leaf("given", "b", "hidden")


# --- one node for equal expressions -------------------------------------------------------


def test_equal_expressions_are_one_node() -> None:
    graph, a, b = a_graph()
    before = a + b, a * b, a - b, a / b, graph.sum(a), graph.mean(a * b), -a
    size = len(graph)
    assert before == (b + a, b * a, a - b, a / b, graph.sum(a), graph.mean(b * a), -a)
    assert len(graph) == size
    assert graph.add(a, b, -a) is graph.add(-a, a, b)
    assert graph.rebuild(a + a, (b, a)) is a + b


def test_different_expressions_are_not() -> None:
    graph, a, b = a_graph()
    assert a - b is not b - a
    assert a / b is not b / a
    assert graph.elementwise("maximum", (a, b)) is not graph.elementwise("maximum", (b, a))
    assert graph.sum(a) is not graph.mean(a)
    assert graph.constant(1.0) is not graph.constant(2.0)


def test_order_does_not_matter_where_two_names_of_one_width_meet() -> None:
    graph, h, _ = a_graph()
    x, m = graph.leaf("x", None, "input"), graph.leaf("state", "m", "memory")
    assert h + m is m + h
    assert x * m is m * x
    assert graph.add(x, h, m) is graph.add(m, x, h)
    assert [(h + m).size, (x + m).size, (x + x).size] == ["hidden", "memory", "input"]


def test_a_step_twice_is_one_graph() -> None:
    cell = LayerNormLSTM()
    equations = cell.equations(SIZE, SIZE)
    derivative = equations.derivative
    size = len(equations.graph)
    again = reverse(zip(equations.roots, derivative.seeds, strict=True))
    assert again.matrices == derivative.matrices
    assert len(equations.graph) == size


def derivative_nodes(equations: Equations) -> list[Node]:
    derivative = equations.derivative
    nodes = [
        derivative.x,
        *derivative.state.values(),
        *derivative.vectors.values(),
        *derivative.matrices.values(),
    ]
    return below([*equations.roots, *(node for node in nodes if node is not None)])


@every_cell
def test_numbers_are_a_topological_order_and_no_node_stands_twice(name: str) -> None:
    nodes = derivative_nodes(EVERY[name]().equations(SIZE, SIZE))
    assert all(a.number < b.number for a, b in pairwise(nodes))
    assert all(a.number < n.number for n in nodes for a in n.args)
    commutes = ("add", "multiply")
    keys = [
        (n.op, tuple(sorted(a.number for a in n.args)), n.attr, n.size)
        if n.op in commutes
        else (n.op, tuple(a.number for a in n.args), n.attr, n.size)
        for n in nodes
    ]
    assert len(set(keys)) == len(nodes)


# --- simplification keeps values ----------------------------------------------------------

# An expression is ("leaf", k), ("number", v) or (operation, expression, expression); powers of
# two, so that joining constants rounds nothing.
EXPRESSIONS = st.recursive(
    st.tuples(st.just("leaf"), st.integers(0, 1))
    | st.tuples(st.just("number"), st.sampled_from([-4.0, -1.0, -0.5, 1.0, 2.0])),
    lambda inner: (
        st.tuples(st.sampled_from("+-*/"), inner, inner) | st.tuples(st.just("neg"), inner)
    ),
    max_leaves=12,
)
SPECIAL = st.sampled_from([0.0, 1.0, -3.0, 0.3, 1e300, math.inf, -math.inf, math.nan])


def naive(tree: tuple, leaves: list, number: Callable) -> object:
    """The tree evaluated by the operators of whatever the leaves are."""
    kind, *inner = tree
    if kind == "leaf":
        return leaves[inner[0]]
    if kind == "number":
        return number(inner[0])
    a, *rest = (naive(t, leaves, number) for t in inner)
    if kind == "neg":
        return -a
    (b,) = rest
    return {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a / b}[kind]()


def value(node: Node, leaves: dict[Node, Tensor]) -> Tensor:
    return evaluate([node], leaves, Blocks.__new__(Blocks))[node]


@given(EXPRESSIONS, st.lists(SPECIAL, min_size=8, max_size=8))
def test_simplified_arithmetic_is_exact_even_at_nan_and_infinity(
    tree: tuple, numbers: list
) -> None:
    graph, a, b = a_graph()
    tensors = list(torch.tensor(numbers, dtype=torch.float64).reshape(2, 1, 4))
    plain = naive(tree, tensors, lambda v: torch.full((1, 4), v, dtype=torch.float64))
    node = naive(tree, [a, b], graph.constant)
    size = len(graph)
    graph.constant(0.0)
    assume(len(graph) > size)  # v + 0 is v: at v = -0.0 the sign of zero differs
    got = value(node, dict(zip((a, b), tensors, strict=True))).expand(1, 4)
    torch.testing.assert_close(got, plain, rtol=0, atol=0, equal_nan=True)


def test_what_simplifies() -> None:
    graph, a, b = a_graph()
    one = graph.constant(1.0)
    assert a + 0.0 is a
    assert a * 1.0 is a
    assert a / 1.0 is a
    assert graph.negative(-a) is a
    assert -a * -b is a * b
    assert -1.0 * a is -a
    assert 2.0 * (3.0 * a) is 6.0 * a
    assert -2.0 / a is -(2.0 / a)
    assert graph.mean(graph.spread(graph.sum(a), "hidden")) is graph.sum(a)
    assert graph.sum(a) / graph.count("hidden") is graph.mean(a)
    assert graph.sum(graph.sum(b) * a) is graph.sum(b) * graph.sum(a)
    assert graph.mean(-a) is -graph.mean(a)
    assert (one - one) * a is not graph.constant(0.0)  # 0 · NaN is NaN


@pytest.mark.parametrize("numbers", [[0.5, -2.0, 3.0, 0.25], [1.0, math.nan, 2.0, -1.0]])
def test_simplified_reductions_keep_values(numbers: list[float]) -> None:
    graph, a, b = a_graph()
    v, w = torch.tensor([numbers], dtype=torch.float64), torch.rand(1, 4, dtype=torch.float64)
    factor, size = w.sum(-1, keepdim=True), "hidden"
    cases = {
        graph.sum(graph.sum(b) * a): (factor * v).sum(-1, keepdim=True),
        graph.mean(-(graph.sum(b) * a)): -(factor * v).mean(-1, keepdim=True),
        graph.sum(a) / graph.count(size): v.mean(-1, keepdim=True),
        graph.sum(graph.spread(graph.mean(a), size)): v.sum(-1, keepdim=True),
        graph.mean(graph.spread(graph.mean(a), size) + 0.0): v.mean(-1, keepdim=True),
        graph.spread(graph.mean(a), size) * b: v.mean(-1, keepdim=True) * w,
    }
    for node, expected in cases.items():
        torch.testing.assert_close(value(node, {a: v, b: w}), expected, equal_nan=True)


# --- derivatives --------------------------------------------------------------------------


@every_cell
def test_the_graph_computes_what_the_step_computes(name: str) -> None:
    step = one_step(name)
    assert_same(step.values(), list(step.eager(*step.data.leaves())), 1e-14)


@every_cell
def test_reverse_equals_torch(name: str) -> None:
    step = one_step(name)
    assert_same(*first(step, random_seeds(step)), 1e-13)


@every_cell
def test_reverse_of_reverse_equals_double_backward(name: str) -> None:
    step = one_step(name)
    assert_same(*second(step, random_seeds(step)), 1e-11)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch.func's own
@every_cell
def test_forward_equals_jvp(name: str) -> None:
    step = one_step(name)
    assert_same(*tangent(step, [torch.randn_like(v) for v in step.data.leaves()]), 1e-13)


@every_cell
def test_jacobian_equals_torch(name: str) -> None:
    step = one_step(name)
    inputs, batch = step.data.leaves(), step.data.x.shape[0]
    theirs = torch.autograd.functional.jacobian(step.eager, tuple(inputs))
    for place, leaf in enumerate([step.equations.x, *step.equations.old.values()]):
        ours = jacobian(step.equations, leaf, step.leaves(), step.blocks())
        expected = torch.cat([rows[place] for rows in theirs], 1)  # (batch, outputs, batch, wrt)
        rows = torch.arange(batch)
        torch.testing.assert_close(ours, expected[rows, :, rows])


def test_a_node_used_many_times_gets_the_sum() -> None:
    graph, a, b = a_graph()
    t = graph.leaf("given", "t", "hidden")
    back = reverse([(graph.add(a, a, a) + a * a + a * b, t)])
    v, w = torch.rand(1, 4), torch.rand(1, 4)
    got = value(back.leaves[a], {a: v, b: w, t: torch.ones(1, 4)})
    torch.testing.assert_close(got, 3 + 2 * v + w)
    assert len(back.leaves) == 2


def test_two_adjoints_of_one_node_add_up() -> None:
    graph, a, _ = a_graph()
    s, t = graph.leaf("given", "s", "hidden"), graph.leaf("given", "t", "hidden")
    assert reverse([(a, s), (a, t)]).leaves[a] is s + t


def test_what_does_not_depend_has_no_derivative() -> None:
    graph, a, b = a_graph()
    t = graph.leaf("given", "t", "hidden")
    assert b not in reverse([(a * a, t)]).leaves
    assert forward([a * a, b], {b: t}) == [None, t]
    step_function = graph.elementwise("greater", (a, b))
    assert reverse([(step_function, t)]).leaves == {}


def test_one_number_that_meets_many_features_gets_their_sum() -> None:
    graph, a, _ = a_graph()
    one, t = graph.leaf("given", "k", "one"), graph.leaf("given", "t", "hidden")
    assert reverse([(one * a, t)]).leaves[one] is graph.sum(t * a)


# --- steps of unusual form ----------------------------------------------------------------


class Scalar(Cell):
    """A state part of one number, products from and to it, numbers for each row and unit."""

    part_sizes = {"g": "one"}  # noqa: RUF012
    W, U, V, k = Matrix("x"), Matrix("g"), Matrix("h", size="one"), Vector(size="one", init=0.5)

    def step(self, x, h, g):
        new = tanh(self.W @ x + self.U @ g + h * g * mean(h))
        return new, sigmoid(self.V @ new + self.k * g + total(new))


class Still(Cell):
    """A state that never changes, an output without state, a parameter without use."""

    W, unused = Matrix("x"), Vector()

    def step(self, x, h):
        return h

    def output(self, x, h):
        return tanh(self.W @ x)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize("cell", [Scalar(), Still()], ids=["Scalar", "Still"])
def test_derivatives_of_steps_of_unusual_form(cell: Cell) -> None:
    step = OneStep.of(cell, random_data(cell, 3, 5))
    assert_same(step.values(), list(step.eager(*step.data.leaves())), 1e-14)
    assert_same(*first(step, random_seeds(step)), 1e-13)
    assert_same(*second(step, random_seeds(step)), 1e-11)
    assert_same(*tangent(step, [torch.randn_like(v) for v in step.data.leaves()]), 1e-13)


def test_tracing_leaves_a_profiler_alone() -> None:
    profile = cProfile.Profile()
    with profile:
        LSTM().equations()
    assert any("step" in str(entry.code) for entry in profile.getstats())


def test_numpy_numbers_and_torch_functions_mean_the_same() -> None:
    import numpy

    class Mixed(Cell):
        W = Matrix("x")

        def step(self, x, h):
            a = torch.tanh(self.W @ x) + torch.mean(h, dim=-1, keepdim=True)
            b = torch.nn.functional.relu(torch.mul(h, 2)) - h.sum(-1, keepdim=True)
            return (numpy.float64(0.5) * a + b.sigmoid() / numpy.float32(2.0)).tanh()

    step = OneStep.of(Mixed(), random_data(Mixed(), 3, 5))
    assert_same(step.values(), list(step.eager(*step.data.leaves())), 1e-14)


# --- counting -----------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "hidden"), [(1, 1), (3, 5), (32, 64)])
def test_counts_of_lstm_and_gru(size: int, hidden: int) -> None:
    """Parameters as torch's without the biases that add up to one; flops by formula."""

    def torchs(layer: torch.nn.Module) -> int:
        return sum(p.numel() for p in layer.parameters())

    lstm = LSTM().equations(size, hidden).counts()
    assert lstm.parameters == torchs(torch.nn.LSTM(size, hidden)) - 4 * hidden
    assert lstm.product_flops == 2 * 4 * hidden * (size + hidden)
    gru = GRU().equations(size, hidden).counts()
    assert gru.parameters == torchs(torch.nn.GRU(size, hidden)) - 2 * hidden
    assert gru.product_flops == 2 * 3 * hidden * (size + hidden)
    assert GRU().count(size, hidden) == gru.parameters


@every_cell
def test_counts_are_those_of_the_declared_shapes(name: str) -> None:
    cell = EVERY[name]()
    counts = cell.equations(SIZE, SIZE).counts()
    shapes = cell.shapes(SIZE, SIZE)
    assert counts.parameters == sum(math.prod(s) for s in shapes.values())
    matrices = [shape for shape in shapes.values() if len(shape) == 2]
    assert counts.product_flops == sum(2 * math.prod(s) for s in matrices)
    assert counts.elementwise_flops > 0


def test_elementwise_flops_by_hand() -> None:
    """tanh(W·x + U·h + b): two additions and a function for each unit."""
    assert SimpleRNN().equations(3, 5).counts().elementwise_flops == 3 * 5
