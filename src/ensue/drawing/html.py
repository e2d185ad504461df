"""HTML parts of pages: small pictures in text or tables, and pictures of files.

They suit light and dark pages: colours follow the page (`currentColor`, alone or mixed with a hue),
and nothing is loaded.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Sequence
from typing import NamedTuple
from uuid import uuid4

from ensue.drawing.chart import Axis, number_text, round_numbers
from ensue.drawing.layout import cut
from ensue.drawing.svg import (
    BLUE,
    FAINT,
    GREY,
    INK,
    QUIET,
    RULE,
    STATES,
    VIOLET,
    escape,
    number,
    text_width,
)
from ensue.drawing.theme import PAPER, themed

LINE = "color-mix(in srgb, currentColor 18%, transparent)"
SOFT = "color-mix(in srgb, currentColor 65%, transparent)"
# Notebooks typeset text between two dollar signs as mathematics, except in this element.
NO_TYPESETTING = "tex2jax_ignore mathjax_ignore"
HUES = ("#3b82f6", "#f59e0b", "#10b981", "#ec4899", "#8b5cf6", "#84cc16", "#06b6d4", "#ef4444")


# --- colours ---------------------------------------------------------------------------------


def tint(colour: str, share: float) -> str:
    """A transparent colour."""
    return f"color-mix(in srgb, {colour} {100 * share:.0f}%, transparent)"


def tone(colour: str) -> str:
    """A colour for lines: darker on light pages, lighter on dark ones."""
    return f"color-mix(in srgb, {colour} 75%, currentColor)"


ACCENT = tone(BLUE.line)


# --- small pictures -----------------------------------------------------------------------------

BAR, THICK = 110.0, 14.0
WIDE, HIGH, MOST_TICKS = 680.0, 190.0, 6  # of a chart
FAINTEST, STRONGEST = 0.05, 0.7  # shares of a heat map's colour: text stays readable
LONGEST_NAME = 18  # characters above a column


def sparkline(values: Sequence[float], marked: int | None = None) -> str:
    """A curve without axes. marked: index of the value with a dot. Values that are not finite are
    left out."""
    wide, high, room = 160.0, 34.0, 4.0
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < 2:
        return ""
    low, span = min(finite), (max(finite) - min(finite)) or 1.0

    def at(k: int) -> str:
        x = room + (wide - 2 * room) * k / (len(values) - 1)
        return f"{number(x)} {number(high - room - (high - 2 * room) * (values[k] - low) / span)}"

    path = [at(k) for k, value in enumerate(values) if math.isfinite(value)]
    inside = _line(path, ACCENT, 1.6)
    if marked is not None and math.isfinite(values[marked]):
        x, y = at(marked).split()
        inside += f'<circle cx="{x}" cy="{y}" r="3" style="fill:{ACCENT}"/>'
    return _svg(wide, high, inside)


def bar(
    value: float,
    most: float,
    interval: tuple[float, float] | None = None,
    colour: str = ACCENT,
) -> str:
    """A bar of length value/most, with the interval as a line; empty if they cannot be drawn."""
    ends = (value, *(interval or ()))
    if most <= 0 or not all(math.isfinite(end) and 0 <= end <= most * 1.000001 for end in ends):
        return ""
    middle = THICK / 2
    inside = _box(0, BAR, tint("currentColor", 0.08)) + _box(0, BAR * value / most, colour, 0.75)
    if interval is not None:
        low, high = (min(BAR - 1, BAR * end / most) for end in interval)
        path = f"M{number(low)} {number(middle)}H{number(high)}"
        path += "".join(f"M{number(x)} {number(middle - 4)}v8" for x in (low, high))
        inside += f'<path d="{path}" style="fill:none;stroke:currentColor;stroke-width:1.4"/>'
    return _svg(BAR, THICK, inside)


def span(value: float, low: float, high: float, scale: tuple[float, float]) -> str:
    """An interval with its value as a dot, on a common scale."""
    begin, end = scale
    if not all(map(math.isfinite, (value, low, high, begin, end))) or begin >= end:
        return ""
    x, left, right = (4 + (BAR - 8) * (v - begin) / (end - begin) for v in (value, low, high))
    middle = number(THICK / 2)
    inside = (
        f'<path d="M0 {middle}H{number(BAR)}" style="stroke:{LINE};stroke-width:1"/>'
        f'<path d="M{number(left)} {middle}H{number(right)}" style="stroke:{tint(BLUE.line, 0.5)};'
        'stroke-width:6"/>'
        f'<circle cx="{number(x)}" cy="{middle}" r="3.4" style="fill:{ACCENT}"/>'
    )
    return _svg(BAR, THICK, inside)


class Band(NamedTuple):
    """The last steps of a chart: expected values with their bounds."""

    value: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


def band_chart(times: Sequence[str], known: Sequence[float], band: Band) -> str:
    """A line of known values from the first time on, then expected values in a band up to the last
    time."""
    x = Axis(0, max(len(times) - 1, 1), 58, WIDE - 36)
    y = Axis.over([*known, *band.low, *band.high, *band.value], HIGH - 26, 10)

    def path(first: int, values: Sequence[float]) -> list[str]:
        return [f"{number(x(first + k))} {number(y(value))}" for k, value in enumerate(values)]

    pieces = []
    for tick in round_numbers(y.low, y.high, MOST_TICKS):
        level = number(y(tick))
        pieces.append(_line([f"{number(x.start)} {level}", f"{number(x.end)} {level}"], LINE, 1))
        pieces.append(_words(x.start - 8, y(tick), number_text(tick), "end"))
    room = max(text_width(time, 11) for time in times) + 20
    every = max(1, math.ceil(len(times) * room / (x.end - x.start)))
    for step in range(len(times) - 1, -1, -every):
        pieces.append(_words(x(step), y.start + 15, times[step], "middle"))
    first = len(times) - len(band.value)
    around = [*path(first, band.high), *reversed(path(first, band.low))]
    pieces.append(f'<path d="M{"L".join(around)}Z" style="fill:{tint(BLUE.line, 0.22)}"/>')
    pieces.append(_line(path(0, known), "currentColor", 1.6))
    pieces.append(_line(path(first, band.value), ACCENT, 2.2))
    return _svg(WIDE, HIGH, "".join(pieces))


def image(png: bytes, text: str) -> str:
    """A picture with the height of two lines."""
    style = "height:3.2em;image-rendering:pixelated;vertical-align:middle;border-radius:3px"
    data = b64encode(png).decode("ascii")
    return f'<img src="data:image/png;base64,{data}" style="{style}" alt="{escape(text)}"/>'


def heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    shares: Sequence[Sequence[float]],
    words: Sequence[Sequence[str]] = (),
) -> str:
    """A heat map. The greater the share of a square (0 … 1), the stronger its colour. A square
    contains its words, and the share as a tooltip."""
    upright = any(len(name) > 3 for name in columns)
    head = "<th></th>" + "".join(_column(name, upright) for name in columns)
    lines = [f'<tr style="background:none">{head}</tr>']
    for k, name in enumerate(rows):
        side = f"border:none;padding:.1em .6em;text-align:right;font-weight:normal;color:{SOFT}"
        cells = [f'<th style="{side}">{_name(name)}</th>']
        for j, share in enumerate(shares[k]):
            title = escape(f"{name}, {columns[j]}: {share:.3g}")
            inside = escape(words[k][j]) if words else ""
            cells.append(f'<td title="{title}" style="{_square(share)}">{inside}</td>')
        lines.append(f'<tr style="background:none">{"".join(cells)}</tr>')
    style = "border-collapse:separate;border-spacing:2px;border:none;margin:.4em 0;font-size:.93em"
    return f'<table style="{style}"><tbody>{"".join(lines)}</tbody></table>'


def _square(share: float) -> str:
    part = min(max(share, 0.0), 1.0) if math.isfinite(share) else 0.0
    colour = tint(BLUE.line, FAINTEST + (STRONGEST - FAINTEST) * part)
    size = "min-width:1.7em;height:1.7em;padding:0 .3em;border:none;border-radius:3px"
    return f"{size};text-align:center;font-variant-numeric:tabular-nums;background:{colour}"


def _column(name: str, upright: bool) -> str:
    turned = "writing-mode:vertical-rl;transform:rotate(180deg);margin:auto;" if upright else ""
    words = f'<div style="{turned}white-space:nowrap">{_name(name)}</div>'
    style = f"border:none;padding:.1em .2em;font-weight:normal;color:{SOFT};vertical-align:bottom"
    return f'<th style="{style};text-align:center">{words}</th>'


def _name(name: str) -> str:
    return escape(cut(name, LONGEST_NAME))


def _line(points: Sequence[str], colour: str, thick: float) -> str:
    if not points:
        return ""
    style = f"fill:none;stroke:{colour};stroke-width:{thick};stroke-linejoin:round"
    return f'<path d="M{"L".join(points)}" style="{style}"/>'


def _words(x: float, y: float, text: str, anchor: str) -> str:
    style = f"font-size:11px;fill:{SOFT};text-anchor:{anchor};dominant-baseline:central"
    return f'<text x="{number(x)}" y="{number(y)}" style="{style}">{escape(text)}</text>'


def _box(x: float, wide: float, colour: str, opacity: float = 1.0) -> str:
    return (
        f'<rect x="{number(x)}" y="3" width="{number(wide)}" height="{number(THICK - 6)}" rx="2" '
        f'style="fill:{colour};opacity:{opacity:g}"/>'
    )


def _svg(wide: float, high: float, inside: str) -> str:
    size = f'width="{number(wide)}" height="{number(high)}"'
    view = f'viewBox="0 0 {number(wide)} {number(high)}"'
    style = "vertical-align:middle;max-width:100%;height:auto"
    return f'<svg {size} {view} style="{style}">{inside}</svg>'


# --- pictures of a file ------------------------------------------------------------------------

PAGE_COLOURS = {
    **{colour.area: tint(colour.line, 0.14) for colour in (GREY, BLUE, VIOLET, *STATES)},
    **{colour.line: tone(colour.line) for colour in (BLUE, VIOLET, *STATES)},
    "#f8fafc": tint(GREY.line, 0.14),
    INK: "currentColor",
    QUIET: "color-mix(in srgb, currentColor 60%, transparent)",
    FAINT: "color-mix(in srgb, currentColor 40%, transparent)",
    RULE: LINE,
}
PAPER_SHEET = re.compile(rf'<rect width="\d+" height="\d+" fill="{PAPER}"/>\n?')
MARK = re.compile(rf'(<rect [^>]*)fill="{PAPER}" stroke="{FAINT}"')  # a sign on a line
BLANK = re.compile(rf'(<rect [^>]*)fill="{PAPER}"')
SIZE = re.compile(r'width="(\d+)" height="(\d+)" viewBox="[^"]*"')
FOR_A_FILE = '<svg xmlns="http://www.w3.org/2000/svg" class="ensue"'
MARK_COLOUR = "#7b8798"  # hides the line below, and suits dark and light text


def on_page(svg: str, above: float = 0.0) -> str:
    """A picture of `Drawing` as a part of a page: in the page's colours, without paper, with unique
    names, so a page can have it twice; other pictures stay unchanged. above: height to cut off at
    the top, such as a title that the page already has."""
    if FOR_A_FILE not in svg:
        return svg
    svg = PAPER_SHEET.sub("", themed(svg, "light")).replace(FOR_A_FILE, "<svg")
    svg = MARK.sub(rf'\1fill="{MARK_COLOUR}" stroke="none"', svg)
    svg = BLANK.sub(r'\1fill="none"', svg).replace(f'stroke="{PAPER}"', 'stroke="none"')
    svg = re.sub(r"#[0-9a-f]{6}", lambda match: PAGE_COLOURS.get(match[0], match[0]), svg)
    svg = SIZE.sub(lambda match: _cut_off(float(match[1]), float(match[2]), above), svg, count=1)
    name = uuid4().hex[:8]
    svg = re.sub(r'( id="|url\(#)([\w-]+)', rf"\1\2-{name}", svg)
    return svg.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1).strip()


def _cut_off(width: float, height: float, above: float) -> str:
    left = height - above
    return f'width="{width:g}" height="{left:g}" viewBox="0 {above:g} {width:g} {left:g}"'
