"""The sizes that members of a stored mixture must fit: columns and steps of the forecast."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from ensue.tasks.declarations import DISTINCT, Check, OneOf, Positive, Range, Shape, Unfit
from ensue.tasks.forecast.series import Id

LONGEST_LOOK_BACK = 512  # maximum look-back of a member
MOST_SMOOTHED = 400  # maximum season; other members handle longer ones
PARAMETERS = 4  # for each target of a series

Array = NDArray[np.float64]
Level = Annotated[str, OneOf(("none", "log"))]
Periods = tuple[Positive, ...]
BackSteps = Annotated[int, Range(low=1, high="room")]  # maximum padding before a series
# Replaces smaller numbers before a logarithm.
Floor = Annotated[Array, Shape("settings.targets"), Range(above=0)]
# Sizes of members with separate parameters for each series.
SmoothedSeason = Annotated[int, Range(low=1, high=lambda member: min(member.season, MOST_SMOOTHED))]
Parameters = Annotated[Array, Shape("ids", "settings.targets", PARAMETERS)]


def _some(ids: tuple[object, ...]) -> None:
    if not ids:
        raise Unfit("expected a series or more, got none")


Ids = Annotated[tuple[Id, ...], DISTINCT, Check(_some)]
