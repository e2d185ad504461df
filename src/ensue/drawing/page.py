"""A picture as an HTML page, which needs nothing beside it."""

from __future__ import annotations

from ensue.drawing.svg import INK, SANS, escape
from ensue.drawing.theme import PAPER, css_variables

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
