"""What the members of a mixture in a file must fit: the columns and steps of the forecast."""

from __future__ import annotations

from typing import NamedTuple

from ensue.tasks import checks
from ensue.tasks.checks import Array, Check

LONGEST_LOOK_BACK = 512  # steps that a member looks back
MOST_SMOOTHED = 400  # steps of a season; longer ones are left to the other members
LEVEL = checks.one_of(("none", "log"))
PERIODS = checks.listed(checks.number(above=0))
IDS = checks.different(checks.listed(checks.text))


class MixtureSizes(NamedTuple):
    """targets, beside, known: columns that are forecast, known until now, and known ahead; room:
    steps before a series that members may read; season: the longest of a member."""

    targets: int
    beside: int
    known: int
    horizon: int
    room: int
    season: int

    @property
    def floor(self) -> Check[Array]:
        """Of what smaller numbers are read as before a logarithm."""
        return checks.array((self.targets,), checks.DOUBLE, above=0)
