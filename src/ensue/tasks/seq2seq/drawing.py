"""Pictures of attention: a matrix over the words of a source, tiles over a picture."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ensue.data.pictures.images import Picture, encode_png
from ensue.drawing.document import Drawn
from ensue.drawing.layout import cut, width_of
from ensue.drawing.matrix import (
    column_height,
    column_names,
    matrix_text,
    shade,
    short_names,
    squares,
    weight_key,
)
from ensue.drawing.svg import INK, QUIET, Drawing, number, text_width
from ensue.drawing.theme import shaded
from ensue.escape import printable
from ensue.tasks.seq2seq.answer import Explained, Gaze

LONGEST_NAME = 16  # cells of a word


# --- a matrix ------------------------------------------------------------------------------------

CELL, EDGE = 26.0, 20.0  # pixels


def alignment_text(explained: Explained, width: int = 80, colour: bool = False) -> str:
    """A row for each generated word, with its probability; a column for each source word. Darker
    cells mean more attention."""
    names = short_names(explained.tokens, LONGEST_NAME)
    rows = [[word, f"{p:4.0%}"] for word, p in zip(names, explained.probabilities, strict=True)]
    source = short_names(explained.source, LONGEST_NAME)
    return matrix_text(
        rows, source, explained.alignment, lambda weight: shaded(weight, colour), width
    )


def alignment_picture(explained: Explained) -> str:
    """The alignment as SVG: the source along the top, generated words with their probabilities on
    the left, weights as shades and as tooltips."""
    drawing = Drawing()
    source = short_names(explained.source, 2 * LONGEST_NAME)
    names = short_names(explained.tokens, 2 * LONGEST_NAME)
    left = EDGE + max(text_width(word, 14) for word in names) + 52
    top = EDGE + 24 + column_height(source)
    beyond = column_names(drawing, source, (left, top), CELL)
    for line, (word, probability) in enumerate(zip(names, explained.probabilities, strict=True)):
        middle = top + (line + 0.5) * CELL - 1
        drawing.words((left - 50, middle), word, 14, INK, "end", weight=600)
        drawing.words((left - 10, middle), f"{probability:.0%}", 11, QUIET, "end")
    at = left, top
    squares(drawing, explained.alignment, at, CELL, shade, lambda i, j: f"{names[i]} ← {source[j]}")
    bottom = top + len(names) * CELL + 16
    weight_key(drawing, (left, bottom), "attention")
    wide = max(left + len(source) * CELL + beyond + EDGE, left + 260)
    return drawing.svg(wide, bottom + EDGE, "Where each word comes from")


@dataclass(frozen=True)
class TranslationExplanation(Drawn):
    """A translation drawn as a matrix: darker cells mean more attention."""

    result: Explained

    def as_text(self, width: int = 80, colour: bool = False) -> str:
        return f"{self.result.text}\n\n{alignment_text(self.result, width, colour)}"

    def as_svg(self) -> str:
        return alignment_picture(self.result)


# --- tiles ---------------------------------------------------------------------------------------

TILE, GAP, TOP, MARGIN = 120.0, 16.0, 66.0, 24.0  # pixels
MOST_BESIDE = 5  # tiles in a row
VEIL = 0.68  # darkness of a region without attention


def gaze_text(gaze: Gaze, width: int = 80, colour: bool = False) -> str:
    """A square for each word, with its probability above: darker regions got more attention,
    relative to the maximum. As many squares side by side as fit."""
    tall, wide = gaze.grid
    room = max(2 * wide, 8)
    beside = max(1, (width + 2) // (room + 2))
    words = list(zip(gaze.tokens, gaze.probabilities, gaze.attention, strict=True))
    blocks = []
    for first in range(0, len(words), beside):
        tiles = [_tile(*word, (tall, wide), room, colour) for word in words[first : first + beside]]
        lines = ("  ".join(line).rstrip() for line in zip(*tiles, strict=True))
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _tile(
    word: str,
    probability: float,
    weights: Sequence[float],
    grid: tuple[int, int],
    room: int,
    colour: bool,
) -> list[str]:
    name = cut(printable(word), min(LONGEST_NAME, room - 5))
    share = f"{probability:.0%}"
    lines = [name + " " * (room - width_of(name) - len(share)) + share]
    most = max(weights)
    for row in np.reshape(weights, grid).tolist():
        cells = "".join(shaded(weight / most, colour) for weight in row)
        lines.append(cells + " " * (room - 2 * len(row)))
    return lines


class _Tiles(Drawing):
    def image(self, x: float, y: float, content: str) -> None:
        self._body.append(
            f'<image x="{number(x)}" y="{number(y)}" width="{number(TILE)}" '
            f'height="{number(TILE)}" preserveAspectRatio="none" href="{content}" '
            'style="image-rendering:pixelated"/>'
        )

    def veil(self, x: float, y: float, width: float, height: float, dark: float) -> None:
        # crisp: no bright line between neighbours; black: on dark paper too
        self._body.append(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" '
            f'height="{number(height)}" fill="black" fill-opacity="{dark:.2f}" '
            'shape-rendering="crispEdges"/>'
        )

    def frame(self, x: float, y: float, width: float, height: float) -> None:
        self._body.append(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" '
            f'height="{number(height)}" rx="2" fill="none" stroke="orange" stroke-width="2"/>'
        )


def gaze_picture(gaze: Gaze, picture: Picture) -> str:
    """The picture (channels, height, width), repeated for each word with its probability: regions
    without attention are dark, and the region with the most attention is framed. Weights are
    tooltips."""
    drawing = _Tiles()
    content = "data:image/png;base64,"
    content += b64encode(encode_png(np.moveaxis(picture, 0, -1))).decode("ascii")
    drawing.words((MARGIN, MARGIN + 6), gaze.text, 17, INK, "start", weight=600)
    tiles = len(gaze.tokens) + 1
    beside = min(tiles, MOST_BESIDE)
    high = TILE + 40
    for k in range(tiles):
        x = MARGIN + k % beside * (TILE + GAP)
        y = TOP + k // beside * high + 18
        drawing.image(x, y, content)
        if k == 0:
            drawing.words((x, y - 12), "the picture", 13, QUIET, "start")
            continue
        word, probability = printable(gaze.tokens[k - 1]), gaze.probabilities[k - 1]
        drawing.words((x, y - 12), cut(word, LONGEST_NAME), 14, INK, "start", weight=600)
        drawing.words((x + TILE, y - 12), f"{probability:.0%}", 11, QUIET, "end")
        _shade(drawing, gaze, k - 1, x, y)
    lines = -(-tiles // beside)
    bottom = TOP + lines * high + 14
    note = "the brighter, the more a word looked there; framed: where it looked most"
    drawing.words((MARGIN, bottom), note, 11, QUIET, "start")
    wide = 2 * MARGIN + beside * (TILE + GAP) - GAP
    return drawing.svg(wide, bottom + MARGIN, "Where each word looks")


def _shade(drawing: _Tiles, gaze: Gaze, word: int, x: float, y: float) -> None:
    """Darkens a tile, region by region."""
    tall, wide = gaze.grid
    height, width = TILE / tall, TILE / wide
    weights = gaze.attention[word]
    most = max(weights)
    for region, weight in enumerate(weights):
        row, column = divmod(region, wide)
        drawing.begin(f"{gaze.tokens[word]}: {weight:.3f}")
        dark = VEIL * (1 - weight / most)
        drawing.veil(x + column * width, y + row * height, width, height, dark)
        drawing.end()
    row, column = divmod(max(range(len(weights)), key=weights.__getitem__), wide)
    drawing.frame(x + column * width, y + row * height, width, height)


@dataclass(frozen=True)
class CaptionExplanation(Drawn):
    """A caption drawn as squares: darker regions got more attention."""

    result: Gaze
    picture: Picture

    def as_text(self, width: int = 80, colour: bool = False) -> str:
        return f"{self.result.text}\n\n{gaze_text(self.result, width, colour)}"

    def as_svg(self) -> str:
        return gaze_picture(self.result, self.picture)
