"""Feed-forward layers: parity, gradients, ties, counts; stochastic units and their estimators."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from ensue.errors import OptionError, ShapeError
from ensue.layers.activations import (
    ACTIVATIONS,
    activation,
    draw,
    expected,
    score_function,
    straight_through,
)
from ensue.layers.feedforward import MLP, STARTS, Dense

DIFFERENTIABLE = [name for name in ACTIVATIONS if name != "binary"]


def parameters(network: nn.Module) -> int:
    return sum(p.numel() for p in network.parameters())


# --- activations -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*DIFFERENTIABLE, "maxout(3)", "tanh*2 + maxout(2)*1 + prelu"])
def test_every_activation_gradchecks(name: str) -> None:
    torch.manual_seed(1)
    layer = Dense(3, 5, name).double()
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert layer(x).shape == (4, 5)
    assert torch.autograd.gradcheck(layer, (x,))
    weights = list(layer.parameters())
    assert torch.autograd.gradcheck(lambda *_: layer(x), tuple(weights))


def test_activations_are_their_formulas() -> None:
    z = torch.tensor([-2.0, -0.5, 0.0, 3.0])
    known = {
        "logistic": 1 / (1 + (-z).exp()),
        "tanh": z.tanh(),
        "relu": z.clamp(min=0),
        "prelu": torch.where(z > 0, z, 0.25 * z),
        "linear": z,
    }
    for name, expected_values in known.items():
        torch.testing.assert_close(activation(name, 4)(z), expected_values)


def slope_at(name: str, z: list[float]) -> list[float]:
    values = torch.tensor(z, requires_grad=True)
    units = 1 if "maxout" in name else len(z)
    total = activation(name, units)(values).sum()
    return torch.autograd.grad(total, values)[0].tolist()


def test_ties_have_one_answer() -> None:
    """At a kink one side has the derivative, and it is the documented one."""
    assert slope_at("relu", [0.0]) == [0.0]
    assert slope_at("prelu", [0.0]) == [0.25]
    assert slope_at("maxout(3)", [1.0, 1.0, 1.0]) == [1.0, 0.0, 0.0]
    assert slope_at("maxout(3)", [0.0, 2.0, 2.0]) == [0.0, 1.0, 0.0]


def test_groups_are_their_parts_side_by_side() -> None:
    z = torch.randn(2, 7)
    output = activation("tanh*3 + maxout(2)*1 + relu", 6)(torch.cat([z, z[:, :0]], 1))
    torch.testing.assert_close(output[:, :3], z[:, :3].tanh())
    torch.testing.assert_close(output[:, 3], z[:, 3:5].amax(1))
    torch.testing.assert_close(output[:, 4:], z[:, 5:].relu())


def test_your_own_function_is_an_activation() -> None:
    layer = MLP([2, 3, 1], torch.sin)
    x = torch.randn(4, 2)
    first, last = layer.layers
    inside = torch.sin(x @ first.weight.t() + first.bias)
    torch.testing.assert_close(layer(x), inside @ last.weight.t() + last.bias)
    with pytest.raises(ShapeError, match=r"sum: expected a tensor of shape \(4, 3\), got \(\)"):
        MLP([2, 3, 1], torch.sum)(x)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rellu", "unknown activation 'rellu': did you mean 'relu'?"),
        (
            "tanh*2",
            "expected groups that make 4 units, one of them at most without a number, got 2",
        ),
        ("tanh + relu", "got 0 and 2 without a number"),
        ("tanh*4 + relu", "got 4 and 1 without a number"),
        ("tanh(2)", "expected a rank ≥ 1 in brackets after maxout alone, got 'tanh(2)'"),
        ("tanh relu", "expected a name, or groups such as 'tanh*3 + relu', got 'tanh relu'"),
    ],
)
def test_wrong_activations_are_told(name: str, message: str) -> None:
    with pytest.raises(OptionError) as error:
        activation(name, 4)
    assert message in str(error.value)


# --- networks --------------------------------------------------------------------------------


def test_golden_counts_of_parameters() -> None:
    assert parameters(MLP([2, 4, 4, 1])) == 37
    assert parameters(MLP([3, 4, 2])) == 26
    assert parameters(MLP([1000, 1000])) == 1_001_000


def test_an_mlp_equals_torch() -> None:
    network = MLP([3, 5, 4, 2], ["tanh", "relu"])
    other = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 2))
    for parameter, theirs in zip(network.parameters(), other.parameters(), strict=True):
        theirs.data.copy_(parameter.data)
    x = torch.randn(6, 3)
    torch.testing.assert_close(network(x), other(x))


def test_every_time_step_and_row_by_itself() -> None:
    network, x = MLP([3, 4, 2]), torch.randn(5, 6, 3)
    whole = network(x)
    singles = torch.stack([torch.stack([network(row) for row in step]) for step in x])
    torch.testing.assert_close(whole, singles)


def test_skips_have_weights_of_their_own() -> None:
    network = MLP([3, 4, 4, 2], "tanh", skips=[(0, 3), (1, 3)]).double()
    assert parameters(network) == (3 * 4 + 4) + (4 * 4 + 4) + ((4 + 3 + 4) * 2 + 2)
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    steps = network.walk(x)
    inputs = torch.cat([steps[1].a, x, steps[0].a], 1)
    torch.testing.assert_close(steps[2].inputs, inputs)
    assert torch.autograd.gradcheck(network, (x,))


@pytest.mark.parametrize("init", STARTS)
def test_every_start_is_what_its_name_says(init: str) -> None:
    torch.manual_seed(0)
    layer = Dense(400, 300, init=init)
    spread = float(layer.weight.detach().std())
    known = {
        "standard": math.sqrt(2 / 700),
        "glorot": math.sqrt(2 / 700),
        "he": math.sqrt(2 / 400),
        "torch": math.sqrt(1 / 400 / 3),
        "positive": 0.1 / math.sqrt(12),
    }
    assert spread == pytest.approx(known[init], rel=0.02)
    assert bool((layer.bias == 0).all()) == (init != "torch")
    assert bool((layer.weight >= 0).all()) == (init == "positive")
    assert MLP.__init__.__kwdefaults__["init"] != "positive"


def test_dropout_is_of_training_alone() -> None:
    network, x = MLP([3, 50, 2], dropout=0.5), torch.randn(4, 3)
    assert not torch.equal(network(x), network(x))
    network.eval()
    assert torch.equal(network(x), network(x))


def test_wrong_networks_are_told() -> None:
    cases = {
        "widths: expected two numbers ≥ 1 or more": lambda: MLP([3]),
        "activations: expected one, or one for each of 2 hidden layers, got 3": lambda: MLP(
            [1, 2, 3, 4], ["tanh", "relu", "relu"]
        ),
        "with 0 ≤ from < to − 1 and to ≤ 2, the number of layers, got (1, 2)": lambda: MLP(
            [1, 2, 3], skips=[(1, 2)]
        ),
        "expected each pair once": lambda: MLP([1, 2, 3], skips=[(0, 2), (0, 2)]),
        "dropout: expected 0 ≤ rate < 1, got 1.0": lambda: MLP([1, 2, 3], dropout=1.0),
        "unknown initialisation 'zeros'": lambda: MLP([1, 2], init="zeros"),
    }
    for message, make in cases.items():
        with pytest.raises(OptionError) as error:
            make()
        assert message in str(error.value)
    with pytest.raises(ShapeError, match=r"MLP: expected x of shape \(…, 3\), got \(2, 4\)"):
        MLP([3, 1])(torch.zeros(2, 4))


# --- stochastic units ------------------------------------------------------------------------

Z = (0.5, -1.0, 0.3)
DRAWS = 20_000


def quadratic(b: Tensor) -> Tensor:
    return (b @ b.new_tensor([1.5, -1.0, 2.0]) - 1) ** 2


def linear_cost(b: Tensor) -> Tensor:
    return b @ b.new_tensor([1.5, -1.0, 2.0])


def exact(cost: object) -> Tensor:
    z = torch.tensor(Z, dtype=torch.float64, requires_grad=True)
    return torch.autograd.grad(expected(cost, z), z)[0]  # type: ignore[arg-type]


def z_scores(each: Tensor, truth: Tensor) -> Tensor:
    """How many standard errors the mean of estimates (draws, units) is from the truth."""
    return (each.mean(0) - truth) / (each.std(0) / math.sqrt(len(each)))


def straight(cost: object, through: str, seed: int) -> Tensor:
    z = torch.tensor(Z, dtype=torch.float64).expand(DRAWS, -1).clone().requires_grad_()
    b = straight_through(z, torch.Generator().manual_seed(seed), through=through)
    return torch.autograd.grad(cost(b).sum(), z)[0]  # type: ignore[operator]


def scored(cost: object, baseline: float, seed: int) -> Tensor:
    z = torch.tensor(Z, dtype=torch.float64).expand(DRAWS, -1).clone().requires_grad_()
    b = draw(z, torch.Generator().manual_seed(seed))
    estimates = score_function(cost(b), z, b, baseline)  # type: ignore[operator]
    return torch.autograd.grad(estimates.sum(), z)[0]


def test_draws_have_their_probability() -> None:
    z = torch.tensor(Z, dtype=torch.float64)
    b = draw(z.expand(DRAWS, -1), torch.Generator().manual_seed(3))
    assert set(b.unique().tolist()) == {0.0, 1.0}
    assert bool((z_scores(b, z.sigmoid()).abs() < 4).all())


def test_the_expected_cost_gradchecks_and_is_a_mean() -> None:
    z = torch.tensor(Z, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda probabilities: expected(quadratic, probabilities), (z,))
    p = z.detach().sigmoid()
    w = torch.tensor([1.5, -1.0, 2.0], dtype=torch.float64)
    mean, variance = (w * p).sum() - 1, (w**2 * p * (1 - p)).sum()
    torch.testing.assert_close(expected(quadratic, z).detach(), mean**2 + variance)


@pytest.mark.parametrize("baseline", [0.0, 1.7, -3.0])
def test_the_score_function_is_unbiased(baseline: float) -> None:
    scores = z_scores(scored(quadratic, baseline, seed=5), exact(quadratic))
    assert bool((scores.abs() < 4).all())


def test_a_good_baseline_calms_the_score_function() -> None:
    z = torch.tensor(Z, dtype=torch.float64)
    average = float(expected(quadratic, z))
    calm, plain = scored(quadratic, average, 5).var(0), scored(quadratic, 0.0, 5).var(0)
    assert bool((calm < plain).all())


def test_straight_through_is_exact_for_linear_costs_and_biased_for_others() -> None:
    each = straight(linear_cost, "sigmoid", seed=7)
    torch.testing.assert_close(each.mean(0), exact(linear_cost))
    assert float(each.std(0).max()) < 1e-12
    for through in ("sigmoid", "identity"):
        biased = z_scores(straight(quadratic, through, seed=7), exact(quadratic))
        assert bool((biased.abs() > 6).all())


def test_wrong_uses_of_coins_are_told() -> None:
    z = torch.zeros(2, 3)
    with pytest.raises(OptionError, match="unknown way through a draw 'sigmoyd'"):
        straight_through(z, through="sigmoyd")
    with pytest.raises(ShapeError, match=r"expected a sample \(2, 3\) and a cost \(2,\) for each"):
        score_function(torch.zeros(3), z, z)
    with pytest.raises(OptionError, match=r"n ≤ 16, because it sums over .*; got \(17,\)"):
        expected(linear_cost, torch.zeros(17))
