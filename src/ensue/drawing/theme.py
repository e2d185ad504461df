"""Pictures on light and on dark paper.

A picture is drawn in the colours of light paper, and those of dark paper follow by a rule, so that
no colour is said twice: the hue stays, and the contrast with the paper becomes a little stronger.
So what can be read on the one can be read on the other. A picture carries both: attributes for
light paper, and a style that browsers apply where the reader prefers dark.
"""

from __future__ import annotations

import re
from colorsys import hls_to_rgb, rgb_to_hls
from functools import cache

from ensue.errors import unknown

THEMES = ("auto", "light", "dark")
PAPER, DARK_PAPER = "#ffffff", "#11151c"
STRONGER, STRONGEST = 1.12, 15.0  # contrast**STRONGER on dark paper, and at most this
CALM, PALE = 0.6, 1.5  # of the saturation of areas, whose contrast is below this: they glow
HALVINGS = 24

_PAINT = re.compile(r'\b(fill|stroke)="(#[0-9a-f]{6})"')
_STYLE = re.compile(r"<style>.*?</style>\n", re.DOTALL)


def themed(svg: str, theme: str) -> str:
    """A picture for `light` or for `dark` paper alone; `auto` is the picture as it is, for both.

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
    """The style with the dark colours of all that is painted in an SVG of class ensue."""
    rules = [
        f'.ensue [{what}="{colour}"]{{{what}:{dark(colour)}}}'
        for what, colour in sorted(set(_PAINT.findall(body)))
    ]
    return "<style>@media (prefers-color-scheme:dark){\n" + "\n".join(rules) + "\n}</style>\n"


def css_variables(**colours: str) -> str:
    """A style for pages: var(--ink) is the colour called ink, and follows the reader."""
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
    wanted = min(contrast(colour, PAPER) ** STRONGER, STRONGEST)
    bright = wanted * (luminance(DARK_PAPER) + 0.05) - 0.05
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        found = _hex(*hls_to_rgb(hue, middle, saturation))
        low, high = (low, middle) if luminance(found) >= bright else (middle, high)
    return _hex(*hls_to_rgb(hue, high, saturation))


def mixed(one: str, other: str, share: float) -> str:
    """The colour between two; share: of the other, from 0 to 1."""
    pairs = zip(_parts(one), _parts(other), strict=True)
    return _hex(*(a + (b - a) * min(max(share, 0.0), 1.0) for a, b in pairs))


def contrast(one: str, other: str) -> float:
    """The ratio of two colours that WCAG 2 defines, from 1 to 21; text wants 4.5."""
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
