"""What goes into a backward pass and what is asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor


class Adjoints(NamedTuple):
    """Derivatives of the cost by the output (time, batch, features) and the final state; None
    where nobody reads it, for zeros."""

    output: Tensor | None
    final: Sequence[Tensor | None]


class Wanted(NamedTuple):
    """The derivatives that are asked for: by x, by which parts of the initial state, by which
    parameters."""

    x: bool
    state: tuple[bool, ...]
    parameters: tuple[str, ...]


class Derivatives(NamedTuple):
    """What a backward pass gives; None and missing names where nothing was asked for."""

    x: Tensor | None
    state: list[Tensor | None]
    parameters: dict[str, Tensor]
