"""Where words look, drawn: over the words of a source as a matrix, over a picture as tiles."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ensue.data.pictures.images import Picture, encode_png
from ensue.drawing.layout import cut, downwards, width_of
from ensue.drawing.svg import INK, QUIET, Drawing, number, text_width
from ensue.drawing.theme import mixed, shaded
from ensue.escape import printable
from ensue.tasks.seq2seq.answer import Explained, Gaze

LONGEST_NAME = 16  # cells of a word


# --- a matrix ------------------------------------------------------------------------------------

CELL, HEAD, LEFT, EDGE = 26.0, 20.0, 16.0, 20.0  # pixels
PALE, DEEP = "#f1f5f9", "#1e40af"  # colours of the weights 0 and 1
SAMPLES = 6  # of weights, below the picture


def alignment_text(found: Explained, width: int = 80, colour: bool = False) -> str:
    """A row for each word said, with its probability; a column for each word of the source, two
    cells wide. The darker a cell, the more the word looked there. Sources that the width does not
    hold are drawn in several pieces below one another."""
    names = [cut(printable(word), LONGEST_NAME) for word in found.tokens]
    left = max(width_of(name) for name in names)
    room = max(1, (width - left - 8) // 2)
    blocks = []
    for first in range(0, len(found.source), room):
        columns = slice(first, first + room)
        blocks.append(_block(found, names, left, columns, colour))
    return "\n\n".join("\n".join(block) for block in blocks)


def _block(
    found: Explained, names: Sequence[str], left: int, columns: slice, colour: bool
) -> list[str]:
    margin = " " * (left + 8)
    heading = downwards([cut(printable(word), LONGEST_NAME) for word in found.source[columns]])
    lines = [(margin + line).rstrip() for line in heading]
    for name, probability, row in zip(names, found.probabilities, found.alignment, strict=True):
        cells = "".join(shaded(weight, colour) for weight in row[columns])
        space = " " * (left - width_of(name))
        lines.append(f"{name}{space}  {probability:4.0%}  {cells}".rstrip())
    return lines


def alignment_picture(found: Explained) -> str:
    """The same as SVG: the source along the top, words slanted, the words said with their
    probabilities on the left, the weights as shades and, under the pointer, as numbers."""
    drawing = Drawing()
    source = [cut(printable(word), 2 * LONGEST_NAME) for word in found.source]
    said = [cut(printable(word), 2 * LONGEST_NAME) for word in found.tokens]
    longest = max(text_width(word, 13) for word in source)
    left = LEFT + max(text_width(word, 14) for word in said) + 52
    top = HEAD + 24 + 0.77 * longest
    letters = all(len(word) == 1 for word in source)
    for k, word in enumerate(source):
        if letters:
            drawing.words((left + (k + 0.5) * CELL - 1, top - 12), word, 14, INK, "middle")
        else:
            at = (left + (k + 0.5) * CELL, top - 10)
            drawing.words(at, word, 13, INK, "start", turn=-50)
    rows = zip(said, found.probabilities, found.alignment, strict=True)
    for line, (word, probability, weights) in enumerate(rows):
        y = top + line * CELL
        middle = y + CELL / 2 - 1
        drawing.words((left - 50, middle), word, 14, INK, "end", weight=600)
        drawing.words((left - 10, middle), f"{probability:.0%}", 11, QUIET, "end")
        for k, weight in enumerate(weights):
            drawing.begin(f"{word} ← {source[k]}: {weight:.3f}")
            drawing.bar(left + k * CELL, y, CELL - 2, CELL - 2, mixed(PALE, DEEP, weight), 3)
            drawing.end()
    bottom = top + len(said) * CELL + 16
    drawing.words((left, bottom), "attention 0", 11, QUIET, "start")
    for k in range(SAMPLES):
        colour = mixed(PALE, DEEP, k / (SAMPLES - 1))
        drawing.bar(left + 68 + 14 * k, bottom - 6, 12, 12, colour)
    drawing.words((left + 72 + 14 * SAMPLES, bottom), "1", 11, QUIET, "start")
    wide = left + len(source) * CELL + 0.64 * longest + EDGE
    return drawing.svg(max(wide, left + 200), bottom + EDGE, "Where each word comes from")


@dataclass(frozen=True)
class TranslationExplanation:
    """A translation drawn as a matrix: the darker, the more a word looked there."""

    found: Explained

    def as_text(self, width: int, colour: bool) -> str:
        return f"{self.found.text}\n\n{alignment_text(self.found, width, colour)}"

    def as_svg(self) -> str:
        return alignment_picture(self.found)


# --- tiles ---------------------------------------------------------------------------------------

TILE, GAP, TOP, MARGIN = 120.0, 16.0, 66.0, 24.0  # pixels
MOST_BESIDE = 5  # tiles in a row
VEIL = 0.68  # how dark a region is that nothing looks at


def gaze_text(found: Gaze, width: int = 80, colour: bool = False) -> str:
    """A square for each word, with its probability above: the darker a region, the more the word
    looked there, the darkest being where it looked most. As many beside each other as fit."""
    tall, wide = found.grid
    room = max(2 * wide, 8)
    beside = max(1, (width + 2) // (room + 2))
    words = list(zip(found.tokens, found.probabilities, found.attention, strict=True))
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


def gaze_picture(found: Gaze, picture: Picture) -> str:
    """The picture (channels, height, width), and once more for each word with its probability: what
    the word did not look at lies in the dark, and the region that it looked at most is framed.
    Weights are numbers under the pointer."""
    drawing = _Tiles()
    content = "data:image/png;base64,"
    content += b64encode(encode_png(np.moveaxis(picture, 0, -1))).decode("ascii")
    drawing.words((MARGIN, MARGIN + 6), found.text, 17, INK, "start", weight=600)
    tiles = len(found.tokens) + 1
    beside = min(tiles, MOST_BESIDE)
    high = TILE + 40
    for k in range(tiles):
        x = MARGIN + k % beside * (TILE + GAP)
        y = TOP + k // beside * high + 18
        drawing.image(x, y, content)
        if k == 0:
            drawing.words((x, y - 12), "the picture", 13, QUIET, "start")
            continue
        word, probability = printable(found.tokens[k - 1]), found.probabilities[k - 1]
        drawing.words((x, y - 12), cut(word, LONGEST_NAME), 14, INK, "start", weight=600)
        drawing.words((x + TILE, y - 12), f"{probability:.0%}", 11, QUIET, "end")
        _shade(drawing, found, k - 1, x, y)
    lines = -(-tiles // beside)
    bottom = TOP + lines * high + 14
    told = "the brighter, the more a word looked there; framed: where it looked most"
    drawing.words((MARGIN, bottom), told, 11, QUIET, "start")
    wide = 2 * MARGIN + beside * (TILE + GAP) - GAP
    return drawing.svg(wide, bottom + MARGIN, "Where each word looks")


def _shade(drawing: _Tiles, found: Gaze, word: int, x: float, y: float) -> None:
    """The veil over a tile, region by region."""
    tall, wide = found.grid
    height, width = TILE / tall, TILE / wide
    weights = found.attention[word]
    most = max(weights)
    for region, weight in enumerate(weights):
        row, column = divmod(region, wide)
        drawing.begin(f"{found.tokens[word]}: {weight:.3f}")
        dark = VEIL * (1 - weight / most)
        drawing.veil(x + column * width, y + row * height, width, height, dark)
        drawing.end()
    row, column = divmod(max(range(len(weights)), key=weights.__getitem__), wide)
    drawing.frame(x + column * width, y + row * height, width, height)


@dataclass(frozen=True)
class CaptionExplanation:
    """A caption drawn as squares: the darker a region, the more a word looked there."""

    found: Gaze
    picture: Picture

    def as_text(self, width: int, colour: bool) -> str:
        return f"{self.found.text}\n\n{gaze_text(self.found, width, colour)}"

    def as_svg(self) -> str:
        return gaze_picture(self.found, self.picture)
