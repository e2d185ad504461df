"""What the members of a mixture in a file must fit: the columns and steps of the forecast."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from ensue.tasks.declarations import DISTINCT, Check, OneOf, Positive, Range, Shape, Unfit
from ensue.tasks.forecast.series import Id

LONGEST_LOOK_BACK = 512  # steps that a member looks back
MOST_SMOOTHED = 400  # steps of a season; longer ones are left to the other members
PARAMETERS = 4  # of each target of a series

Array = NDArray[np.float64]
Level = Annotated[str, OneOf(("none", "log"))]
Periods = tuple[Positive, ...]
BackSteps = Annotated[int, Range(low=1, high="room")]  # that a member reads before a series
# What smaller numbers are read as before a logarithm.
Floor = Annotated[Array, Shape("settings.targets"), Range(above=0)]
# Of members with parameters for each series by itself.
SmoothedSeason = Annotated[int, Range(low=1, high=lambda member: min(member.season, MOST_SMOOTHED))]
Parameters = Annotated[Array, Shape("ids", "settings.targets", PARAMETERS)]


def _some(ids: tuple[object, ...]) -> None:
    if not ids:
        raise Unfit("expected a series or more, got none")


Ids = Annotated[tuple[Id, ...], DISTINCT, Check(_some)]
