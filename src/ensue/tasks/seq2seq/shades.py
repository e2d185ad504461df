"""Weights from 0 to 1 as cells of a terminal."""

from __future__ import annotations

SHADES = " ░▒▓█"
COLOURS = (16, 17, 18, 19, 20, 26, 32, 38, 44, 50)  # of 256, from black to a light blue


def shaded(weight: float, colour: bool) -> str:
    """Two characters: the greater the weight, the darker, or in colours the brighter."""
    weight = min(max(weight, 0.0), 1.0)
    if colour:
        return f"\x1b[48;5;{COLOURS[round(weight * (len(COLOURS) - 1))]}m  \x1b[0m"
    return SHADES[round(weight * (len(SHADES) - 1))] * 2
