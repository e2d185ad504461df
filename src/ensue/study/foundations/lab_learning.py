"""Learning as it goes on: gradient descent beside SGD, and where early stopping stops.

curves      cost over examples seen: gradient descent takes a step for all rows, SGD for each
stopping    training and validation cost of a rich family, and the update that validation chooses
divergence  KL(p‖q) of two distributions
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ensue.errors import OptionError

ROWS, PASSES = 64, 12  # rows, and how often all of them are seen
GD_RATE, SGD_RATE = 0.5, 0.1
FEW, NOISE, DEGREE = 16, 0.35, 13  # of the rows and the polynomial that overfits
UPDATES, EVERY, PATIENCE, STOP_RATE = 1500, 10, 30, 0.05


@dataclass(frozen=True)
class LearningCurves:
    """Mean squared error over all rows by the number of examples seen."""

    seen: tuple[int, ...]
    descent: tuple[float, ...]
    stochastic: tuple[float, ...]
    least: float  # of the closed form


def compare_learning(seed: int) -> LearningCurves:
    """A line with an offset, y = 2x − 1 and noise, from zero weights."""
    generator = torch.Generator().manual_seed(seed)
    x = 2 * torch.rand(ROWS, generator=generator, dtype=torch.float64) - 1
    y = 2 * x - 1 + 0.3 * torch.randn(ROWS, generator=generator, dtype=torch.float64)
    features = torch.stack([x, torch.ones_like(x)], 1)
    solved = torch.linalg.lstsq(features, y[:, None]).solution[:, 0]
    whole, single = torch.zeros(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    seen, descent, stochastic = [0], [_cost(features, y, whole)], [_cost(features, y, single)]
    for k in range(PASSES):
        order = torch.randperm(ROWS, generator=generator)
        for number, row in enumerate(order.tolist(), 1):
            single = single - SGD_RATE * _slope(features[[row]], y[[row]], single)
            if number % 8 == 0:
                seen.append(k * ROWS + number)
                stochastic.append(_cost(features, y, single))
                if number == ROWS:
                    whole = whole - GD_RATE * _slope(features, y, whole)
                descent.append(_cost(features, y, whole))
    least = _cost(features, y, solved)
    return LearningCurves(tuple(seen), tuple(descent), tuple(stochastic), least)


def _cost(features: Tensor, y: Tensor, weights: Tensor) -> float:
    return float(((features @ weights - y) ** 2).mean())


def _slope(features: Tensor, y: Tensor, weights: Tensor) -> Tensor:
    return 2 * features.t() @ (features @ weights - y) / len(y)


@dataclass(frozen=True)
class Stopping:
    """Costs by update; best: the update whose weights are kept; stopped: where it gave up."""

    updates: tuple[int, ...]
    train: tuple[float, ...]
    validation: tuple[float, ...]
    best: int
    stopped: int

    @property
    def kept(self) -> float:
        """The validation cost of the weights that are kept."""
        return self.validation[self.updates.index(self.best)]


def watch_early_stopping(seed: int) -> Stopping:
    """Sixteen noisy rows of sin 3x + x, a polynomial of degree 13."""
    (x, y), held = (_noisy(FEW, seed), _noisy(200, seed + 1))
    weights = torch.zeros(DEGREE + 1, dtype=torch.float64)
    updates, train, validation = [], [], []
    best, stopped = 0, None
    for update in range(UPDATES + 1):
        if update % EVERY == 0:
            updates.append(update)
            train.append(_cost(_powers(x), y, weights))
            validation.append(_cost(_powers(held[0]), held[1], weights))
            best = updates[validation.index(min(validation))]
            if stopped is None and update - best >= PATIENCE * EVERY:
                stopped, chosen = update, best
        weights = weights - STOP_RATE * _slope(_powers(x), y, weights)
    if stopped is None:
        stopped, chosen = UPDATES, best
    return Stopping(tuple(updates), tuple(train), tuple(validation), chosen, stopped)


def _powers(x: Tensor) -> Tensor:
    """Chebyshev's, which stay in [−1, 1]."""
    degrees = torch.arange(DEGREE + 1, dtype=torch.float64)
    return torch.cos(degrees * torch.acos(x[:, None].clamp(-1, 1)))


def _noisy(rows: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = 2 * torch.rand(rows, generator=generator, dtype=torch.float64) - 1
    noise = torch.randn(rows, generator=generator, dtype=torch.float64)
    return x, (3 * x).sin() + x + NOISE * noise


# --- divergence ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Divergence:
    """Of two distributions over the same values, in nats: KL(p‖q) = H(p, q) − H(p). Infinite where
    q is 0 and p is not."""

    p: tuple[float, ...]
    q: tuple[float, ...]
    forward: float
    backward: float
    entropy: float
    cross_entropy: float


def divergence(p: Sequence[float], q: Sequence[float]) -> Divergence:
    """p, q: probabilities, or weights that are divided by their sum.

    >>> divergence([0.5, 0.5], [0.5, 0.5]).forward
    0.0
    """
    if len(p) != len(q) or not p:
        raise OptionError(f"q: expected as many probabilities as p, {len(p)}, got {len(q)}")
    for name, own in (("p", p), ("q", q)):
        if not all(math.isfinite(v) and v >= 0 for v in own) or sum(own) <= 0:
            raise OptionError(f"{name}: expected numbers ≥ 0, not all 0, got {list(own)}")
    a, b = (tuple(v / sum(own) for v in own) for own in (p, q))
    return Divergence(a, b, _divergence(a, b), _divergence(b, a), _crossed(a, a), _crossed(a, b))


def _divergence(p: Sequence[float], q: Sequence[float]) -> float:
    pairs = [(a, b) for a, b in zip(p, q, strict=True) if a > 0]
    return math.inf if any(b == 0 for _, b in pairs) else sum(a * math.log(a / b) for a, b in pairs)


def _crossed(p: Sequence[float], q: Sequence[float]) -> float:
    """H(p, q) = −Σ p·log q"""
    pairs = [(a, b) for a, b in zip(p, q, strict=True) if a > 0]
    return math.inf if any(b == 0 for _, b in pairs) else -sum(a * math.log(b) for a, b in pairs)


def divergence_text(found: Divergence) -> str:
    rows = {
        "KL(p‖q)": found.forward,
        "KL(q‖p)": found.backward,
        "H(p)": found.entropy,
        "H(p, q)": found.cross_entropy,
    }
    lines = [f"p = {_listed(found.p)}", f"q = {_listed(found.q)}", ""]
    for name, value in rows.items():
        if math.isfinite(value):
            lines.append(f"{name:<8} {value:z.6f} nats   {value / math.log(2):z.6f} bits")
        else:
            lines.append(f"{name:<8} infinite: a value that has probability 0 there does occur")
    return "\n".join([*lines, "", "KL(p‖q) = H(p, q) − H(p) ≥ 0, and is 0 for equal distributions"])


def _listed(values: Sequence[float]) -> str:
    return "(" + ", ".join(f"{own:.4g}" for own in values) + ")"
