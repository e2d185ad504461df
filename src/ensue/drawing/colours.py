"""Numbers as colours: of light paper, which follow the reader to dark paper."""

from __future__ import annotations

from ensue.drawing.svg import BLUE, STATES
from ensue.drawing.theme import PAPER

ABOVE, BELOW = BLUE.line, STATES[1].line


def mixed(colour: str, share: float) -> str:
    """So much of a colour on paper, both as #rrggbb.

    >>> mixed("#000000", 0.5)
    '#808080'
    """
    share = min(max(share, 0.0), 1.0)
    pairs = ((int(PAPER[k : k + 2], 16), int(colour[k : k + 2], 16)) for k in (1, 3, 5))
    return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in pairs)


def diverging(value: float) -> str:
    """From −1 (orange) by 0 (paper) to 1 (blue), the paler the smaller."""
    return mixed(ABOVE if value >= 0 else BELOW, 0.04 + 0.86 * min(abs(value), 1.0))
