"""The norm-preserving regulariser, by its formula with whole Jacobians."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from pooled import PooledNetwork
from torch import Tensor
from torch.autograd.functional import jacobian
from torch.testing import assert_close

from ensue.cells import as_tuple
from ensue.errors import OptionError
from ensue.layers import Recurrent
from ensue.tasks.blocks.embeddings import Embed, Words
from ensue.tasks.blocks.encoders import PlainEncoder, RecurrentEncoder
from ensue.tasks.blocks.heads import CategoricalHead
from ensue.tasks.blocks.norms import norm_preserving
from ensue.tasks.blocks.pooling import Pooling
from ensue.tasks.label.network import LabellerNetwork
from ensue.tasks.label.outputs import Stepwise
from ensue.tasks.rows.batch import SequenceBatch

TIGHT = {"rtol": 1e-9, "atol": 1e-9}
INPUT, HIDDEN = 3, 4
LENGTHS = torch.tensor([5, 1, 0, 3])


@pytest.fixture(autouse=True)
def _seeded_and_double() -> Iterator[None]:
    torch.manual_seed(1)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def by_formula(way: Any, x: Tensor, direct: Tensor, end: Tensor) -> Tensor:
    """Ω of one row x (steps, input): direct (steps, hidden) is ∂C/∂h_t by the outputs alone, end
    (state) by the final state. δ_t = direct_t + δ_{t+1}·∂s_{t+1}/∂s_t."""
    cell = way.cell.on_tensors({n: p.detach() for n, p in way.way().parameters.items()})
    sizes = way.state_sizes

    def step(frame: Tensor, state: Tensor) -> Tensor:
        return torch.cat(as_tuple(cell.step(frame, *state.split(sizes))))

    states = [torch.zeros(sum(sizes))]
    for frame in x:
        states.append(step(frame, states[-1]))
    total = torch.zeros(())
    delta = end.clone()
    for t in reversed(range(1, len(x) + 1)):
        delta[: sizes[0]] += direct[t - 1]
        if t == 1:
            break
        matrix = jacobian(lambda s, t=t: step(x[t - 1], s), states[t - 1])
        if delta.norm() > 0:
            total = total + (1 - (delta @ matrix).norm() / delta.norm()) ** 2
        delta = delta @ matrix
    return total


@pytest.mark.parametrize("cell", ["SimpleRNN", "GRU", "LSTM", "PeepholeLSTM"])
def test_it_is_its_formula(cell: str) -> None:
    layer = Recurrent(cell, INPUT, HIDDEN)
    x = torch.randn(5, 4, INPUT)
    v = torch.randn(5, 4, HIDDEN)
    v[2:, 3] = 0  # a row whose last δ is zero, and which is skipped there
    cost = norm_preserving(layer, x, lambda y, state: (y * v).sum(), LENGTHS)
    way = layer.ways[0]
    expected = [
        by_formula(way, x[:n, row], v[:n, row], torch.zeros(sum(way.state_sizes)))
        for row, n in enumerate(LENGTHS.tolist())
    ]
    assert_close(cost, torch.stack(expected).sum(), **TIGHT)
    assert cost > 0


def test_the_final_state_counts_too() -> None:
    layer = Recurrent("LSTM", INPUT, HIDDEN)
    x, v = torch.randn(5, 4, INPUT), torch.randn(2 * HIDDEN)
    cost = norm_preserving(layer, x, lambda y, state: (torch.cat(state[0], 1) @ v).sum(), LENGTHS)
    expected = [
        by_formula(layer.ways[0], x[:n, row], torch.zeros(n, HIDDEN), v)
        for row, n in enumerate(LENGTHS.tolist())
    ]
    assert_close(cost, torch.stack(expected).sum(), **TIGHT)


def test_both_directions_are_those_of_a_row_and_its_reverse() -> None:
    layer = Recurrent("GRU", INPUT, HIDDEN, bidirectional=True)
    x, v = torch.randn(5, 4, INPUT), torch.randn(5, 4, 2 * HIDDEN)
    cost = norm_preserving(layer, x, lambda y, state: (y * v).sum(), LENGTHS)
    total = torch.zeros(())
    for row, n in enumerate(LENGTHS.tolist()):
        ahead, behind = v[:n, row].split(HIDDEN, 1)
        zero = torch.zeros(HIDDEN)
        total = total + by_formula(layer.ways[0], x[:n, row], ahead, zero)
        total = total + by_formula(layer.ways[1], x[:n, row].flip(0), behind.flip(0), zero)
    assert_close(cost, total, **TIGHT)


def test_the_upper_layer_counts_as_it_would_alone() -> None:
    deep = Recurrent("GRU", INPUT, HIDDEN, 2)
    x, v = torch.randn(5, 4, INPUT), torch.randn(5, 4, HIDDEN)
    low, high = Recurrent("GRU", INPUT, HIDDEN), Recurrent("GRU", HIDDEN, HIDDEN)
    low.forwards[0].load_state_dict(deep.forwards[0].state_dict())
    high.forwards[0].load_state_dict(deep.forwards[1].state_dict())
    between = low(x, lengths=LENGTHS)[0].detach()
    both = norm_preserving(deep, x, lambda y, s: (y * v).sum(), LENGTHS)
    upper = norm_preserving(high, between, lambda y, s: (y * v).sum(), LENGTHS)
    lower = norm_preserving(low, x, lambda y, s: (high(y, lengths=LENGTHS)[0] * v).sum(), LENGTHS)
    assert_close(both, upper + lower, **TIGHT)


def test_an_orthogonal_linear_layer_costs_nothing_and_following_the_gradient_leads_there() -> None:
    layer = Recurrent("SimpleRNN", INPUT, HIDDEN)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    x, v = 0.01 * torch.randn(6, 2, INPUT), torch.randn(6, 2, HIDDEN)

    def penalty() -> Tensor:
        return norm_preserving(layer, x, lambda y, state: (y * v).sum())

    optimiser = torch.optim.Adam(layer.parameters(), 0.05)
    before = penalty().item()
    for _ in range(60):
        optimiser.zero_grad()
        penalty().backward()
        optimiser.step()
    assert penalty().item() < 0.1 * before
    with torch.no_grad():
        way = layer.ways[0]
        for parameter in layer.parameters():
            parameter.zero_()
        square = next(p for p in way.way().parameters.values() if p.shape == (HIDDEN, HIDDEN))
        torch.nn.init.orthogonal_(square)
    assert penalty().item() < 1e-6


def test_its_gradient_is_the_immediate_one() -> None:
    """Finite differences with states and δ as they were: for a linear step at zero input they do
    not depend on U at all where the cost is the last output's."""
    layer = Recurrent("SimpleRNN", INPUT, HIDDEN)
    way = layer.ways[0]
    with torch.no_grad():
        for p in layer.parameters():
            if p.shape != (HIDDEN, HIDDEN):
                p.zero_()
    square = next(p for p in way.way().parameters.values() if p.shape == (HIDDEN, HIDDEN))
    x, v = torch.zeros(2, 1, INPUT), torch.randn(HIDDEN)
    norm_preserving(layer, x, lambda y, state: (y[1] @ v).sum()).backward()
    u = square.detach().clone().requires_grad_()  # two steps: Ω = (1 − ‖vU‖/‖v‖)²
    ((1 - (v @ u).norm() / v.norm()) ** 2).backward()
    assert_close(square.grad, u.grad, **TIGHT)


def network(kind: str, weight: float) -> PooledNetwork | LabellerNetwork:
    torch.manual_seed(3)
    embed = Embed([Words(9, INPUT)])
    encoder = RecurrentEncoder(INPUT, cell="GRU", hidden_size=HIDDEN, bidirectional=True)
    if kind == "labeller":
        return LabellerNetwork(embed, encoder, Stepwise(2 * HIDDEN, 2), norm_weight=weight)
    pooling = Pooling("last+mean", encoder.output_size, encoder.final_size)
    return PooledNetwork(embed, encoder, pooling, CategoricalHead(2), norm_weight=weight)


@pytest.mark.parametrize("kind", ["classifier", "labeller"])
def test_networks_count_it_in_training(kind: str) -> None:
    words = torch.randint(1, 9, (5, 4))
    targets = torch.randint(0, 2, (4,) if kind == "classifier" else (5, 4))
    batch = SequenceBatch({"words": words}, LENGTHS, targets)
    plain, half, double = (network(kind, weight) for weight in (0.0, 0.5, 1.0))
    costs = [made(batch, {})[0] for made in (plain, half, double)]
    assert costs[1] > costs[0] + 1e-6
    assert_close(costs[2] - costs[0], 2 * (costs[1] - costs[0]), **TIGHT)
    assert_close(half.eval()(batch, {})[0], costs[0], **TIGHT)
    costs[1].backward()


def test_messages() -> None:
    layer = Recurrent("GRU", INPUT, HIDDEN, bidirectional=True, backward_start="forward_end")
    message = "norm_preserving: expected backward_start zero, got forward_end"
    with pytest.raises(OptionError, match=message):
        norm_preserving(layer, torch.zeros(2, 1, INPUT), lambda y, s: y.sum())
    embed, plain = Embed([Words(9, INPUT)]), PlainEncoder(INPUT)
    with pytest.raises(OptionError, match="norm_weight: expected a recurrent encoder"):
        LabellerNetwork(embed, plain, Stepwise(INPUT, 2), norm_weight=1.0)
    with pytest.raises(OptionError, match=re.escape("norm_weight: expected a number ≥ 0, got -1")):
        LabellerNetwork(embed, plain, Stepwise(INPUT, 2), norm_weight=-1)
