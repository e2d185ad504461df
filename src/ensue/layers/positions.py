"""Where a step stands, as a vector that is added to what it is."""

from __future__ import annotations

import torch
from torch import Tensor

from ensue.errors import OptionError

LONGEST = 10_000.0  # longest wavelength, in units of 2π


def sinusoids(positions: Tensor, width: int, dtype: torch.dtype | None = None) -> Tensor:
    """PE(p, 2i) = sin(p / 10000^(2i/width)), PE(p, 2i+1) = cos of the same: positions (…) integers
    → (…, width). dtype: torch's default unless given."""
    if width < 1:
        raise OptionError(f"width: expected a number ≥ 1, got {width}")
    pairs = torch.arange(0, width, 2, dtype=torch.float64, device=positions.device)
    # in double precision: the angle of a far position has few digits after the point left
    angles = positions.double()[..., None] * LONGEST ** (-pairs / width)
    found = torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)[..., :width]
    return found.to(torch.get_default_dtype() if dtype is None else dtype)


def placed(x: Tensor, first: int | Tensor = 0, period: int | None = None) -> Tensor:
    """x (time, batch, width) with the sinusoids of its steps, which stand at first, first + 1, …,
    counted modulo `period` if one is given."""
    positions = first + torch.arange(x.shape[0], device=x.device)
    if period is not None:
        positions = positions % period
    return x + sinusoids(positions, x.shape[-1], x.dtype)[:, None]
