"""HTML for notebooks: titled blocks and tables that suit light and dark pages.

Colours are the page's own (`currentColor`), nothing is loaded, and all words are escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

LINE = "color-mix(in srgb, currentColor 18%, transparent)"
CELL = f"padding:.15em .8em;border-bottom:1px solid {LINE};background:none"
NUMBER = "text-align:right;font-variant-numeric:tabular-nums"


def table(rows: Sequence[Sequence[object]], head: Sequence[str] = ()) -> str:
    """A table; numbers stand at the right of their column."""
    lines = []
    if head:
        right = [bool(rows) and _is_number(value) for value in (rows[0] if rows else head)]
        cells = [_cell("th", name, at) for name, at in zip(head, right, strict=True)]
        lines.append(f"<thead><tr>{''.join(cells)}</tr></thead>")
    body = "".join(
        f"<tr>{''.join(_cell('td', value, _is_number(value)) for value in row)}</tr>"
        for row in rows
    )
    lines.append(f"<tbody>{body}</tbody>")
    style = "border-collapse:collapse;border:none;margin:.4em 0;font-size:.93em"
    return f'<table style="{style}">{"".join(lines)}</table>'


def block(title: str, *parts: str) -> str:
    """A title with HTML below it."""
    inside = "".join(f"<div>{part}</div>" for part in parts)
    return f'<div style="max-width:60em"><div><b>{escape(title)}</b></div>{inside}</div>'


def _cell(kind: str, value: object, right: bool) -> str:
    place = NUMBER if right else "text-align:left"
    return f'<{kind} style="{CELL};{place}">{escape(_shown(value))}</{kind}>'


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
