"""Numbers as cells of a terminal: shades, colours, marks."""

from __future__ import annotations

SHADES = " ░▒▓█"
COLOURS = (16, 17, 18, 19, 20, 26, 32, 38, 44, 50)  # of 256, from black to a light blue
ABOVE, BELOW = (17, 18, 19, 20, 27), (52, 88, 94, 130, 166)  # from dim to strong: blue, orange
MARKS = "··", "+ ", "++"


def shaded(weight: float, colour: bool) -> str:
    """Two characters for a weight from 0 to 1: the greater, the darker, or in colours the
    brighter."""
    weight = min(max(weight, 0.0), 1.0)
    if colour:
        return f"\x1b[48;5;{COLOURS[round(weight * (len(COLOURS) - 1))]}m  \x1b[0m"
    return SHADES[round(weight * (len(SHADES) - 1))] * 2


def signed(value: float, colour: bool) -> str:
    """Two characters for a value from −1 to 1: blue above zero and orange below, or + and −.

    >>> signed(0.9, False), signed(-0.4, False), signed(0.1, False)
    ('++', '− ', '··')
    """
    if colour:
        return tinted("  ", value)
    mark = MARKS[min(round(2 * abs(value)), 2)]
    return mark if value > 0 else mark.replace("+", "−")


def tinted(text: str, value: float) -> str:
    """A text on blue for a value above zero, up to 1, and on orange for one below; plain where it
    is near zero."""
    strength = min(round(abs(value) * len(ABOVE)), len(ABOVE))
    if not strength:
        return text
    tone = (ABOVE if value > 0 else BELOW)[strength - 1]
    return f"\x1b[38;5;231;48;5;{tone}m{text}\x1b[0m"
