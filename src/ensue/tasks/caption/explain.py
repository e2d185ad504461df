"""Where the words of a caption look."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ensue.data.pictures.images import Picture, encode_png
from ensue.data.rows import Place
from ensue.drawing.document import Drawn
from ensue.drawing.layout import cut, width_of
from ensue.drawing.svg import INK, QUIET, Drawing, number
from ensue.drawing.theme import shaded
from ensue.escape import printable
from ensue.tasks.caption.answer import Gaze
from ensue.tasks.caption.network import CaptionNetwork
from ensue.tasks.explaining.options import EXPLAINED_PICTURE
from ensue.tasks.pictures.files import picture_from
from ensue.tasks.rows.collect import IN_MEMORY
from ensue.tasks.seq2seq.task import pair_networks
from ensue.tasks.task import NOTHING, Asked

if TYPE_CHECKING:
    from ensue.tasks.caption.task import Captioner

TILE, GAP, TOP, MARGIN = 120.0, 16.0, 66.0, 24.0  # pixels of the drawing
LONGEST_NAME = 16  # cells of a word
MOST_BESIDE = 5  # tiles in a row
VEIL = 0.68  # how dark a region is that nothing looks at


# --- in the terminal -------------------------------------------------------------------------


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


# --- as a picture ----------------------------------------------------------------------------


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
class CaptionExplanation(Drawn):
    """A caption drawn as squares: the darker a region, the more a word looked there."""

    found: Gaze
    picture: Picture

    def as_text(self, width: int = 80, colour: bool = False) -> str:
        return f"{self.found.text}\n\n{gaze_text(self.found, width, colour)}"

    def as_svg(self) -> str:
        return gaze_picture(self.found, self.picture)


class ExplainCaption:
    """The best caption of a picture, with the probability of each word and where it looked."""

    option = EXPLAINED_PICTURE

    def explain(self, model: Captioner, given: Any, asked: Asked = NOTHING) -> CaptionExplanation:
        """given: an array of bytes, or the name of a file."""
        model.must_be_fitted()
        task = model.task
        picture = picture_from(given, Place(IN_MEMORY, 1))
        part, target = task.asked([picture], model), model.learned.target
        best, probabilities = task.explained(task.sources(part, model), model)
        assert best.watched is not None
        found = Gaze(
            target.text_of(best.content),
            tuple(target.words.tokens_of(best.tokens)),
            probabilities,
            cast(CaptionNetwork, pair_networks(model)[0]).grid,
            tuple(tuple(row) for row in best.watched.tolist()),
        )
        return CaptionExplanation(found, picture)
