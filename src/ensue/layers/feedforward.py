"""`MLP`: a sequence of layers, each an affine map and an activation.

z_l = W_l·a_{l−1} + b_l a_l = g_l(z_l) a_0 = x

Each layer has one bias, also if it has several inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from ensue.cells.initialise import SCHEMES
from ensue.errors import OptionError, ShapeError, check_rates, unknown
from ensue.layers.activations import Activated, Activation, activation, width_of

# Initial values of matrices, by the names that cells use; "positive" is uniform in [0, 0.1].
STARTS = tuple(name for name in SCHEMES if name != "identity")


class Passed(NamedTuple):
    """The inputs of a layer, and the values of its units before and after the activation."""

    inputs: Tensor
    z: Tensor
    a: Tensor


class Dense(nn.Module):
    """a = g(W·x + b): (…, inputs) → (…, units). W is (rank·units, inputs)."""

    def __init__(
        self, inputs: int, units: int, function: Activated = "linear", *, init: str = "standard"
    ) -> None:
        super().__init__()
        if init not in STARTS:
            raise unknown("initialisation", init, STARTS)
        self.activation: Activation = activation(function, units)
        rows = width_of(self.activation)
        self.weight = nn.Parameter(torch.empty(rows, inputs))
        self.bias = nn.Parameter(torch.zeros(rows))
        with torch.no_grad():
            SCHEMES[init](self.weight, False, inputs)
            if init == "torch":
                SCHEMES[init](self.bias, False, inputs)

    def before(self, x: Tensor) -> Tensor:
        """z, the input of the activation."""
        return x @ self.weight.t() + self.bias

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.activation(self.before(x))
        return y


class MLP(nn.Module):
    """A network of `Dense` layers: (…, widths[0]) → (…, widths[-1]), for example at every time
    step.

    activations: the activations of the hidden layers, one for all or one for each; each is a name,
    groups of units ("tanh*3 + relu"), or a function. output: the activation of the last layer.
    skips: pairs (from, to) of layers; layer 0 is the input. Layer `to` also takes a_from, after its
    usual input, with separate weights. dropout: dropout rate of the hidden units, in training.

    MLP([2, 4, 4, 1]) has 37 parameters."""

    def __init__(
        self,
        widths: Sequence[int],
        activations: Activated | Sequence[Activated] = "relu",
        *,
        output: Activated = "linear",
        skips: Sequence[tuple[int, int]] = (),
        init: str = "standard",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.widths, self.dropout = tuple(widths), dropout
        _check_widths(self.widths, dropout)
        count = len(self.widths) - 1
        functions = [*_one_each(activations, count - 1), output]
        self.skips = _checked(skips, count)
        self.layers = nn.ModuleList(
            Dense(self._entering(k + 1), self.widths[k + 1], functions[k], init=init)
            for k in range(self._layer_count)
        )

    @property
    def _layer_count(self) -> int:
        return len(self.widths) - 1

    def _sources(self, layer: int) -> list[int]:
        return [source for source, to in self.skips if to == layer]

    def _entering(self, layer: int) -> int:
        """The input size of a layer."""
        return self.widths[layer - 1] + sum(self.widths[k] for k in self._sources(layer))

    def _joined(self, known: Sequence[Tensor], layer: int) -> Tensor:
        """The input of a layer, joined from the network's input and earlier layers."""
        sources = [known[source] for source in self._sources(layer)]
        return torch.cat([known[-1], *sources], -1) if sources else known[-1]

    def walk(self, x: Tensor) -> list[Passed]:
        """The inputs and values of every layer, in order."""
        return self._walk(x)[0]

    def _walk(self, x: Tensor) -> tuple[list[Passed], list[Tensor]]:
        """The result of `walk`, and the outputs: the network's input, then the values of each
        layer."""
        if x.shape[-1] != self.widths[0]:
            raise ShapeError(
                f"MLP: expected x of shape (…, {self.widths[0]}), got {tuple(x.shape)}"
            )
        known, passed = [x], list[Passed]()
        for number, layer in enumerate(self.layers, 1):
            inputs = self._joined(known, number)
            z = layer.before(inputs)  # type: ignore[operator]
            a = layer.activation(z)  # type: ignore[operator]
            passed.append(Passed(inputs, z, a))
            last = number == len(self.widths) - 1
            known.append(a if last else dropout(a, self.dropout, self.training))
        return passed, known

    def forward(self, x: Tensor) -> Tensor:
        return self.walk(x)[-1].a


class HiddenLayers(MLP):
    """An MLP without its last layer: (…, widths[0]) → (…, width), the input of that layer. widths:
    the widths of the whole MLP; the last may have any value."""

    @property
    def _layer_count(self) -> int:
        return len(self.widths) - 2

    @property
    def width(self) -> int:
        return self._entering(len(self.widths) - 1)

    def forward(self, x: Tensor) -> Tensor:
        return self._joined(self._walk(x)[1], len(self.widths) - 1)


def _check_widths(widths: tuple[int, ...], rate: float) -> None:
    if len(widths) < 2 or min(widths, default=0) < 1:
        raise OptionError(
            "widths: expected two numbers ≥ 1 or more, those of the input, of each hidden layer "
            f"and of the output, got {list(widths)}"
        )
    check_rates({"dropout": rate})


def _one_each(activated: Activated | Sequence[Activated], hidden: int) -> list[Activated]:
    if isinstance(activated, str) or callable(activated):
        return [activated] * hidden
    if len(activated) == 1:
        return [activated[0]] * hidden
    if len(activated) != hidden:
        raise OptionError(
            f"activations: expected one, or one for each of {hidden} hidden layers, "
            f"got {len(activated)}"
        )
    return list(activated)


def _checked(skips: Sequence[tuple[int, int]], count: int) -> tuple[tuple[int, int], ...]:
    pairs = tuple((int(source), int(to)) for source, to in skips)
    for source, to in pairs:
        if not (0 <= source < to - 1 and to <= count):
            raise OptionError(
                f"skips: expected pairs (from, to) with 0 ≤ from < to − 1 and to ≤ {count}, the "
                f"number of layers, got ({source}, {to})"
            )
    if len(set(pairs)) < len(pairs):
        raise OptionError(f"skips: expected each pair once, got {list(pairs)}")
    return pairs
