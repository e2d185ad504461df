"""Output distributions p(y | z) of the targets y, given a network's outputs z.

The last axis of z holds the `width(targets)` outputs of a network, the last axis of y the targets.
All axes before are rows (batch, or time and batch). The cost of a row is −log p(y | z), natural
logarithm, constants included, summed over its targets.

    bernoulli    p_k = σ(z_k), for each of k labels independently.
    categorical  p = softmax(z), one class of many; y holds class numbers and has no last axis.
    gaussian     mean μ_k = z_k, standard deviation σ_k = floor + softplus(z_{targets + k}).
    mixture      for each target Σ_j π_j·N(μ_j, σ_j²), π = softmax.

σ comes from softplus rather than exp, so that a large output moves it only in proportion. It never
falls below `floor`: a point that is fitted exactly would otherwise have an infinite density.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Generator, Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from ensue.engine.check import check_tensors
from ensue.equations import softplus
from ensue.errors import DataError, OptionError, ShapeError

HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)
FLOOR = 1e-3  # minimum σ, for targets scaled to standard deviation 1
BISECTIONS = 80  # bisections for a mixture's quantile: beyond the precision of float64


class Distribution(Protocol):
    """The interface of distributions."""

    name: ClassVar[str]

    def width(self, targets: int) -> int:
        """The number of outputs z for this number of targets (categorical: of classes)."""
        ...

    def cost(self, z: Tensor, y: Tensor) -> Tensor:
        """−log p(y | z): (…, width), (…, targets) → (…)."""
        ...

    def mean(self, z: Tensor) -> Tensor:
        """The mean, (…, width) → (…, targets); for a categorical, the probability of each class."""
        ...

    def quantile(self, z: Tensor, q: float) -> Tensor:
        """The smallest value that y does not exceed with probability q: (…, targets)."""
        ...

    def sample(self, z: Tensor, generator: Generator | None = None) -> Tensor:
        """One draw of y for each row."""
        ...

    def interval(self, z: Tensor, share: float) -> tuple[Tensor, Tensor]:
        """The central interval with this share of the probability."""
        ...


class Central(ABC):
    """Intervals between two quantiles, with as much probability below as above."""

    @abstractmethod
    def quantile(self, z: Tensor, q: float) -> Tensor:
        """See `Distribution`."""

    def interval(self, z: Tensor, share: float) -> tuple[Tensor, Tensor]:
        inside("share", share)
        return self.quantile(z, (1 - share) / 2), self.quantile(z, (1 + share) / 2)


@dataclass(frozen=True)
class Bernoulli(Central):
    """Labels that are present (1) or not (0): p_k = σ(z_k).

    cost = −Σ_k [y_k·log p_k + (1 − y_k)·log(1 − p_k)]."""

    name: ClassVar[str] = "bernoulli"

    def width(self, targets: int) -> int:
        return targets

    def cost(self, z: Tensor, y: Tensor) -> Tensor:
        _fits(self, z, y)
        if not y.is_meta and not bool(((y >= 0) & (y <= 1)).all()):
            raise DataError(
                "bernoulli: expected targets from 0 to 1, 1 for labels that apply, got "
                f"{float(y.min()):g} … {float(y.max()):g}"
            )
        return binary_cross_entropy_with_logits(z, y.to(z.dtype), reduction="none").sum(-1)

    def mean(self, z: Tensor) -> Tensor:
        return z.sigmoid()

    def quantile(self, z: Tensor, q: float) -> Tensor:
        return ((-z).sigmoid() < inside("q", q)).to(z.dtype)

    def sample(self, z: Tensor, generator: Generator | None = None) -> Tensor:
        p = z.sigmoid()
        return torch.bernoulli(p.to(_place(generator, p)), generator=generator).to(p.device)


def _not_classes(z: Tensor, y: Tensor) -> ShapeError | None:
    """The reason why torch has rejected y as class indices."""
    if not z.is_floating_point() or y.dtype != torch.int64:
        return ShapeError(
            "categorical: expected z of floating point and class numbers y as torch.int64, got "
            f"{z.dtype} and {y.dtype}"
        )
    classes = z.shape[-1]
    if y.numel() and (int(y.min()) < 0 or int(y.max()) >= classes):
        return ShapeError(
            f"categorical: expected class numbers 0 … {classes - 1}, as z has {classes} scores a "
            f"row, got {int(y.min())} … {int(y.max())}"
        )
    return None


@dataclass(frozen=True)
class Categorical(Central):
    """One class of several: p = softmax(z), y (…) class indices.

    cost = −log p_y. Quantiles are quantiles of the class index, for ordered classes."""

    name: ClassVar[str] = "categorical"

    def width(self, targets: int) -> int:
        return targets

    def cost(self, z: Tensor, y: Tensor) -> Tensor:
        check_tensors({"z": z, "y": y})
        if z.dim() < 2 or z.shape[:-1] != y.shape:
            raise ShapeError(
                f"categorical: expected one class number a row, {tuple(z.shape[:-1])} for z of "
                f"shape {tuple(z.shape)}, got {tuple(y.shape)}"
            )
        try:
            flat = cross_entropy(z.flatten(0, -2), y.flatten(), reduction="none")
        except (IndexError, RuntimeError) as error:
            raise _not_classes(z, y) or error from None
        return flat.reshape(y.shape)

    def mean(self, z: Tensor) -> Tensor:
        return z.softmax(-1)

    def quantile(self, z: Tensor, q: float) -> Tensor:
        reached = z.softmax(-1).cumsum(-1) >= inside("q", q)
        reached[..., -1] = True  # rounding may leave the sum below 1
        return reached.to(torch.uint8).argmax(-1)

    def sample(self, z: Tensor, generator: Generator | None = None) -> Tensor:
        return _chosen(z.softmax(-1).flatten(0, -2), generator).reshape(z.shape[:-1])


@dataclass(frozen=True)
class Gaussian(Central):
    """Mean and σ of each target: z = (μ_1 … μ_k, s_1 … s_k), σ = floor + softplus(s).

    cost = Σ_k (y_k − μ_k)²/2σ_k² + log σ_k + ½ log 2π."""

    floor: float = FLOOR
    name: ClassVar[str] = "gaussian"

    def width(self, targets: int) -> int:
        return 2 * targets

    def parameters(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """μ and σ, each (…, targets)."""
        mean, raw = z.chunk(2, -1)
        return mean, self.floor + softplus(raw)

    def cost(self, z: Tensor, y: Tensor) -> Tensor:
        _fits(self, z, y)
        return _surprise(y, *self.parameters(z)).sum(-1)

    def mean(self, z: Tensor) -> Tensor:
        return self.parameters(z)[0]

    def quantile(self, z: Tensor, q: float) -> Tensor:
        mean, spread = self.parameters(z)
        return mean + spread * _standard_quantile(q, z)

    def sample(self, z: Tensor, generator: Generator | None = None) -> Tensor:
        return _drawn(*self.parameters(z), generator)


@dataclass(frozen=True)
class Mixture(Central):
    """Each target has a separate mixture of k Gaussians.

    For each target, z has k logits of the weights, then k means, then k raw spreads. cost =
    −Σ_targets log Σ_j π_j·N(y; μ_j, σ_j²), by log-sum-exp."""

    components: int = 3
    floor: float = FLOOR
    name: ClassVar[str] = "mixture"

    def width(self, targets: int) -> int:
        return 3 * self.components * targets

    def parameters(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """log π, μ and σ, each (…, targets, k)."""
        targets = z.shape[-1] // (3 * self.components)
        pieces = z.reshape(*z.shape[:-1], targets, 3, self.components)
        logits, mean, raw = pieces.unbind(-2)
        return logits.log_softmax(-1), mean, self.floor + softplus(raw)

    def cost(self, z: Tensor, y: Tensor) -> Tensor:
        _fits(self, z, y)
        log_weight, mean, spread = self.parameters(z)
        each = log_weight - _surprise(y[..., None], mean, spread)
        return -each.logsumexp(-1).sum(-1)

    def mean(self, z: Tensor) -> Tensor:
        log_weight, mean, _ = self.parameters(z)
        return (log_weight.exp() * mean).sum(-1)

    @torch.no_grad()
    def quantile(self, z: Tensor, q: float) -> Tensor:
        """The quantile by bisection, between the smallest and the largest of the components'
        quantiles."""
        log_weight, mean, spread = self.parameters(z)
        weight, ends = log_weight.exp(), mean + spread * _standard_quantile(q, z)
        low, high = ends.amin(-1), ends.amax(-1)
        for _ in range(BISECTIONS):
            middle = low + (high - low) / 2
            below = torch.special.ndtr((middle[..., None] - mean) / spread)
            enough = (weight * below).sum(-1) >= q
            low, high = torch.where(enough, low, middle), torch.where(enough, middle, high)
        return high

    def sample(self, z: Tensor, generator: Generator | None = None) -> Tensor:
        log_weight, mean, spread = self.parameters(z)
        flat = log_weight.exp().reshape(-1, self.components)
        which = _chosen(flat, generator).reshape(*mean.shape[:-1], 1)
        mean, spread = mean.gather(-1, which), spread.gather(-1, which)
        return _drawn(mean, spread, generator).squeeze(-1)


DISTRIBUTIONS: dict[str, Callable[[], Distribution]] = {
    "bernoulli": Bernoulli,
    "gaussian": Gaussian,
    "categorical": Categorical,
    "mixture": Mixture,
}


def inside(name: str, value: float) -> float:
    """Checks that a probability is between 0 and 1, exclusive."""
    if not 0 < value < 1:
        raise OptionError(f"{name}: expected a number between 0 and 1, got {value}")
    return value


def _surprise(y: Tensor, mean: Tensor, spread: Tensor) -> Tensor:
    """−log N(y; mean, spread²)."""
    return ((y - mean) / spread) ** 2 / 2 + spread.log() + HALF_LOG_TAU


def _standard_quantile(q: float, like: Tensor) -> Tensor:
    ndtri: Tensor = torch.special.ndtri(torch.tensor(inside("q", q), dtype=torch.float64))
    return ndtri.to(like)


def _place(generator: Generator | None, like: Tensor) -> torch.device:
    """The device on which numbers are drawn, so that a seed gives the same numbers on every
    device."""
    return like.device if generator is None else generator.device


def _chosen(p: Tensor, generator: Generator | None) -> Tensor:
    """A class (rows, 1) drawn by probabilities (rows, classes)."""
    if not bool(p.isfinite().all()):
        raise DataError(
            "probabilities to draw from are not finite: the input numbers are too far from the "
            "training data"
        )
    return torch.multinomial(p.to(_place(generator, p)), 1, generator=generator).to(p.device)


def _drawn(mean: Tensor, spread: Tensor, generator: Generator | None) -> Tensor:
    place = _place(generator, mean)
    noise = torch.randn(mean.shape, generator=generator, dtype=mean.dtype, device=place)
    return mean + spread * noise.to(mean.device)


def _fits(distribution: Distribution, z: Tensor, y: Tensor) -> None:
    targets = y.shape[-1]
    if z.shape != (*y.shape[:-1], distribution.width(targets)):
        raise ShapeError(
            f"{distribution.name}: expected z of shape "
            f"{(*y.shape[:-1], distribution.width(targets))} for y of shape "
            f"{tuple(y.shape)}, got {tuple(z.shape)}"
        )
