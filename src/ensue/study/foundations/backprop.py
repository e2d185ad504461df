"""Backpropagation number by number: the four equations, checked against autograd.

    (1)  δ_L = J(z_L)ᵀ·∂C/∂a_L       J = ∂a_L/∂z_L; for an elementwise output g'(z_L)*∂C/∂a_L,
                                     so (a − y)*g'(z) for ½‖a − y‖²; for softmax all of J, which
                                     with cross-entropy leaves μ − onehot
    (2)  δ_l = (W_{l+1}ᵀ·δ_{l+1})*g'(z_l)
    (3)  ∂C/∂W_l = δ_l·a_{l−1}ᵀ
    (4)  ∂C/∂b_l = δ_l

A value that several layers use gets the sum of their gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ensue.drawing.chart import MARGIN, Axis, Key, Panel, colour_of, heading, legend
from ensue.drawing.document import Document, Figure, Table
from ensue.drawing.svg import Drawing
from ensue.errors import OptionError, unknown
from ensue.layers.feedforward import MLP, Dense

TINY = 1e-300  # keeps log 0 finite
ROUNDED = 1e-6  # tolerance of the sum of probabilities written with few digits


def _diagonal(slope: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda z, a: torch.diag(slope(z, a))


SLOPES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "logistic": lambda z, a: a * (1 - a),
    "tanh": lambda z, a: 1 - a * a,
    "relu": lambda z, a: (z > 0).to(z),
    "linear": lambda z, a: torch.ones_like(z),
}
JACOBIANS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    **{name: _diagonal(slope) for name, slope in SLOPES.items()},
    "softmax": lambda z, a: torch.diag(a) - torch.outer(a, a),
}
OUTPUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "logistic": torch.sigmoid,
    "tanh": torch.tanh,
    "relu": torch.relu,
    "linear": lambda z: z,
    "softmax": lambda z: z.softmax(-1),
}
# outputs that are probabilities, so that −log is a cost
PROBABILITIES = ("logistic", "softmax")
COSTS = ("squares", "cross-entropy")


@dataclass(frozen=True)
class LayerTrace:
    """One layer: values of the forward and the backward pass. automatic: the gradients of torch;
    backward: ∂C/∂a before it passes the activation."""

    weight: Tensor
    bias: Tensor
    inputs: Tensor
    z: Tensor
    a: Tensor
    slope: Tensor  # g'(z), or the Jacobian of softmax
    backward: Tensor
    delta: Tensor
    weight_gradient: Tensor
    bias_gradient: Tensor
    automatic: tuple[Tensor, Tensor]

    @property
    def difference(self) -> float:
        """The largest difference between the equations and the automatic gradient."""
        pairs = zip((self.weight_gradient, self.bias_gradient), self.automatic, strict=True)
        return max(float((value - other).abs().max()) for value, other in pairs)


@dataclass(frozen=True)
class Minibatch:
    """One update by the mean gradient of some examples, the first of which is the example of the
    walk. costs: the cost of each example; before, gradient, after: W and b of each layer in turn;
    cost: the mean cost."""

    rate: float
    costs: tuple[float, ...]
    before: tuple[Tensor, ...]
    gradient: tuple[Tensor, ...]
    after: tuple[Tensor, ...]
    cost: float
    cost_after: float

    def weights(self) -> list[tuple[str, Tensor, Tensor, Tensor]]:
        """Name, value, mean gradient and new value of every weight matrix and bias."""
        names = [f"{kind}{k // 2 + 1}" for k, kind in enumerate("Wb" * (len(self.before) // 2))]
        return list(zip(names, self.before, self.gradient, self.after, strict=True))


@dataclass(frozen=True)
class Backpropagation:
    """A walk through a network for one example, then a minibatch update."""

    widths: tuple[int, ...]
    activation: str
    output: str
    cost_name: str
    x: Tensor
    y: Tensor
    cost: float
    layers: tuple[LayerTrace, ...]
    batch: Minibatch | None = None

    @property
    def difference(self) -> float:
        return max(layer.difference for layer in self.layers)


def cost_of(name: str, output: str, a: Tensor, y: Tensor) -> Tensor:
    """½‖a − y‖²; −Σ y·log a for softmax, and −Σ y·log a + (1 − y)·log(1 − a) for logistic."""
    if name == "squares":
        return ((a - y) ** 2).sum() / 2
    cost = -(y * (a + TINY).log()).sum()
    return cost if output == "softmax" else cost - ((1 - y) * (1 - a + TINY).log()).sum()


def slope_of_cost(name: str, output: str, a: Tensor, y: Tensor) -> Tensor:
    """∂C/∂a."""
    if name == "squares":
        return a - y
    slope = -y / (a + TINY)
    return slope if output == "softmax" else slope + (1 - y) / (1 - a + TINY)


def first_delta(name: str, output: str, z: Tensor, a: Tensor, y: Tensor) -> Tensor:
    """Equation (1). With cross-entropy, the derivative of the output cancels: a − y, for softmax
    if the targets sum to 1."""
    if name == "cross-entropy":
        return a - y
    return JACOBIANS[output](z, a).t() @ slope_of_cost(name, output, a, y)


def backpropagate(
    network: MLP, activation: str, output: str, cost: str, x: Tensor, y: Tensor
) -> Backpropagation:
    """Applies the four equations to one example x (inputs,), y (outputs,). The network's last layer
    is linear; `output` is applied to its result."""
    _check(activation, output, cost)
    passed = network.walk(x)
    top = OUTPUTS[output](passed[-1].z)
    total = cost_of(cost, output, top, y)
    layers: list[Dense] = [each for each in network.layers if isinstance(each, Dense)]
    parameters = [p for dense in layers for p in (dense.weight, dense.bias)]
    automatic = torch.autograd.grad(total, parameters)
    traces: list[LayerTrace] = []
    made = [x, *(trace.a for trace in passed)]
    back = [torch.zeros_like(values) for values in made]  # ∂C/∂a of each, summed over its users
    with torch.no_grad():
        for number in range(len(layers), 0, -1):
            layer, trace = layers[number - 1], passed[number - 1]
            last = number == len(layers)
            a = top if last else trace.a
            slope = JACOBIANS[output](trace.z, a) if last else SLOPES[activation](trace.z, a)
            if last:
                delta = first_delta(cost, output, trace.z, a, y)
                arrived = slope_of_cost(cost, output, a, y)
                slope = slope if output == "softmax" else slope.diagonal()
            else:
                arrived = back[number]
                delta = arrived * slope  # (2)
            sources = [number - 1, *(s for s, to in network.skips if to == number)]
            pieces = torch.split(layer.weight.t() @ delta, [network.widths[s] for s in sources])
            for source, piece in zip(sources, pieces, strict=True):
                back[source] = back[source] + piece
            traces.append(
                LayerTrace(
                    layer.weight.detach().clone(),
                    layer.bias.detach().clone(),
                    trace.inputs.detach(),
                    trace.z.detach(),
                    a.detach(),
                    slope.detach(),
                    arrived.detach(),
                    delta.detach(),
                    torch.outer(delta, trace.inputs).detach(),  # (3)
                    delta.detach(),  # (4)
                    (automatic[2 * number - 2], automatic[2 * number - 1]),
                )
            )
    widths = network.widths
    value = float(total.detach())
    return Backpropagation(widths, activation, output, cost, x, y, value, tuple(reversed(traces)))


def _check(activation: str, output: str, cost: str) -> None:
    if activation not in SLOPES:
        raise unknown("activation", activation, SLOPES)
    if output not in OUTPUTS:
        raise unknown("output", output, OUTPUTS)
    if cost not in COSTS:
        raise unknown("cost", cost, COSTS)
    if cost == "cross-entropy" and output not in PROBABILITIES:
        raise OptionError(
            f"cost: cross-entropy needs an output of probabilities, {' or '.join(PROBABILITIES)}, "
            f"got {output}"
        )


@dataclass(frozen=True, kw_only=True)
class NetworkWalk:
    """A small network in float64. weights: all weights in the order W_1 row by row, b_1, W_2, …; x,
    y: the rows of a minibatch for one update, one after another; the first row is the example of
    the walk. Missing numbers are drawn at random with one decimal."""

    widths: Sequence[int]
    activation: str = "logistic"
    output: str = "logistic"
    cost: str = "cross-entropy"
    weights: Sequence[float] | None = None
    x: Sequence[float] | None = None
    y: Sequence[float] | None = None
    rows: int = 1
    rate: float = 0.5
    seed: int = 1

    def walked(self) -> Backpropagation:
        _check(self.activation, self.output, self.cost)
        widths, rows = self.widths, self.rows
        network = MLP(widths, self.activation).double()
        generator = torch.Generator().manual_seed(self.seed)
        drawn = [
            tenths((len(parameter.flatten()),), generator) for parameter in network.parameters()
        ]
        flat = torch.cat(drawn)
        if self.weights is not None:
            flat = given_numbers("weights", self.weights, len(flat))
        with torch.no_grad():
            torch.nn.utils.vector_to_parameters(flat, network.parameters())
        inputs = tenths((rows * widths[0],), generator)
        if self.x is not None:
            inputs = given_numbers("x", self.x, rows * widths[0])
        targets = _targets(self.y, rows, widths[-1], self.cost)
        if self.cost == "cross-entropy":
            check_distribution(targets, self.output)
        if self.output == "softmax" and widths[-1] == 1:
            raise OptionError(
                "widths: expected two outputs or more with softmax, got 1: a softmax of one number "
                "is always 1"
            )
        inputs = inputs.view(rows, widths[0])
        kinds = self.activation, self.output, self.cost
        walk = backpropagate(network, *kinds, inputs[0], targets[0])
        return replace(walk, batch=_update(network, walk, inputs, targets, self.rate))


def walk_through(
    widths: Sequence[int],
    *,
    activation: str = "logistic",
    output: str = "logistic",
    cost: str = "cross-entropy",
    weights: Sequence[float] | None = None,
    x: Sequence[float] | None = None,
    y: Sequence[float] | None = None,
    seed: int = 1,
) -> Backpropagation:
    """Walks through a small network for one example, up to its update: see `NetworkWalk`."""
    return NetworkWalk(
        widths=widths,
        activation=activation,
        output=output,
        cost=cost,
        weights=weights,
        x=x,
        y=y,
        seed=seed,
    ).walked()


def _targets(y: Sequence[float] | None, rows: int, outputs: int, cost: str) -> Tensor:
    """Targets (rows, outputs). By default, row k has 1 at output k and 0 elsewhere, beginning again
    after the last output; a single output alternates 1, 0."""
    if y is None:
        return torch.eye(max(outputs, 2), dtype=torch.float64)[:, :outputs].repeat(rows, 1)[:rows]
    targets = given_numbers("y", y, rows * outputs).view(rows, outputs)
    if cost == "cross-entropy" and not bool(((targets >= 0) & (targets <= 1)).all()):
        raise OptionError(
            "y: expected probabilities from 0 to 1 with cross-entropy, got "
            f"{targets.flatten().tolist()}; for other numbers choose --cost squares"
        )
    return targets


def check_distribution(targets: Tensor, output: str) -> None:
    """Raises an error if rows of a softmax's targets (rows, outputs) do not sum to 1."""
    sums = targets.sum(-1)
    if output == "softmax" and targets.shape[-1] > 1 and bool(((sums - 1).abs() > ROUNDED).any()):
        raise OptionError(
            "y: expected targets of a softmax that sum to 1, such as 1,0, got "
            f"{targets.tolist()}; for several independent labels choose --output logistic"
        )


def _update(network: MLP, walked: Backpropagation, x: Tensor, y: Tensor, rate: float) -> Minibatch:
    """θ ← θ − η·mean of the examples' gradients, each by the four equations."""
    kinds = walked.activation, walked.output, walked.cost_name
    each = [backpropagate(network, *kinds, *pair) for pair in zip(x, y, strict=True)]
    before = [parameter.detach().clone() for parameter in network.parameters()]
    slopes = [
        [g for layer in walk.layers for g in (layer.weight_gradient, layer.bias_gradient)]
        for walk in each
    ]
    mean = [torch.stack(gradients).mean(0) for gradients in zip(*slopes, strict=True)]
    with torch.no_grad():
        for parameter, slope in zip(network.parameters(), mean, strict=True):
            parameter.sub_(rate * slope)
    after = [backpropagate(network, *kinds, *pair).cost for pair in zip(x, y, strict=True)]
    costs = tuple(walk.cost for walk in each)
    return Minibatch(
        rate,
        costs,
        tuple(before),
        tuple(mean),
        tuple(parameter.detach().clone() for parameter in network.parameters()),
        sum(costs) / len(costs),
        sum(after) / len(after),
    )


def tenths(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Random tenths from −1 to 1, without 0."""
    size = torch.randint(1, 11, shape, generator=generator, dtype=torch.float64) / 10
    sign = torch.randint(0, 2, shape, generator=generator, dtype=torch.float64) * 2 - 1
    return size * sign


def given_numbers(name: str, values: Sequence[float], count: int) -> Tensor:
    if len(values) != count:
        raise OptionError(f"{name}: expected {count} numbers, got {len(values)}")
    return torch.tensor(list(values), dtype=torch.float64)


# -------------------------------------------------------------------------------------------------
# Why depth is hard: δ in the backward pass through many layers, by activation.
#
# The slope of the logistic function is at most ¼, so each layer shrinks the gradient; tanh and ReLU
# have slopes up to 1.

ACTIVATIONS = ("logistic", "tanh", "relu")
WIDTH, ROWS = 16, 20  # units of a layer, examples


@dataclass(frozen=True)
class Depth:
    """‖δ_l‖ of each layer, mean over examples, by activation."""

    layers: int
    norms: dict[str, tuple[float, ...]]


def through_depth(layers: int, seed: int = 1) -> Depth:
    """‖δ_l‖ in networks with this number of hidden layers of 16 units, all with the same weights,
    at the scale of He et al. for ReLU."""
    norms_by_depth = {}
    for activation in ACTIVATIONS:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            network = MLP([WIDTH] * (layers + 1) + [1], activation).double()
            for parameter in network.parameters():
                if parameter.dim() > 1:
                    torch.nn.init.kaiming_normal_(parameter, nonlinearity="relu")
                else:
                    torch.nn.init.zeros_(parameter)
            x = torch.randn(ROWS, WIDTH, dtype=torch.float64)
        y = torch.ones(1, dtype=torch.float64)
        walks = [backpropagate(network, activation, "linear", "squares", row, y) for row in x]
        norms = torch.tensor(
            [[float(layer.delta.norm()) for layer in walk.layers[:-1]] for walk in walks]
        )
        norms_by_depth[activation] = tuple(norms.mean(0).tolist())
    return Depth(layers, norms_by_depth)


def document(depth: Depth) -> Document:
    """The table of ‖δ_l‖: a column for each layer, the last first, in the direction of the backward
    pass."""
    order = range(depth.layers, 0, -1)
    rows = []
    for name, norms in depth.norms.items():
        values = [f"{norms[k - 1]:.2g}".replace("-", "−") for k in order]
        ratio = norms[0] / norms[-1] if norms[-1] else 0.0
        rows.append([name, *values, f"{ratio:.2g}".replace("-", "−")])
    table = Table(rows, ["layer", *(str(k) for k in order), "first / last"])
    about = f"‖δ‖ on its way back through {depth.layers} hidden layers of {WIDTH} units"
    return Document("δ on its way back", about, (Figure(picture(depth)), table))


def picture(depth: Depth) -> str:
    """The picture as SVG, on a logarithmic scale."""
    drawing = Drawing()
    words = f"{depth.layers} hidden layers of {WIDTH} units, from the same weights"
    top = heading(drawing, "δ on its way back", words)
    keys = [Key(name, colour_of(k), mark=k) for k, name in enumerate(depth.norms)]
    legend(drawing, keys, MARGIN, top + 8, 620)
    values = [max(v, 1e-300) for norm in depth.norms.values() for v in norm]
    y = Axis.over(values, top + 290, top + 60, logarithmic=True)
    panel = Panel(drawing, Axis(0.7, depth.layers + 0.3, MARGIN + 56, 600), y)
    ticks = [(k, str(k)) for k in range(1, depth.layers + 1)]
    powers = [(tick, f"{tick:g}".replace("-", "−")) for tick in y.ticks()]
    panel.axes("layer", "‖δ‖, mean over examples", ticks, powers)
    for k, norms in enumerate(depth.norms.values()):
        for point in panel.curve(
            [(j, max(v, 1e-300)) for j, v in enumerate(norms, 1)], colour_of(k)
        ):
            drawing.mark(point, k, colour_of(k))
    return drawing.svg(640, top + 350, "δ on its way back through many layers")
