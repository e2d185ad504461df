"""Tensors of a wrong shape or type are refused where they enter, in words of Ensue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, zeros

from ensue.cells import RecurrentPerceptron, SimpleRNN
from ensue.errors import EnsueError
from ensue.layers import Recursive
from ensue.layers.multihead import MultiHead
from ensue.tasks.blocks.distributions import Categorical

PARENTS = torch.tensor([2, 2, -1])


def tree(x: Any, parents: Any) -> Any:
    return Recursive("GRU", 3, 4)(x, parents)


def attention(x: Any, source: Any = None, mask: Any = None) -> Any:
    MultiHead(4, 2).with_weights(x, source, mask)
    return MultiHead(4, 2)(x, source, mask)


def cost(z: Any, y: Any) -> Tensor:
    return Categorical().cost(z, y)


def mask(*shape: int) -> Tensor:
    return torch.ones(*shape, dtype=torch.bool)


KIND = "expected torch.float32 on cpu as the weights, got torch"
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "tree of lists": (lambda: tree([[1.0]], PARENTS), "x: expected a torch tensor, got list"),
    "parents in a list": (lambda: tree(zeros(3, 3), [2, 2, -1]), "parents: expected a torch"),
    "features of a node": (lambda: tree(zeros(3, 5), PARENTS), "x: expected 3 features"),
    "parents of floats": (
        lambda: tree(zeros(3, 3), PARENTS.float()),
        "parents: expected node numbers, torch.int64, got torch.float32; parents.long() makes",
    ),
    "nodes of integers": (lambda: tree(zeros(3, 3).long(), PARENTS), f"x: {KIND}.int64 on cpu"),
    "nodes of doubles": (lambda: tree(zeros(3, 3).double(), PARENTS), f"x: {KIND}.float64 on cpu"),
    "nothing to look at": (lambda: attention(None), "x: expected a torch tensor, got NoneType"),
    "attention of integers": (lambda: attention(zeros(5, 2, 4).long()), f"x: {KIND}.int64 on cpu"),
    "a source of doubles": (
        lambda: attention(zeros(5, 2, 4), zeros(3, 2, 4).double()),
        f"source: {KIND}.float64 on cpu",
    ),
    "rows of a source": (
        lambda: attention(zeros(5, 2, 4), zeros(3, 3, 4)),
        "x: expected 3 rows as source, or a multiple of it, got 2",
    ),
    "a mask of floats": (
        lambda: attention(zeros(5, 2, 4), mask=zeros(5, 5)),
        "mask: expected torch.bool, True where a query may look, of a shape that broadcasts to "
        "(batch, heads, queries, keys) (2, 2, 5, 5), got torch.float32 (5, 5)",
    ),
    "a mask of other steps": (
        lambda: attention(zeros(5, 2, 4), zeros(3, 2, 4), mask(5, 5)),
        "(2, 2, 5, 3), got torch.bool (5, 5)",
    ),
    "classes of floats": (
        lambda: cost(zeros(3, 4), zeros(3)),
        "class numbers y as torch.int64, got torch.float32 and torch.float32",
    ),
    "scores of integers": (
        lambda: cost(zeros(3, 4).long(), zeros(3).long()),
        "expected z of floating point",
    ),
    "a class too many": (
        lambda: cost(zeros(3, 4), torch.tensor([0, 1, 4])),
        "categorical: expected class numbers 0 … 3, as z has 4 scores a row, got 0 … 4",
    ),
    "a class below zero": (lambda: cost(zeros(2, 4), torch.tensor([0, -1])), "got -1 … 0"),
    "no row": (lambda: cost(zeros(()), torch.tensor(0)), "expected one class number a row"),
    "classes in a list": (lambda: cost(zeros(2, 4), [0, 1]), "y: expected a torch tensor"),
    "an activation of torch": (
        lambda: SimpleRNN(torch.tanh),  # type: ignore[arg-type]
        "activation: expected a name (tanh, sigmoid, relu, linear, prelu, maxout), got <built-in",
    ),
    "its name": (lambda: RecurrentPerceptron(torch.tanh), "; by name it is 'tanh'. Other"),  # type: ignore[arg-type]
    "no activation": (lambda: RecurrentPerceptron(None), "linear), got None. Other functions"),  # type: ignore[arg-type]
    "pieces of text": (
        lambda: SimpleRNN("maxout", "2"),  # type: ignore[arg-type]
        "pieces: expected a whole number ≥ 1, got '2'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_message_says_what_was_expected(name: str) -> None:
    use, message = REFUSED[name]
    with pytest.raises(EnsueError) as caught:
        use()
    assert message in str(caught.value)


def test_what_broadcasts_is_taken() -> None:
    x, source = zeros(5, 4, 4), zeros(3, 2, 4)
    for where in (mask(10, 3), mask(1, 3), mask(2, 1, 1, 3), None):
        assert attention(x, source, where).shape == x.shape
    assert tree(zeros(3, 3), PARENTS.int())[0].shape == (3, 4)
