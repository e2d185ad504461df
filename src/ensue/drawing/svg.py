"""Pictures as SVG text: a few shapes, arrows, and labels with subscripts.

Numbers are rounded and nothing depends on time, chance or addresses, so the same picture
is the same text. All words are escaped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

Point = tuple[float, float]

INK, QUIET, FAINT, PAPER = "#1e293b", "#64748b", "#94a3b8", "#ffffff"
SANS = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', Arial, sans-serif"
SERIF = "'STIX Two Text', 'Cambria', 'Liberation Serif', 'Times New Roman', serif"


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


def number(value: float) -> str:
    """At most one decimal: 12.04 → 12, 12.06 → 12.1."""
    text = f"{value:.1f}"
    return "0" if text == "-0.0" else text.removesuffix(".0")


def split_name(name: str) -> tuple[str, str, str]:
    """ "W_i" → W, i and no prime; "h'" → h, nothing, ′."""
    stem, prime = (name[:-1], "′") if name.endswith("'") else (name, "")
    stem, _, index = stem.partition("_")
    return (stem, index, prime) if stem else (name, "", "")


def text_width(text: str, size: float) -> float:
    """About how wide a text is; the fonts are the reader's, so this errs on the wide side."""
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

    def begin(self, tooltip: str) -> None:
        """What follows, up to `end`, is one thing; its tooltip says which."""
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
    ) -> None:
        """Plain text, centred on the height of `at`."""
        y = at[1] + 0.35 * size
        self._body.append(
            f'<text x="{number(at[0])}" y="{number(y)}" font-family="{SANS}" '
            f'font-size="{number(size)}" font-weight="{weight}" fill="{colour}" '
            f'text-anchor="{anchor}">{escape(text)}</text>'
        )

    def name(
        self, at: Point, name: str, size: float = 16, colour: str = INK, anchor: str = "middle"
    ) -> None:
        """A name of mathematics: slanted, its index as a subscript."""
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
        """The arrowhead of a colour; its point lies on the end of the line."""
        name = f"ensue-head-{colour.removeprefix('#')}"
        self._heads[name] = (
            f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" '
            f'markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
            f'<path d="M0.5 1L9.5 5L0.5 9L3 5Z" fill="{colour}"/></marker>'
        )
        return name

    # ---------------------------------------------------------------- the whole
    def svg(self, width: float, height: float, title: str) -> str:
        """A picture that stands by itself, on white paper."""
        w, h = math.ceil(width), math.ceil(height)
        heads = "\n".join(self._heads[name] for name in sorted(self._heads))
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" '
                f'viewBox="0 0 {w} {h}" role="img" aria-label="{escape(title)}">',
                f"<title>{escape(title)}</title>",
                f"<defs>\n{heads}\n</defs>",
                f'<rect width="{w}" height="{h}" fill="{PAPER}"/>',
                *self._body,
                "</svg>\n",
            ]
        )


def _towards(start: Point, end: Point, distance: float) -> Point:
    """The point at most `distance`, and at most half the way, from start to end."""
    length = math.dist(start, end)
    share = min(distance, length / 2) / length if length else 0.0
    return start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])
