"""Generated series whose structure is known, so that it is known what a forecast can reach."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ensue.data.tasks.draws import draws, key_of, uniform
from ensue.errors import OptionError, unknown

# What each is made of; e_t are independent Gaussians of spread `noise`.
SERIES = {
    "seasonal": "y_t = 0.02·t + 2·sin(2πt/season) + e_t",
    "autoregressive": "y_t = 0.8·y_{t−1} + e_t",
    "driven": "y_t = 0.5·y_{t−1} + 2·d_t + e_t, where d_t is 0 or 1 and known ahead",
}


def known_series(
    name: str, steps: int, *, season: int = 12, noise: float = 0.1, seed: int = 1
) -> dict[str, list[float]]:
    """The columns `value` and, where something drives it, `drive`. The best forecast one step
    ahead is off by e_t alone: its root mean square error is `noise`.

    >>> sorted(known_series("driven", 240))
    ['drive', 'value']
    """
    if name not in SERIES:
        raise unknown("series", name, SERIES)
    if steps < 1 or season < 2 or noise < 0:
        raise OptionError(
            f"expected steps ≥ 1, season ≥ 2 and noise ≥ 0, got {steps}, {season} and {noise}"
        )
    drawn = uniform(draws(key_of("series", name, seed), np.arange(steps), 3))
    errors = noise * _gaussian(drawn[:, 0], drawn[:, 1])
    if name == "seasonal":
        at = np.arange(steps)
        value = 0.02 * at + 2 * np.sin(2 * np.pi * at / season) + errors
        return {"value": value.tolist()}
    if name == "autoregressive":
        return {"value": _recurred(0.8, errors).tolist()}
    drive = (drawn[:, 2] < 0.5).astype(np.float64)
    return {"value": _recurred(0.5, 2 * drive + errors).tolist(), "drive": drive.tolist()}


def _gaussian(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard Gaussians of two uniform numbers each (Box and Muller)."""
    return np.asarray(np.sqrt(-2 * np.log(1 - first)) * np.cos(2 * np.pi * second))


def _recurred(share: float, added: NDArray[np.float64]) -> NDArray[np.float64]:
    """y_t = share·y_{t−1} + added_t, from y_{−1} = 0."""
    found, last = np.empty_like(added), 0.0
    for t, own in enumerate(added.tolist()):
        last = share * last + own
        found[t] = last
    return found
