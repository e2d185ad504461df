"""Mixtures of a network and a baseline, with fitted weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from ensue.tasks.blocks.distributions import FLOOR, Gaussian
from ensue.tasks.declarations import Positive, Range
from ensue.training.optimiser import LBFGS

DOUBT = 2.0  # weight of (log a/a₀)² + (log b/b₀)²
ITERATIONS = 100
Weight = Annotated[float, Range(low=0, high=1e6)]


class BaselineMixture(NamedTuple):
    """p = softmax(a·log p_network + b·log p_ngrams); for several labels σ(a·z + b·z′) each.

    a + b < 1 makes the answer less confident, like a temperature."""

    network: Weight
    ngrams: Weight

    def __str__(self) -> str:
        return f"weights {self.network:.2f} and {self.ngrams:.2f}"

    def scores(self, network: Tensor, ngrams: Tensor, several: bool) -> Tensor:
        """log p (rows, classes), or for several labels z with p = σ(z)."""
        return _mixed(network, ngrams, several, *self)

    def logs(self, network: Tensor, ngrams: Tensor, several: bool) -> Tensor:
        """log p (rows, classes) from the scores of both models; scores need no normalisation if p
        is a softmax."""
        mixed = _mixed(network, ngrams, several, *self)
        return logsigmoid(mixed) if several else mixed


EQUAL = BaselineMixture(0.5, 0.5)


class FirstGuess(NamedTuple):
    """A first guess. weights: the mixture without any rows; doubt: weight of the penalty on
    deviations of their logarithms."""

    weights: BaselineMixture = EQUAL
    doubt: float = DOUBT


# For small sets of texts. The rows to which weights are fitted also decided when the network
# stopped, so it looks better on them than it is; this does not hold for the linear model.
FEW_TEXTS = FirstGuess(BaselineMixture(0.15, 0.85), 5.0)
FIRST = FirstGuess()


def _mixed(
    network: Tensor, ngrams: Tensor, several: bool, a: float | Tensor, b: float | Tensor
) -> Tensor:
    """log p; for several labels the scores z with p = σ(z)."""
    if several:
        return a * network + b * ngrams
    return (a * network.log_softmax(1) + b * ngrams.log_softmax(1)).log_softmax(1)


def fitted_mixture(
    networks: Sequence[Tensor], ngrams: Tensor, targets: Tensor, first: FirstGuess = FIRST
) -> BaselineMixture:
    """a, b > 0 with the lowest cost of the members' mean prediction, Σ −log p on rows outside the
    training part, plus doubt·((log a/a₀)² + (log b/b₀)²), so that few rows change the first guess
    only little.

    networks: the scores (rows, classes) of each member, float64; targets: classes (rows,), or zeros
    and ones (rows, labels). With NaN or infinite scores, the result is EQUAL."""
    several = targets.ndim == 2
    if not all(scores.isfinite().all() for scores in (*networks, ngrams)):
        return EQUAL
    rows = torch.arange(len(targets))
    sign = 2 * targets - 1  # p if a label is present, else 1 − p
    guess = torch.tensor(first.weights, dtype=torch.float64)
    moved = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    search = LBFGS([moved], max_iter=ITERATIONS, line_search_fn="strong_wolfe")

    def cost() -> Tensor:
        search.zero_grad()
        a, b = guess * moved.exp()
        mixed = torch.stack([_mixed(network, ngrams, several, a, b) for network in networks])
        right = logsigmoid(mixed * sign) if several else mixed[:, rows, targets]
        logs = right.logsumexp(0) - math.log(len(networks))  # of the members' mean
        total = first.doubt * moved.square().sum() - logs.sum()
        total.backward()  # type: ignore[no-untyped-call]
        return total

    search.step(cost)  # type: ignore[no-untyped-call]
    a, b = (guess * moved.detach().exp()).tolist()
    return BaselineMixture(a, b)


# --- of numbers ----------------------------------------------------------------------------------


class NumberMixture(NamedTuple):
    """Mixture of a Gaussian N(μ, σ²) and a number m: N(a·μ + b·m + shift, (spread·σ)²)."""

    network: Weight
    linear: Weight
    shift: float
    spread: Positive

    def __str__(self) -> str:
        return f"weights {self.network:.2f} and {self.linear:.2f}"

    def outputs(self, z: Tensor, linear: Tensor) -> Tensor:
        """z (rows, 2) of a Gaussian, mixed with numbers (rows, 1)."""
        return _moved(z.double(), linear.double(), *map(torch.tensor, self)).to(z.dtype)


EVEN = NumberMixture(0.5, 0.5, 0.0, 1.0)


def _moved(
    z: Tensor, linear: Tensor, a: Tensor, b: Tensor, shift: Tensor, spread: Tensor
) -> Tensor:
    mean = a * z[:, :1] + b * linear + shift
    sigma = spread * softplus(z[:, 1:])
    return torch.cat([mean, sigma + torch.log(-torch.expm1(-sigma.clamp(min=FLOOR)))], 1)


def fitted_numbers(networks: Sequence[Tensor], linear: Tensor, values: Tensor) -> NumberMixture:
    """The mixture with the lowest cost on rows outside the training part: Σ −log p, the mean over
    the members, plus 2·(log 2a)² + 2·(log 2b)² + 2·(log spread)², so that few rows change it only
    little. With n rows and 4 fitted numbers, the fitted spread is √((n − 4)/n) of the true one, and
    that of new rows is √((n + 4)/n) of it. So the spread is widened by the ratio of both.

    networks: z (rows, 2) of each member; linear, values: (rows, 1). With NaN or infinite scores,
    the result is EVEN."""
    if not all(scores.isfinite().all() for scores in (*networks, linear)):
        return EVEN
    members, linear, values = [z.double() for z in networks], linear.double(), values.double()
    free = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    search = LBFGS([free], max_iter=ITERATIONS, line_search_fn="strong_wolfe")

    def settings() -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return 0.5 * free[0].exp(), 0.5 * free[1].exp(), free[2], free[3].exp()

    def cost() -> Tensor:
        search.zero_grad()
        moved = [_moved(z, linear, *settings()) for z in members]
        costs = torch.stack([Gaussian().cost(z, values).sum() for z in moved])
        total = DOUBT * free.square().sum() + costs.mean()
        total.backward()  # type: ignore[no-untyped-call]
        return total

    search.step(cost)  # type: ignore[no-untyped-call]
    a, b, shift, spread = (float(setting.detach()) for setting in settings())
    rows, fitted = len(values), len(free)
    return NumberMixture(a, b, shift, spread * math.sqrt((rows + fitted) / max(rows - fitted, 1)))
