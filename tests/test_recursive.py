"""`Recursive`: the same cell over trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from ensue.cells import GRU, LSTM, Cell, Residual, SimpleRNN
from ensue.errors import OptionError, ShapeError
from ensue.layers import Recurrent, Recursive

TIME, INPUT, HIDDEN = 5, 3, 4
TIGHT = {"rtol": 1e-12, "atol": 1e-12}


@pytest.fixture(autouse=True)
def _seeded_and_double() -> Iterator[None]:
    torch.manual_seed(1)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def randomised(layer: nn.Module) -> nn.Module:
    """With no parameter at a special value."""
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)
    return layer


def chain(steps: int) -> Tensor:
    """Each node's parent is the next one."""
    return torch.tensor([*range(1, steps), -1])


@pytest.mark.parametrize("combine", ["sum", "mean"])
@pytest.mark.parametrize("cell", [SimpleRNN(), LSTM(), Residual(GRU())], ids=["rnn", "lstm", "gru"])
def test_a_chain_is_a_sequence(cell: Cell, combine: str) -> None:
    tree = randomised(Recursive(cell, HIDDEN, HIDDEN, combine=combine))
    line = Recurrent(cell, HIDDEN, HIDDEN)
    line.ways[0].load_state_dict(tree.inner.state_dict())
    x = torch.randn(TIME, HIDDEN, requires_grad=True)
    y, state = tree(x, chain(TIME))
    expected, (final,) = line(x[:, None])
    assert_close(y, expected[:, 0], **TIGHT)
    assert_close([part[-1] for part in state], [part[0] for part in final], **TIGHT)
    assert_close(
        torch.autograd.grad(y.square().sum(), x),
        torch.autograd.grad(expected.square().sum(), x),
        **TIGHT,
    )


@pytest.mark.parametrize(("combine", "share"), [("sum", 1.0), ("mean", 0.5)])
def test_children_are_summed_or_averaged(combine: str, share: float) -> None:
    tree = randomised(Recursive(LSTM(), INPUT, HIDDEN, combine=combine))
    x = torch.randn(4, INPUT)
    y, (h, c) = tree(x, torch.tensor([2, 2, 3, -1]))
    step = LSTM().on_tensors(dict(tree.inner.way().parameters)).step
    zero = torch.zeros(1, HIDDEN)
    left, right = step(x[0:1], zero, zero), step(x[1:2], zero, zero)
    below = [share * (a + b) for a, b in zip(left, right, strict=True)]
    middle = step(x[2:3], *below)
    root = step(x[3:4], *middle)  # one child: sum and mean are itself
    assert_close(h, torch.cat([node[0] for node in (left, right, middle, root)]), **TIGHT)
    assert_close(c, torch.cat([node[1] for node in (left, right, middle, root)]), **TIGHT)
    assert_close(y, h, **TIGHT)


@pytest.mark.parametrize("combine", ["sum", "mean", "ordered"])
@pytest.mark.parametrize("cell", [SimpleRNN(), LSTM(), GRU()], ids=["rnn", "lstm", "gru"])
def test_a_forest_is_a_walk_over_its_nodes(cell: Cell, combine: str) -> None:
    """In plain Python. Ordered children have a matrix for their place: first, between and last; an
    only child is first. Children are at many heights, and come before and after their parents."""
    tree = randomised(Recursive(cell, INPUT, HIDDEN, combine=combine))
    parents = [-1, 0, 0, 0, 0, 2, 2, 5, 4, 11, 9, 5, -1, 12, 12, -1]
    x = torch.randn(len(parents), INPUT, requires_grad=True)
    step = cell.on_tensors(dict(tree.inner.way().parameters)).step

    def state(node: int) -> tuple[Tensor, ...]:
        below = [state(k) for k, parent in enumerate(parents) if parent == node]
        parts = [torch.zeros(1, HIDDEN) for _ in cell.parts]
        for k, child in enumerate(below):
            share = 1 / len(below) if combine == "mean" else 1.0
            parts = [old + share * new for old, new in zip(parts, child, strict=True)]
            if combine == "ordered":
                place = 0 if k == 0 else 2 if k == len(below) - 1 else 1
                parts[0] = parts[0] - child[0] + child[0] @ tree.places[place].T
        new = step(x[node : node + 1], *parts)
        return new if isinstance(new, tuple) else (new,)

    y, final = tree(x, torch.tensor(parents))
    expected = [torch.cat(parts) for parts in zip(*map(state, range(len(parents))), strict=True)]
    assert_close(y, expected[0], **TIGHT)
    assert_close(list(final), expected, **TIGHT)
    inputs = [x, *tree.parameters()]
    assert_close(
        torch.autograd.grad(y.square().sum(), inputs),
        torch.autograd.grad(expected[0].square().sum(), inputs),
        **TIGHT,
    )


class Made(TorchDispatchMode):
    """Counts the numbers of all new tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not func.is_view and not func._schema.is_mutable:
            many = result if isinstance(result, tuple | list) else [result]
            self.count += sum(tensor.numel() for tensor in many if isinstance(tensor, Tensor))
        return result


def right_branching(count: int) -> Tensor:
    """Each inner node has a leaf and the next inner node."""
    return torch.tensor([-1, *(k - k % 2 for k in range(count - 1))])


@pytest.mark.parametrize("parents", [chain, right_branching])
def test_work_is_linear_in_the_nodes(parents: Callable[[int], Tensor]) -> None:
    """Whatever the depth, forward and backward."""
    tree = Recursive(LSTM(), INPUT, HIDDEN, combine="ordered")
    counts = []
    for nodes in (21, 41, 81):
        x = torch.randn(nodes, INPUT, requires_grad=True)
        with Made() as made:
            tree(x, parents(nodes))[0].sum().backward()
        counts.append(made.count)
    assert counts[2] - counts[1] < 2.1 * (counts[1] - counts[0])


def test_a_forest_without_nodes() -> None:
    y, state = Recursive(LSTM(), INPUT, HIDDEN)(torch.zeros(0, INPUT), torch.zeros(0).long())
    assert [part.shape for part in (y, *state)] == [(0, HIDDEN)] * 3


def test_the_gradient_over_a_forest_is_that_of_finite_differences() -> None:
    tree = randomised(Recursive(LSTM(), 2, 3, combine="ordered"))
    parents = torch.tensor([-1, 0, 0, 0, 2, 2, -1, 6])
    x = torch.randn(8, 2, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: tree(x, parents)[0], (x,))


def test_summed_children_cannot_tell_their_order_and_ordered_ones_can() -> None:
    """a − b and b − a: the same root by construction, whatever the weights."""
    x = torch.randn(4, INPUT)
    swapped = x[[0, 3, 2, 1]]
    parents = torch.tensor([-1, 0, 0, 0])
    for combine, same in (("sum", True), ("mean", True), ("ordered", False)):
        tree = randomised(Recursive(LSTM(), INPUT, HIDDEN, combine=combine))
        roots = [tree(vectors, parents)[0][0] for vectors in (x, swapped)]
        assert torch.allclose(*roots, atol=1e-12) == same, combine


def test_the_order_of_nodes_does_not_matter() -> None:
    tree = randomised(Recursive(LSTM(), INPUT, HIDDEN))
    parents = torch.tensor([2, 2, 5, 5, 5, -1, 7, -1])  # two trees
    x = torch.randn(8, INPUT)
    y, state = tree(x, parents)
    order = torch.randperm(8)
    place = order.argsort()  # where each old node now stands
    moved = torch.where(parents[order] < 0, -1, place[parents[order]])
    output, found_state = tree(x[order], moved)
    assert_close(output, y[order], **TIGHT)
    assert_close(found_state, tuple(part[order] for part in state), **TIGHT)


def test_a_forest_is_its_trees() -> None:
    tree = randomised(Recursive(GRU(), INPUT, HIDDEN))
    x = torch.randn(5, INPUT)
    together, _ = tree(x, torch.tensor([2, 2, -1, 4, -1]))
    first, _ = tree(x[:3], torch.tensor([2, 2, -1]))
    second, _ = tree(x[3:], torch.tensor([1, -1]))
    assert_close(together, torch.cat([first, second]), **TIGHT)


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "combine": (
        lambda: Recursive(GRU(), INPUT, HIDDEN, combine="max"),
        OptionError,
        """combine: expected "sum", "mean" or "ordered", got 'max'""",
    ),
    "cycle": (
        lambda: Recursive(GRU(), INPUT, HIDDEN)(torch.zeros(3, INPUT), torch.tensor([1, 2, 0])),
        ShapeError,
        "parents: the nodes form a cycle; every node must lead to a root (−1)",
    ),
    "its own parent": (
        lambda: Recursive(GRU(), INPUT, HIDDEN)(torch.zeros(2, INPUT), torch.tensor([-1, 1])),
        ShapeError,
        "parents: the nodes form a cycle",
    ),
    "parent out of range": (
        lambda: Recursive(GRU(), INPUT, HIDDEN)(torch.zeros(2, INPUT), torch.tensor([2, -1])),
        ShapeError,
        "parents[0] = 2: expected −1 (a root) or 0 to 1",
    ),
    "parents' shape": (
        lambda: Recursive(GRU(), INPUT, HIDDEN)(torch.zeros(2, INPUT), torch.tensor([-1])),
        ShapeError,
        "expected x (nodes, input) and parents (nodes,), got (2, 3) and (1,)",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_said(what: str) -> None:
    call, kind, text = WRONG[what]
    with pytest.raises(kind) as error:
        call()
    assert text in str(error.value)
