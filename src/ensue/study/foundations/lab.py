"""The learning lab: small experiments around f(x) = sin 10x + x, which show what learning is.

descent x ← x − η·f'(x) from −0.6, with different rates η, up to divergence; costs the expected cost
over all x, and the empirical cost of ten noisy samples, for lines a·x, which do not include f;
families a line, a parabola, a sinusoid: each fitted, chosen by validation, the winner tested;
networks a random, fixed first layer, and the same network with all layers tuned; estimators
gradients through a coin: the mean and the spread of each estimator; curves cost over examples seen:
gradient descent takes a step for all rows, SGD for each; stopping training and validation cost of a
rich family, and the update that validation chooses; divergence KL(p‖q) of two distributions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from ensue.errors import OptionError
from ensue.layers.activations import draw, expected, score_function, straight_through
from ensue.layers.feedforward import MLP
from ensue.tasks.baselines.regression import RandomFeatures, least_squares, minimise

START, STEPS = -0.6, 40
RATES = (0.001, 0.01, 0.02, 0.05)
VALLEY = -0.795415  # the minimum nearest to the start
SAMPLES, NOISE = 10, 0.1
REDRAWN = 20  # sets of samples
ROWS, NOISE_OF_ROWS = 40, 0.15  # of a part
TEST_ROWS = 400
UNITS, STARTS = (3, 5, 10, 20), 3
NETWORK_ROWS, ITERATIONS = 100, 100
SCALE = 3.0  # of random first layers
DRAWS = 4000
COINS = (0.5, -1.0, 0.3)  # z of three stochastic units
CURVE_ROWS, PASSES = 64, 12  # rows, and number of passes over them
GD_RATE, SGD_RATE = 0.5, 0.1
FEW, FEW_NOISE, DEGREE = 16, 0.35, 13  # of the rows and of the polynomial that overfits
UPDATES, EVERY, PATIENCE, STOP_RATE = 1500, 10, 30, 0.05


def function(x: Tensor) -> Tensor:
    return (10 * x).sin() + x


def slope(x: float) -> float:
    return 10 * math.cos(10 * x) + 1


def curvature(x: float) -> float:
    return -100 * math.sin(10 * x)


# --- descent ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Walk:
    """A descent with rate η: its path, and how it ended."""

    rate: float
    places: tuple[float, ...]
    ending: str


def descend(rate: float, steps: int = STEPS) -> Walk:
    places = [START]
    for _ in range(steps):
        places.append(places[-1] - rate * slope(places[-1]))
    return Walk(rate, tuple(places), _ending(places))


def _ending(places: list[float]) -> str:
    last = places[-1]
    if abs(last - VALLEY) < 1e-4:
        return "finds the minimum"
    if abs(slope(last)) < 1e-3 and curvature(last) > 0:
        return f"lands in another valley, at {last:.3f}"
    if abs(slope(last)) < 1e-3:
        return f"climbs to a maximum, at {last:.3f}: a negative rate goes uphill"
    if any(abs(b - VALLEY) > abs(a - VALLEY) for a, b in pairwise(places)):
        return "diverges: it never comes to rest"
    swings = sum((a < VALLEY) != (b < VALLEY) for a, b in pairwise(places))
    return "overshoots, and swings around it" if swings > 1 else "has not arrived yet"


# --- costs -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Costs:
    """The hypotheses a·x: slopes a, with the expected and the empirical cost of each; minima: for
    each of several samples of ten points, the slope with the smallest empirical cost."""

    slopes: tuple[float, ...]
    expected: tuple[float, ...]
    empirical: tuple[float, ...]
    minima: tuple[float, ...]

    def best(self, which: str) -> float:
        """The slope with the smallest cost, "expected" or "empirical"."""
        costs = self.expected if which == "expected" else self.empirical
        return self.slopes[costs.index(min(costs))]


def compare_costs(seed: int) -> Costs:
    """Mean squared distance to noisy values of f, x uniform in [0, 1]: over the whole interval, and
    over ten samples. No line equals f, so the two costs have different minima."""
    slopes = torch.linspace(-2, 4, 601, dtype=torch.float64)
    everywhere = (torch.arange(4000, dtype=torch.float64) + 0.5) / 4000

    def cost(at: Tensor, target: Tensor) -> Tensor:
        return ((slopes[:, None] * at - target) ** 2).mean(1)

    over_all = cost(everywhere, function(everywhere)) + NOISE**2
    drawn = [_ten(seed + k) for k in range(REDRAWN)]
    minima = tuple(float((x @ y) / (x @ x)) for x, y in drawn)
    return Costs(_plain(slopes), _plain(over_all), _plain(cost(*drawn[0])), minima)


def _ten(seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(SAMPLES, generator=generator, dtype=torch.float64)
    return x, function(x) + NOISE * torch.randn(SAMPLES, generator=generator, dtype=torch.float64)


# --- families --------------------------------------------------------------------------------


@dataclass(frozen=True)
class FunctionFamily:
    """A family of hypotheses: the mean squared error of its member fitted to the training part, on
    each part (on test only for the winner), and that member's values on `grid`."""

    name: str
    train: float
    validation: float
    test: float | None
    curve: tuple[float, ...]


@dataclass(frozen=True)
class Families:
    """Families of functions, compared on validation. x, y: the training part; grid: the x of the
    curves."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    grid: tuple[float, ...]
    all: tuple[FunctionFamily, ...]

    @property
    def winner(self) -> FunctionFamily:
        return min(self.all, key=lambda family: family.validation)


Basis = Callable[[Tensor], Tensor]


def waves(omega: float) -> Basis:
    """The features x, sin ωx and cos ωx: a line plus a sinusoid of any amplitude and phase."""
    return lambda x: torch.cat([x, (omega * x).sin(), (omega * x).cos()], 1)


def _solved(basis: Basis, x: Tensor, y: Tensor) -> Callable[[Tensor], Tensor]:
    weight, bias = least_squares(basis(x), y)
    return lambda other: basis(other) @ weight.t() + bias


def _sinusoid(x: Tensor, y: Tensor) -> Callable[[Tensor], Tensor]:
    """Fits ω by grid search, all else in closed form."""
    trials = [_solved(waves(omega / 20), x, y) for omega in range(10, 400)]
    return min(trials, key=lambda wave: _error(wave, x, y))


def _error(guess: Callable[[Tensor], Tensor], x: Tensor, y: Tensor) -> float:
    return float(((guess(x) - y) ** 2).mean())


FAMILIES: dict[str, Callable[[Tensor, Tensor], Callable[[Tensor], Tensor]]] = {
    "linear": lambda x, y: _solved(lambda v: v, x, y),
    "quadratic": lambda x, y: _solved(lambda v: torch.cat([v, v**2], 1), x, y),
    "sinusoid": _sinusoid,
}


def samples(rows: int, seed: int) -> tuple[Tensor, Tensor]:
    """x (rows, 1) uniform in [−1, 1], and f(x) with noise."""
    generator = torch.Generator().manual_seed(seed)
    x = 2 * torch.rand(rows, 1, generator=generator, dtype=torch.float64) - 1
    noise = torch.randn(rows, 1, generator=generator, dtype=torch.float64)
    return x, function(x) + NOISE_OF_ROWS * noise


def choose_family(seed: int) -> Families:
    (x, y), held_out = samples(ROWS, seed), samples(ROWS, seed + 1)
    grid = torch.linspace(-1, 1, 201, dtype=torch.float64)[:, None]
    fitted = {name: fit(x, y) for name, fit in FAMILIES.items()}
    validation = {name: _error(model, *held_out) for name, model in fitted.items()}
    winner = min(validation, key=lambda name: validation[name])
    families = [
        FunctionFamily(
            name,
            _error(model, x, y),
            validation[name],
            _error(model, *samples(TEST_ROWS, seed + 2)) if name == winner else None,
            _plain(model(grid)[:, 0]),
        )
        for name, model in fitted.items()
    ]
    return Families(_plain(x[:, 0]), _plain(y[:, 0]), _plain(grid[:, 0]), tuple(families))


# --- networks --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Networks:
    """Mean squared test errors, one for each number of `units`, averaged over initialisations.
    random: only the readout is learned, the first layer stays random; tuned: all layers are learned
    from there."""

    units: tuple[int, ...]
    random: tuple[float, ...]
    tuned: tuple[float, ...]


def compare_networks(seed: int, units: tuple[int, ...] = UNITS) -> Networks:
    """Compares a random first layer with a readout in closed form, and the same network with all
    layers tuned from there."""
    train, test = samples(NETWORK_ROWS, seed), samples(TEST_ROWS, seed + 2)
    pairs = [[_both(k, start, train, test) for start in range(STARTS)] for k in units]
    random, tuned = (tuple(sum(p[k] for p in pair) / STARTS for pair in pairs) for k in (0, 1))
    return Networks(units, random, tuned)


Part = tuple[Tensor, Tensor]


def _both(units: int, seed: int, train: Part, test: Part) -> tuple[float, float]:
    """Test errors with the random first layer, and with all layers tuned."""
    features_solved = (
        RandomFeatures(1, units, 1, scale=SCALE, seed=seed).double().solve(*train, 1e-6)
    )
    network = features_solved.network
    with torch.no_grad():
        before = _error(network, *test)
    network.requires_grad_(True)
    minimise(network, lambda: _penalised(network, *train), ITERATIONS)
    with torch.no_grad():
        return before, _error(network, *test)


def _penalised(network: MLP, x: Tensor, y: Tensor) -> Tensor:
    weights = torch.stack(
        [(parameter**2).sum() for parameter in network.parameters() if parameter.dim() > 1]
    )
    cost: Tensor = ((network(x) - y) ** 2).mean() + 1e-5 * weights.sum()
    return cost


# --- estimators ------------------------------------------------------------------------------


@dataclass(frozen=True)
class GradientEstimator:
    """An estimator of ∂E[C]/∂z, for each unit: the mean over many draws, its standard error, and
    the standard deviation of one draw."""

    name: str
    mean: tuple[float, ...]
    error: tuple[float, ...]
    deviation: tuple[float, ...]


@dataclass(frozen=True)
class Estimators:
    """Estimators of a gradient. exact: the gradient itself, by summing over all values of the
    units."""

    draws: int
    exact: tuple[float, ...]
    all: tuple[GradientEstimator, ...]


def coin_cost(b: Tensor) -> Tensor:
    """(Σ w_k·b_k − 1)²: not linear in b, so that straight-through is biased."""
    return (b @ b.new_tensor([1.5, -1.0, 2.0]) - 1) ** 2


def compare_estimators(seed: int, draws: int = DRAWS) -> Estimators:
    z = torch.tensor(COINS, dtype=torch.float64, requires_grad=True)
    cost = expected(coin_cost, z)
    (exact,) = torch.autograd.grad(cost, z)
    average = float(cost.detach())
    ways: dict[str, Callable[[Tensor, torch.Generator], Tensor]] = {
        "straight-through, σ": lambda z, g: coin_cost(straight_through(z, g)),
        "straight-through, identity": lambda z, g: coin_cost(
            straight_through(z, g, through="identity")
        ),
        "score function": lambda z, g: _scored(z, g, 0.0),
        "score function, baseline": lambda z, g: _scored(z, g, average),
    }
    estimators = []
    for name, way in ways.items():
        many = z.detach().expand(draws, -1).clone().requires_grad_()
        costs = way(many, torch.Generator().manual_seed(seed))
        (each,) = torch.autograd.grad(costs.sum(), many)  # (draws, units)
        spread = each.std(0)
        estimators.append(
            GradientEstimator(
                name, _plain(each.mean(0)), _plain(spread / math.sqrt(draws)), _plain(spread)
            )
        )
    return Estimators(draws, _plain(exact), tuple(estimators))


def _scored(z: Tensor, generator: torch.Generator, baseline: float) -> Tensor:
    sample = draw(z, generator)
    return score_function(coin_cost(sample), z, sample, baseline)


def _plain(values: Tensor) -> tuple[float, ...]:
    return tuple(values.detach().tolist())


# --- learning --------------------------------------------------------------------------------


@dataclass(frozen=True)
class LearningCurves:
    """Mean squared error over all rows by the number of examples seen."""

    examples: tuple[int, ...]
    descent: tuple[float, ...]
    stochastic: tuple[float, ...]
    least: float  # of the closed form


def compare_learning(seed: int) -> LearningCurves:
    """Learning curves for a line with an offset, y = 2x − 1 and noise, from zero weights."""
    generator = torch.Generator().manual_seed(seed)
    x = 2 * torch.rand(CURVE_ROWS, generator=generator, dtype=torch.float64) - 1
    y = 2 * x - 1 + 0.3 * torch.randn(CURVE_ROWS, generator=generator, dtype=torch.float64)
    features = torch.stack([x, torch.ones_like(x)], 1)
    solved = torch.linalg.lstsq(features, y[:, None]).solution[:, 0]
    whole, single = torch.zeros(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    rows_seen, descent, stochastic = [0], [_cost(features, y, whole)], [_cost(features, y, single)]
    for k in range(PASSES):
        order = torch.randperm(CURVE_ROWS, generator=generator)
        for number, row in enumerate(order.tolist(), 1):
            single = single - SGD_RATE * _slope(features[[row]], y[[row]], single)
            if number % 8 == 0:
                rows_seen.append(k * CURVE_ROWS + number)
                stochastic.append(_cost(features, y, single))
                if number == CURVE_ROWS:
                    whole = whole - GD_RATE * _slope(features, y, whole)
                descent.append(_cost(features, y, whole))
    least = _cost(features, y, solved)
    return LearningCurves(tuple(rows_seen), tuple(descent), tuple(stochastic), least)


def _cost(features: Tensor, y: Tensor, weights: Tensor) -> float:
    return float(((features @ weights - y) ** 2).mean())


def _slope(features: Tensor, y: Tensor, weights: Tensor) -> Tensor:
    return 2 * features.t() @ (features @ weights - y) / len(y)


@dataclass(frozen=True)
class Stopping:
    """Costs by update; best: the update whose weights are kept; stopped: the last update."""

    updates: tuple[int, ...]
    train: tuple[float, ...]
    validation: tuple[float, ...]
    best: int
    stopped: int

    @property
    def best_cost(self) -> float:
        """The validation cost of the weights that are kept."""
        return self.validation[self.updates.index(self.best)]


def watch_early_stopping(seed: int) -> Stopping:
    """Early stopping with sixteen noisy rows of sin 3x + x and a polynomial of degree 13."""
    (x, y), held_out = (_noisy(FEW, seed), _noisy(200, seed + 1))
    weights = torch.zeros(DEGREE + 1, dtype=torch.float64)
    updates, train, validation = [], [], []
    best, stopped = 0, None
    for update in range(UPDATES + 1):
        if update % EVERY == 0:
            updates.append(update)
            train.append(_cost(_powers(x), y, weights))
            validation.append(_cost(_powers(held_out[0]), held_out[1], weights))
            best = updates[validation.index(min(validation))]
            if stopped is None and update - best >= PATIENCE * EVERY:
                stopped, chosen = update, best
        weights = weights - STOP_RATE * _slope(_powers(x), y, weights)
    if stopped is None:
        stopped, chosen = UPDATES, best
    return Stopping(tuple(updates), tuple(train), tuple(validation), chosen, stopped)


def _powers(x: Tensor) -> Tensor:
    """Chebyshev polynomials of x, which stay in [−1, 1]."""
    degrees = torch.arange(DEGREE + 1, dtype=torch.float64)
    return torch.cos(degrees * torch.acos(x[:, None].clamp(-1, 1)))


def _noisy(rows: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = 2 * torch.rand(rows, generator=generator, dtype=torch.float64) - 1
    noise = torch.randn(rows, generator=generator, dtype=torch.float64)
    return x, (3 * x).sin() + x + FEW_NOISE * noise


# --- divergence ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Divergence:
    """The divergence of two distributions over the same values, in nats: KL(p‖q) = H(p, q) − H(p).
    Infinite if q is 0 where p is not."""

    p: tuple[float, ...]
    q: tuple[float, ...]
    forward: float
    backward: float
    entropy: float
    cross_entropy: float


def divergence(p: Sequence[float], q: Sequence[float]) -> Divergence:
    """The divergence of p and q: probabilities, or weights, which are divided by their sum.

    >>> divergence([0.5, 0.5], [0.5, 0.5]).forward
    0.0
    """
    if len(p) != len(q) or not p:
        raise OptionError(f"q: expected as many probabilities as p, {len(p)}, got {len(q)}")
    for name, distribution in (("p", p), ("q", q)):
        if not all(math.isfinite(v) and v >= 0 for v in distribution) or sum(distribution) <= 0:
            raise OptionError(f"{name}: expected numbers ≥ 0, not all 0, got {list(distribution)}")
    a, b = (tuple(v / sum(weights) for v in weights) for weights in (p, q))
    return Divergence(a, b, _divergence(a, b), _divergence(b, a), _crossed(a, a), _crossed(a, b))


def _divergence(p: Sequence[float], q: Sequence[float]) -> float:
    pairs = [(a, b) for a, b in zip(p, q, strict=True) if a > 0]
    return math.inf if any(b == 0 for _, b in pairs) else sum(a * math.log(a / b) for a, b in pairs)


def _crossed(p: Sequence[float], q: Sequence[float]) -> float:
    """H(p, q) = −Σ p·log q"""
    pairs = [(a, b) for a, b in zip(p, q, strict=True) if a > 0]
    return math.inf if any(b == 0 for _, b in pairs) else -sum(a * math.log(b) for a, b in pairs)


# --- all -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lab:
    """The results of all experiments."""

    seed: int
    walks: tuple[Walk, ...]
    costs: Costs
    families: Families
    networks: Networks
    estimators: Estimators
    curves: LearningCurves
    stopping: Stopping


def run_lab(seed: int = 1, rates: tuple[float, ...] = RATES) -> Lab:
    return Lab(
        seed,
        tuple(descend(rate) for rate in rates),
        compare_costs(seed),
        choose_family(seed),
        compare_networks(seed),
        compare_estimators(seed),
        compare_learning(seed),
        watch_early_stopping(seed),
    )
