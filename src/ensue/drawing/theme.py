"""Pictures on light and on dark backgrounds.

Code names only the colours for light backgrounds. A rule derives the dark ones: the hue stays, and
the contrast becomes slightly stronger. A picture contains both: attributes for light backgrounds,
and a style that browsers apply in dark mode.
"""

from __future__ import annotations

import re
from colorsys import hls_to_rgb, rgb_to_hls
from functools import cache

from ensue.errors import unknown

SHADES = " ░▒▓█"
COLOURS = (16, 17, 18, 19, 20, 26, 32, 38, 44, 50)  # of 256, from black to a light blue
SHADE_ABOVE = (17, 18, 19, 20, 27)  # from dim to strong: blue
SHADE_BELOW = (52, 88, 94, 130, 166)  # the same, orange
MARKS = "··", "+ ", "++"


def shaded(weight: float, colour: bool) -> str:
    """Two characters for a weight from 0 to 1: larger weights are darker, or in colour brighter."""
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
    """A text on blue for a positive value, on orange for a negative one (−1 … 1); plain near
    zero."""
    strength = min(round(abs(value) * len(SHADE_ABOVE)), len(SHADE_ABOVE))
    if not strength:
        return text
    tone = (SHADE_ABOVE if value > 0 else SHADE_BELOW)[strength - 1]
    return f"\x1b[38;5;231;48;5;{tone}m{text}\x1b[0m"


THEMES = ("auto", "light", "dark")
PAPER, DARK_PAPER = "#ffffff", "#11151c"
STRONGER, STRONGEST = 1.12, 15.0  # contrast**STRONGER on dark paper, with this maximum
CALM, PALE = 0.6, 1.5  # factor of the saturation of areas below this contrast, which would glow
HALVINGS = 24

_PAINT = re.compile(r'\b(fill|stroke)="(#[0-9a-f]{6})"')
_STYLE = re.compile(r"<style>.*?</style>\n", re.DOTALL)


def themed(svg: str, theme: str) -> str:
    """A picture for only a `light` or a `dark` background; `auto` keeps both.

    >>> themed('<rect fill="#ffffff"/>', "dark")
    '<rect fill="#11151c"/>'
    """
    if theme not in THEMES:
        raise unknown("theme", theme, THEMES)
    if theme == "auto":
        return svg
    alone = _STYLE.sub("", svg)
    return alone if theme == "light" else _PAINT.sub(lambda m: f'{m[1]}="{dark(m[2])}"', alone)


def style_of(body: str) -> str:
    """The style with the dark colours of all colours in an SVG of class ensue."""
    rules = [
        f'.ensue [{what}="{colour}"]{{{what}:{dark(colour)}}}'
        for what, colour in sorted(set(_PAINT.findall(body)))
    ]
    return "<style>@media (prefers-color-scheme:dark){\n" + "\n".join(rules) + "\n}</style>\n"


def css_variables(**colours: str) -> str:
    """A style for pages: var(--ink) is the colour called ink, and follows dark mode."""
    light, night = (
        " ".join(f"--{name}: {of(colour)};" for name, colour in colours.items())
        for of in (str, dark)
    )
    return (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {night} }} }}\n"
    )


@cache
def dark(colour: str) -> str:
    """The colour on dark paper for one on light paper, both as #rrggbb."""
    if colour == PAPER:
        return DARK_PAPER
    hue, _, saturation = rgb_to_hls(*_parts(colour))
    saturation *= CALM if contrast(colour, PAPER) < PALE else 1
    contrast_goal = min(contrast(colour, PAPER) ** STRONGER, STRONGEST)
    bright = contrast_goal * (luminance(DARK_PAPER) + 0.05) - 0.05
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        dark_colour = _hex(*hls_to_rgb(hue, middle, saturation))
        low, high = (low, middle) if luminance(dark_colour) >= bright else (middle, high)
    return _hex(*hls_to_rgb(hue, high, saturation))


def mixed(one: str, other: str, share: float) -> str:
    """The colour between two; share: the share of the other colour, from 0 to 1."""
    pairs = zip(_parts(one), _parts(other), strict=True)
    return _hex(*(a + (b - a) * min(max(share, 0.0), 1.0) for a, b in pairs))


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours by WCAG 2, from 1 to 21; text needs 4.5."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    """Relative luminance, 0 for black and 1 for white."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in _parts(colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _parts(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return red, green, blue


def _hex(*parts: float) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)
