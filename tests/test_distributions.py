"""Output distributions: costs against torch.distributions, golden numbers, quantiles, draws."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.distributions import Bernoulli as TorchBernoulli
from torch.distributions import Categorical as TorchCategorical
from torch.distributions import MixtureSameFamily, Normal

from ensue.errors import DataError, OptionError, ShapeError
from ensue.tasks.blocks.distributions import (
    DISTRIBUTIONS,
    Categorical,
    Distribution,
    Gaussian,
    Mixture,
)

TARGETS = 3


def numbers(distribution: Distribution, rows: int = 5, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    z = torch.randn(rows, distribution.width(TARGETS), generator=generator, dtype=torch.float64)
    return scale * z


def targets(distribution: Distribution, rows: int = 5) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    if distribution.name == "categorical":
        return torch.randint(0, TARGETS, (rows,), generator=generator)
    y = torch.randn(rows, TARGETS, generator=generator, dtype=torch.float64)
    return (y > 0).double() if distribution.name == "bernoulli" else y


def reference(distribution: Distribution, z: Tensor, y: Tensor) -> Tensor:
    """−log p by torch.distributions."""
    if distribution.name == "bernoulli":
        return -TorchBernoulli(logits=z).log_prob(y).sum(-1)
    if distribution.name == "categorical":
        return -TorchCategorical(logits=z).log_prob(y)
    if isinstance(distribution, Gaussian):
        return -Normal(*distribution.parameters(z)).log_prob(y).sum(-1)
    assert isinstance(distribution, Mixture)
    log_weight, mean, spread = distribution.parameters(z)
    mixed = MixtureSameFamily(TorchCategorical(logits=log_weight), Normal(mean, spread))
    return -mixed.log_prob(y).sum(-1)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_costs_are_those_of_torch(name: str) -> None:
    distribution = DISTRIBUTIONS[name]()
    z, y = numbers(distribution), targets(distribution)
    assert distribution.cost(z, y).shape == (5,)
    torch.testing.assert_close(distribution.cost(z, y), reference(distribution, z, y))
    assert torch.autograd.gradcheck(lambda v: distribution.cost(v, y), (z.requires_grad_(),))


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_rows_are_by_themselves_with_any_axes_in_front(name: str) -> None:
    distribution = DISTRIBUTIONS[name]()
    z, y = numbers(distribution, 6), targets(distribution, 6)
    folded = distribution.cost(z.reshape(2, 3, -1), y.reshape(2, 3, *y.shape[1:]))
    torch.testing.assert_close(folded.flatten(), distribution.cost(z, y))
    singles = torch.cat([distribution.cost(z[k : k + 1], y[k : k + 1]) for k in range(6)])
    torch.testing.assert_close(singles, distribution.cost(z, y))
    assert distribution.mean(z.reshape(2, 3, -1)).shape == (2, 3, TARGETS)
    assert distribution.sample(z.reshape(2, 3, -1)).shape == (2, 3, *y.shape[1:])


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("scale", [1e2, 1e4])
def test_far_outputs_stay_finite(name: str, scale: float) -> None:
    distribution = DISTRIBUTIONS[name]()
    z = numbers(distribution, 50, scale).float().requires_grad_()
    y = targets(distribution, 50)
    cost = distribution.cost(z, y if name == "categorical" else y.float())
    cost.sum().backward()
    assert bool(cost.isfinite().all())
    assert bool(z.grad.isfinite().all())  # type: ignore[union-attr]


def raw(spread: float) -> float:
    """The z that becomes this σ."""
    return math.log(math.expm1(spread - Gaussian().floor))


def test_golden_numbers() -> None:
    z = torch.tensor([[1.0, raw(0.5)]], dtype=torch.float64)
    y = torch.tensor([[1.5]], dtype=torch.float64)
    assert Gaussian().cost(z, y).item() == pytest.approx(0.7257914, abs=1e-7)
    logits = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float64, requires_grad=True)
    cost = Categorical().cost(logits, torch.tensor([1]))  # class 2 of 1, 2, 3
    (slope,) = torch.autograd.grad(cost.sum(), logits)
    torch.testing.assert_close(
        slope, torch.tensor([[0.0900, -0.7553, 0.6652]], dtype=torch.float64), atol=5e-5, rtol=0
    )
    assert cost.item() == pytest.approx(-math.log(0.24472847), abs=1e-7)  # with its logarithm


def test_the_gaussian_cost_has_the_right_sign() -> None:
    """A wider σ costs more where y is near, and less where it is far."""
    near, far = torch.zeros(1, 1), torch.full((1, 1), 10.0)
    narrow, wide = torch.tensor([[0.0, raw(0.5)]]), torch.tensor([[0.0, raw(5.0)]])
    distribution = Gaussian()
    assert distribution.cost(narrow, near) < distribution.cost(wide, near)
    assert distribution.cost(narrow, far) > distribution.cost(wide, far)


def test_sigma_never_falls_below_its_floor() -> None:
    _, spread = Gaussian(floor=0.01).parameters(torch.tensor([[0.0, -1e6]]))
    assert spread.item() == pytest.approx(0.01)


@pytest.mark.parametrize("distribution", [Gaussian(), Mixture(1), Mixture(3), Mixture(4)])
@pytest.mark.parametrize("q", [0.001, 0.05, 0.5, 0.9, 0.999])
def test_quantiles_undo_the_distribution_function(
    distribution: Gaussian | Mixture, q: float
) -> None:
    z = numbers(distribution, 20, 2.0)
    values = distribution.quantile(z, q)
    if isinstance(distribution, Gaussian):
        below = Normal(*distribution.parameters(z)).cdf(values)
    else:
        log_weight, mean, spread = distribution.parameters(z)
        below = (log_weight.exp() * Normal(mean, spread).cdf(values[..., None])).sum(-1)
    torch.testing.assert_close(below, torch.full_like(below, q), atol=1e-9, rtol=0)


def test_a_mixture_of_one_is_a_gaussian() -> None:
    gaussian, one = Gaussian(), Mixture(1)
    z = torch.randn(4, 2, dtype=torch.float64)  # one target
    same = torch.cat([torch.full((4, 1), 0.3, dtype=torch.float64), z], 1)
    y = torch.randn(4, 1, dtype=torch.float64)
    torch.testing.assert_close(one.cost(same, y), gaussian.cost(z, y))
    torch.testing.assert_close(one.mean(same), gaussian.mean(z))


@pytest.mark.parametrize("name", ["gaussian", "mixture"])
def test_draws_have_the_mean_and_the_intervals(name: str) -> None:
    distribution = DISTRIBUTIONS[name]()
    z = numbers(distribution, 1)
    many = z.expand(20_000, -1)
    drawn = distribution.sample(many, torch.Generator().manual_seed(4))
    again = distribution.sample(many, torch.Generator().manual_seed(4))
    assert torch.equal(drawn, again)
    errors = (drawn.mean(0) - distribution.mean(z)[0]) / (drawn.std(0) / math.sqrt(len(drawn)))
    assert float(errors.abs().max()) < 4
    low, high = distribution.interval(z, 0.9)
    share = ((low <= drawn) & (drawn <= high)).double().mean(0)
    assert float((share - 0.9).abs().max()) < 4 * math.sqrt(0.09 / len(drawn))


@pytest.mark.parametrize("name", ["bernoulli", "categorical"])
def test_draws_of_labels_have_their_probabilities(name: str) -> None:
    distribution = DISTRIBUTIONS[name]()
    z = numbers(distribution, 1)
    drawn = distribution.sample(z.expand(20_000, -1), torch.Generator().manual_seed(4))
    if name == "categorical":
        drawn = torch.nn.functional.one_hot(drawn, TARGETS).double()
    assert float((drawn.mean(0) - distribution.mean(z)[0]).abs().max()) < 0.015


@pytest.mark.parametrize("name", ["bernoulli", "categorical"])
def test_quantiles_of_labels_are_the_smallest_that_reach_q(name: str) -> None:
    distribution = DISTRIBUTIONS[name]()
    p = torch.tensor([[0.2, 0.5, 0.3]], dtype=torch.float64)
    z = p.log() if name == "categorical" else (p / (1 - p)).log()
    quantiles = {q: distribution.quantile(z, q).flatten().tolist() for q in (0.1, 0.6, 0.75)}
    if name == "categorical":
        assert quantiles == {0.1: [0], 0.6: [1], 0.75: [2]}
    else:  # P(0) = 0.8, 0.5, 0.7
        assert quantiles == {0.1: [0, 0, 0], 0.6: [0, 1, 0], 0.75: [0, 1, 1]}


@pytest.mark.parametrize("wrong", [-0.5, 1.5, float("nan")])
def test_labels_are_there_or_not(wrong: float) -> None:
    z = torch.zeros(2, 3)
    with pytest.raises(DataError, match="bernoulli: expected targets from 0 to 1"):
        DISTRIBUTIONS["bernoulli"]().cost(z, torch.tensor([[0.0, 1, 0.5], [0, wrong, 1]]))
    assert DISTRIBUTIONS["bernoulli"]().cost(z[:0], z[:0]).shape == (0,)


def test_wrong_shapes_and_shares_are_told() -> None:
    gaussian, z = Gaussian(), torch.zeros(2, 3)
    with pytest.raises(ShapeError) as error:
        gaussian.cost(z, torch.zeros(2, 2))
    assert "gaussian: expected z of shape (2, 4) for y of shape (2, 2), got (2, 3)" in str(
        error.value
    )
    with pytest.raises(ShapeError) as error:
        Categorical().cost(z, torch.zeros(2, 1, dtype=torch.long))
    assert "categorical: expected one class number a row, (2,)" in str(error.value)
    with pytest.raises(OptionError, match=r"q: expected a number between 0 and 1, got 1\.0"):
        gaussian.quantile(torch.zeros(1, 2), 1.0)
    with pytest.raises(OptionError, match="share: expected a number between 0 and 1, got 90"):
        gaussian.interval(torch.zeros(1, 2), 90)
