"""HTML for notebooks: titled blocks, tables and pictures that suit light and dark pages.

Colours are the page's own (`currentColor`, alone or mixed with a hue), nothing is loaded, and all
words are escaped: what is markup already says so by its type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from uuid import uuid4

from ensue.drawing.svg import BLUE, FAINT, GREY, INK, QUIET, SANS, STATES, VIOLET, escape
from ensue.drawing.theme import PAPER, css_variables, themed

STYLE = f"""
body {{ margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 {SANS}; }}
figure {{ margin: 24px auto; width: fit-content; max-width: 100%; overflow-x: auto; }}
"""


def picture_page(svg: str, title: str) -> str:
    """The picture follows the reader to dark paper, and so does the page."""
    style = css_variables(ink=INK, paper=PAPER) + STYLE
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(title)}</title><style>{style}</style></head>\n"
        f"<body><figure>{svg}</figure></body></html>\n"
    )


LINE = "color-mix(in srgb, currentColor 18%, transparent)"
SOFT = "color-mix(in srgb, currentColor 65%, transparent)"
CELL = f"padding:.15em .8em;border:none;border-bottom:1px solid {LINE};background:none"
NUMBER = "text-align:right;font-variant-numeric:tabular-nums"
# Notebooks typeset what stands between two dollar signs, but not in here.
NO_TYPESETTING = "tex2jax_ignore mathjax_ignore"
HUES = ("#3b82f6", "#f59e0b", "#10b981", "#ec4899", "#8b5cf6", "#84cc16", "#06b6d4", "#ef4444")
MOST_ROWS = 20
LONGEST = 200  # characters of a cell


class Markup(str):
    """HTML, which is not escaped."""


# --- colours ---------------------------------------------------------------------------------


def tint(colour: str, share: float) -> str:
    """A colour so thin that the page shows through."""
    return f"color-mix(in srgb, {colour} {100 * share:.0f}%, transparent)"


def tone(colour: str) -> str:
    """A colour for lines: darker on light pages, lighter on dark ones."""
    return f"color-mix(in srgb, {colour} 75%, currentColor)"


ACCENT = tone(BLUE.line)


# --- words and tables ------------------------------------------------------------------------


def table(rows: Sequence[Sequence[object]], head: Sequence[str] = (), most: int = MOST_ROWS) -> str:
    """A table; numbers stand at the right of their column. most: rows that are shown."""
    lines, shown = [], rows[:most]
    if head:
        right = [bool(rows) and _is_number(value) for value in (rows[0] if rows else head)]
        cells = [_cell("th", name, at) for name, at in zip(head, right, strict=True)]
        lines.append(f'<thead><tr style="background:none">{"".join(cells)}</tr></thead>')
    body = "".join(
        f'<tr style="background:none">'
        f"{''.join(_cell('td', value, _is_number(value)) for value in row)}</tr>"
        for row in shown
    )
    lines.append(f"<tbody>{body}</tbody>")
    style = "border-collapse:collapse;border:none;margin:.4em 0;font-size:.93em"
    return f'<table style="{style}">{"".join(lines)}</table>{and_more(len(rows) - len(shown))}'


def block(title: str, *parts: str) -> str:
    """A title with HTML below it."""
    inside = "".join(f"<div>{part}</div>" for part in parts if part)
    return (
        f'<div class="{NO_TYPESETTING}" style="max-width:66em">'
        f"<div><b>{escape(title)}</b></div>{inside}</div>"
    )


def beside(*parts: str) -> Markup:
    """Next to one another, or below where the page is narrow."""
    inside = "".join(f"<div>{part}</div>" for part in parts if part)
    style = "display:flex;flex-wrap:wrap;gap:.4em 2.5em;align-items:flex-start"
    return Markup(f'<div style="{style}">{inside}</div>')


def heading(text: str) -> Markup:
    return Markup(f'<div style="margin-top:.7em;font-weight:600">{escape(text)}</div>')


def quiet(text: str) -> Markup:
    """A remark; "" for none."""
    if not text:
        return Markup()
    return Markup(f'<span style="color:{SOFT}">{escape(text)}</span>')


def and_more(count: int) -> Markup:
    """What was left out of a table; "" for nothing."""
    return quiet(f"and {count:,} more") if count > 0 else Markup()


def shortened(text: str, most: int = LONGEST) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def lines(texts: Iterable[str]) -> Markup:
    """Lines whose columns were made with spaces."""
    style = "margin:.5em 0;padding:0;background:none;color:inherit;font-size:.85em;line-height:1.4"
    return Markup(f'<pre style="{style}">{escape(chr(10).join(texts))}</pre>')


def _cell(kind: str, value: object, right: bool) -> str:
    place = NUMBER if right else "text-align:left"
    return f'<{kind} style="{CELL};{place}">{_shown(value)}</{kind}>'


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: object) -> str:
    if isinstance(value, Markup):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return escape(shortened(str(value)))
    return f"{value:,}" if isinstance(value, int) else figures(value)


def figures(value: float) -> str:
    """About four figures: 0.8750, 35.20, 1,734; powers of ten for what is very small or great."""
    size = abs(value)
    if not math.isfinite(value) or 0 < size < 1e-4 or size >= 1e9:
        return f"{value:.3g}"
    return f"{value:,.{3 - math.floor(math.log10(size)) if 1 < size < 1e4 else 4 * (size <= 1)}f}"


def between(low: float, high: float) -> str:
    """An interval."""
    return f"{figures(low)} … {figures(high)}"


# --- pictures --------------------------------------------------------------------------------

PAGE_COLOURS = {
    **{colour.area: tint(colour.line, 0.14) for colour in (GREY, BLUE, VIOLET, *STATES)},
    **{colour.line: tone(colour.line) for colour in (BLUE, VIOLET, *STATES)},
    "#f8fafc": tint(GREY.line, 0.14),
    INK: "currentColor",
    QUIET: "color-mix(in srgb, currentColor 60%, transparent)",
    FAINT: "color-mix(in srgb, currentColor 40%, transparent)",
}
PAPER_SHEET = re.compile(rf'<rect width="\d+" height="\d+" fill="{PAPER}"/>\n?')
MARK = re.compile(rf'(<rect [^>]*)fill="{PAPER}" stroke="{FAINT}"')  # a sign on a line
BLANK = re.compile(rf'(<rect [^>]*)fill="{PAPER}"')
SIZE = re.compile(r'width="(\d+)" height="(\d+)" viewBox="[^"]*"')
FOR_A_FILE = '<svg xmlns="http://www.w3.org/2000/svg" class="ensue"'
MARK_COLOUR = "#7b8798"  # hides the line below it, and bears dark and light words


def on_page(svg: str, above: float = 0.0) -> Markup:
    """A picture of `Drawing` as a part of a page: in the page's colours, without paper, and with
    names of its own, so that it can be shown twice. above: how much is cut off its top, such as a
    title that the page has already."""
    svg = PAPER_SHEET.sub("", themed(svg, "light")).replace(FOR_A_FILE, "<svg")
    svg = MARK.sub(rf'\1fill="{MARK_COLOUR}" stroke="none"', svg)
    svg = BLANK.sub(r'\1fill="none"', svg)
    svg = re.sub(r"#[0-9a-f]{6}", lambda found: PAGE_COLOURS.get(found[0], found[0]), svg)
    svg = SIZE.sub(lambda found: _cut_off(float(found[1]), float(found[2]), above), svg, count=1)
    own = uuid4().hex[:8]
    svg = re.sub(r'( id="|url\(#)([\w-]+)', rf"\1\2-{own}", svg)
    return Markup(svg.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1).strip())


def _cut_off(width: float, height: float, above: float) -> str:
    left = height - above
    return f'width="{width:g}" height="{left:g}" viewBox="0 {above:g} {width:g} {left:g}"'
