"""Linear, logistic and softmax regression: z = W·φ(x) + b, and the cost of z.

    linear     ½·‖z − y‖²                    closed form: `least_squares`
    logistic   −log p(y), p_k = σ(z_k)       for each label, summed over labels
    softmax    −log p(y), p = softmax(z)     y a class number

The objective is the mean over rows (+ ridge/2·‖W‖², without the bias). Gradient descent,
minibatches and online learning are settings of `descend`. They have the same cost and, because the
gradient of a mean is the mean of gradients, the same gradient on average.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ensue.errors import DataError, OptionError, ShapeError, unknown
from ensue.layers.activations import Activated
from ensue.layers.feedforward import MLP
from ensue.tasks.baselines.features import Transform
from ensue.tasks.blocks.distributions import Bernoulli, Categorical
from ensue.tasks.rows.fixed_width import RowSource
from ensue.training import Carried, Outcome, TrainSettings, fit
from ensue.training.optimiser import LBFGS

ITERATIONS = 200  # of L-BFGS, at most
DESCENT = TrainSettings.of(
    {
        "optimiser": "sgd",
        "momentum": 0.0,
        "clip": "off",
        "rate": 0.1,
        "epochs": 1000,
        "checkpoint_seconds": "off",
    }
)


def least_squares(x: Tensor, y: Tensor, ridge: float = 0.0) -> tuple[Tensor, Tensor]:
    """W (targets, n) and b (targets,) that minimise mean ½·‖W·x + b − y‖² + ridge/2·‖W‖².

    x (rows, n), y (rows, targets). Solved by least squares on centred columns, not by the normal
    equations, which square the condition number. Among many solutions, the smallest."""
    if ridge < 0:
        raise OptionError(f"ridge: expected a number ≥ 0, got {ridge}")
    if x.dim() != 2 or y.dim() != 2 or len(x) != len(y) or not len(x):
        raise ShapeError(
            "least_squares: expected x (rows, n) and y (rows, targets) with as many rows, one or "
            f"more, got {tuple(x.shape)} and {tuple(y.shape)}"
        )
    centre, middle = x.mean(0), y.mean(0)
    left, right = x - centre, y - middle
    if ridge:  # the penalty as additional rows
        width = x.shape[1]
        left = torch.cat([left, (ridge * len(x)) ** 0.5 * torch.eye(width).to(x)])
        right = torch.cat([right, y.new_zeros(width, y.shape[1])])
    t = torch.linalg.lstsq(left, right, driver="gelsd").solution.t()
    return t, middle - t @ centre


def minimise(network: nn.Module, cost: Callable[[], Tensor], iterations: int = ITERATIONS) -> None:
    """Moves the parameters to a minimum of the cost, by L-BFGS over all rows at once."""
    optimiser = LBFGS(
        [parameter for parameter in network.parameters() if parameter.requires_grad],
        max_iter=iterations,
        tolerance_grad=1e-9,
        tolerance_change=1e-12,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        optimiser.zero_grad()
        with torch.enable_grad():
            total = cost()
            total.backward()  # type: ignore[no-untyped-call]
        return total.detach()

    optimiser.step(closure)  # type: ignore[no-untyped-call]


class Regression(nn.Module):
    """z = W·φ(x) + b with the cost of its kind; a trainee of the loop, with batches
    {"x": (rows, n), "y": …}. Weights begin at 0: the objective is convex."""

    def __init__(
        self, inputs: int, outputs: int, kind: str = "linear", features: Transform | None = None
    ) -> None:
        super().__init__()
        if kind not in KINDS:
            raise unknown("kind of regression", kind, KINDS)
        self.kind, self.features = kind, features
        width = inputs if features is None else features.width
        self.weight = nn.Parameter(torch.zeros(outputs, width))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def transformed(self, x: Tensor) -> Tensor:
        return x if self.features is None else self.features(x)

    def scores(self, x: Tensor) -> Tensor:
        """z (rows, outputs)."""
        return self.transformed(x) @ self.weight.t() + self.bias

    def answers(self, x: Tensor) -> Tensor:
        """The expected answer: z, or the probabilities."""
        return KINDS[self.kind].answers(self.scores(x))

    def costs(self, x: Tensor, y: Tensor) -> Tensor:
        """The cost of each row, (rows,)."""
        return KINDS[self.kind].cost(self.scores(x), y)

    def forward(self, batch: dict[str, Tensor], carried: Carried) -> tuple[Tensor, Carried]:
        return self.costs(batch["x"], batch["y"]).sum(), {}

    @torch.no_grad()
    def solve(self, x: Tensor, y: Tensor, ridge: float = 0.0) -> Regression:
        """The exact minimum: in closed form if there is one, else by L-BFGS."""
        if self.kind != "linear":
            return self._minimise(x, y, ridge)
        if self.features is not None and any(True for _ in self.features.parameters()):
            raise OptionError(
                "solve: expected fixed features; learned ones have no closed form, use descend"
            )
        weight, bias = least_squares(self.transformed(x), y, ridge)
        self.weight.copy_(weight)
        self.bias.copy_(bias)
        return self

    def _minimise(self, x: Tensor, y: Tensor, ridge: float) -> Regression:
        def cost() -> Tensor:
            return self.costs(x, y).mean() + ridge / 2 * (self.weight**2).sum()

        minimise(self, cost)
        return self

    def descend(
        self,
        x: NDArray[np.floating],
        y: NDArray[np.generic],
        settings: TrainSettings = DESCENT,
        batch_rows: int | None = None,
    ) -> Outcome:
        """Trains by gradient descent. batch_rows: None takes all rows, 1 one at a time."""
        if len(x) != len(y) or not len(x):
            raise DataError(f"expected rows and a target for each, got {len(x)} and {len(y)}")
        source = RowSource({"x": x, "y": y}, seed=settings.seed, batch_rows=batch_rows)
        return fit(self, source, None, settings)


class Squares:
    """½·‖z − y‖² (rows,); the answer is z."""

    @staticmethod
    def cost(z: Tensor, y: Tensor) -> Tensor:
        return ((z - y) ** 2).sum(-1) / 2

    @staticmethod
    def answers(z: Tensor) -> Tensor:
        return z


class Labels:
    """Multi-label: each label is present or not."""

    @staticmethod
    def cost(z: Tensor, y: Tensor) -> Tensor:
        return Bernoulli().cost(z, y)

    @staticmethod
    def answers(z: Tensor) -> Tensor:
        return z.sigmoid()


class Classes:
    """One class of several."""

    @staticmethod
    def cost(z: Tensor, y: Tensor) -> Tensor:
        return Categorical().cost(z, y)

    @staticmethod
    def answers(z: Tensor) -> Tensor:
        return z.softmax(-1)


KINDS: dict[str, type[Squares] | type[Labels] | type[Classes]] = {
    "linear": Squares,
    "logistic": Labels,
    "softmax": Classes,
}


# -------------------------------------------------------------------------------------------------
# A network with a random first layer and an exactly solved last layer.
#
#     φ(x) = g(U·x + c), U and c random and fixed;   ŷ = W·φ(x) + b, W and b by least squares
#
# There is no descent and one solution: a baseline that shows the benefit of tuning all layers.


class RandomFeatures(nn.Module):
    """(…, inputs) → (…, outputs), the same network as MLP([inputs, units, outputs]).

    scale: the standard deviation of U and c; larger values give less smooth features."""

    def __init__(
        self,
        inputs: int,
        units: int,
        outputs: int,
        *,
        activation: Activated = "tanh",
        scale: float = 1.0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if scale <= 0:
            raise OptionError(f"scale: expected a number > 0, got {scale}")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = MLP([inputs, units, outputs], activation)
            first = self.network.layers[0]
            for parameter in first.parameters(recurse=False):
                nn.init.normal_(parameter, 0.0, scale)
        for parameter in first.parameters():
            parameter.requires_grad_(False)

    def features(self, x: Tensor) -> Tensor:
        """φ(x): (…, units)."""
        return self.network.walk(x)[0].a

    @torch.no_grad()
    def solve(self, x: Tensor, y: Tensor, ridge: float = 0.0) -> RandomFeatures:
        """The readout for x (rows, inputs) and y (rows, outputs), in closed form."""
        last = self.network.layers[1]
        weight, bias = least_squares(self.features(x), y, ridge)
        for parameter, solution in zip(last.parameters(), (weight, bias), strict=True):
            parameter.copy_(solution)
        return self

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.network(x)
        return y
