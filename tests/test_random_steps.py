"""Laws of any step at all: its graph says what it does, and its derivative is right."""

import pytest
import torch
from derivatives import OneStep, assert_same, first, random_seeds, second, tangent
from hypothesis import HealthCheck, given, settings
from random_cells import random_cells, random_data

from ensue.cells import Cell
from ensue.engine import bptt, eager
from ensue.equations import below
from ensue.equations.functions import FUNCTIONS

EXAMPLES = settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
FEWER = settings(EXAMPLES, max_examples=40)
LENGTHS = torch.tensor([2, 0, 3])


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(3)


def one_step(cell: Cell) -> OneStep:
    return OneStep.of(cell, random_data(cell, cell.input_size, cell.hidden_size))


def test_every_kind_of_node_is_drawn() -> None:
    kinds: set[str] = set()

    @settings(EXAMPLES, database=None)
    @given(random_cells())
    def draw(cell: Cell) -> None:
        equations = cell.equations(cell.input_size, cell.hidden_size)
        kinds.update(node.op for node in below(equations.roots))

    draw()
    leaves = {"x", "state", "vector", "mask", "constant"}
    functions = FUNCTIONS.keys() - {"greater"}  # which stands in derivatives only
    assert kinds >= leaves | functions | {"product", "add", "sum", "mean"}


@EXAMPLES
@given(random_cells())
def test_the_graph_computes_what_the_step_computes(cell: Cell) -> None:
    step = one_step(cell)
    assert_same(step.values(), list(step.eager(*step.data.leaves())))


@EXAMPLES
@given(random_cells())
def test_bptt_equals_autograd(cell: Cell) -> None:
    data = random_data(cell, cell.input_size, cell.hidden_size)
    y, final = eager(cell, data.parameters, data.x, data.state, LENGTHS, data.masks)
    seeds = [torch.randn_like(v) for v in (y, *final)]
    reached = [(v, s) for v, s in zip((y, *final), seeds, strict=True) if v.requires_grad]
    outputs, adjoints = zip(*reached, strict=True)
    theirs = torch.autograd.grad(
        outputs, data.leaves(), adjoints, allow_unused=True, materialize_grads=True
    )
    gradients = bptt(
        cell, data.parameters, data.x, data.state, seeds[0], tuple(seeds[1:]), LENGTHS, data.masks
    )
    ours = [gradients.x, *gradients.state, *gradients.parameters.values()]
    assert_same(ours, list(theirs), 1e-10)


@EXAMPLES
@given(random_cells())
def test_without_masks_too(cell: Cell) -> None:
    """Outside training each mask is a number: another graph, which simplifies further."""
    data = random_data(cell, cell.input_size, cell.hidden_size)
    y, final = eager(cell, data.parameters, data.x, data.state, LENGTHS)
    theirs = torch.autograd.grad(
        y.sum() + sum(f.sum() for f in final),
        data.leaves(),
        allow_unused=True,
        materialize_grads=True,
    )
    ones = tuple(torch.ones_like(f) for f in final)
    gradients = bptt(cell, data.parameters, data.x, data.state, torch.ones_like(y), ones, LENGTHS)
    assert_same(
        [gradients.x, *gradients.state, *gradients.parameters.values()], list(theirs), 1e-10
    )


@EXAMPLES
@given(random_cells())
def test_printing_does_not_fail(cell: Cell) -> None:
    for training in (True, False):
        equations = cell.equations(cell.input_size, cell.hidden_size, training)
        for text in (equations.text(), equations.latex(), equations.derivative_text()):
            assert text
            assert len(text) < 40_000
        names = [line.split(" = ")[0].strip() for line in equations.text().splitlines()]
        assert len(set(names)) == len(names)


@EXAMPLES
@given(random_cells())
def test_first_derivatives_of_one_step(cell: Cell) -> None:
    step = one_step(cell)
    assert_same(*first(step, random_seeds(step)), 1e-10)


@FEWER
@given(random_cells(most_lines=8))
def test_second_derivatives_of_one_step(cell: Cell) -> None:
    step = one_step(cell)
    assert_same(*second(step, random_seeds(step)), 1e-9)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch.func's own
@FEWER
@given(random_cells())
def test_tangents_of_one_step(cell: Cell) -> None:
    step = one_step(cell)
    assert_same(*tangent(step, [torch.randn_like(v) for v in step.data.leaves()]), 1e-10)
