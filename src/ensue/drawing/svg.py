"""Pictures as SVG text: a few shapes, arrows, and labels with subscripts.

Numbers are rounded and nothing depends on time, chance or addresses, so the same picture gives the
same text. All text is escaped. Colours are written #rrggbb for light backgrounds; theme.py adds
those for dark backgrounds. Named colours, such as black, are not changed.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ensue.drawing.theme import PAPER, style_of
from ensue.escape import printable_lines

Point = tuple[float, float]

INK, QUIET, FAINT, RULE = "#1e293b", "#64748b", "#94a3b8", "#e2e8f0"  # FAINT: lines, no words
SANS = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', Arial, sans-serif"
# the last is for machines without a serif font
SERIF = (
    "'STIX Two Text', 'Cambria', 'Liberation Serif', 'Times New Roman', serif, 'Liberation Sans'"
)
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# corners, half turns, relative size: round, square, triangle, diamond, triangle, pentagon, …
MARKS = (
    (24, 0.0, 1.0),
    (4, 0.25, 1.2),
    (3, 0.0, 1.35),
    (4, 0.0, 1.2),
    (3, 1.0, 1.35),
    (5, 0.0, 1.1),
    (6, 0.0, 1.1),
)


@dataclass(frozen=True)
class Colour:
    """A strong tone for lines and a pale one for areas."""

    line: str
    area: str


GREY = Colour("#64748b", "#f1f5f9")
BLUE = Colour("#2563eb", "#eff6ff")
VIOLET = Colour("#6d28d9", "#f3f0ff")
STATES = (
    Colour("#0f766e", "#e9f9f5"),
    Colour("#b45309", "#fff6e5"),
    Colour("#be185d", "#fdf0f6"),
    Colour("#4d7c0f", "#f4fae6"),
)


def escape(text: str) -> str:
    """Text as XML, with control characters escaped; characters that are invalid in XML become the
    replacement character."""
    return html.escape(NOT_XML.sub("\ufffd", printable_lines(text)))


def number(value: float) -> str:
    """A number with at most one decimal: 12.04 → 12, 12.06 → 12.1."""
    text = f"{value:.1f}"
    return "0" if text == "-0.0" else text.removesuffix(".0")


def split_name(name: str) -> tuple[str, str, str]:
    """Splits a name: "W_i" → W, i and no prime; "h'" → h, no index, ′."""
    stem, prime = (name[:-1], "′") if name.endswith("'") else (name, "")
    stem, _, index = stem.partition("_")
    return (stem, index, prime) if stem else (name, "", "")


def text_width(text: str, size: float) -> float:
    """The approximate width of a text. Fonts differ between readers, so this rather
    overestimates."""
    narrow = sum(letter in " .,·'ijlft()|" for letter in text)
    return size * (0.62 * (len(text) - narrow) + 0.36 * narrow)


def name_width(name: str, size: float) -> float:
    stem, index, prime = split_name(name)
    return text_width(stem + prime, size) + text_width(index, 0.7 * size)


class Drawing:
    """Collects shapes; `svg` is the picture. x grows to the right, y downwards."""

    def __init__(self) -> None:
        self._body: list[str] = []
        self._heads: dict[str, str] = {}

    # ---------------------------------------------------------------- areas
    def rectangle(
        self, centre: Point, width: float, height: float, radius: float, colour: Colour
    ) -> None:
        x, y = centre[0] - width / 2, centre[1] - height / 2
        self._body.append(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" '
            f'height="{number(height)}" rx="{number(radius)}" fill="{colour.area}" '
            f'stroke="{colour.line}" stroke-width="1.4"/>'
        )

    def bar(
        self, x: float, y: float, width: float, height: float, colour: str, radius: float = 2.5
    ) -> None:
        """A rectangle at its upper left corner."""
        radius = min(radius, width / 2, height / 2)
        self._body.append(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" '
            f'height="{number(height)}" rx="{number(radius)}" fill="{colour}"/>'
        )

    def cells(self, corners: Sequence[Point], width: float, height: float, colour: str) -> None:
        """Many rectangles of one size and colour, at their upper left corners."""
        box = f"h{number(width)}v{number(height)}h{number(-width)}z"
        path = "".join(f"M{number(x)} {number(y)}{box}" for x, y in corners)
        self._body.append(f'<path d="{path}" fill="{colour}"/>')

    def area(self, points: Sequence[Point], colour: str) -> None:
        self._body.append(f'<path d="M{_path(points)}Z" fill="{colour}"/>')

    def mark(self, at: Point, kind: int, colour: str, size: float = 4.6) -> None:
        """A polygon around the point, with a rim in the background colour."""
        corners, turn, relative = MARKS[kind % len(MARKS)]
        turn, size = turn * math.pi, relative * size
        points = " ".join(
            f"{number(at[0] + size * math.sin(turn + 2 * math.pi * k / corners))},"
            f"{number(at[1] - size * math.cos(turn + 2 * math.pi * k / corners))}"
            for k in range(corners)
        )
        self._body.append(f'<polygon points="{points}" fill="{colour}" stroke="{PAPER}"/>')

    def begin(self, tooltip: str) -> None:
        """Begins a group of shapes with a tooltip; `end` closes it."""
        self._body.append(f"<g><title>{escape(tooltip)}</title>")

    def end(self) -> None:
        self._body.append("</g>")

    # ---------------------------------------------------------------- words
    def words(
        self,
        at: Point,
        text: str,
        size: float = 13,
        colour: str = INK,
        anchor: str = "middle",
        weight: int = 400,
        turn: float = 0,
    ) -> None:
        """Plain text, vertically centred on `at`; empty text draws nothing. turn: degrees clockwise
        around `at`."""
        if not text:
            return
        turned = f' transform="rotate({number(turn)} {number(at[0])} {number(at[1])})"'
        self._body.append(
            f'<text x="{number(at[0])}" y="{number(at[1] + 0.35 * size)}" '
            f'font-size="{number(size)}" font-weight="{weight}" fill="{colour}" '
            f'text-anchor="{anchor}"{turned if turn else ""}>{escape(text)}</text>'
        )

    def name(
        self, at: Point, name: str, size: float = 16, colour: str = INK, anchor: str = "middle"
    ) -> None:
        """A mathematical name: italic, with its index as a subscript."""
        stem, index, prime = split_name(name)
        inside = f'<tspan font-style="italic">{escape(stem)}</tspan>{prime}'
        if index:
            inside += (
                f'<tspan font-size="{number(0.7 * size)}" dy="{number(0.22 * size)}" '
                f'font-style="italic">{escape(index)}</tspan>'
            )
        self._body.append(
            f'<text x="{number(at[0])}" y="{number(at[1] + 0.3 * size)}" font-family="{SERIF}" '
            f'font-size="{number(size)}" fill="{colour}" text-anchor="{anchor}">{inside}</text>'
        )

    # ---------------------------------------------------------------- lines
    def line(
        self, points: Sequence[Point], colour: str, thick: float = 1, dashes: str = ""
    ) -> None:
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self._body.append(
            f'<path d="M{_path(points)}" fill="none" stroke="{colour}" stroke-width='
            f'"{number(thick)}" stroke-linejoin="round" stroke-linecap="round"{dashed}/>'
        )

    def curve(self, points: Sequence[Point], colour: str, thick: float = 1.5) -> None:
        """An arrow through the points that enters and leaves each of them horizontally."""
        (x, y), *rest = points
        path = f"M{number(x)} {number(y)}"
        for to_x, to_y in rest:
            bend = (to_x - x) / 2
            if abs(to_y - y) < 0.05:
                path += f"H{number(to_x)}"
            else:
                path += (
                    f"C{number(x + bend)} {number(y)} {number(to_x - bend)} {number(to_y)} "
                    f"{number(to_x)} {number(to_y)}"
                )
            x, y = to_x, to_y
        self._stroke(path, colour, thick, dashed=False, arrow=True)

    def corners(
        self,
        points: Sequence[Point],
        colour: str,
        *,
        thick: float = 1.5,
        radius: float = 10,
        dashed: bool = False,
        arrow: bool = True,
    ) -> None:
        """Straight pieces through the points, with rounded corners."""
        path = f"M{number(points[0][0])} {number(points[0][1])}"
        for before, corner, after in zip(points, points[1:], points[2:], strict=False):
            start, stop = _towards(corner, before, radius), _towards(corner, after, radius)
            path += f"L{number(start[0])} {number(start[1])}"
            path += f"Q{number(corner[0])} {number(corner[1])} {number(stop[0])} {number(stop[1])}"
        path += f"L{number(points[-1][0])} {number(points[-1][1])}"
        self._stroke(path, colour, thick, dashed, arrow)

    def _stroke(self, path: str, colour: str, thick: float, dashed: bool, arrow: bool) -> None:
        dashes = ' stroke-dasharray="4 4"' if dashed else ""
        head = f' marker-end="url(#{self._head(colour)})"' if arrow else ""
        self._body.append(
            f'<path d="{path}" fill="none" stroke="{colour}" '
            f'stroke-width="{number(thick)}" stroke-linecap="round"{dashes}{head}/>'
        )

    def _head(self, colour: str) -> str:
        """The arrowhead of a colour; its tip is at the end of the line."""
        name = f"ensue-head-{colour.removeprefix('#')}"
        self._heads[name] = (
            f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" '
            f'markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
            f'<path d="M0.5 1L9.5 5L0.5 9L3 5Z" fill="{colour}"/></marker>'
        )
        return name

    # ---------------------------------------------------------------- the whole
    def svg(self, width: float, height: float, title: str) -> str:
        """A complete picture, with its background."""
        w, h = math.ceil(width), math.ceil(height)
        paper = f'<rect width="{w}" height="{h}" fill="{PAPER}"/>'
        heads = [self._heads[name] for name in sorted(self._heads)]
        body = "\n".join(["<defs>", *heads, "</defs>", paper, *self._body, "</svg>\n"])
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="ensue" width="{w}" height="{h}" '
            f'viewBox="0 0 {w} {h}" font-family="{SANS}" role="img" aria-label="{escape(title)}">\n'
            f"<title>{escape(title)}</title>\n{style_of(body)}{body}"
        )


def _path(points: Sequence[Point]) -> str:
    return "L".join(f"{number(x)} {number(y)}" for x, y in points)


def _towards(start: Point, end: Point, distance: float) -> Point:
    """The point on the way from start to end at `distance` from start, at most halfway."""
    length = math.dist(start, end)
    share = min(distance, length / 2) / length if length else 0.0
    return start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])
