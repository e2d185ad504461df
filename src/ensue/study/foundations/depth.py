"""Why depth is hard: δ on its way down through many layers, by activation.

The slope of the logistic function is at most ¼, so that each layer shrinks what comes back; tanh
and ReLU have slopes of 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ensue.data.layout import aligned
from ensue.drawing.chart import MARGIN, Axis, Key, Panel, colour_of, heading, legend
from ensue.drawing.svg import Drawing
from ensue.layers.feedforward import MLP
from ensue.study.foundations.backprop import backpropagate

ACTIVATIONS = ("logistic", "tanh", "relu")
WIDTH, ROWS = 16, 20  # units of a layer, examples


@dataclass(frozen=True)
class Depth:
    """‖δ_l‖ of each layer from the first, mean over examples, by activation."""

    layers: int
    norms: dict[str, tuple[float, ...]]


def through_depth(layers: int, seed: int = 1) -> Depth:
    """Networks of so many hidden layers of 16 units, from the same weights, which have the scale
    that He et al. found for ReLU."""
    found = {}
    for activation in ACTIVATIONS:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            network = MLP([WIDTH] * (layers + 1) + [1], activation).double()
            for own in network.parameters():
                if own.dim() > 1:
                    torch.nn.init.kaiming_normal_(own, nonlinearity="relu")
                else:
                    torch.nn.init.zeros_(own)
            x = torch.randn(ROWS, WIDTH, dtype=torch.float64)
        y = torch.ones(1, dtype=torch.float64)
        walks = [backpropagate(network, activation, "linear", "squares", row, y) for row in x]
        norms = torch.tensor(
            [[float(own.delta.norm()) for own in walk.layers[:-1]] for walk in walks]
        )
        found[activation] = tuple(norms.mean(0).tolist())
    return Depth(layers, found)


def as_text(depth: Depth) -> str:
    """A column for each layer, the last first: the way back."""
    order = range(depth.layers, 0, -1)
    rows = [["layer", *(str(k) for k in order), "first / last"]]
    for name, norms in depth.norms.items():
        values = [f"{norms[k - 1]:.2g}".replace("-", "−") for k in order]
        ratio = norms[0] / norms[-1] if norms[-1] else 0.0
        rows.append([name, *values, f"{ratio:.2g}".replace("-", "−")])
    title = f"‖δ‖ on its way back through {depth.layers} hidden layers of {WIDTH} units"
    return "\n".join([title, *(f"  {line}" for line in aligned(rows))])


def picture(depth: Depth) -> str:
    """As SVG, on a logarithmic scale."""
    drawing = Drawing()
    words = f"{depth.layers} hidden layers of {WIDTH} units, from the same weights"
    top = heading(drawing, "δ on its way back", words)
    keys = [Key(name, colour_of(k), mark=k) for k, name in enumerate(depth.norms)]
    legend(drawing, keys, MARGIN, top + 8, 620)
    shown = [max(v, 1e-300) for own in depth.norms.values() for v in own]
    y = Axis.over(shown, top + 290, top + 60, logarithmic=True)
    panel = Panel(drawing, Axis(0.7, depth.layers + 0.3, MARGIN + 56, 600), y)
    ticks = [(k, str(k)) for k in range(1, depth.layers + 1)]
    powers = [(own, f"{own:g}".replace("-", "−")) for own in y.ticks()]
    panel.axes("layer", "‖δ‖, mean over examples", ticks, powers)
    for k, norms in enumerate(depth.norms.values()):
        for point in panel.curve(
            [(j, max(v, 1e-300)) for j, v in enumerate(norms, 1)], colour_of(k)
        ):
            drawing.mark(point, k, colour_of(k))
    return drawing.svg(640, top + 350, "δ on its way back through many layers")
