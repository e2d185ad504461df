"""What a unit makes of its input z: activations by name, and groups of units of several kinds.

    logistic    σ(z) = 1/(1 + e⁻ᶻ)
    tanh        tanh z
    relu        max(z, 0); the derivative at 0 is 0
    prelu       z where z > 0, else s·z with a learned s of each unit; the derivative at 0 is s
    maxout(k)   the largest of k numbers; at a tie the first of them gets the derivative
    linear      z
    binary      0 or 1, drawn with probability σ(z) of 1; straight-through gradients

The activation of a layer is one name for all of its units, or groups of them: "tanh*3 + relu"
are three tanh units, and relu for the rest. A function of your own on tensors is one, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial, reduce

import torch
from torch import Tensor, nn

from ensue.equations import linear, maximum, prelu, relu, sigmoid, tanh
from ensue.errors import OptionError, ShapeError, unknown
from ensue.layers.stochastic import straight_through

Function = Callable[[Tensor], Tensor]
Activated = str | Function

SLOPE = 0.25  # where a PReLU's s begins
GROUP = re.compile(r"\s*([a-z]+)\s*(?:\(\s*(\d+)\s*\))?\s*(?:\*\s*(\d+))?\s*")


class Activation(nn.Module):
    """z (…, rank·units) → a (…, units)."""

    rank = 1  # how many numbers of z make one unit

    def __init__(self, units: int) -> None:
        super().__init__()
        self.units = units


class Elementwise(Activation):
    """One function for each number; the user's own, too."""

    def __init__(self, units: int, function: Function) -> None:
        super().__init__(units)
        self.function = function

    def forward(self, z: Tensor) -> Tensor:
        found = self.function(z)
        if not isinstance(found, Tensor) or found.shape != z.shape:
            got = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            name = getattr(self.function, "__name__", "the activation")
            raise ShapeError(f"{name}: expected a tensor of shape {tuple(z.shape)}, got {got}")
        return found

    def extra_repr(self) -> str:
        return f"{self.units}, {getattr(self.function, '__name__', self.function)}"


class PReLU(Activation):
    """max(z, 0) + s·min(z, 0), s learned, one of each unit."""

    def __init__(self, units: int) -> None:
        super().__init__(units)
        self.slope = nn.Parameter(torch.full((units,), SLOPE))

    def forward(self, z: Tensor) -> Tensor:
        found: Tensor = prelu(z, self.slope)
        return found


class Maxout(Activation):
    """max(z_1, …, z_k) of each unit: z holds all first numbers, then all second ones, …"""

    def __init__(self, units: int, rank: int = 2) -> None:
        super().__init__(units)
        self.rank = rank

    def forward(self, z: Tensor) -> Tensor:
        found: Tensor = reduce(maximum, z.chunk(self.rank, -1))
        return found

    def extra_repr(self) -> str:
        return f"{self.units}, rank {self.rank}"


class Groups(Activation):
    """Several activations side by side, each with units of its own. z holds the numbers of the
    first group, then those of the second, …"""

    def __init__(self, parts: Sequence[Activation]) -> None:
        super().__init__(sum(part.units for part in parts))
        self.parts = nn.ModuleList(parts)
        self.widths = [part.rank * part.units for part in parts]

    def forward(self, z: Tensor) -> Tensor:
        pieces = zip(self.parts, torch.split(z, self.widths, -1), strict=True)
        return torch.cat([part(piece) for part, piece in pieces], -1)


ACTIVATIONS: dict[str, Callable[[int], Activation]] = {
    "logistic": partial(Elementwise, function=sigmoid),
    "tanh": partial(Elementwise, function=tanh),
    "relu": partial(Elementwise, function=relu),
    "prelu": PReLU,
    "maxout": Maxout,
    "linear": partial(Elementwise, function=linear),
    "binary": partial(Elementwise, function=straight_through),
}


def width_of(activation: Activation) -> int:
    """How many numbers of z it takes."""
    if isinstance(activation, Groups):
        return sum(activation.widths)
    return activation.rank * activation.units


def activation(wanted: Activated, units: int) -> Activation:
    """wanted: a name, groups such as "tanh*3 + maxout(2)*4 + relu", or a function."""
    if not isinstance(wanted, str):
        return Elementwise(units, wanted)
    named = [_group(own, wanted) for own in wanted.split("+")]
    open_ones = [k for k, (_, _, count) in enumerate(named) if count is None]
    taken = sum(count for _, _, count in named if count is not None)
    if len(open_ones) > 1 or (not open_ones and taken != units) or taken > units - len(open_ones):
        raise OptionError(
            f"activation {wanted!r}: expected groups that make {units} units, one of them at most "
            f"without a number, got {taken} and {len(open_ones)} without a number"
        )
    parts = [
        _made(name, rank, units - taken if count is None else count) for name, rank, count in named
    ]
    return parts[0] if len(parts) == 1 else Groups(parts)


def _group(text: str, whole: str) -> tuple[str, int | None, int | None]:
    """Name, rank and number of units."""
    found = GROUP.fullmatch(text)
    if not found:
        raise OptionError(
            f"activation {whole!r}: expected a name, or groups such as 'tanh*3 + relu', "
            f"got {text.strip()!r}"
        )
    name, rank, count = found.groups()
    if name not in ACTIVATIONS:
        raise unknown("activation", name, ACTIVATIONS)
    if rank is not None and (name != "maxout" or int(rank) < 1):
        raise OptionError(
            f"activation {whole!r}: expected a rank ≥ 1 in brackets after maxout alone, "
            f"got {text.strip()!r}"
        )
    return name, None if rank is None else int(rank), None if count is None else int(count)


def _made(name: str, rank: int | None, units: int) -> Activation:
    return Maxout(units, rank) if rank is not None else ACTIVATIONS[name](units)
