"""Generated series of known structure: the best possible forecast is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ensue.data.tasks.task import draws, key_of, uniform
from ensue.errors import OptionError, unknown

# -------------------------------------------------------------------------------------------------
# AirPassengers: international passengers in thousands, by month from 1949 to 1960.
#
# The series of Box and Jenkins has a trend, a yearly season, and swings that grow with the level.

FIRST_YEAR = 1949
# One line per year, January to December.
COUNTS = (
    (112, 118, 132, 129, 121, 135, 148, 148, 136, 119, 104, 118),
    (115, 126, 141, 135, 125, 149, 170, 170, 158, 133, 114, 140),
    (145, 150, 178, 163, 172, 178, 199, 199, 184, 162, 146, 166),
    (171, 180, 193, 181, 183, 218, 230, 242, 209, 191, 172, 194),
    (196, 196, 236, 235, 229, 243, 264, 272, 237, 211, 180, 201),
    (204, 188, 235, 227, 234, 264, 302, 293, 259, 229, 203, 229),
    (242, 233, 267, 269, 270, 315, 364, 347, 312, 274, 237, 278),
    (284, 277, 317, 313, 318, 374, 413, 405, 355, 306, 271, 306),
    (315, 301, 356, 348, 355, 422, 465, 467, 404, 347, 305, 336),
    (340, 318, 362, 348, 363, 435, 491, 505, 404, 359, 310, 337),
    (360, 342, 406, 396, 420, 472, 548, 559, 463, 407, 362, 405),
    (417, 391, 419, 461, 472, 535, 622, 606, 508, 461, 390, 432),
)


def air_passengers() -> dict[str, list[str] | list[float]]:
    """The columns `month` ("1949-01" …) and `passengers`.

    >>> columns = air_passengers()
    >>> columns["month"][0], columns["passengers"][0], len(columns["month"])
    ('1949-01', 112.0, 144)
    """
    months = [
        f"{FIRST_YEAR + year}-{month:02}" for year in range(len(COUNTS)) for month in range(1, 13)
    ]
    return {"month": months, "passengers": [float(count) for year in COUNTS for count in year]}


# The equation of each series; e_t are independent Gaussians with standard deviation `noise`.
SERIES = {
    "seasonal": "y_t = 0.02·t + 2·sin(2πt/season) + e_t",
    "autoregressive": "y_t = 0.8·y_{t−1} + e_t",
    "driven": "y_t = 0.5·y_{t−1} + 2·d_t + e_t, where d_t is 0 or 1 and known ahead",
}


def known_series(
    name: str, steps: int, *, season: int = 12, noise: float = 0.1, seed: int = 1
) -> dict[str, list[float]]:
    """The columns `value` and, if another series drives it, `drive`. The error of the best forecast
    one step ahead is e_t, so its root mean square error is `noise`.

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
    values, last = np.empty_like(added), 0.0
    for t, shock in enumerate(added.tolist()):
        last = share * last + shock
        values[t] = last
    return values
