"""The output over a vocabulary: its cost is the cross-entropy, smoothed or not."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, linear

from ensue.tasks.blocks.softmax_output import Output


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("tied", [False, True])
def test_cost_and_gradient_are_those_of_cross_entropy(smoothing: float, tied: bool) -> None:
    torch.manual_seed(1)
    output = Output(11, 6, nn.Embedding(11, 6) if tied else None).double()
    nn.init.normal_(output.bias)
    y = torch.randn(5, 3, 6, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(0, 11, (5, 3))
    real = torch.rand(5, 3) < 0.7
    cost = output.cost(y, targets, real, smoothing)
    z = linear(y, output.weight, output.bias)[real]
    expected = cross_entropy(z, targets[real], reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(cost, expected)
    for gradient, theirs in zip(
        torch.autograd.grad(cost, (y, output.weight, output.bias)),
        torch.autograd.grad(expected, (y, output.weight, output.bias)),
        strict=True,
    ):
        torch.testing.assert_close(gradient, theirs)
